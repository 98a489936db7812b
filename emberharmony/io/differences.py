"""The differences between the tensors of two files, computed from one block of each at a time."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from emberharmony.io.header import TensorInfo
from emberharmony.io.sources import Array, Source, numeric_block


class Difference(NamedTuple):
    """The comparison of the two tensors of one name in two files.

    Attributes:
        name: their name.
        kind: "equal" to the bit, "values", "dtype", "shape", or "missing" or "extra" in the second file.
        first: the description of the tensor in the first file, if it has it.
        second: the same for the second file.
        elements: how many elements differ; None if the shapes or the dtypes cannot be compared.
        absolute: the largest absolute difference of two elements. NaN is equal to NaN; pairs of NaN and a number are
            in `nans` only.
        relative: the largest ratio of the difference to the larger absolute value of the two.
        nans: how many elements are NaN in one file only.
    """

    name: str
    kind: str
    first: TensorInfo | None
    second: TensorInfo | None
    elements: int | None = None
    absolute: float | int | None = None
    relative: float | None = None
    nans: int = 0


def differences(
    first: Source, second: Source, names: Iterable[str], advance: Callable[[int], None]
) -> Iterator[Difference]:
    """Yields a `Difference` for each name: the comparison of its tensors in two files.

    Args:
        first: the one file.
        second: the other.
        names: names of tensors that at least one of them has.
        advance: what is called with the number of bytes of the first file that were read.

    Raises:
        WeightFileError: if a file cannot be read.
    """
    for name in names:
        first_info, second_info = first.tensors.get(name), second.tensors.get(name)
        if first_info is None or second_info is None:
            yield Difference(name, "extra" if first_info is None else "missing", first_info, second_info)
        elif first_info.shape != second_info.shape:
            yield Difference(name, "shape", first_info, second_info)
        else:
            yield _compare_tensors(first, second, name, advance)


def _compare_tensors(first: Source, second: Source, name: str, advance: Callable[[int], None]) -> Difference:
    """Returns the comparison of the tensors of one name and shape in two files, read block by block."""
    first_info, second_info = first.tensors[name], second.tensors[name]
    difference = Difference(
        name, "equal" if first_info.dtype == second_info.dtype else "dtype", first_info, second_info, 0, 0, 0.0
    )
    for first_block, second_block in zip_longest(first.blocks(name), second.blocks(name)):
        advance(0 if first_block is None else first_block.nbytes)
        if first_info.dtype == second_info.dtype and np.array_equal(
            first_block.view(np.uint8), second_block.view(np.uint8)
        ):
            continue
        difference = difference._replace(kind="values" if first_info.dtype == second_info.dtype else "dtype")
        first_numbers, second_numbers = (
            (None, None)
            if first_block is None or second_block is None
            else (numeric_block(first_block, first_info.dtype), numeric_block(second_block, second_info.dtype))
        )
        if first_numbers is None or second_numbers is None:
            return difference._replace(elements=None, absolute=None, relative=None)
        unequal_count = _count_unequal(first_block, second_block) if first_info.dtype == second_info.dtype else None
        with np.errstate(all="ignore"):
            difference = _add_block(difference, first_numbers, second_numbers, unequal_count)
    return difference


def _count_unequal(x: Array, y: Array) -> int:
    """Returns the number of elements of two arrays with different bits; 0.0 and -0.0 count as different."""
    bytes_per_element = x.itemsize
    if bytes_per_element <= 8:
        return int(np.count_nonzero(x.view(f"u{bytes_per_element}") != y.view(f"u{bytes_per_element}")))
    is_different = x.view(np.uint8).reshape(-1, bytes_per_element) != y.view(np.uint8).reshape(-1, bytes_per_element)
    return int(np.count_nonzero(is_different.any(1)))


def _add_block(difference: Difference, x: Array, y: Array, unequal_count: int | None) -> Difference:
    """Returns a comparison of two tensors, extended by the comparison of another block of their elements.

    Args:
        difference: the comparison.
        x: a block of the first tensor as numbers.
        y: the same block of the second.
        unequal_count: how many elements have different bits, or None if that is the number of those that are not equal.
    """
    has_nan_in_one = np.isnan(x) != np.isnan(y)
    is_unequal = (x != y) & ~(np.isnan(x) & np.isnan(y))
    element_count = int(np.count_nonzero(is_unequal)) if unequal_count is None else unequal_count
    x, y = x[is_unequal & ~has_nan_in_one], y[is_unequal & ~has_nan_in_one]
    difference = difference._replace(
        elements=(difference.elements or 0) + element_count,
        nans=difference.nans + int(np.count_nonzero(has_nan_in_one)),
    )
    if not x.size:
        return difference
    if x.dtype == y.dtype and x.dtype.kind in "iu":
        integer_distance = np.where(x > y, x, y).astype(np.uint64) - np.where(x > y, y, x).astype(np.uint64)
        largest_distance: float | int = int(integer_distance.max())
        distance = integer_distance.astype(np.float64)
    else:
        wide_dtype = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        distance = np.abs(x.astype(wide_dtype) - y.astype(wide_dtype))
        largest_distance = float(distance.max())
    larger_magnitude = np.maximum(np.abs(x.astype(np.complex128)), np.abs(y.astype(np.complex128)))
    relative_distance = np.where(np.isinf(distance), np.inf, distance / larger_magnitude)
    return difference._replace(
        absolute=max(difference.absolute or 0, largest_distance),
        relative=max(difference.relative or 0.0, float(relative_distance.max())),
    )
