"""The pairs of models: which there are, and how one is made."""

import importlib
from typing import Any

import numpy as np
from weights import leaves_of_torch, load, random_model

FIRST = (
    "llama torch mlx",
    "vit torch keras",
    "unet torch ours",
    "lstm keras mlx",
    "resnet torch flax",
    "whisper torch mlx",
)
"""The pairs of the first faults: a kind of model, the library of the first and that of the second."""

MORE = ("vit torch mlx", "lstm torch keras", "lstm torch mlx")
"""Right pairs that are compared besides."""

LAST = ("llama torch ours", "resnet torch keras", "vit mlx flax")
"""The pairs that are used first after the judge is finished."""


def module_of(library: str) -> Any:
    """Returns the module that defines the models of a library."""
    return importlib.import_module(f"models.in_{library}")


def make(kind: str, library: str, seed: int) -> Any:
    """Returns a model of a library with the weights of a seed."""
    reference = random_model(module_of("torch").MODELS[kind], seed)
    if library == "torch":
        return reference
    model = module_of(library).MODELS[kind]()
    if library == "flax":
        model.eval()
    if library == "keras":
        model(inputs(kind, library, seed)[0])
    load(library, model, leaves_of_torch(reference))
    return model


def inputs(kind: str, library: str, seed: int) -> tuple[Any, ...]:
    """Returns a batch, with the channels of images where the library has them."""
    draw = np.random.default_rng(seed)
    tokens = draw.integers(1, 50, (2, 9)).astype("int32")
    last = library in ("mlx", "keras", "flax")
    images = draw.normal(size=(2, 3, 16, 16)).astype("float32")
    sounds = draw.normal(size=(2, 8, 16)).astype("float32")
    images, sounds = (np.ascontiguousarray(np.moveaxis(x, 1, -1)) if last else x for x in (images, sounds))
    batch = {"llama": (tokens,), "lstm": (tokens,), "whisper": (sounds, tokens)}
    return batch.get(kind, (images,))
