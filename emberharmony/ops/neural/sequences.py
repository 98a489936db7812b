"""Connectionist temporal classification: the loss and the decoding of label sequences of unknown alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.backend.host import host_indices
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import float32
from emberharmony.core.errors import ArgumentError, IndexOutOfBoundsError, ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.creation import arange, full_like
from emberharmony.ops.arrays.indexing import get_item, take_along_axis, where
from emberharmony.ops.arrays.shape import broadcast_to, concatenate, expand_dims, pad, reshape, stack
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype, result_type
from emberharmony.ops.logic.comparison import equal, greater, greater_equal, less, logical_and, not_equal
from emberharmony.ops.math import add, maximum, multiply, negative, subtract
from emberharmony.ops.neural.activation import log_softmax
from emberharmony.ops.reductions.reduction import argmax, logsumexp, max, sum
from emberharmony.ops.reductions.sorting import argsort
from emberharmony.ops.tensor import cast, convert_to_tensor, is_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import sequences as decoding
else:
    decoding = Deferred("emberharmony.backend.shared.neural.sequences")

_NEVER = -1e30
"""Replaces log(0) = -inf, whose gradients would be NaN."""


def _integers_within(numbers: Any, limit: int, what: str) -> Tensor:
    """Returns labels or lengths as a tensor; values that the host knows are checked."""
    if is_tensor(numbers):
        return numbers
    host_numbers = host_indices(numbers)
    outside_numbers = host_numbers[(host_numbers < 0) | (host_numbers >= limit)]
    if outside_numbers.size:
        raise IndexOutOfBoundsError(f"{what} {outside_numbers.flat[0]} is out of bounds: expected 0 to {limit - 1}")
    return convert_to_tensor(host_numbers)


@op(autocast="float32", reads="checks")
def ctc_loss(
    target: Tensor | Sequence[Sequence[int]],
    output: TensorLike,
    target_length: Tensor | Sequence[int],
    output_length: Tensor | Sequence[int],
    mask_index: int = 0,
) -> Tensor:
    """Returns `-log p` of each target, where p sums over all alignments of its labels with the steps of the output.

    Args:
        target: (batch, labels): the classes of each sequence, integers.
        output: (batch, steps, classes): logits.
        target_length: (batch,): how many labels of each row count.
        output_length: (batch,): how many steps of each row count.
        mask_index: the class that stands for "no label"; a negative number counts from the last class.

    Shape: target (batch, labels), output (batch, steps, classes), lengths (batch,) to (batch,).

    In tensors, labels and target lengths that are out of range are detected on NumPy and PyTorch, and on MLX in checked
    mode only; otherwise MLX uses the nearest class or length. In tensors, an output length that is too long counts as
    all steps.

    Raises:
        ShapeError: if the shapes do not fit.
        IndexOutOfBoundsError: if `mask_index` or a label is not a class, or if a length is too long.

    See also: `nn.CTCLoss`, the loss as a module; `ctc_decode`, the labels.

    Source: Graves et al., Connectionist temporal classification, 2006, section 4.1.
    """
    if output.ndim != 3:
        raise ShapeError(f"expected output of shape (batch, steps, classes), got {tuple(output.shape)}")
    class_count = output.shape[2]
    mask_index = as_index(mask_index)
    if not -class_count <= mask_index < class_count:
        raise IndexOutOfBoundsError(f"mask_index {mask_index} is out of range for {class_count} classes")
    mask_index %= class_count
    target = _integers_within(target, class_count, "label")
    if len(target.shape) != 2 or target.shape[0] != output.shape[0]:
        raise ShapeError(f"expected target of shape ({output.shape[0]}, labels), got {tuple(target.shape)}")
    batch, label_count = target.shape
    target_length = _integers_within(target_length, label_count + 1, "target length")
    output_length = _integers_within(output_length, output.shape[1] + 1, "output length")
    for lengths in (target_length, output_length):
        if tuple(lengths.shape) != (batch,):
            raise ShapeError(f"expected lengths of shape ({batch},), got {tuple(lengths.shape)}")
    state_count = 2 * label_count + 1
    # CTC allows a blank before, between and after the labels.
    blanks_and_labels = reshape(stack([full_like(target, mask_index), target], -1), (batch, 2 * label_count))
    labels_and_blanks = pad(blanks_and_labels, [(0, 0), (0, 1)], "constant", mask_index)
    step_count = output.shape[1]
    emitted_classes = broadcast_to(expand_dims(labels_and_blanks, 1), (batch, step_count, state_count))
    log_probs = take_along_axis(log_softmax(output, -1), emitted_classes, -1)
    later_labels, earlier_labels = (
        get_item(labels_and_blanks, (slice(None), label_slice)) for label_slice in (slice(2, None), slice(0, -2))
    )
    can_skip = logical_and(not_equal(later_labels, mask_index), not_equal(later_labels, earlier_labels))
    can_skip = get_item(pad(can_skip, [(0, 0), (2, 0)]), (slice(None), slice(0, state_count)))
    state_numbers = arange(state_count, device=get_device(output))
    # Before the first step only the empty path exists, in the first state.
    scores = broadcast_to(cast(where(less(state_numbers, 1), 0.0, _NEVER), dtype(log_probs)), (batch, state_count))
    for step in range(step_count):
        step_scores = get_item(log_probs, (slice(None), step))
        if step:
            arriving_scores = [scores, _delay_scores(scores, 1), where(can_skip, _delay_scores(scores, 2), _NEVER)]
            step_scores = add(logsumexp(stack(arriving_scores, -1), -1), step_scores)
        else:
            step_scores = where(less(state_numbers, 2), step_scores, _NEVER)
        scores = where(expand_dims(greater(output_length, step), -1), step_scores, scores)
    return negative(logsumexp(_end_scores(scores, target_length), -1))


def _end_scores(scores: Tensor, target_length: Tensor) -> Tensor:
    """Returns the logarithms of the probabilities to end in the last blank and in the last label: (batch, 2)."""
    last_state = expand_dims(multiply(target_length, 2), -1)
    blank_score = take_along_axis(scores, last_state, -1)
    label_score = take_along_axis(scores, maximum(subtract(last_state, 1), 0), -1)
    return concatenate([blank_score, where(greater(last_state, 0), label_score, _NEVER)], -1)


@op(reads="host")
def ctc_decode(
    inputs: TensorLike,
    sequence_lengths: TensorLike,
    strategy: Literal["greedy", "beam_search"] = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int | None = 0,
) -> tuple[Tensor, Tensor]:
    """Returns the most likely labels for logits, with -1 after the last label, and the score of each sequence.

    "greedy" takes the most likely class of each step; the score is minus the sum of the logits of these classes.
    "beam_search" finds the `top_paths` most likely sequences over all alignments, and keeps `beam_width` of them at
    each step; scores are the logarithms of their probabilities, and -inf for missing sequences. It runs on the host and
    has no gradients.

    Args:
        inputs: (batch, steps, classes): logits.
        sequence_lengths: (batch,): how many steps of each row count.
        strategy: "greedy" takes the most likely class of each step, "beam_search" the most likely sequences.
        beam_width: how many sequences "beam_search" keeps at each step.
        top_paths: how many sequences "beam_search" returns, up to `beam_width`.
        merge_repeated: whether "greedy" merges equal classes of consecutive steps into one label; "beam_search" always
            does.
        mask_index: the class that stands for "no label"; None is the last class.

    Shape: inputs (batch, steps, classes) and lengths (batch,) to labels (paths, batch, steps) and scores (batch,
    paths); "greedy" gives one path. Dtype: labels are int64; scores are float64 for float64, else float32.

    Raises:
        ArgumentError: if `strategy` is unknown, `mask_index` is not a class, or `top_paths` is larger than
            `beam_width`.
        ShapeError: if the shapes do not fit.

    See also: `ctc_loss`, for training.

    Example:
        >>> labels, scores = ops.ctc_decode([[[0.0, 2.0], [0.0, 1.0], [3.0, 0.0], [0.0, 4.0]]], [4])
        >>> labels.tolist(), scores.tolist()
        ([[[1, 1, -1, -1]]], [[-10.0]])

    Source: Graves et al., Connectionist temporal classification, 2006, section 3.2.
    """
    if inputs.ndim != 3 or tuple(sequence_lengths.shape) != (inputs.shape[0],):
        expected_text = "outputs (batch, steps, classes) and lengths (batch,)"
        raise ShapeError(f"expected {expected_text}, got {tuple(inputs.shape)} and {tuple(sequence_lengths.shape)}")
    step_count, class_count = inputs.shape[1:]
    top_paths, beam_width = as_index(top_paths), as_index(beam_width)
    blank_class = class_count - 1 if mask_index is None else as_index(mask_index)
    if not 0 <= blank_class < class_count:
        raise ArgumentError(f"mask_index {mask_index} is out of range for {class_count} classes")
    logits, device = cast(inputs, result_type(inputs, float32)), get_device(inputs)
    if strategy == "beam_search":
        if not 1 <= top_paths <= beam_width:
            raise ArgumentError(f"expected top_paths from 1 to beam_width={beam_width}, got {top_paths}")
        host_logits = to_numpy(logits).astype("float64")
        paths, best_scores = decoding.beam_search(
            host_logits, to_numpy(sequence_lengths), beam_width, top_paths, blank_class
        )
        return convert_to_tensor(paths, device=device), convert_to_tensor(best_scores, dtype(logits), device=device)
    if strategy != "greedy":
        raise ArgumentError(f"expected strategy 'greedy' or 'beam_search', got {strategy!r}")
    is_over = greater_equal(arange(step_count, device=device), expand_dims(to_device(sequence_lengths, device), -1))
    labels = where(is_over, blank_class, argmax(logits, -1))
    if merge_repeated:
        later_labels = get_item(labels, (slice(None), slice(1, None)))
        is_repeated = equal(later_labels, get_item(labels, (slice(None), slice(0, -1))))
        labels = where(pad(is_repeated, [(0, 0), (1, 0)]), blank_class, labels)
    is_blank = equal(labels, blank_class)
    sorting_indices = argsort(cast(is_blank, "int32"), -1)
    scores = negative(sum(where(is_over, 0.0, max(logits, -1)), -1, keepdims=True))
    return expand_dims(take_along_axis(where(is_blank, -1, labels), sorting_indices, -1), 0), scores


def _delay_scores(scores: Tensor, by: int) -> Tensor:
    """Returns the scores moved to later states; the first states get the score of an impossible path."""
    padded_scores = pad(scores, [(0, 0), (by, 0)], constant_values=_NEVER)
    return get_item(padded_scores, (slice(None), slice(0, scores.shape[1])))
