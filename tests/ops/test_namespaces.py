"""The namespaces `ops.fft`, `ops.image`, `ops.linalg`, `ops.nn` and `ops.random`."""

import importlib

import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS

NAMESPACES = ("fft", "image", "linalg", "nn", "random")
WHOLE = {name: name for name in ("fft", "image", "linalg", "random")}
WHOLE |= dict.fromkeys(("activation", "attention", "losses", "normalization", "pooling"), "nn")
WHOLE |= dict.fromkeys(("resampling", "warping"), "image") | {"distributions": "random"}
"""The categories whose ops are all in one namespace."""


def test_nn_contains_the_ops_of_keras_nn() -> None:
    names = "relu softmax conv max_pool layer_normalization binary_crossentropy dot_product_attention one_hot"
    assert all(getattr(ops.nn, name) is getattr(ops, name) for name in names.split())


@pytest.mark.parametrize("name", NAMESPACES)
def test_dir_of_a_namespace_shows_only_its_public_names(name: str) -> None:
    space = importlib.import_module(f"emberharmony.ops.{name}")
    assert space is getattr(ops, name)
    assert [n for n in dir(space) if not n.startswith("__")] == space.__all__


def test_every_op_of_a_category_is_in_its_namespace() -> None:
    found = {spec.category for spec in OPS.values()}
    assert found >= WHOLE.keys()
    for name, spec in OPS.items():
        if spec.category in WHOLE:
            namespace = WHOLE[spec.category]
            assert getattr(getattr(ops, namespace), name.removeprefix(f"{namespace}_")) is spec.function, name


def test_names_in_ops_random_lack_the_prefix_random() -> None:
    assert ops.random.normal is ops.random_normal
    assert ops.random.SeedGenerator is ops.random.Generator
    assert not any(name.startswith("random_") for name in dir(ops.random))


def test_dir_of_ops_shows_only_its_public_names() -> None:
    assert dir(ops) == ops.__all__
