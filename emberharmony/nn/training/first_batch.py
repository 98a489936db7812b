"""The block of the first step of `fit`, in which losses of logits notice probabilities."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.errors import TrainingWarning
from emberharmony.nn.layers.activations import Sigmoid
from emberharmony.nn.losses.operands import LOOKS
from emberharmony.nn.module import Module

_NEAR = 1e-3
"""How near to 1 the sums of probabilities are."""


@contextlib.contextmanager
def first_step(module: Module) -> Iterator[None]:
    """Returns a block for the first step: indices are checked, and losses of logits warn of probabilities.

    Args:
        module: the model.
    """

    def look(name: str, given: Any, axis: int | None) -> None:
        x = ops.stop_gradient(given)
        values = selection.current().at_hand(x)
        if values is None or not values.size or values.min() < 0.0 or values.max() > 1.0:
            return
        last = [part for _, part in module.named_modules()][-1]
        if name == "cross_entropy" and values.ndim > 1 and values.max() > values.min():
            if abs(values.sum(1 if axis is None else axis) - 1.0).max() < _NEAR:
                _warn(name, "a softmax")
        elif name == "binary_cross_entropy_with_logits" and isinstance(last, Sigmoid):
            _warn(name, "a sigmoid")

    LOOKS.append(look)
    try:
        with ops.checked("bounds"):
            yield
    finally:
        LOOKS.remove(look)


def _warn(name: str, function: str) -> None:
    warnings.warn(
        f"{name}() got probabilities, but has {function} of its own, so the model learns slowly: leave yours "
        f"out of the model and of the loss function",
        TrainingWarning,
        stacklevel=6,
    )
