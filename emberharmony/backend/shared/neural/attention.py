"""Attention: checks of its arguments, and the angles of rotary positions.

With shapes that do not fit, a fused kernel could read beyond its inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

Array: TypeAlias = "np.ndarray[Any, Any]"


def check_attention(query: Any, key: Any, value: Any, bias: Any, mask: Any) -> None:
    """Checks that the shapes of queries, keys, values, bias and mask fit together.

    Args:
        query: (batch, queries, heads, width).
        key: (batch, keys, key heads, width); the number of heads is a multiple of the number of key heads.
        value: (batch, keys, key heads, value width).
        bias: None, or broadcasts to (batch, heads, queries, keys).
        mask: None, or broadcasts to (batch, heads, queries, keys).

    Raises:
        ShapeError: if they do not.
    """
    q, k, v = query.shape, key.shape, value.shape
    if not len(q) == len(k) == len(v) == 4:
        raise ShapeError(
            f"expected query, key and value of shape (batch, length, heads, width), got shapes {tuple(q)}, {tuple(k)} "
            f"and {tuple(v)}"
        )
    if k[0] != v[0] or k[1] != v[1] or k[2] != v[2]:
        raise ShapeError(f"key and value may differ in the last axis only, got shapes {tuple(k)} and {tuple(v)}")
    if q[0] != k[0] or q[3] != k[3]:
        raise ShapeError(f"query of shape {tuple(q)} and key of shape {tuple(k)} differ in their batch or width")
    if k[2] != q[2] and (not k[2] or q[2] % k[2]):
        raise ShapeError(f"expected a number of query heads that is a multiple of the {k[2]} key heads, got {q[2]}")
    for name, tensor in (("bias", bias), ("mask", mask)):
        if tensor is not None:
            expected_shape = (q[0], q[2], q[1], k[1])
            if not _broadcasts_to(tensor.shape, expected_shape):
                raise ShapeError(
                    f"{name} of shape {tuple(tensor.shape)} does not broadcast to (batch, heads, queries, keys), "
                    f"{expected_shape}"
                )


def check_rotation(shape: Sequence[int], place: int, dims: int | None, base: float, frequencies: Any) -> int:
    """Returns the number of pairs of features that `rope` rotates, after checks of its arguments.

    Args:
        shape: of the tensor.
        place: the axis of the positions.
        dims: the number of features to rotate; None for all.
        base: of the frequencies.
        frequencies: None, or a tensor of one number for each pair.

    Raises:
        ArgumentError: if the axis is that of the features, or if an option is invalid.
        ShapeError: if the features are not that many, or not in pairs, or if there is not one frequency for each pair.
    """
    if place == len(shape) - 1:
        raise ArgumentError(f"the axis of the positions is another one than the last of {len(shape)}, the features")
    width = shape[-1] if dims is None else dims
    if not isinstance(width, int) or width % 2 or not 0 <= width <= shape[-1]:
        raise ShapeError(f"expected an even number of features to rotate, at most {shape[-1]}, got {width!r:.60}")
    if not base > 0:
        raise ArgumentError(f"base is a positive number, not {base}")
    if frequencies is not None and tuple(frequencies.shape) != (width // 2,):
        raise ShapeError(f"expected frequencies of shape ({width // 2},), got {tuple(frequencies.shape)}")
    return width // 2


def angle_steps(pairs: int, base: float, scale: float) -> Array:
    """Returns the angle in radians between two positions for each pair of features: `scale * base ** (-i / pairs)`."""
    return scale * base ** (-np.arange(pairs, dtype=np.float64) / max(pairs, 1))


# A dict instead of functools.lru_cache: torch.compile (torch 2.13) warns about an lru_cache, and ignores it.
_ROTATIONS: dict[tuple[int, int, int, float, float], tuple[Array, Array]] = {}
_MANY = 16


def rotations(length: int, offset: int, pairs: int, base: float, scale: float) -> tuple[Array, Array]:
    """Returns the cosines and sines of the angles of positions from `offset` on, each of shape (length, pairs).

    They are computed in float64, because float32 holds the angle of a far position with few digits behind the point.
    All layers of a model ask for the same ones, so the latest results are kept.
    """
    key = length, offset, pairs, base, scale
    cosines_and_sines = _ROTATIONS.get(key)
    if cosines_and_sines is None:
        angles = np.arange(offset, offset + length, dtype=np.float64)[:, None] * angle_steps(pairs, base, scale)
        cosines_and_sines = np.cos(angles), np.sin(angles)
        _store_result(_ROTATIONS, key, cosines_and_sines)
    return cosines_and_sines


_TABLES: dict[Any, Any] = {}
_BLOCKS: dict[Any, Any] = {}
_BLOCK = 256
"""The tables of so many positions are made at once, because decoding asks for one position after the other."""


def rotation_tables(
    shape: Sequence[int],
    offset: int,
    place: int,
    base: float,
    scale: float,
    kind: Any,
    make_tensor: Callable[[Array], Any],
    part: Callable[[Any, slice], Any] = operator.getitem,
) -> tuple[Any, Any]:
    """Returns the cosines and the sines of the angles of all features, as tensors that broadcast to a shape.

    A tensor times the cosines, plus the tensor with its halves swapped times the sines, is the rotated tensor: the
    sines of the first half are negative. All layers of a model ask for the same ones, so the latest are kept.

    Args:
        shape, offset, place, base, scale: see `rotations`; all features are rotated.
        kind: what distinguishes tensors of one backend, such as dtype and device.
        make_tensor: makes a table of an array of float64.
        part: makes a tensor of some positions of a table.
    """
    length, width, axis_count = shape[place], shape[-1], len(shape) - place
    key = length, offset, axis_count, width, base, scale, kind
    table_slices = _TABLES.get(key)
    if table_slices is None:
        start, size = offset // _BLOCK * _BLOCK, _BLOCK
        if offset + length > start + size:
            start, size = offset, length
        block_key = start, size, *key[2:]
        tables = _BLOCKS.get(block_key)
        if tables is None:
            cosine, sine = rotations(size, start, width // 2, base, scale)
            cosine_and_sine = (np.concatenate((cosine, cosine), -1), np.concatenate((-sine, sine), -1))
            tables = tuple(
                make_tensor(table.reshape((size, *(1,) * (axis_count - 2), width))) for table in cosine_and_sine
            )
            _store_result(_BLOCKS, block_key, tables)
        positions = slice(offset - start, offset - start + length)
        table_slices = part(tables[0], positions), part(tables[1], positions)
        _store_result(_TABLES, key, table_slices)
    return table_slices


def _store_result(results: dict[Any, Any], key: Any, result: Any) -> None:
    """Stores a result in a dict of the latest results, which is cleared first if it is full."""
    if len(results) >= _MANY:
        results.clear()
    results[key] = result


def supported_position_axis(
    shape: Sequence[int],
    dims: int | None,
    offset: Any,
    traditional: bool,
    base: Any,
    scale: Any,
    frequencies: Any,
    axis: int,
) -> int | None:
    """Returns the axis of the positions if `rotation_tables` supports the arguments of `rope`, else None.

    It serves rotations of all features in halves, from a position that is an integer.
    """
    rank = len(shape)
    axis_or_rank = axis % rank if axis.__class__ is int and -rank <= axis < rank else rank
    is_supported = not traditional and is_number(base) and base > 0 and is_number(scale)
    is_supported = is_supported and frequencies is None and offset.__class__ is int and axis_or_rank < rank - 1
    return (
        axis_or_rank if is_supported and dims in (None, shape[-1]) and shape[-1] % 2 == 0 and 0 not in shape else None
    )


def _broadcasts_to(shape: Sequence[int], target_shape: Sequence[int]) -> bool:
    added_axis_count = len(target_shape) - len(shape)
    return added_axis_count >= 0 and all(
        n in (1, length) for n, length in zip(shape, target_shape[added_axis_count:], strict=True)
    )
