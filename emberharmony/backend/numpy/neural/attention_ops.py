"""Attention, on NumPy."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import attention as shared_attention
else:
    shared_attention = Deferred("emberharmony.backend.shared.neural.attention")


class NumpyAttentionOps:
    """Holds the ops of `ops/neural/attention.py`.

    The body takes 3.3 times as long, for few elements.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    def rope(
        self,
        x: np.ndarray,
        dims: int | None = None,
        offset: Any = 0,
        traditional: bool = False,
        base: Any = 10000.0,
        scale: Any = 1.0,
        frequencies: Any = None,
        axis: int = 1,
    ) -> np.ndarray:
        position_axis = shared_attention.supported_position_axis(
            x.shape, dims, offset, traditional, base, scale, frequencies, axis
        )
        if position_axis is None or x.dtype.char not in "fd":
            return self.composed("rope")(x, dims, offset, traditional, base, scale, frequencies, axis)
        dtype = x.dtype
        cosine, sine = shared_attention.rotation_tables(
            x.shape, offset, position_axis, base, scale, dtype.char, lambda table: table.astype(dtype)
        )
        half_length = x.shape[-1] // 2
        rotated_x = np.concatenate((x[..., half_length:], x[..., :half_length]), -1)
        rotated_x *= sine
        rotated_x += x * cosine
        return rotated_x
