"""The loss of connectionist temporal classification, with the layout and options of torch."""

from typing import Any

from emberharmony import ops
from emberharmony.backend.host import host_indices
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import IndexOutOfBoundsError, ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses.operands import (
    Reduction,
    cast_to_result_dtype,
    convert_operands,
    reduce_losses,
    require_option,
    require_reduction,
)

_IMPOSSIBLE = 1e29
"""The bound above which a loss of `ops.ctc_loss` means that no alignment gives the target."""


def ctc(
    log_probs: TensorLike,
    targets: TensorLike,
    input_lengths: TensorLike,
    target_lengths: TensorLike,
    blank: int = 0,
    *,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Returns `-log p` of each target, where p sums over all alignments of its labels with the steps of the input.

    Args:
        log_probs: the logarithms of the probabilities of each step, `(steps, batch, classes)` or `(steps, classes)`.
            They are normalised over the classes, so logits give the same.
        targets: the labels, `(batch, labels)`, or those of all examples one after the other, `(sum of lengths,)`.
        input_lengths: the number of steps of each example, `(batch,)` or `()`.
        target_lengths: the number of its labels; labels after these do not count.
        blank: the class that stands for "no label".
        reduction: "none", "sum", or "mean": each loss is divided by the length of its target (at least 1) before.
        zero_infinity: whether the loss of a target that is too long for its input is 0, with a gradient of 0, in place
            of infinity.

    Raises:
        ArgumentError: if `blank` is not a class.
        IndexOutOfBoundsError: if a label or a length is out of range; for tensors see `ops.ctc_loss`.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> logits = [[[0.0, 0.0]], [[0.0, 0.0]]]
        >>> round(nn.losses.ctc(logits, [[1]], [2], [1]).tolist(), 4)
        0.2877

    Source: `torch.nn.functional.ctc_loss`; Graves et al., "Connectionist temporal classification", 2006.
    """
    require_reduction("ctc", reduction)
    (x,), result_dtype = convert_operands("ctc", log_probs)
    if len(x.shape) not in (2, 3):
        raise fault(
            ShapeError(
                f"ctc(): log_probs has shape {tuple(x.shape)}, expected (steps, batch, classes) or (steps, classes)"
            )
        )
    is_unbatched = len(x.shape) == 2
    x = ops.expand_dims(x, 0) if is_unbatched else ops.swapaxes(x, 0, 1)
    require_option("ctc", "blank", blank, 0 <= blank < x.shape[2], f"a class from 0 to {x.shape[2] - 1}")
    step_counts, label_lengths = (
        _lengths_vector(given_lengths, x.shape[0]) for given_lengths in (input_lengths, target_lengths)
    )
    labels = _labels_matrix(targets, label_lengths, x.shape[0], x.shape[2])
    losses = ops.ctc_loss(labels, x, label_lengths, step_counts, blank)
    losses = ops.where(ops.greater(losses, _IMPOSSIBLE), 0.0 if zero_infinity else ops.inf, losses)
    if reduction == "mean":
        target_counts = ops.cast(ops.maximum(ops.convert_to_tensor(label_lengths), 1), ops.dtype(losses))
        losses = ops.divide(losses, target_counts)
    if is_unbatched:
        return cast_to_result_dtype(ops.squeeze(losses, 0), result_dtype)
    return reduce_losses("ctc", losses, reduction, result_dtype)


def _lengths_vector(given_lengths: Any, batch: int) -> Any:
    """Returns input or target lengths as a vector of the batch, a tensor or a list."""
    if not ops.is_tensor(given_lengths) and not isinstance(given_lengths, Cell):
        return [given_lengths] * batch if isinstance(given_lengths, int) else given_lengths
    lengths_tensor = ops.convert_to_tensor(given_lengths)
    return lengths_tensor if lengths_tensor.shape else ops.broadcast_to(lengths_tensor, (batch,))


def _labels_matrix(targets: Any, lengths: Any, batch: int, classes: int) -> Tensor:
    """Returns the labels of all targets as a matrix (batch, labels), with 0 beyond the target lengths.

    Raises:
        IndexOutOfBoundsError: if a label that the host knows is too large.
        ShapeError: if the shape does not fit.
    """
    if not ops.is_tensor(targets) and not isinstance(targets, Cell):
        targets = host_indices(targets)
        if targets.size and targets.max() >= classes:
            raise fault(
                IndexOutOfBoundsError(f"ctc(): label {targets.max()} is out of range, expected 0 to {classes - 1}")
            )
    label_tensor = ops.cast(ops.convert_to_tensor(targets), "int64")
    label_counts = ops.convert_to_tensor(lengths)
    if len(label_tensor.shape) == 2:
        if label_tensor.shape[0] != batch:
            raise fault(ShapeError(f"ctc(): targets has shape {tuple(label_tensor.shape)}, expected ({batch}, labels)"))
        positions, longest_length = None, label_tensor.shape[1]
    else:
        host_lengths = [int(length) for length in ops.to_numpy(label_counts)]
        if len(label_tensor.shape) != 1 or sum(host_lengths) > label_tensor.shape[0]:
            raise fault(
                ShapeError(
                    f"ctc(): targets has shape {tuple(label_tensor.shape)}, expected ({batch}, labels) or "
                    f"({sum(host_lengths)},), with all labels one after the other"
                )
            )
        longest_length = max(host_lengths, default=0)
        target_starts = ops.expand_dims(ops.subtract(ops.cumsum(label_counts), label_counts), -1)
        positions = ops.add(target_starts, ops.arange(longest_length))
    is_inside = ops.less(ops.arange(longest_length), ops.expand_dims(label_counts, -1))
    labels = label_tensor if positions is None else ops.take(label_tensor, ops.where(is_inside, positions, 0), 0)
    labels = ops.where(is_inside, labels, 0)
    return ops.where(ops.less(labels, 0), classes, labels)  # negative ids would index from the end
