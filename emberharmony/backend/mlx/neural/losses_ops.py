"""Losses, on MLX: the logarithm of the softmax at the labels alone."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.neural.activation_ops import SHORT
from emberharmony.backend.mlx.reductions.reduction_ops import detached_maximum
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import losses as shared_losses
else:
    shared_losses = Deferred("emberharmony.backend.shared.neural.losses")


class MLXLossesOps:
    """Holds the ops of `ops/neural/losses.py`.

    The body of `cross_entropy` takes 2.3 times as long, for few elements; labels out of range are kept inside the
    tensor, because MLX checks no index.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def sparse_categorical_crossentropy(
        self, target: mx.array, output: mx.array, from_logits: bool = False, axis: int = -1
    ) -> mx.array:
        fits_fast_path = output.dtype == mx.float32 and DTYPES.neutral[target.dtype].kind == "signed"
        fits_fast_path = (
            fits_fast_path and target.shape == output.shape[:-1] and output.size > 0 and from_logits and axis == -1
        )
        # On the CPU mx.logsumexp (MLX 0.32) adds float32 sequentially, and loses digits over many classes.
        if not fits_fast_path or (on_cpu() and output.shape[-1] > SHORT):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        # A label out of range has loss 0: it selects the last class here, and is masked below. Read as unsigned,
        # negative labels are too large.
        unsigned_ids, last_class = target.astype(mx.int64).view(mx.uint64), output.shape[-1] - 1
        losses = _negative_log_softmax(output, mx.expand_dims(mx.minimum(unsigned_ids, last_class), -1))
        return mx.where(unsigned_ids <= last_class, losses, mx.array(0, output.dtype))

    def cross_entropy(
        self,
        input: mx.array,
        target: mx.array,
        weight: mx.array | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> mx.array:
        fits_fast_path = input.dtype == mx.float32 and DTYPES.neutral[target.dtype].kind == "signed" and input.size > 0
        fits_fast_path = (
            fits_fast_path and axis == -1 and target.shape == input.shape[:-1] and reduction in shared_losses.REDUCTIONS
        )
        if (
            not fits_fast_path
            or weight is not None
            or label_smoothing
            or ignore_index.__class__ is not int
            or (on_cpu() and max(input.shape[-1], target.size) > SHORT)
            or checking()
        ):
            return self.composed("cross_entropy")(input, target, weight, reduction, ignore_index, label_smoothing, axis)
        class_count = input.shape[-1]
        ids = target if target.dtype == mx.int64 else target.astype(mx.int64)
        unsigned_ids = ids.view(mx.uint64)
        is_valid = unsigned_ids < class_count
        if 0 <= ignore_index < class_count:
            is_valid = mx.logical_and(is_valid, ids != ignore_index)
        # An id that is ignored or out of range selects the last class here, and its loss becomes 0 below.
        safe_ids = mx.expand_dims(mx.minimum(unsigned_ids, class_count - 1), -1)
        losses = mx.where(is_valid, _negative_log_softmax(input, safe_ids), mx.array(0, input.dtype))
        if reduction != "mean":
            return losses if reduction == "none" else mx.sum(losses)
        # If no position counts, the mean is NaN, and its gradient 0.
        valid_count = mx.sum(is_valid)
        return mx.where(valid_count, mx.sum(losses) / mx.maximum(valid_count, 1), math.nan)


def _negative_log_softmax(x: mx.array, class_index: mx.array) -> mx.array:
    """Returns the negative logarithm of the softmax at one index of each row."""
    shifted_x = x - detached_maximum(x, -1)
    return mx.logsumexp(shifted_x, -1) - mx.squeeze(mx.take_along_axis(shifted_x, class_index, -1), -1)
