"""Creation of tensors, on Dask, in blocks of the size of Dask's option `array.chunk-size`."""

import math
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.utils import parse_bytes

from emberharmony.backend.dask.blocks import abstract_results, apply_elementwise, require_known_lengths, zeros
from emberharmony.backend.dask.dtypes import DTYPES, cast, promotion
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.device import check_memory, native_device
from emberharmony.core.dtypes import default_float, int64
from emberharmony.core.errors import OutOfMemoryError
from emberharmony.core.numeric.promotion import check_fits

_INT64 = np.dtype(np.int64)
_MOST_BLOCKS = 10**6


def default_chunks(shape: tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], ...]:
    """Returns the lengths of the blocks of a new tensor along each axis.

    Raises:
        OutOfMemoryError: if there are more than a million blocks, each of which is a task of the graph.
    """
    check_memory(shape, dtype.itemsize)
    chunk_bytes = parse_bytes(dask.config.get("array.chunk-size"))
    if math.prod(shape) * dtype.itemsize > _MOST_BLOCKS * chunk_bytes:
        raise OutOfMemoryError(
            f"shape {shape} of {dtype.name} has more than {_MOST_BLOCKS} blocks of {chunk_bytes} bytes; set Dask's "
            "option array.chunk-size to a larger number"
        )
    return tuple(normalize_chunks("auto", shape, dtype=dtype))


def _blocks_of_value(value: Any, shape: tuple[int, ...], dtype: Any, chunks: Any, device: Any) -> da.Array:
    if device is not None:
        native_device(device)
    fill_tensor = promotion.fill_tensor(value, dtype)
    abstract_results("broadcast_to", fill_tensor, shape)
    if not math.prod(shape):
        return zeros(shape, fill_tensor.dtype)
    block_lengths = default_chunks(shape, fill_tensor.dtype) if chunks is None else chunks
    added_axis_count = len(shape) - fill_tensor.ndim
    chunked_fill = fill_tensor.rechunk(
        {axis: block_lengths[axis + added_axis_count] for axis, n in enumerate(fill_tensor.shape) if n != 1}
    )
    return da.broadcast_to(chunked_fill, shape, chunks=block_lengths)


def _compare_columns(comparison: str, chunks: Any, k: int) -> da.Array:
    """Returns a matrix of booleans: the comparison of each element's column number with its row number plus `k`."""
    row_numbers, column_numbers = (da.arange(sum(lengths), dtype=_INT64, chunks=(lengths,)) for lengths in chunks)
    return apply_elementwise(comparison, apply_elementwise("subtract", column_numbers, k), row_numbers[:, None])


def _zero_outside(comparison: str, x: da.Array, k: int) -> da.Array:
    """Returns matrices with zeros where the comparison of column and row is False; `da.tril` warns of complex ones."""
    diagonal_offset = clip_offset(k, *require_matrices(require_known_lengths(x)).shape[-2:])
    if not x.size:
        return x
    return apply_elementwise(
        "where", _compare_columns(comparison, x.chunks[-2:], diagonal_offset), x, np.zeros((), x.dtype)
    )


def _dtype_or_default(dtype: Any) -> Any:
    return DTYPES[default_float()] if dtype is None else dtype


class DaskCreationOps:
    """Holds the ops of `ops/arrays/creation.py`.

    These make each block for itself; the bodies would make the whole tensor, or tensors that must be rechunked.
    """

    composed: Any

    @staticmethod
    def full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> da.Array:
        return _blocks_of_value(fill_value, as_shape(shape), dtype, None, device)

    @staticmethod
    def full_like(x: da.Array, fill_value: Any, dtype: Any = None, device: Any = None) -> da.Array:
        return _blocks_of_value(
            fill_value, require_known_lengths(x).shape, x.dtype if dtype is None else dtype, x.chunks, device
        )

    @staticmethod
    def zeros(shape: Any, dtype: Any = None, device: Any = None) -> da.Array:
        return _blocks_of_value(0, as_shape(shape), _dtype_or_default(dtype), None, device)

    @staticmethod
    def ones(shape: Any, dtype: Any = None, device: Any = None) -> da.Array:
        return _blocks_of_value(1, as_shape(shape), _dtype_or_default(dtype), None, device)

    @staticmethod
    def zeros_like(x: da.Array, dtype: Any = None, device: Any = None) -> da.Array:
        return DaskCreationOps.full_like(x, 0, dtype, device)

    @staticmethod
    def ones_like(x: da.Array, dtype: Any = None, device: Any = None) -> da.Array:
        return DaskCreationOps.full_like(x, 1, dtype, device)

    empty, empty_like = zeros, zeros_like

    @staticmethod
    def tril(x: da.Array, k: int = 0) -> da.Array:
        return _zero_outside("less_equal", x, k)

    @staticmethod
    def triu(x: da.Array, k: int = 0) -> da.Array:
        return _zero_outside("greater_equal", x, k)

    def arange(self, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> da.Array:
        """Returns a range; one of integers is made block by block, others on the host, rounded as by NumPy."""
        start_and_stop: tuple[Any, Any] = (0, start) if stop is None else (start, stop)
        # `dtype in (None, _INT64)` would be True for NumPy's float64, which equals None.
        if step and {*map(type, (*start_and_stop, step))} == {int} and (dtype is None or dtype == _INT64):
            if device is not None:
                native_device(device)
            length = len(range(*start_and_stop, step))
            if length == 1:  # the stop and the step may be beyond int64
                return DaskCreationOps.full((1,), start_and_stop[0], _INT64)
            if length:
                check_fits(max(start_and_stop, key=abs), int64)
            if (
                length and max(map(abs, (*start_and_stop, step, start_and_stop[1] - start_and_stop[0]))) <= 2**53
            ):  # Dask counts in float64
                return da.arange(*start_and_stop, step, dtype=_INT64, chunks=default_chunks((length,), _INT64))
        range_tensor: da.Array = self.composed("arange")(start, stop, step, dtype, device)
        return range_tensor

    def eye(self, N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None) -> da.Array:
        shape = as_shape((N, N if M is None else M))
        offset = clip_offset(k, *shape)
        if not all(shape):
            return _blocks_of_value(0, shape, _dtype_or_default(dtype), None, device)
        if device is not None:
            native_device(device)
        return cast(
            _compare_columns("equal", default_chunks(shape, _dtype_or_default(dtype)), offset), _dtype_or_default(dtype)
        )

    @staticmethod
    def diag(x: da.Array, k: int = 0) -> da.Array:
        abstract_result = abstract_results("diag", x, k)
        return zeros(abstract_result.shape, x.dtype) if 0 in (*abstract_result.shape, *x.shape) else da.diag(x, k)
