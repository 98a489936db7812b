"""Creation ops for ranges and window functions: computed by NumPy in float64, so that all backends agree exactly."""

from __future__ import annotations

# ruff: noqa: D102  (the declarations have the docstrings)
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from emberharmony.backend.host import is_integer
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset
from emberharmony.backend.shared.device import ADDRESSABLE, check_memory
from emberharmony.core.axes import as_index
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import DType, default_complex, default_float, float32, float64, int32, int64
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.numeric.promotion import check_fits
from emberharmony.core.options import as_number, constant

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

F = TypeVar("F", bound=Callable[..., Any])
_REAL = (int, float)
_EXACT = {int32: 2**31 - 1, int64: 2**31 - 1, float32: 2**24, float64: 2**31 - 1}
"""By dtype, the largest ends, and the largest length, of ranges that every library computes exactly."""


def keep_fill_number(function: F) -> F:
    """Marks an op whose second parameter is a fill value, so that dispatch passes Python numbers unconverted."""
    return fast(function, "", "({1}.__class__ is float or {1}.__class__ is int)")(function)


def _are_numbers(*values: Any) -> bool:
    return all(value.__class__ in _REAL or isinstance(value, (int, float, complex, np.generic)) for value in values)


def _default_dtype_of(*numbers: Any) -> DType:
    """Returns the default dtype of an array that is computed from these numbers.

    It depends on the numbers and not on the array, because `torch.compile` (torch 2.13) cannot trace the array's dtype.
    """
    if any(number.__class__ not in _REAL and isinstance(number, (complex, np.complexfloating)) for number in numbers):
        return default_complex()
    return int64 if all(map(is_integer, numbers)) else default_float()


def _as_float(number: Any) -> Any:
    """Returns a Python integer as a float, because NumPy stores integers beyond 64 bits as objects.

    Other numbers are returned unchanged.
    """
    return float(number) if number.__class__ is int else number


def check_ends(*numbers: Any) -> None:
    """Checks that no float among the start, the stop and the step of a range is infinite or NaN.

    Raises:
        ArgumentError: if one is not finite.
    """
    if any(number.__class__ is float and not math.isfinite(number) for number in numbers):
        raise ArgumentError(f"the ends and the step of a range are finite, got {', '.join(map(str, numbers))}")


def _number_of_points(number: Any) -> int:
    """Returns the number of points of a window, which is 0 if a negative one is given.

    Raises:
        OutOfMemoryError: if no memory holds so many points.
        TypeError: if it is not an integer; dispatch makes it an ArgumentTypeError.
    """
    point_count = max(as_index(number), 0)
    check_memory((point_count,), 8)
    return point_count


def ones_on_diagonal(rows: int, columns: int | None, k: int) -> np.ndarray:
    """Returns a matrix with ones on its k-th diagonal, by default a square one."""
    height, width = as_shape((rows, rows if columns is None else columns))
    return np.eye(height, width, clip_offset(k, height, width))


def triangle_mask(shape: Sequence[int], k: int, lower: bool) -> np.ndarray:
    """Returns a mask of the elements of a matrix that are on its k-th diagonal, or below it, or else above it."""
    height, width = shape
    k = clip_offset(k, height, width)
    mask = np.tri(height, width, k if lower else k - 1, dtype=bool)
    return mask if lower else ~mask


def diagonal_sources(shape: Sequence[int], k: int, width: int) -> np.ndarray | None:
    """Returns, for a matrix with a vector on its k-th diagonal, each element's index in the vector followed by a 0.

    It is None for the shape of a matrix.

    Args:
        shape: of the vector or the matrix.
        k: the number of the diagonal.
        width: the bytes of one element.

    Raises:
        OutOfMemoryError: if no memory holds the matrix.
        ShapeError: if the shape is of neither.
    """
    if len(shape) not in (1, 2):
        raise ShapeError(f"expected a vector or a matrix, got shape {tuple(shape)}")
    if len(shape) == 2:
        return None
    (length,) = shape
    side = length + abs(int(k))
    check_memory((side, side), width)
    source_matrix = np.full((side, side), length)
    vector_indices = np.arange(length)
    source_matrix[vector_indices + max(-k, 0), vector_indices + max(k, 0)] = vector_indices
    return source_matrix


