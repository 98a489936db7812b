"""Quantised matrices by columns: the layout in which a kernel of PyTorch for embeddings multiplies by the integers.

The kernel adds rows of a table of 4 or 8 bits, each with a weight. A row of the table is a column of the matrix, and
its weight an element of the vector, so the sum over the columns of a group is the product by the integers of the group,
in float32. `_weight_int4pack_mm_for_cpu` (PyTorch 2.13) takes four times as long in float32 as it does in bfloat16,
and rounds the scales.
"""

import functools
from typing import Any

import torch

_TAILS = {4: (torch.float16, (1.0, 0.0)), 8: (torch.float32, (1.0, 0.0))}
"""By bits, the scale and the offset that end a row of the table; they are those of integers."""

_FEW = 3
"""Up to so many vectors are multiplied by the kernel itself, more by the integers as float32 numbers, by groups."""

_SUMS = 64
"""Up to so many vectors, scaling the products of a group takes less time than scaling the integers."""


def columns_of(w: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the table of a matrix (rows, columns) whose integers are packed in words.

    Shape: (rows, columns * bits / 32) of uint32 to (columns, bytes) of uint8; a row has all integers of a column, an
    even number of them, then the scale 1 and the offset 0.
    """
    columns = integers(w, bits).reshape(w.shape[0], -1).T
    if bits == 4:
        if columns.shape[1] % 2:
            columns = torch.nn.functional.pad(columns, (0, 1))
        columns = columns[:, ::2] | columns[:, 1::2] << 4
    format_dtype, numbers = _TAILS[bits]
    tail = torch.tensor(numbers, dtype=format_dtype).view(torch.uint8)
    return torch.cat((columns, tail.expand(columns.shape[0], -1)), 1)


def words_of(table: torch.Tensor, rows: int, bits: int) -> torch.Tensor:
    """Returns the packed words of the matrix that a table holds; `rows` is the number of rows of the matrix."""
    return _pack_words(_column_integers(table, bits).T[:rows], bits)


def rows_of(table: torch.Tensor, indices: torch.Tensor, rows: int, bits: int) -> torch.Tensor:
    """Returns rows of the matrix of a table, in words.

    Shape: indices (...) to (..., columns * bits / 32).
    """
    flat_indices = torch.remainder(indices.reshape(-1).long(), rows)  # no indices in a list become no float32 numbers
    if bits == 8:
        integers = table.index_select(1, flat_indices)
    else:
        integers = table.index_select(1, flat_indices >> 1) >> (flat_indices & 1) * 4 & 15
    words = _pack_words(integers.T.to(torch.uint8), bits)
    return words.reshape(*indices.shape, -1)


def product(
    x: torch.Tensor, table: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    """Returns `x @ matrix.T` in float32.

    Args:
        x: (..., columns) of float32.
        table: `columns_of` of the matrix.
        scales, biases: (rows, groups) of float32.
        group_size, bits: those of the matrix.
    """
    row_count, group_count = scales.shape
    if x.numel() == len(table):
        return _product_by_vector(x, table, scales, biases, group_size, bits)
    scales, biases = scales.mT.contiguous(), biases.mT
    # The kernel reads the weights without regard to strides.
    grouped_x = x.contiguous().view(-1, group_count, group_size)
    group_sums, vector_count = grouped_x.sum(-1), len(grouped_x)
    if vector_count <= _FEW:
        bag_indices, starts = _bag_indices_and_starts(vector_count * group_count, group_size, len(table))
        sums = _row_sum_kernel(bits)(table, bag_indices, starts, per_sample_weights=grouped_x.view(-1)).view(
            vector_count, group_count, -1
        )
        if sums.shape[-1] != row_count:
            sums = sums[..., :row_count]
        return sums.mul_(scales).sum(1).addmm_(group_sums, biases).view(*x.shape[:-1], row_count)
    result = group_sums @ biases
    for i, group_weights in enumerate(_integers_by_group(table, row_count, group_size, bits)):
        if vector_count <= _SUMS:
            result.addcmul_(grouped_x[:, i] @ group_weights, scales[i])
        else:
            result.addmm_(grouped_x[:, i], group_weights.mul_(scales[i]))
    return result.view(*x.shape[:-1], row_count)


def _product_by_vector(
    x: torch.Tensor, table: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    """Returns `x @ matrix.T` for one vector, in fewer calls."""
    row_count, group_count = scales.shape
    bag_indices, starts = _bag_indices_and_starts(group_count, group_size, len(table))
    vector = x.contiguous().view(-1)
    sums = _row_sum_kernel(bits)(table, bag_indices, starts, per_sample_weights=vector)
    if sums.shape[1] != row_count:
        sums = sums[:, :row_count]
    result = sums.mul_(scales.mT).sum(0).addmv_(biases, vector.view(group_count, group_size).sum(1))
    return result.view(*x.shape[:-1], row_count)


def transposed_product(
    y: torch.Tensor, table: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    """Returns `y @ matrix` in float32, for y (..., rows) of float32."""
    scales = scales.mT.contiguous()
    group_count, row_count = scales.shape
    vectors = y.reshape(-1, row_count)
    result = torch.empty(len(vectors), group_count, group_size)
    for i, group_weights in enumerate(_integers_by_group(table, row_count, group_size, bits)):
        result[:, i] = (vectors * scales[i]) @ group_weights.T
    return result.add_((vectors @ biases)[..., None]).view(*y.shape[:-1], -1)


def integers(w: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns packed integers of 4 or 8 bits as uint8."""
    weight_bytes = w.contiguous().view(torch.uint8)
    return weight_bytes if bits == 8 else torch.stack([weight_bytes & 15, weight_bytes >> 4], -1)


def _column_integers(table: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the integers of all columns, (columns, rows), with one more row if their number is odd."""
    format_dtype, numbers = _TAILS[bits]
    low_bytes = table[:, : table.shape[1] - format_dtype.itemsize * len(numbers)]
    return low_bytes if bits == 8 else integers(low_bytes, bits).reshape(len(low_bytes), -1)


def _pack_words(small: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns integers, (rows, columns), in words."""
    if bits == 4:
        small = small[:, ::2] | small[:, 1::2] << 4
    # `contiguous` would keep the strides of one row.
    return small.clone(memory_format=torch.contiguous_format).view(torch.uint32)


def _integers_by_group(table: torch.Tensor, rows: int, group_size: int, bits: int) -> Any:
    """Yields the integers of each group of columns as float32 numbers, (group_size, rows)."""
    bag_indices, _ = _bag_indices_and_starts(1, group_size, group_size)
    for start in range(0, len(table), group_size):
        group_weights = _row_sum_kernel(bits)(table[start : start + group_size], bag_indices, bag_indices)
        yield group_weights[:, :rows]


@functools.cache
def _row_sum_kernel(bits: int) -> Any:
    """Returns the kernel that adds rows of a table."""
    kernels = torch.ops.quantized
    return kernels.embedding_bag_4bit_rowwise_offsets if bits == 4 else kernels.embedding_bag_byte_rowwise_offsets


@functools.lru_cache(64)
def _bag_indices_and_starts(count: int, size: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the row indices, and the starts, of `count` consecutive bags of `size` rows in a table of `rows` rows."""
    bag_indices = torch.arange(count * size, dtype=torch.int32)
    return torch.remainder(bag_indices, rows), bag_indices[::size].clone()
