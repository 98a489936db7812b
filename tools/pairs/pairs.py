"""The pairs of models: which there are, and how one is made."""

import importlib
from typing import Any

import numpy as np
from weights import leaves_of_torch, load_weights, random_model

ROUNDS = {
    "first": (
        "llama torch mlx",
        "vit torch keras",
        "unet torch ours",
        "lstm keras mlx",
        "resnet torch flax",
        "whisper torch mlx",
    ),
    "second": ("llama torch ours", "resnet torch keras", "vit mlx flax"),
    "third": ("llama torch flax", "unet torch keras", "gru torch mlx"),
    "fourth": ("vit keras equinox", "llama mlx ours", "gpt2 torch mlx"),
    "fifth": ("convnext torch keras", "bert torch ours", "mixer flax keras"),
    "sixth": ("mixer torch mlx", "convnext torch ours", "gpt2 torch ours"),
    "seventh": ("gpt2 mlx ours", "unet keras ours", "vit torch equinox"),
    "eighth": ("llama mlx flax", "mixer torch keras", "mixer mlx keras"),
}
"""The pairs of each round of faults: a kind of model, the library of the first and that of the second.

A pair is in the round in which it was compared first; the judge was changed between rounds only.
"""

MORE = ("vit torch mlx", "lstm torch keras", "lstm torch mlx")
"""Right pairs that are compared besides."""


def module_of_models(kind: str, library: str) -> Any:
    """Returns the module that defines the models of a kind and library."""
    for name in (f"models.in_{library}", f"models.more_in_{library}"):
        module = importlib.import_module(name)
        if kind in module.MODELS:
            return module
    raise ValueError(f"there is no {kind} of {library}")


def make_model(kind: str, library: str, seed: int) -> Any:
    """Returns a model of a library with the weights of a seed."""
    reference = random_model(module_of_models(kind, "torch").MODELS[kind], seed)
    if library == "torch":
        return reference
    model = module_of_models(kind, library).MODELS[kind]()
    if library in ("flax", "mlx"):
        model.eval()
    if library == "keras":
        model(make_inputs(kind, library, seed)[0])
    load_weights(library, model, leaves_of_torch(reference))
    if library == "equinox":
        import jax

        return jax.vmap(model)
    return model


def make_inputs(kind: str, library: str, seed: int) -> tuple[Any, ...]:
    """Returns a batch, with the channels of images where the library has them."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, 50, (2, 9)).astype("int32")
    channels_last = library in ("mlx", "keras", "flax")
    images = rng.normal(size=(2, 3, 16, 16)).astype("float32")
    sounds = rng.normal(size=(2, 8, 16)).astype("float32")
    images, sounds = (np.ascontiguousarray(np.moveaxis(x, 1, -1)) if channels_last else x for x in (images, sounds))
    if kind == "gru":
        return (np.moveaxis(rng.normal(size=(2, 8, 16)), 1, -1).astype("float32"),)
    batch_by_kind = {"whisper": (sounds, tokens)} | dict.fromkeys(("llama", "lstm", "gpt2", "bert"), (tokens,))
    return batch_by_kind.get(kind, (images,))
