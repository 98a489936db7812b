"""The arrays in the arguments and results of two models, and the order of axes in which two arrays correspond."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import Host

_FLOATING = ("float", "bfloat")

_MASKED = -1e4
"""The number below which the nonzero elements of an additive mask must be."""

_CLOSE = 1e-3
"""The distance of two arrays below which no other order of axes is tried."""


def arrays_in(value: Any, is_array: Callable[[Any], bool]) -> Iterator[Any]:
    """Yields the arrays in a value, in their order."""
    if is_array(value):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from arrays_in(item, is_array)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays_in(item, is_array)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from arrays_in(getattr(value, field.name, None), is_array)


def replace_arrays(value: Any, is_array: Callable[[Any], bool], arrays: Mapping[int, Any], counter: list[int]) -> Any:
    """Returns a copy of nested lists, tuples and dicts with other arrays in place of those with given numbers.

    Args:
        value: tuples, lists and dicts of arrays; arrays elsewhere stay.
        is_array: says what an array is.
        arrays: the new arrays by the number of the one they replace.
        counter: the number of the first array of the value, which is counted up.
    """
    if is_array(value):
        counter[0] += 1
        return arrays.get(counter[0] - 1, value)
    if type(value) is dict:
        return {name: replace_arrays(item, is_array, arrays, counter) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [replace_arrays(item, is_array, arrays, counter) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value):
        counter[0] += sum(1 for _ in arrays_in(value, is_array))
    return value


class Fit(NamedTuple):
    """The conversion of an array of the second model to one of the first: an order of its axes, then a shape.

    Attributes:
        order: the axes of the second array in the order of those of the first; () if they stay.
        first, second: the shapes.
        mask: how a mask becomes one of the other kind: "added", "kept" (True where attention looks) or "left out".
    """

    order: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    mask: str = ""

    def to_first(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns an array of the second model as one of the first."""
        return (array.transpose(self.order) if self.order else array).reshape(self.first)

    def to_second(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns an array of the first model as one of the second."""
        if not self.order:
            return array.reshape(self.second)
        inverse_order = np.argsort(self.order)
        return array.reshape([self.second[axis] for axis in self.order]).transpose(inverse_order)


def fits(first: Sequence[int], second: Sequence[int]) -> Iterator[Fit]:
    """Yields the ways in which an array of one shape may be one of another shape, the likeliest first."""
    first, second = tuple(first), tuple(second)
    if math.prod(first) != math.prod(second):
        return
    if first == second:
        yield Fit((), first, second)
    axis_count = len(second)
    axis_orders: list[tuple[int, ...]] = []
    if axis_count >= 3:
        axis_orders = [
            (0, axis_count - 1, *range(1, axis_count - 1)),
            (0, *range(2, axis_count), 1),
            (1, 0, *range(2, axis_count)),
        ]
        axis_orders += [(axis_count - 1, *range(axis_count - 1)), (*range(1, axis_count), 0)]
    if axis_count == 4:
        axis_orders.append((0, 2, 1, 3))
    seen_orders: set[tuple[int, ...]] = set()
    for order in axis_orders:
        if tuple(second[axis] for axis in order) == first and order not in seen_orders:
            seen_orders.add(order)
            yield Fit(order, first, second)
    if first != second and _joins_axes(first, second):
        yield Fit((), first, second)


def _joins_axes(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Returns whether two shapes differ by axes of length 1, before the last, or by some that one has joined."""
    lengths_over_1 = [[n for n in shape if n != 1] for shape in (first, second)]
    return (
        _is_split_of(*lengths_over_1)
        or _is_split_of(*lengths_over_1[::-1])
        or (bool(first and second) and first[-1] == second[-1])
    )


def _is_split_of(joined_shape: Sequence[int], split_shape: Sequence[int]) -> bool:
    """Returns whether each axis of a shape is one of another shape, or the product of some that follow each other."""
    remaining_lengths = list(split_shape)
    for length in joined_shape:
        product = 1
        while remaining_lengths and product < length:
            product *= remaining_lengths.pop(0)
        if product != length:
            return False
    return not remaining_lengths


class Pair(NamedTuple):
    """Two arrays that correspond: their places in the two calls, how far they are apart, and how they fit."""

    first: int
    second: int
    share: float
    fit: Fit


def pairs_of(first: Sequence[Host], second: Sequence[Host]) -> list[Pair]:
    """Returns the arrays of two calls that correspond, each with the first one that is left and has its shape."""
    pairs: list[Pair] = []
    remaining_indices = list(range(len(second)))
    for i, first_array in enumerate(first):
        for j in remaining_indices:
            share_and_fit = best_fit(first_array, second[j])
            if share_and_fit is not None:
                pairs.append(Pair(i, j, share_and_fit[0], share_and_fit[1]))
                remaining_indices.remove(j)
                break
    return pairs


def best_fit(one: Host, other: Host) -> tuple[float, Fit] | None:
    """Returns how far two arrays are apart, and how they fit; None if they do not."""
    if one.dtype.startswith(_FLOATING) != other.dtype.startswith(_FLOATING):
        return _mask_fit(one, other)
    if _is_added_mask(one) and _is_added_mask(other):
        return _mask_fit(Host(one.values() == 0, "bool"), other)
    best_share_and_fit: tuple[float, Fit] | None = None
    for fit in fits(one.shape, other.shape):
        relative_difference = distance(one, Host(fit.to_first(other.bits), other.dtype)).share
        if best_share_and_fit is None or relative_difference < best_share_and_fit[0]:
            best_share_and_fit = relative_difference, fit
        if relative_difference <= _CLOSE:
            break
    return best_share_and_fit


def _is_added_mask(host: Host) -> bool:
    """Returns whether an array is an additive mask of attention: zeros and large negative numbers."""
    if not host.size or not host.dtype.startswith(_FLOATING) or host.values().flat[-1] not in (0, host.values().min()):
        return False
    mask_values = host.values()
    return bool(mask_values.min() < _MASKED and np.all((mask_values == 0) | (mask_values < _MASKED)))


def _mask_fit(one: Host, other: Host) -> tuple[float, Fit] | None:
    """Returns the fit of a boolean mask and an additive mask (0 and large negative numbers)."""
    if "bool" not in (one.dtype, other.dtype) or one.size != other.size:
        return None
    boolean_mask, additive_mask = (one, other) if one.dtype == "bool" else (other, one)
    mask_values = additive_mask.values()
    if not np.all((mask_values == 0) | (mask_values < _MASKED)):
        return None
    for fit in fits(one.shape, other.shape):
        is_equal = boolean_mask.bits.reshape(additive_mask.shape) == (mask_values == 0)
        share = min(float(1 - is_equal.mean()), float(is_equal.mean()))
        return share, fit._replace(mask="kept" if is_equal.mean() >= 0.5 else "left out")
    return None
