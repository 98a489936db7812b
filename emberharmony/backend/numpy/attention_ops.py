"""Attention, on NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.shared.attention import is_whole_rotation, rotation_tables
from emberharmony.core.options import is_number


class NumpyAttentionOps:
    """Holds the ops of `ops/attention.py`."""

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
        place = axis % x.ndim if -x.ndim <= axis < x.ndim else x.ndim
        plain = x.dtype.char in "fd" and not traditional and is_number(base) and base > 0 and is_number(scale)
        if not plain or not is_whole_rotation(x.shape, place, dims, offset, frequencies):
            return self.composed("rope")(x, dims, offset, traditional, base, scale, frequencies, axis)
        kind = x.dtype
        cosine, sine = rotation_tables(x.shape, offset, place, base, scale, kind.char, lambda table: table.astype(kind))
        half = x.shape[-1] // 2
        result = np.concatenate((x[..., half:], x[..., :half]), -1)
        result *= sine
        result += x * cosine
        return result
