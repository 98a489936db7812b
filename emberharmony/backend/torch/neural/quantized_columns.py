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

_SUMS = 48
"""Up to so many vectors, scaling the products of a group takes less time than scaling the integers."""

_BLOCK = 128
"""The integers of so many columns become float32 numbers at a time; of 2048 rows they take half of a cache of 2 MiB."""


def columns_of(w: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the table of a matrix (rows, columns) whose integers are packed in words.

    Shape: (rows, columns * bits / 32) of uint32 to (columns, bytes) of uint8; a row has all integers of a column, an
    even number of them, then the scale 1 and the offset 0.
    """
    columns = unpacked_integers(w, bits).reshape(w.shape[0], -1).T
    if bits == 4:
        if columns.shape[1] % 2:
            columns = torch.nn.functional.pad(columns, (0, 1))
        columns = columns[:, ::2] | columns[:, 1::2] << 4
    format_dtype, tail_numbers = _TAILS[bits]
    tail_bytes = torch.tensor(tail_numbers, dtype=format_dtype).view(torch.uint8)
    return torch.cat((columns, tail_bytes.expand(columns.shape[0], -1)), 1)


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
    # The kernel reads the weights without regard to strides.
    vectors = x.contiguous().view(-1, len(table))
    group_sums = vectors.view(-1, group_count, group_size).sum(-1)
    if len(vectors) <= _FEW:
        matrix_product = _scaled_sums(vectors, table, scales, group_size, bits).addmm_(group_sums, biases.mT)
    else:
        matrix_product = group_sums @ biases.mT
        add_products = _add_group_products if len(vectors) <= _SUMS else _add_block_products
        add_products(matrix_product, vectors, table, scales.mT.contiguous(), group_size, bits)
    return matrix_product.view(*x.shape[:-1], row_count)


def _scaled_sums(
    vectors: torch.Tensor, table: torch.Tensor, scales: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    """Returns the products of vectors by the scaled integers, from sums of the kernel for each vector and group."""
    vector_count, (row_count, group_count) = len(vectors), scales.shape
    bag_indices, starts = _bag_indices_and_starts(vector_count * group_count, group_size, len(table))
    sums = _row_sum_kernel(bits)(table, bag_indices, starts, per_sample_weights=vectors.view(-1))
    return sums[:, :row_count].view(vector_count, group_count, row_count).mul_(scales.mT).sum(1)


def _add_group_products(
    result: torch.Tensor,
    vectors: torch.Tensor,
    table: torch.Tensor,
    group_scales: torch.Tensor,
    group_size: int,
    bits: int,
) -> None:
    """Adds the products by the integers of each group, multiplied by the scales of the group, (groups, rows)."""
    row_count = result.shape[1]
    split_by_group = torch.split(vectors, group_size, 1), torch.split(table, group_size), group_scales.unbind()
    for group_vectors, group_table, row_scales in zip(*split_by_group, strict=True):
        # No name holds the float32 numbers, so those of the next group take the same memory, which is in the cache.
        result.addcmul_(group_vectors @ _float_integers(group_table, row_count, bits), row_scales)


def _add_block_products(
    result: torch.Tensor,
    vectors: torch.Tensor,
    table: torch.Tensor,
    group_scales: torch.Tensor,
    group_size: int,
    bits: int,
) -> None:
    """Adds the products by the scaled integers of some groups at a time; the scales are (groups, rows)."""
    row_count = result.shape[1]
    split_by_block = (
        torch.split(vectors, _BLOCK, 1),
        torch.split(table, _BLOCK),
        torch.split(group_scales[:, None], _BLOCK // group_size),
    )
    for block_vectors, block_table, block_scales in zip(*split_by_block, strict=True):
        numbers = _float_integers(block_table, row_count, bits).view(-1, group_size, row_count)
        result.addmm_(block_vectors, numbers.mul_(block_scales).flatten(0, 1))
        del numbers  # those of the next block take the same memory, which is in the cache


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
    vector_product = sums.mul_(scales.mT).sum(0).addmv_(biases, vector.view(group_count, group_size).sum(1))
    return vector_product.view(*x.shape[:-1], row_count)


def transposed_product(
    y: torch.Tensor, table: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, group_size: int, bits: int
) -> torch.Tensor:
    """Returns `y @ matrix` in float32, for y (..., rows) of float32."""
    scales = scales.mT.contiguous()
    group_count, row_count = scales.shape
    vectors = y.reshape(-1, row_count)
    matrix_product = torch.empty(len(vectors), group_count, group_size)
    for i, group_table in enumerate(torch.split(table, group_size)):
        matrix_product[:, i] = (vectors * scales[i]) @ _float_integers(group_table, row_count, bits).T
    return matrix_product.add_((vectors @ biases)[..., None]).view(*y.shape[:-1], -1)


def unpacked_integers(w: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns packed integers of 4 or 8 bits as uint8."""
    weight_bytes = w.contiguous().view(torch.uint8)
    return weight_bytes if bits == 8 else torch.stack([weight_bytes & 15, weight_bytes >> 4], -1)


def _column_integers(table: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the integers of all columns, (columns, rows), with one more row if their number is odd."""
    format_dtype, tail_numbers = _TAILS[bits]
    low_bytes = table[:, : table.shape[1] - format_dtype.itemsize * len(tail_numbers)]
    return low_bytes if bits == 8 else unpacked_integers(low_bytes, bits).reshape(len(low_bytes), -1)


def _pack_words(small_integers: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns integers, (rows, columns), in words."""
    if bits == 4:
        small_integers = small_integers[:, ::2] | small_integers[:, 1::2] << 4
    # `contiguous` would keep the strides of one row.
    return small_integers.clone(memory_format=torch.contiguous_format).view(torch.uint32)


def _float_integers(table: torch.Tensor, rows: int, bits: int) -> torch.Tensor:
    """Returns the integers of a table as float32 numbers, (columns, rows)."""
    bag_indices, starts = _bag_indices_and_starts(len(table), 1, len(table))
    numbers: torch.Tensor = _row_sum_kernel(bits)(table, bag_indices, starts)
    return numbers if numbers.shape[1] == rows else numbers[:, :rows]


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
