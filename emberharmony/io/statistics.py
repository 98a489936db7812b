"""Statistics of the tensors of a file, computed from one block at a time."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from emberharmony.io.sources import Array, Source, numeric_block

Advance = Callable[[int], None]
"""A function that is called with the number of bytes that were read, to show progress."""

_LARGE = 1e150
"""The magnitude above which squares may overflow float64, so that a wider dtype is used."""


class Statistics(NamedTuple):
    """Statistics of the finite elements of a tensor, and how many are not finite.

    Attributes:
        nans: how many elements are NaN.
        infinities: how many are infinite.
        minimum: the least finite element; None if there is none, or if the tensor is complex.
        maximum: the greatest.
        mean: the mean of the finite elements; None if there is none.
        std: their standard deviation, with the divisor n.
    """

    nans: int = 0
    infinities: int = 0
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | complex | None = None
    std: float | None = None


def statistics(source: Source, name: str, advance: Advance = lambda size: None) -> Statistics | None:
    """Returns the statistics of a tensor of a source, or None if NumPy cannot compute with its dtype.

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).

    Raises:
        WeightFileError: if the file cannot be read.
    """
    dtype = source.tensors[name].dtype
    if numeric_block(np.empty(0, np.uint16), dtype) is None:
        return None
    total_statistics = Statistics()
    finite_count, mean, squared_deviation_sum = 0, np.float64(0), np.float64(0)
    with np.errstate(all="ignore"):
        for block in source.blocks(name):
            block_numbers = numeric_block(block, dtype)
            assert block_numbers is not None
            finite_values, total_statistics = _finite_elements_and_statistics(block_numbers, total_statistics)
            if finite_values.size:
                block_count, block_mean, block_deviation_sum = _moments(finite_values)
                mean_difference = block_mean - mean
                new_count = finite_count + block_count
                mean = mean + mean_difference * (block_count / new_count)
                squared_deviation_sum = (
                    squared_deviation_sum
                    + block_deviation_sum
                    + abs(mean_difference) ** 2 * (finite_count * (block_count / new_count))
                )
                finite_count = new_count
            advance(block.nbytes)
    if not finite_count:
        return total_statistics
    python_mean = complex(mean) if dtype.startswith("complex") else float(mean.real)
    return total_statistics._replace(mean=python_mean, std=float(np.sqrt(squared_deviation_sum / finite_count)))


def _finite_elements_and_statistics(elements: Array, earlier_statistics: Statistics) -> tuple[Array, Statistics]:
    """Returns the finite elements of a block, and the statistics updated with the block's counts and extremes."""
    if elements.dtype.kind in "fc":
        is_finite = np.isfinite(elements)
        nonfinite_count = elements.size - int(np.count_nonzero(is_finite))
        if nonfinite_count:
            nan_count = int(np.count_nonzero(np.isnan(elements)))
            earlier_statistics = earlier_statistics._replace(
                nans=earlier_statistics.nans + nan_count,
                infinities=earlier_statistics.infinities + nonfinite_count - nan_count,
            )
            elements = elements[is_finite]
    if elements.size and elements.dtype.kind != "c":
        smallest, largest = elements.min().item(), elements.max().item()
        earlier_statistics = earlier_statistics._replace(
            minimum=smallest if earlier_statistics.minimum is None else min(earlier_statistics.minimum, smallest),
            maximum=largest if earlier_statistics.maximum is None else max(earlier_statistics.maximum, largest),
        )
    return elements, earlier_statistics


def _moments(elements: Array) -> tuple[int, Any, Any]:
    """Returns the number of elements, their mean, and the sum of their squared deviations from the mean."""
    wide_dtype: Any = np.complex128 if elements.dtype.kind == "c" else np.float64
    if elements.dtype.itemsize >= 8 and elements.dtype.kind in "fc" and np.abs(elements).max() > _LARGE:
        wide_dtype = np.clongdouble if elements.dtype.kind == "c" else np.longdouble
    mean = elements.mean(dtype=wide_dtype)
    deviations = np.subtract(elements, mean, dtype=wide_dtype)
    return (
        elements.size,
        mean,
        (deviations.real**2 + deviations.imag**2).sum()
        if elements.dtype.kind == "c"
        else (deviations * deviations).sum(),
    )


def nonfinite_text(figures: Statistics) -> str:
    """Returns a text with the numbers of NaN and infinite elements of a tensor; an empty text if there are none."""
    count_texts = [f"{figures.nans:,} NaN"] if figures.nans else []
    count_texts += [f"{figures.infinities:,} infinite"] if figures.infinities else []
    return " and ".join(count_texts)


def json_number(value: float | complex | None) -> Any:
    """Returns a number in a form that JSON allows: complex and non-finite numbers become texts."""
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value
