"""Reading and writing by index, on NumPy."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.host import host_indices, safe_key
from emberharmony.backend.numpy.dtypes import DTYPES, cast, promotion
from emberharmony.backend.numpy.folding import check_axis
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import (
    block_slices,
    check_index_vectors,
    checked_reduction,
    class_count,
    nonnegative_indices,
    unravel,
)
from emberharmony.backend.shared.arrays.shape import FURTHEST, as_shape, clip_offset, require_matrices
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ShapeError
from emberharmony.core.options import refuse_sparse

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


_BITS: dict[int, Any] = {2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
"""By the bytes of an element, the dtype that holds its bits."""
_MANY_HITS = 512
"""From this number of elements on, writing the ones of `one_hot` takes less time than comparing all elements."""
_MANY = 2048
"""From this number of elements on, `where_without_branches` is faster than `np.where`, unless branches are foreseen."""


def where_without_branches(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the same as `np.where`, without a branch per element: mispredicted branches make it ten times slower.

    It starts from the bits of `b`, and flips those that differ from `a` where the condition holds.
    """
    if condition.size < _MANY or a.itemsize not in _BITS:
        return np.where(condition, a, b)
    bits_dtype, result = _BITS[a.itemsize], np.empty(np.broadcast(condition, a, b).shape, a.dtype)
    b_bits, result_bits = b.view(bits_dtype), result.view(bits_dtype)
    np.bitwise_xor(a.view(bits_dtype), b_bits, result_bits)
    np.multiply(result_bits, condition, result_bits)
    np.bitwise_xor(result_bits, b_bits, result_bits)
    return result


