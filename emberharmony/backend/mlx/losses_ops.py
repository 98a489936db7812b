"""Losses, on MLX: the logarithm of the softmax at the labels alone."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.mlx.activation_ops import SHORT
from emberharmony.backend.mlx.dtypes import DTYPES
from emberharmony.backend.mlx.elementary_ops import on_cpu


class MLXLossesOps:
    """Holds the ops of `ops/losses.py`."""

    composed: Callable[[str], Callable[..., mx.array]]

    def sparse_categorical_crossentropy(
        self, target: mx.array, output: mx.array, from_logits: bool = False, axis: int = -1
    ) -> mx.array:
        plain = output.dtype == mx.float32 and DTYPES.neutral[target.dtype].kind == "signed"
        plain = plain and target.shape == output.shape[:-1] and output.size > 0 and from_logits and axis == -1
        # On the CPU mx.logsumexp (MLX 0.32) adds float32 sequentially, and loses digits over many classes.
        if not plain or (on_cpu() and output.shape[-1] > SHORT):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        # A label out of range has loss 0: it selects class 0 here, and is masked below.
        known = mx.logical_and(target >= 0, target < output.shape[-1])
        place = mx.expand_dims(mx.where(known, target, mx.array(0, target.dtype)), -1)
        shifted = output - mx.stop_gradient(mx.max(output, -1, True))
        lost = mx.logsumexp(shifted, -1) - mx.squeeze(mx.take_along_axis(shifted, place, -1), -1)
        return mx.where(known, lost, mx.array(0, lost.dtype))
