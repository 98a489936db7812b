"""Losses, on PyTorch.

The composite computes `binary_crossentropy` of probabilities, because PyTorch's kernel is no faster.
"""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from emberharmony.backend.torch.tracing import HAS_VALUES, has_values
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import losses as shared_losses
else:
    shared_losses = Deferred("emberharmony.backend.shared.neural.losses")


_PLAIN_IDS = (
    "{2} is None and {0}.ndim == 2 and {1}.ndim == 1 and {1}.__class__ is native_type and {1}.dtype is int64_of_torch "
    "and {3}.__class__ is str and {4}.__class__ is int and {5}.__class__ is float and 0 <= {5} <= 1 "
    "and ({6} == -1 or {6} == 1) and {0}.dtype.is_floating_point and {0}.itemsize > 2 and {0}.numel() "
    f"and {HAS_VALUES}"
)
"""When the kernel checks the ids of the classes: if one is out of range, it raises an error."""


def _quick_cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    _weight: None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    _axis: int,
) -> torch.Tensor:
    """Returns the loss of rows of logits; `index` raises if there is no such reduction."""
    return _cross_entropy(input, target, None, shared_losses.REDUCTIONS.index(reduction), ignore_index, label_smoothing)


class TorchLossesOps:
    """Holds the ops of `ops/neural/losses.py`.

    PyTorch's kernels keep no probabilities, and differentiate themselves: the body of `cross_entropy` takes 4.2 times
    as long, for few elements, and the gradient of that of `categorical_crossentropy` twice as long.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    def categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        is_supported = target.dtype is output.dtype and target.shape == output.shape and output.is_floating_point()
        if not (is_supported and from_logits and axis == -1 and output.ndim == 2):
            return self.composed("categorical_crossentropy")(target, output, from_logits, axis)
        return functional.cross_entropy(output, target, reduction="none")

    @fast(
        lambda target, output, from_logits, axis: _cross_entropy(output, target, None, 0, -100, 0.0),
        "{2} is True and {3} == -1 and {1}.ndim == 2 and {0}.ndim == 1 and {0}.dtype is int64_of_torch "
        f"and {{1}}.dtype.is_floating_point and {{1}}.__class__ is native_type and {{1}}.numel() and {HAS_VALUES}",
    )
    def sparse_categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        is_supported = target.dtype is torch.int64 and target.shape == output.shape[:-1] and output.is_floating_point()
        if not (is_supported and from_logits and axis == -1):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        if output.is_cpu and output.numel() and has_values(target) and has_values(output):
            rows, labels = (output, target) if output.ndim < 3 else (output.flatten(0, -2), target.flatten())
            # The kernel raises an error for a label out of range, on a GPU one that ends the process.
            with contextlib.suppress(IndexError):
                losses = _cross_entropy(rows, labels, None, 0, -100, 0.0)
                return losses if output.ndim < 3 else losses.reshape(target.shape)
        # A label out of range has loss 0: it selects class 0 here, and is masked below.
        is_valid = (target >= 0) & (target < output.shape[-1])
        valid_ids = torch.where(is_valid, target, 0).unsqueeze(-1)
        losses = torch.log_softmax(output, -1).gather(-1, valid_ids).squeeze(-1).neg()
        return torch.where(is_valid, losses, 0)

    @fast(_quick_cross_entropy, _PLAIN_IDS, whole=True)
    def cross_entropy(
        self,
        input: torch.Tensor,
        target: torch.Tensor,
        weight: torch.Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> torch.Tensor:
        rank, class_axis = input.ndim, axis if axis >= 0 else axis + input.ndim
        is_supported = (
            target.dtype is torch.int64 and input.dtype in _FLOATS and 0 <= class_axis < rank and input.numel() > 0
        )
        is_supported = (
            is_supported
            and reduction in shared_losses.REDUCTIONS
            and is_number(label_smoothing)
            and 0.0 <= label_smoothing <= 1.0
        )
        # Where PyTorch traces or maps the ids, or has them on a GPU, the check of the kernel cannot be caught.
        if (
            is_supported
            and has_values(target)
            and has_values(input)
            and (weight is None or _is_constant(weight, input))
        ):
            shape = input.shape
            if target.shape == shape[:class_axis] + shape[class_axis + 1 :] and (
                weight is None or weight.shape == shape[class_axis : class_axis + 1]
            ):
                x, ids = input, target
                if rank > 2 and class_axis == rank - 1:
                    x, ids = x.flatten(0, -2), ids.flatten()
                elif rank > 1 and class_axis != 1:
                    x = x.movedim(class_axis, 1)
                try:
                    losses = _cross_entropy(
                        x, ids, weight, shared_losses.REDUCTIONS.index(reduction), ignore_index, label_smoothing
                    )
                    return losses.reshape(target.shape) if ids is not target and reduction == "none" else losses
                except IndexError:  # an id is out of range: the composite names it
                    pass
        return self.composed("cross_entropy")(input, target, weight, reduction, ignore_index, label_smoothing, axis)


_cross_entropy: Any = torch._C._nn.cross_entropy_loss
"""The kernel behind `functional.cross_entropy`, whose checks of deprecated arguments cost 1 µs."""

_FLOATS = (torch.float32, torch.float64)


def _is_constant(weight: torch.Tensor, x: torch.Tensor) -> bool:
    """Returns whether a kernel can take the weight of each class, by which it has no derivative."""
    return weight.dtype is x.dtype and has_values(weight) and not weight.requires_grad