def where(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """Returns elements of two arrays of one dtype, or of an array and a number, chosen by a condition."""
    if condition.size < _MANY or condition.dtype.char != "?":
        return np.where(condition, a, b)
    if b.__class__ is np.ndarray:
        return where_without_branches(condition, a, b)
    if b or a.itemsize not in _BITS or math.copysign(1.0, b) < 0.0:
        return where_without_branches(condition, a, np.asarray(b, a.dtype))
    # The bits of the number 0 are 0, so select by multiplying the bits by the condition.
    bits_dtype, result = _BITS[a.itemsize], np.empty(np.broadcast(condition, a).shape, a.dtype)
    np.multiply(a.view(bits_dtype), condition, result.view(bits_dtype))
    return result


def _take_along_rows(x: np.ndarray, indices: np.ndarray, _axis: int) -> np.ndarray:
    """Returns the elements of each row of a matrix at indices, without what NumPy does for any number of axes."""
    return x[np.arange(len(x))[:, None], indices]


def _quick_one_hot(x: np.ndarray, num_classes: int, *_usual: Any) -> np.ndarray:
    element_count = x.size * num_classes
    if element_count > _MANY_HITS and 0 <= x.item(x.argmin()) and x.item(x.argmax()) < num_classes:
        one_hot_vector = np.zeros(element_count, np.float32)
        one_hot_vector[np.arange(0, element_count, num_classes) + x.reshape(-1)] = 1.0
        return one_hot_vector.reshape(*x.shape, num_classes)
    return np.equal(x[..., None], np.arange(num_classes)).astype(np.float32)


class NumpyIndexingOps:
    """Holds the ops of `ops/arrays/indexing.py`.

    The bodies take up to 26 times as long, for few elements. Most of them compute with indices where NumPy takes a
    view.
    """

    @staticmethod
    @fast(where, promotion.same.format("{1}", "{2}"), promotion.weak.format("{1}", "{2}"))
    def where(condition: np.ndarray, x1: Any = None, x2: Any = None) -> np.ndarray:
        return where_without_branches(condition.astype(bool, copy=False), *promotion.common(x1, x2))

    @staticmethod
    def take(x: np.ndarray, indices: Any, axis: int | None = None) -> np.ndarray:
        check_axis(axis, x.ndim)
        positions = host_indices(indices)
        if not x.size and axis is not None:
            # NumPy 2.4 does not check the indices if the result is empty.
            nonnegative_indices(positions, x.shape[axis])
        if axis is None or x.flags.c_contiguous:
            return x.take(positions, axis)
        # `take` would first copy a tensor that is not contiguous as a whole.
        (axis,) = nonnegative_axes(axis, x.ndim)
        key: Any = (*(slice(None),) * axis, positions)
        elements = x[key]
        return elements if positions.ndim else elements.copy()

    @staticmethod
    @fast(
        _take_along_rows,
        "{1}.__class__ is native_type and {1}.dtype.kind == 'i' and {2}.__class__ is int and {2} == -1 and "
        "{0}.ndim == {1}.ndim == 2 and len({0}) == len({1})",
    )
    def take_along_axis(x: np.ndarray, indices: Any, axis: int | None = -1) -> np.ndarray:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        return np.take_along_axis(x, host_indices(indices), axis)

    @staticmethod
    def get_item(x: np.ndarray, key: Any) -> np.ndarray:
        if key.__class__ is not int and key.__class__ is not slice:
            key = safe_key(key)
        return x[key]

    @staticmethod
    def nonzero(x: np.ndarray) -> tuple[np.ndarray, ...]:
        if x.ndim == 0:
            raise ShapeError("a tensor without axes has no indices")
        return x.nonzero()

    @staticmethod
    def slice(inputs: np.ndarray, start_indices: Sequence[int], shape: Sequence[int]) -> np.ndarray:
        return inputs[block_slices(inputs.shape, start_indices, shape)]

    @staticmethod
    def slice_update(inputs: np.ndarray, start_indices: Sequence[int], updates: np.ndarray) -> np.ndarray:
        updated_copy = inputs.copy()
        updated_copy[block_slices(inputs.shape, start_indices, updates.shape)] = cast(updates, inputs.dtype)
        return updated_copy

    @staticmethod
    def scatter_update(
        inputs: np.ndarray, indices: Any, updates: np.ndarray, reduction: str | None = None
    ) -> np.ndarray:
        updated_copy, positions, cast_updates = inputs.copy(), host_indices(indices), cast(updates, inputs.dtype)
        check_index_vectors(positions.shape, inputs.shape)
        # NumPy checks the indices when it uses them.
        columns = tuple([positions[..., axis] for axis in range(positions.shape[-1])])
        reduction_name = checked_reduction(reduction, UFUNCS)
        if reduction_name is None:
            updated_copy[columns] = cast_updates
            return updated_copy
        if reduction_name in ("max", "min"):
            promotion.refuse(inputs, ("complex",))
        # Unlike `result[columns] += values`, `at` applies all updates of a repeated index.
        UFUNCS[reduction_name].at(updated_copy, columns, cast_updates)
        return updated_copy

    @staticmethod
    def diagonal(x: np.ndarray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> np.ndarray:
        return require_matrices(x).diagonal(clip_offset(offset, FURTHEST, FURTHEST), axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        row_count, column_count = as_shape((n, n if m is None else m))
        return np.tril_indices(row_count, clip_offset(k, row_count, column_count), column_count)

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        row_count, column_count = as_shape((n, n if m is None else m))
        return np.triu_indices(row_count, clip_offset(k, row_count, column_count), column_count)

    @staticmethod
    def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
        return unravel(host_indices(indices), shape)

    @staticmethod
    @fast(
        _quick_one_hot,
        "{1}.__class__ is int and {1} >= 0 and {2}.__class__ is int and {2} == -1 and {3} is None and {4} is False "
        "and float32_default and {0}.dtype.kind == 'i'",
    )
    def one_hot(x: np.ndarray, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> np.ndarray:
        refuse_sparse("sparse", sparse)
        is_class = x[..., None] == np.arange(class_count(num_classes, x))
        is_class = is_class if axis in (-1, x.ndim) else np.moveaxis(is_class, -1, axis)
        return is_class.astype(DTYPES[default_float()] if dtype is None else dtype)
