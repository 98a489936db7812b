"""Converts tensors to host vectors for transports, in the dtype for sums, and joins them into buckets.

A tensor is `HostBits`, so it does not matter which backend a rank has.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from emberharmony.core.cells.moves import HostBits
from emberharmony.core.errors import DTypeError
from emberharmony.distributed.transports.transport import Transport, Vector

BUCKET = 25 * 2**20
"""The bytes that are carried in one piece by default, as in PyTorch's `DistributedDataParallel`."""

_SUMMED = {
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint8": "int32",
    "uint16": "int32",
    "uint32": "int32",
    "uint64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "complex64": "float32",
    "complex128": "float64",
}
"""The dtype in which tensors of each dtype are summed; signed and unsigned sums have the same bits."""


def summation_dtype(call: str, dtype: str) -> str:
    """Returns the dtype in which tensors of a dtype are summed.

    Raises:
        DTypeError: if there is none.
    """
    if dtype not in _SUMMED:
        raise DTypeError(f"{call}(): {dtype} has no sum; cast it to int32 with ops.cast")
    return _SUMMED[dtype]


def vector_to_sum(tensor: HostBits) -> Vector:
    """Returns a tensor as a host vector of the dtype in which it is summed; the vector may share its memory."""
    stored_vector: Vector = np.ascontiguousarray(tensor.bits).reshape(-1)
    summed_dtype = _SUMMED[tensor.dtype]
    if tensor.dtype == "bfloat16":
        return (stored_vector.astype(np.uint32) << 16).view(np.float32)
    if tensor.dtype in ("uint32", "uint64", "complex64", "complex128"):
        return stored_vector.view(summed_dtype)
    return stored_vector.astype(summed_dtype, copy=False)


def tensor_of_sums(vector: Vector, dtype: str, shape: tuple[int, ...]) -> HostBits:
    """Returns a vector of sums as a tensor of a dtype, rounded to the nearest if it has 16 bits."""
    if dtype == "bfloat16":
        return HostBits(_bfloat16_bits(vector).reshape(shape), dtype)
    if dtype in ("uint32", "uint64", "complex64", "complex128"):
        return HostBits(vector.view(dtype).reshape(shape), dtype)
    with np.errstate(over="ignore"):  # a float16 sum may overflow to infinity
        return HostBits(vector.astype(dtype, copy=False).reshape(shape), dtype)


def _bfloat16_bits(vector: Vector) -> Vector:
    """Returns the bits of float32 numbers rounded to bfloat16, to even if two are as near."""
    bits = vector.view(np.uint32)
    rounded_bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(vector), bits >> 16 | 0x40, rounded_bits).astype(np.uint16)


def split_into_buckets(lengths: Sequence[int], most_elements: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yields buckets of at most `most_elements` elements, as lists of (index of the vector, start, end).

    Small vectors share a bucket and long ones are cut. The cuts depend on the lengths only, so they are the same on
    all ranks.

    Example:
        >>> from emberharmony.distributed.wire import split_into_buckets
        >>> list(split_into_buckets([2, 5, 0, 1], 4))
        [[(0, 0, 2), (1, 0, 2)], [(1, 2, 5), (3, 0, 1)]]
    """
    bucket: list[tuple[int, int, int]] = []
    free_room = most_elements
    for i, length in enumerate(lengths):
        start = 0
        while start < length:
            piece_length = min(free_room, length - start)
            bucket.append((i, start, start + piece_length))
            start, free_room = start + piece_length, free_room - piece_length
            if not free_room:
                yield bucket
                bucket, free_room = [], most_elements
    if bucket:
        yield bucket


def apply_by_buckets(
    arrays: Sequence[Vector], bucket_bytes: int, change: Callable[[Vector], Vector], leading_shape: tuple[int, ...] = ()
) -> list[Vector]:
    """Applies a function to arrays of one dtype that are joined into buckets, and returns an array for each.

    Args:
        arrays: arrays that differ in their last axis only.
        bucket_bytes: how many bytes a bucket has at most.
        change: returns the result of a bucket, and may use its memory.
        leading_shape: the shape of a result without its last axis.
    """
    if not arrays:
        return []
    result_arrays = [np.empty((*leading_shape, x.shape[-1]), x.dtype) for x in arrays]
    most_columns = max(1, bucket_bytes // (arrays[0].itemsize * math.prod(arrays[0].shape[:-1])))
    for bucket in split_into_buckets([x.shape[-1] for x in arrays], most_columns):
        changed_bucket = change(np.concatenate([arrays[i][..., start:stop] for i, start, stop in bucket], axis=-1))
        offset = 0
        for i, start, stop in bucket:
            result_arrays[i][..., start:stop] = changed_bucket[..., offset : offset + stop - start]
            offset += stop - start
    return result_arrays


def sum_by_dtype(
    call: str,
    tensors: Sequence[HostBits],
    widen: Callable[[HostBits], Vector],
    bucket_bytes: int,
    change: Callable[[Vector], Vector],
) -> list[Vector]:
    """Returns the sums of tensors; tensors that are summed in the same dtype share buckets.

    Args:
        call: the collective, for an error.
        tensors: tensors of any dtypes.
        widen: makes an array of the dtype of the sum of a tensor.
        bucket_bytes: how many bytes a bucket has at most.
        change: returns the sum of a bucket.
    """
    positions_by_dtype: dict[str, list[int]] = {}
    for i, tensor in enumerate(tensors):
        positions_by_dtype.setdefault(summation_dtype(call, tensor.dtype), []).append(i)
    sum_by_position: dict[int, Vector] = {}
    for positions in positions_by_dtype.values():
        sums = apply_by_buckets([widen(tensors[i]) for i in positions], bucket_bytes, change)
        sum_by_position.update(zip(positions, sums, strict=True))
    return [sum_by_position[i] for i in range(len(tensors))]


def sum_in_rank_order(transport: Transport, vector: Vector) -> None:
    """Replaces a vector by the sum of the vectors of all ranks, added in the order of the ranks.

    Each rank gets one part of all vectors, adds it, and gives the sum to all: as many bytes as the sum of a ring.
    """
    row_length = -(-len(vector) // transport.size)
    padded_rows = np.zeros((transport.size, row_length), vector.dtype)
    padded_rows.reshape(-1)[: len(vector)] = vector
    chunk_sum = pairwise_sum(list(transport.all_to_all(padded_rows.view(np.uint8)).view(vector.dtype)))
    vector[...] = transport.all_gather(chunk_sum.view(np.uint8)).view(vector.dtype).reshape(-1)[: len(vector)]


def pairwise_sum(terms: list[Any]) -> Any:
    """Returns the sum of terms, added in pairs as a binary tree, so that the order depends on their number only.

    The first half is the largest power of two below the number. So the sum of 2 ranks, each of which has added 2
    terms in this order, has the same bits as that of 4 ranks.

    Example:
        >>> from emberharmony.distributed.wire import pairwise_sum
        >>> pairwise_sum(["a", "b", "c", "d"]), pairwise_sum([1, 2, 3])
        ('abcd', 6)
    """
    if len(terms) == 1:
        return terms[0]
    half_count = 1 << (len(terms) - 1).bit_length() - 1
    return pairwise_sum(terms[:half_count]) + pairwise_sum(terms[half_count:])
