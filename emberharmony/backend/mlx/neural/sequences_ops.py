"""Label sequences, on MLX, which reads any memory that an index points to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.core.deferred import Deferred
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def _clip_unchecked(numbers: Any, limit: int) -> Any:
    """Returns labels or lengths; those in a tensor, which are not checked, are clipped to the range 0 to limit - 1.

    In checked mode they are returned unchanged, because the composite then checks them when it uses them as indices.
    """
    if not isinstance(numbers, mx.array) or checking() or limit < 1:
        return numbers
    return mx.clip(numbers, 0, limit - 1).astype(numbers.dtype)


class MLXSequencesOps:
    """Holds the ops of `ops/neural/sequences.py`.

    It is the body, after labels and lengths are led inside the tensor, because MLX reads any memory that an index
    points to.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def ctc_loss(
        self, target: Any, output: mx.array, target_length: Any, output_length: Any, mask_index: int = 0
    ) -> mx.array:
        target_shape = target.shape if isinstance(target, mx.array) else np.shape(target)
        if output.ndim == 3 and len(target_shape) == 2:
            target = _clip_unchecked(target, output.shape[2])
            target_length = _clip_unchecked(target_length, target_shape[1] + 1)
        return self.composed("ctc_loss")(target, output, target_length, output_length, mask_index)
