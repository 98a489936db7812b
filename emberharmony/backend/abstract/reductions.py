"""The shapes and dtypes of the results of the ops that reduce, accumulate, sort and count."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.abstract.rules import Rule, call_with_one_element, dtype_from, reduced_shape, resized_shape
from emberharmony.backend.promote import nonnegative_axis, require_nonempty
from emberharmony.backend.shared.reductions.histograms import check_weights
from emberharmony.backend.shared.reductions.segments import check_segments, count_segments, segment_count
from emberharmony.backend.shared.reductions.sorting import check_top_k, checked_side
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.options import refuse_sparse
from emberharmony.transforms.abstract_tensor import AbstractTensor, no_value_error

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend


def _reduce(
    backend: AbstractBackend, name: str, x: AbstractTensor, axis: Any = None, keepdims: bool = False, *options: Any
) -> Any:
    shape = reduced_shape(x.shape, axis, keepdims)
    return backend.tensor_of(shape, dtype_from(backend, name, x, axis, keepdims, *options))


def _extreme(
    backend: AbstractBackend, name: str, x: AbstractTensor, axis: Any = None, keepdims: bool = False, *options: Any
) -> Any:
    reduced_tensor = _reduce(backend, name, x, axis, keepdims, *options)
    if not options or options[0] is None:
        require_nonempty(x.shape, axis)
    return reduced_tensor


def _accumulate(backend: AbstractBackend, name: str, x: AbstractTensor, axis: int | None = None, *options: Any) -> Any:
    dtype = dtype_from(backend, name, x, axis, *options)
    return backend.tensor_of((x.size,) if axis is None else x.shape, dtype)


def _sort(backend: AbstractBackend, name: str, x: AbstractTensor, axis: int | None = -1, *options: Any) -> Any:
    if axis is not None:
        nonnegative_axis(axis, max(x.ndim, 1))
    return _accumulate(backend, name, x, axis, *options)


def _reduce_segments(
    backend: AbstractBackend,
    name: str,
    data: AbstractTensor,
    segment_ids: Any,
    num_segments: int | None = None,
    sorted: bool = False,
) -> Any:
    ids = backend.checked_indices(segment_ids)
    check_segments(ids.shape, data.shape)
    if isinstance(ids, np.ndarray):
        segment_total = count_segments(ids, num_segments)
    elif num_segments is None:
        raise no_value_error("the number of segments is the largest id plus one; pass num_segments")
    else:
        segment_total = segment_count(num_segments)
    return backend.tensor_of((segment_total, *data.shape[1:]), dtype_from(backend, name, data, [0], 1))


class AbstractReductions:
    """Holds the primitives of `reduction.py`, `sorting.py`, `segments.py` and `statistics.py` in `ops/reductions`."""

    sum, prod, mean, var, std = (Rule(_reduce) for _ in range(5))
    any, all, logsumexp = Rule(_reduce), Rule(_reduce), Rule(_reduce)
    max, min, argmax, argmin = Rule(_extreme), Rule(_extreme), Rule(_extreme), Rule(_extreme)
    cumsum, cumprod, cummax, cummin = Rule(_accumulate), Rule(_accumulate), Rule(_accumulate), Rule(_accumulate)
    sort, argsort = Rule(_sort), Rule(_sort)
    segment_sum, segment_prod, segment_max, segment_min = (Rule(_reduce_segments) for _ in range(4))

    tensor_of: Any
    dtypes: Any

    @Rule
    def allclose(self: Any, name: str, x1: Any, x2: Any, *options: Any) -> AbstractTensor:
        broadcast_shape([x.shape for x in (x1, x2) if isinstance(x, AbstractTensor)])
        return self.tensor_of((), dtype_from(self, name, x1, x2, *options))

    @Rule
    def array_equal(self: Any, name: str, x1: Any, x2: Any, *options: Any) -> AbstractTensor:
        return self.tensor_of((), dtype_from(self, name, x1, x2, *options))

    @Rule
    def top_k(self: Any, name: str, x: AbstractTensor, k: int, sorted: bool = True) -> Any:
        check_top_k(x.shape, k)
        value_sample, index_sample = call_with_one_element(self, name, x, 1, sorted)
        shape = resized_shape(x.shape, x.ndim - 1, operator.index(k))
        return self.tensor_of(shape, value_sample.dtype), self.tensor_of(shape, index_sample.dtype)

    @Rule
    def searchsorted(
        self: Any,
        name: str,
        sorted_sequence: AbstractTensor,
        values: AbstractTensor,
        side: str = "left",
        sorter: Any = None,
    ) -> AbstractTensor:
        checked_side(side)
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"a sorted sequence is a vector, this one has shape {sorted_sequence.shape}")
        if sorter is not None and sorter.shape != sorted_sequence.shape:
            raise ShapeError(
                f"expected sorter to be a vector of {sorted_sequence.shape[0]} indices, got shape {sorter.shape}"
            )
        return self.tensor_of(values.shape, dtype_from(self, name, sorted_sequence, values, side))

    @Rule
    def isin(
        self: Any,
        name: str,
        x1: AbstractTensor,
        x2: AbstractTensor,
        assume_unique: bool = False,
        *,
        invert: bool = False,
    ) -> AbstractTensor:
        return self.tensor_of(x1.shape, dtype_from(self, name, x1, x2, assume_unique, invert=invert))

    @Rule
    def bincount(
        self: Any, name: str, x: AbstractTensor, weights: Any = None, minlength: int = 0, sparse: bool = False
    ) -> AbstractTensor:
        refuse_sparse("sparse", sparse)
        if weights is not None:
            check_weights(weights, x)
        result_dtype = dtype_from(self, name, x, weights, minlength)
        if x.known is None:
            raise no_value_error("the length of the result is the largest element plus one")
        length = int(x.value(name).max(initial=-1)) + 1
        return self.tensor_of((max(length, minlength),), result_dtype)

    @Rule
    def histogram(self: Any, name: str, x: AbstractTensor, bins: int = 10, range: Any = None) -> Any:
        bin_count = operator.index(bins)
        if bin_count < 1:
            raise ArgumentError(f"expected bins of at least 1, got {bin_count}")
        count_sample, edge_sample = call_with_one_element(self, name, x, 1, range)
        return self.tensor_of((bin_count,), count_sample.dtype), self.tensor_of((bin_count + 1,), edge_sample.dtype)
