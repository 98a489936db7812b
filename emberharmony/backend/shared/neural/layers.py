"""The shapes of linear maps, on all backends."""

from typing import Any


def is_linear(x: Any, weight: Any, bias: Any, transposed: bool) -> bool:
    """Returns whether the shapes of the arguments of `linear` fit together."""
    lengths = weight.shape
    if len(lengths) != 2 or not len(x.shape):
        return False
    sources, targets = (1, 0) if transposed else (0, 1)
    return x.shape[-1] == lengths[sources] and (bias is None or bias.shape == lengths[targets : targets + 1])
