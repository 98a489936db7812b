"""Checks in the first step of `fit` that indices are valid and that losses of logits get no probabilities."""

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

_DOUBLE = "but has {} of its own, so the model learns slowly: leave yours out of the model and of the loss function"
_NO_LOG = "but takes their logarithms: use ops.log_softmax in the place of ops.softmax"
_NEAR = 1e-3
"""The largest deviation from 1 at which sums still count as sums of probabilities."""


@contextlib.contextmanager
def watch_first_step(module: Module) -> Iterator[None]:
    """A context for the first training step that checks indices and warns if losses of logits get probabilities.

    Args:
        module: the model.
    """

    def warn_of_probabilities(name: str, given: Any, axis: int | None) -> None:
        x = ops.stop_gradient(given)
        host_values = selection.current().array_if_cheap(x)
        if host_values is None or not host_values.size or host_values.min() < 0.0 or host_values.max() > 1.0:
            return
        last_module = [submodule for _, submodule in module.named_modules()][-1]
        if name == "binary_cross_entropy_with_logits":
            warning_text = _DOUBLE.format("a sigmoid") if isinstance(last_module, Sigmoid) else ""
        elif host_values.ndim < 2 or host_values.max() == host_values.min():
            return
        else:
            is_normal = abs(host_values.sum(1 if axis is None else axis) - 1.0).max() < _NEAR
            warning_text = {"cross_entropy": _DOUBLE.format("a softmax")}.get(name, _NO_LOG) if is_normal else ""
        if warning_text:
            warnings.warn(f"{name}() got probabilities, {warning_text}", TrainingWarning, stacklevel=4)

    LOOKS.append(warn_of_probabilities)
    try:
        with ops.checked("bounds"):
            yield
    finally:
        LOOKS.remove(warn_of_probabilities)