def _int64_range(integers: range) -> np.ndarray:
    """Returns a nonempty range as int64, without np.arange, which counts in float64 and rounds large numbers."""
    wrapped_step = (integers.step + 2**63) % 2**64 - 2**63  # what wraps around in the product comes back by the sum
    return np.arange(len(integers)) * wrapped_step + integers[0]


class HostMade:
    """The creation ops that are computed on the host; a backend's `_place_array` turns the host array into a tensor.

    The bodies are these methods over ops: they take 1.04 to 1.6 times as long on NumPy, and `vander` 1.8 times.
    """

    dtypes: ClassVar[Any]
    convert: Any
    add: Any
    subtract: Any
    multiply: Any
    divide: Any
    power: Any
    sign: Any
    cast: Any
    moveaxis: Any
    get_device: Any
    to_device: Any

    @staticmethod
    def _memory_limit() -> int:
        """Returns the largest number of bytes that a result may have."""
        return ADDRESSABLE

    def _place_array(self, array: np.ndarray, dtype: Any, device: Any) -> Any:
        """Returns a host array of int64, float64 or complex128 as a tensor of a native dtype."""
        raise NotImplementedError

    def arange(self, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, device: Any = None) -> Any:
        step = 1 if step is None else step
        if step == 0:
            raise ArgumentError("step must not be 0")
        start_number, stop_number = (0, start) if stop is None else (start, stop)
        result_dtype = _default_dtype_of(start_number, stop_number, step)
        if result_dtype is not int64:
            constant("start, stop or step", [start_number, stop_number, step])
        native_dtype = self.dtypes[result_dtype] if dtype is None else dtype
        if result_dtype is int64 or all(
            number.__class__ in _REAL and number % 1 == 0 for number in (start_number, stop_number, step)
        ):
            integers, neutral_dtype = (
                range(int(start_number), int(stop_number), int(step)),
                self.dtypes.neutral[native_dtype],
            )
            if result_dtype is int64 and integers:
                # Check the first and last integer: a cast to a narrower integer dtype would wrap around silently.
                for end in (integers[0], integers[-1]):
                    check_fits(end, neutral_dtype)
            largest_magnitude = max(
                map(abs, (integers.start, integers.stop, integers.step, integers.stop - integers.start))
            )
            if integers and largest_magnitude <= _EXACT.get(neutral_dtype, -1):
                return self._integer_range(integers, native_dtype, device)
        check_ends(start_number, stop_number, step)
        host_range = (
            _int64_range(integers) if result_dtype is int64 and integers else np.arange(start_number, stop_number, step)
        )
        if any(isinstance(end, int) and not -(2**63) <= end < 2**63 for end in (start_number, stop_number, step)):
            # NumPy 2.4 makes an array of objects of integers beyond 64 bits. Testing array.dtype would be simpler, but
            # torch.compile (torch 2.13) cannot trace it.
            host_range = host_range.astype(np.int64 if result_dtype is int64 else np.float64)
        return self._place_array(host_range, native_dtype, device)

    def _integer_range(self, integers: range, dtype: Any, device: Any) -> Any:
        """Returns the integers of a range, which is not empty, as a tensor of a native dtype that holds them exactly.

        A backend whose library makes ranges faster overrides it.
        """
        return self._place_array(np.arange(integers.start, integers.stop, integers.step), dtype, device)

    def _shares_of_ends(self, span: Any, num: int, endpoint: bool) -> tuple[Any, Any]:
        """Returns the weights of `stop` and of `start` in each of `num` evenly spaced samples between them."""
        shares = np.linspace(0.0, 1.0, num, endpoint).reshape(-1, *(1,) * len(span.shape))
        check_memory((shares.size, *span.shape), self.dtypes.neutral[span.dtype].itemsize, self._memory_limit)
        share_dtype = span.dtype if self.dtypes.neutral[span.dtype].is_floating else self.dtypes[default_float()]
        span_device = self.get_device(span)
        return self._place_array(shares, share_dtype, span_device), self._place_array(
            1.0 - shares, share_dtype, span_device
        )

    def linspace(
        self,
        start: Any,
        stop: Any,
        num: int = 50,
        endpoint: bool = True,
        retstep: bool = False,
        dtype: Any = None,
        axis: int = 0,
        device: Any = None,
    ) -> Any:
        check_memory((num := as_index(num),), 8)
        if _are_numbers(start, stop):
            nonnegative_axes(axis, 1)
            start, stop = _as_float(start), _as_float(stop)
            host_samples, result_dtype = (
                np.linspace(start, stop, num, endpoint),
                self.dtypes[_default_dtype_of(start, stop, 0.0)],
            )
            samples = self._place_array(
                self._floor_if_integer(host_samples, dtype), result_dtype if dtype is None else dtype, device
            )
            if not retstep:
                return samples
            step = np.linspace(start, stop, num, endpoint, True)[1]  # type: ignore[call-overload]
            # The step of integer samples may have a fraction, so it keeps the floating dtype.
            is_floating = dtype is not None and self.dtypes.neutral[dtype].is_floating
            return samples, self._place_array(np.asarray(step), dtype if is_floating else result_dtype, device)
        start_tensor, stop_tensor = self.convert(start), self.convert(stop)
        end_difference = self.subtract(stop_tensor, start_tensor)
        # Mix both ends by weights instead of adding multiples of the step, so that the last sample is exactly `stop`.
        stop_shares, start_shares = self._shares_of_ends(end_difference, num, endpoint)
        samples = self.add(self.multiply(start_shares, start_tensor), self.multiply(stop_shares, stop_tensor))
        samples = samples if device is None else self.to_device(samples, device)
        samples = self.moveaxis(samples if dtype is None else self.cast(samples, dtype), 0, axis)
        interval_count = num - 1 if endpoint else num
        return (samples, self.divide(end_difference, interval_count)) if retstep else samples

    def logspace(
        self,
        start: Any,
        stop: Any,
        num: int = 50,
        endpoint: bool = True,
        base: Any = 10,
        dtype: Any = None,
        axis: int = 0,
        device: Any = None,
    ) -> Any:
        check_memory((num := as_index(num),), 8)
        if _are_numbers(start, stop, base):
            nonnegative_axes(axis, 1)
            start, stop = _as_float(start), _as_float(stop)
            host_samples = np.logspace(start, stop, num, endpoint, base)
            result_dtype = self.dtypes[_default_dtype_of(start, stop, base, 0.0)]
            return self._place_array(
                self._floor_if_integer(host_samples, dtype), result_dtype if dtype is None else dtype, device
            )
        base = base if type(base) in (int, float, complex) else self.convert(base)
        exponents = self.linspace(start, stop, num, endpoint, device=device)
        # Bases with more axes than both ends broadcast with these, not with the axis of the samples.
        extra_axis_count = len(getattr(base, "shape", ())) - len(exponents.shape) + 1
        exponents = exponents[(slice(None), *(None,) * extra_axis_count)] if extra_axis_count > 0 else exponents
        samples = self.moveaxis(self.power(base, exponents), 0, axis)
        return samples if dtype is None else self.cast(samples, dtype)

    def geomspace(
        self,
        start: Any,
        stop: Any,
        num: int = 50,
        endpoint: bool = True,
        dtype: Any = None,
        axis: int = 0,
        device: Any = None,
    ) -> Any:
        check_memory((num := as_index(num),), 8)
        if not _are_numbers(start, stop):
            start_tensor, stop_tensor = self.convert(start), self.convert(stop)
            sign = self.sign(start_tensor)
            start_tensor, stop_tensor = self.divide(start_tensor, sign), self.divide(stop_tensor, sign)
            stop_shares, start_shares = self._shares_of_ends(self.multiply(start_tensor, stop_tensor), num, endpoint)
            # A product of powers of `start` and `stop` is exactly `start` at one end and `stop` at the other.
            samples = self.multiply(
                sign, self.multiply(self.power(start_tensor, start_shares), self.power(stop_tensor, stop_shares))
            )
            samples = samples if device is None else self.to_device(samples, device)
            return self.moveaxis(samples if dtype is None else self.cast(samples, dtype), 0, axis)
        nonnegative_axes(axis, 1)
        host_samples = np.geomspace(_as_float(start), _as_float(stop), num, endpoint)
        result_dtype = self.dtypes[_default_dtype_of(start, stop, 0.0)]
        return self._place_array(
            self._floor_if_integer(host_samples, dtype), result_dtype if dtype is None else dtype, device
        )

    def bartlett(self, x: int, dtype: Any = None, device: Any = None) -> Any:
        return self._window(lambda n, last: 1 + n / last, x, dtype, device)

    def blackman(self, x: int, dtype: Any = None, device: Any = None) -> Any:
        def rising_window(n: np.ndarray, last: int) -> np.ndarray:
            angle = np.pi * n / last
            return 0.42 + 0.5 * np.cos(angle) + 0.08 * np.cos(2.0 * angle)

        return self._window(rising_window, x, dtype, device)

    def hamming(self, x: int, dtype: Any = None, device: Any = None) -> Any:
        return self._window(lambda n, last: 0.54 + 0.46 * np.cos(np.pi * n / last), x, dtype, device)

    def hanning(self, x: int, dtype: Any = None, device: Any = None) -> Any:
        return self._window(lambda n, last: 0.5 + 0.5 * np.cos(np.pi * n / last), x, dtype, device)

    def kaiser(self, x: int, beta: float, dtype: Any = None, device: Any = None) -> Any:
        def rising_window(n: np.ndarray, last: int) -> np.ndarray:
            return np.i0(beta * np.sqrt(1 - (n / last) ** 2.0)) / np.i0(beta)

        beta = as_number("beta", beta)
        return self._window(rising_window, x, dtype, device)

    def vander(self, x: Any, N: int | None = None, increasing: bool = False) -> Any:
        if len(x.shape) != 1:
            raise ShapeError(f"expected a vector, got shape {tuple(x.shape)}")
        exponents = np.arange(x.shape[0] if N is None else _number_of_points(N))
        check_memory((x.shape[0], exponents.size), self.dtypes.neutral[x.dtype].itemsize, self._memory_limit)
        target_device = self.get_device(x)
        # The copy makes the array contiguous: torch 2.13 does not take arrays with negative strides.
        exponent_tensor = self._place_array(
            exponents if increasing else exponents[::-1].copy(), self.dtypes[int64], target_device
        )
        return self.power(x[:, None], exponent_tensor)

    def _window(self, rising_function: Callable[[np.ndarray, int], np.ndarray], x: int, dtype: Any, device: Any) -> Any:
        """Returns a symmetric window function of `x` points, from the function that gives its rising half.

        Args:
            rising_function: the first half of the window, the middle included. It is a function of `n`, which counts
                from `-last` by twos, and of `last`, which is `x - 1`.
            x: the number of points.
            dtype: the native dtype; None is the default float.
            device: the device of the tensor.
        """
        point_count = _number_of_points(x)
        rising_half = (
            rising_function(np.arange(1 - point_count, 1, 2), point_count - 1)
            if point_count > 1
            else np.ones(point_count)
        )
        native_dtype = self.dtypes[default_float()] if dtype is None else dtype
        if self.dtypes.neutral[native_dtype] is float32:
            rising_half = rising_half.astype(np.float32)
        return self._place_array(
            np.concatenate([rising_half, rising_half[: point_count // 2][::-1]]), native_dtype, device
        )

    def _floor_if_integer(self, array: np.ndarray, dtype: Any) -> np.ndarray:
        """Returns samples, rounded down if the dtype is an integer one, as NumPy does."""
        has_integer_dtype = dtype is not None and self.dtypes.neutral[dtype].is_integer
        return np.floor(array) if has_integer_dtype else array
