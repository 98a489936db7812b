"""Families of layers: what the base says stands in the help of each of its layers."""

import inspect

import pytest

from emberharmony import nn
from emberharmony.nn.spatial import Spatial

FAMILIES = [layer for name in nn.__all__ if inspect.isclass(layer := getattr(nn, name)) and issubclass(layer, Spatial)]


@pytest.mark.parametrize("layer", FAMILIES, ids=lambda layer: layer.__name__)
def test_the_help_of_a_layer_describes_each_of_its_parameters_once(layer: type[Spatial]) -> None:
    text = inspect.getdoc(layer) or ""
    for name in inspect.signature(layer).parameters:
        assert text.count(f"\n    {name}: ") in (1, 2 if name == "bias" else 1), name  # the bias is an attribute too
    assert [text.count(f"\n{head}:") for head in ("Args", "Example")] == [1, 1]
    assert layer.__name__.endswith(f"{layer.axes}d")


def test_a_layer_of_ones_own_keeps_its_text_and_its_axes() -> None:
    class Blurred(nn.Conv2d):
        """A convolution whose kernel is fixed."""

    assert (Blurred.axes, Blurred.__doc__) == (2, "A convolution whose kernel is fixed.")
