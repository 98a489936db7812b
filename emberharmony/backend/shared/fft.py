"""Checks of the Fourier transforms' arguments, alike on every backend."""

from collections.abc import Sequence

import numpy as np

from emberharmony.backend.promote import normalized
from emberharmony.backend.shared.device import check_memory
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentError
from emberharmony.core.options import integer


def along(shape: Sequence[int], n: int | None, axis: int, norm: str, halved: bool = False) -> tuple[int, int]:
    """Returns the axis of a transform, from 0, and its length; `halved` if the input is the half of a real one's.

    Raises: AxisError; ArgumentError for a length below 1 or an unknown normalisation.
    """
    (place,) = normalized(axis, len(shape))
    length = n if n is not None else 2 * (shape[place] - 1) if halved else shape[place]
    if length < 1:
        raise ArgumentError(f"a transform has at least one element, not {length}")
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    # A complex number takes 8 bytes or 16.
    check_memory((*shape[:place], length, *shape[place + 1 :]), 8)
    return place, length


def along_all(
    shape: Sequence[int], s: Sequence[int] | None, axes: Sequence[int] | None, norm: str, halved: bool = False
) -> list[tuple[int, int]]:
    """Returns the axes and lengths of a transform along several axes; the last one is `halved`.

    Raises: AxisError; ArgumentError for no axis at all, and as many lengths as there are no axes.
    """
    if axes is None:
        axes = range(len(shape)) if s is None else range(-len(s), 0)
    places = normalized(list(axes), len(shape))
    lengths = [None] * len(places) if s is None else list(s)
    if not places or len(lengths) != len(places):
        raise ArgumentError(f"a transform has one length an axis, and at least one, not s={s} along axes {places}")
    last = len(places) - 1
    return [
        along(shape, n, a, norm, halved and i == last) for i, (a, n) in enumerate(zip(places, lengths, strict=True))
    ]


def frequencies(n: int, d: float, halved: bool, dtype: DType) -> np.ndarray:
    """Returns the frequencies of the terms of a transform of length n, those below zero last.

    Args:
        d: the distance from one sample to the next.
        halved: whether the transform is that of a real tensor, which has no terms below zero.
        dtype: what the frequencies will be cast to; they are of single precision where that is enough.

    Raises: ArgumentError for a length below 1 or samples without distance; OutOfMemoryError.
    """
    length = integer("n", n, 1)
    if d == 0:
        raise ArgumentError(f"expected a sample spacing d other than 0, got {d}")
    check_memory((length,), 8)
    result = np.arange(length // 2 + 1 if halved else length, dtype=np.float64)
    if not halved:
        result[(length + 1) // 2 :] -= length
    result /= float(length * d)
    # MLX has no float64 on a GPU.
    single = (dtype.is_floating or dtype.is_complex) and dtype not in ("float64", "complex128")
    return result.astype(np.float32) if single else result
