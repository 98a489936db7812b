"""Checks of gradients: against central differences in first and second order, and forward against reverse mode.

The checks compare random projections: for a function f with Jacobian J and second derivative H, random cotangents v
and random directions u and w, the numbers `<v, J u>` and `<v, H[u, w]>` are computed from the backend's derivatives
and from differences of function values. An error in any element changes these numbers with probability 1.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony import ops
from emberharmony.core.selection import current
from emberharmony.core.trees.tree import tree_flatten, tree_unflatten

Array = np.ndarray[Any, Any]
Arrays = list[Array]
_STEP = 1e-4
FIRST = "the gradient"
"""The name of the check of first derivatives."""
_FEW = 64
"""The largest number of elements for which a failure names the worst one: each takes 4 calls of the function."""
_LEAST = 1e-9
"""The number added to every scale, so that the rounding of two numbers that are nearly 0 is no error."""
_NARROW = 2e-3
"""The tolerance of a gradient check on a backend that computes in single precision."""


class GradientMismatchError(AssertionError):
    """Raised when a check of a gradient fails; the message has the check, the backend and the numbers or dtypes."""


class Check(NamedTuple):
    """A comparison of a derivative with the expected number, and `scale`, the sum of the magnitudes of their terms."""

    name: str
    derivative: float
    expected: float
    scale: float

    @property
    def error(self) -> float:
        """The difference of the derivative from the expected number, relative to the scale."""
        deviation = abs(self.derivative - self.expected)
        return 0.0 if deviation == 0 else deviation / self.scale if self.scale else float("inf")

    def __str__(self) -> str:
        pair_text = f"derivatives give {self.derivative:.12g}, expected {self.expected:.12g}"
        return f"{pair_text}, which is a relative error of {self.error:.2g}"


def gradcheck(
    fn: Callable[..., Any],
    args: Sequence[Any],
    *,
    order: int = 2,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> None:
    """Checks the derivatives of a function of tensors on the active backend; returns None if they are right.

    The gradient is compared with central differences of the values, computed in float64, and with forward mode. For
    `order` 2, the second derivative (reverse mode of reverse mode) is compared with central differences of the gradient
    and with the reverse mode of the forward mode.

    Where the backend can only compute in single precision (complex numbers on MLX), the differences are computed on
    NumPy, so `fn` must run there too, and the tolerance is at least 2e-3. Elements that are not finite are left out.

    Args:
        fn: takes `args` and returns a tensor or a tree of tensors; it is called many times and must be deterministic.
        args: trees; their floating and complex tensors and arrays are differentiated, in float64.
        order: 1 for first derivatives only, 2 for second derivatives too.
        tolerance: the allowed error, relative to the magnitudes of the terms that are added up.
        seed: the seed of the random projections.

    Raises:
        GradientMismatchError: if a derivative is wrong, or has another dtype than its argument or result; the message
            names the worst element of small arguments.

    Example:
        >>> import numpy as np
        >>> from emberharmony import ops
        >>> from emberharmony.testing import gradcheck
        >>> gradcheck(lambda x, y: ops.sum(ops.tanh(x) * y), (np.ones(3), np.arange(3.0)))
    """
    derivative_problem = Problem(fn, args, seed)
    allowed_error = derivative_problem.allowed_error(tolerance)
    for check in derivative_problem.checks(order):
        if not check.error <= allowed_error:
            location = derivative_problem.worst_element() if check.name == FIRST else ""
            raise GradientMismatchError(
                f"{check.name} on backend {ops.get_backend()!r}: {check} (tolerance {allowed_error:.2g}){location}"
            )


def gradients(
    fn: Callable[..., Any], args: Sequence[Any], *, seed: int = 0, dtype: str = "float64", compiled: bool = False
) -> Arrays:
    """Returns the gradients, computed on the active backend, by each leaf that `gradcheck` would differentiate.

    They are host arrays. The cotangent is random, but the same on every backend and in every dtype, so that gradients
    can be compared.

    Args:
        compiled: whether the gradient is compiled by `ops.compile`.

    Raises:
        GradientMismatchError: if a gradient has another dtype than its argument.
    """
    problem = Problem(fn, args, seed, dtype)
    return problem.gradient(problem.points, compiled)


class Problem:
    """A function with a point, a cotangent and two directions, all drawn from a seed."""

    def __init__(self, fn: Callable[..., Any], args: Sequence[Any], seed: int = 0, dtype: str = "float64") -> None:
        self.fn = fn
        self.leaves, self.structure = tree_flatten(list(args))
        self.places = [i for i, leaf in enumerate(self.leaves) if is_differentiable(leaf)]
        self.points = [_to_double(self.leaves[i]) for i in self.places]
        # MLX has no complex128, and an op of float64 and complex64 tensors computes in single precision.
        is_single_precision = not _has_dtype("complex128") and any(x.dtype.kind == "c" for x in self.points)
        self.dtypes = [
            _dtype_for(x, "float32" if is_single_precision and dtype == "float64" else dtype) for x in self.points
        ]
        rng = np.random.default_rng(seed)
        self.u, self.w = ([_random_direction(rng, x) for x in self.points] for _ in range(2))
        outputs = self.flat_results(*self._primals(self.points))
        self.results = [ops.dtype(y).name for y in outputs]
        self.is_narrow = any(name not in ("float64", "complex128") for name in self.results)
        double_results = [_to_double(y) for y in outputs]
        self.finite_masks = [np.isfinite(y) for y in double_results]
        self.v = [
            np.where(is_finite, _draw_like(rng, y), 0)
            for y, is_finite in zip(double_results, self.finite_masks, strict=True)
        ]

    def flat_results(self, *primals: Any) -> list[Any]:
        """Returns the differentiable results as a list, given the differentiable arguments."""
        argument_leaves = list(self.leaves)
        for argument_index, primal in zip(self.places, primals, strict=True):
            argument_leaves[argument_index] = primal
        results, _ = tree_flatten(self.fn(*tree_unflatten(self.structure, argument_leaves)))
        return [y for y in results if is_differentiable(y)]

    def allowed_error(self, tolerance: float = 1e-6) -> float:
        """Returns the allowed relative error, which is at least 2e-3 in single precision."""
        return max(tolerance, _NARROW) if self.is_narrow else tolerance

    def checks(self, order: int, is_mixed: bool = True) -> Iterator[Check]:
        """Yields the comparisons of derivatives; none if no argument is differentiable or no result is finite."""
        if not any(is_finite.any() for is_finite in self.finite_masks) or not any(np.any(u) for u in self.u):
            return
        gradient, tangents = self.gradient(self.points), self._forward_tangents()
        directional_derivative, error_scale = _dot(gradient, self.u), _size_of_dot(gradient, self.u)
        with self._switch_to_float64():
            error_floor = 1e-6 * _size_of_dot(self.v, self._results_at(self.points)) + _LEAST
            numeric_derivative = self._directional_derivative(lambda x: _dot(self.v, self._results_at(x)), self.u)
        yield Check(
            FIRST, directional_derivative, numeric_derivative, error_scale + abs(numeric_derivative) + error_floor
        )
        yield Check(
            "forward against reverse mode", _dot(self.v, tangents), directional_derivative, error_scale + error_floor
        )
        if order > 1:
            second_derivative = self._second_derivative()
            if self.is_narrow:
                with self._switch_to_float64():
                    numeric_derivative = self._mixed_difference()
            else:
                numeric_derivative = self._directional_derivative(lambda x: _dot(self.gradient(x), self.w), self.u)
            error_scale = (
                _size_of_dot(second_derivative, self.u)
                + abs(numeric_derivative)
                + 1e-5 * _size_of_dot(gradient, self.w)
                + error_floor
            )
            yield Check("the second order", _dot(second_derivative, self.u), numeric_derivative, error_scale)
            if is_mixed:
                yield Check(
                    "reverse over forward mode",
                    _dot(self._pull_back_of_push(), self.w),
                    _dot(second_derivative, self.u),
                    error_scale,
                )

    def worst_element(self) -> str:
        """Returns a text that names the element with the largest gradient error; "" if the arguments are large."""
        if sum(x.size for x in self.points) > _FEW:
            return ""
        errors_and_texts: list[tuple[float, str]] = []
        for i, (x, gradient) in enumerate(zip(self.points, self.gradient(self.points), strict=True)):
            for position in np.ndindex(x.shape):
                direction = [np.zeros_like(point) for point in self.points]
                direction[i][position] = max(min(abs(x[position]), 1.0), 1e-2)
                with self._switch_to_float64():
                    numeric_derivative = self._directional_derivative(
                        lambda points: _dot(self.v, self._results_at(points)), direction
                    )
                expected_gradient = numeric_derivative / float(direction[i][position].real)
                deviation = abs(float(gradient[position].real) - expected_gradient)
                location = f"at element {position} of argument {i}"
                element_text = f"; worst {location}: {gradient[position]:.6g}, expected {expected_gradient:.6g}"
                errors_and_texts.append((deviation, element_text))
        return max(errors_and_texts, key=lambda pair: pair[0] if pair[0] == pair[0] else np.inf)[1]

    def gradient(self, points: Arrays, compiled: bool = False) -> Arrays:
        """Returns the gradients of `<v, f>` at `points`, with 0 where an argument is not finite."""
        pull_back = ops.compile(self._pull_back) if compiled else self._pull_back
        return self._zero_where_nonfinite(self._host_gradients(pull_back(*self._primals(points))))

    def _pull_back(self, *primals: Any) -> list[Any]:
        _, pull = current().pullback(self.flat_results, primals)
        return list(pull(_as_tensors(self.v, self.results)))

    def _second_derivative(self) -> Arrays:
        _, pull = current().pullback(self._pull_back, self._primals(self.points))
        return self._zero_where_nonfinite(self._host_gradients(pull(self._primals(self.w))))

    def _host_gradients(self, gradients: Sequence[Any]) -> Arrays:
        """Returns gradients as host arrays in double precision, after a check of their dtypes.

        Raises:
            GradientMismatchError: if one has another dtype than its argument.
        """
        _require_dtypes(gradients, self.dtypes, "the gradient with respect to argument")
        return _double_arrays(gradients)

    def _zero_where_nonfinite(self, gradients: Arrays) -> Arrays:
        return [np.where(np.isfinite(x), g, 0) for x, g in zip(self.points, gradients, strict=True)]

    def _push_forward(self, *primals: Any) -> list[Any]:
        _, tangents = current().pushforward(self.flat_results, primals, self._primals(self.u))
        return list(tangents)

    def _forward_tangents(self) -> Arrays:
        tangents = self._push_forward(*self._primals(self.points))
        _require_dtypes(tangents, self.results, "the derivative of result")
        return self._finite_results(tangents)

    def _pull_back_of_push(self) -> Arrays:
        _, pull = current().pullback(self._push_forward, self._primals(self.points))
        return self._zero_where_nonfinite(self._host_gradients(pull(_as_tensors(self.v, self.results))))

    def _results_at(self, points: Arrays) -> Arrays:
        return self._finite_results(self.flat_results(*self._primals(points)))

    def _finite_results(self, results: Sequence[Any]) -> Arrays:
        """Returns results as host arrays, with zeros where the results at the unchanged point are not finite."""
        return [
            np.where(is_finite, y, 0) for y, is_finite in zip(_double_arrays(results), self.finite_masks, strict=True)
        ]

    def _primals(self, arrays: Arrays) -> list[Any]:
        return _as_tensors(arrays, self.dtypes)

    def _directional_derivative(self, value: Callable[[Arrays], float], direction: Arrays) -> float:
        """Returns the derivative of `value` along a direction, by central differences of fourth order."""

        def function_at(t: float) -> float:
            return value([x + t * d for x, d in zip(self.points, direction, strict=True)])

        h = _STEP
        return (8 * (function_at(h) - function_at(-h)) - (function_at(2 * h) - function_at(-2 * h))) / (12 * h)

    def _mixed_difference(self) -> float:
        """Returns the second derivative along `u` and `w` from function values; it is accurate to single precision."""

        def function_at(s: float, t: float) -> float:
            points = [x + s * d + t * e for x, d, e in zip(self.points, self.u, self.w, strict=True)]
            return _dot(self.v, self._results_at(points))

        h = 10 * _STEP  # a larger step than for first derivatives: rounding is divided by its square
        return (function_at(h, h) - function_at(h, -h) - function_at(-h, h) + function_at(-h, -h)) / (4 * h * h)

    @contextlib.contextmanager
    def _switch_to_float64(self) -> Iterator[None]:
        """Makes the block compute in float64: on NumPy, if the backend computes in single precision."""
        if not self.is_narrow:
            yield
            return
        dtypes_before, self.dtypes = self.dtypes, [_dtype_for(x, "float64") for x in self.points]
        with ops.use_backend("numpy"):
            yield
        self.dtypes = dtypes_before


def is_differentiable(value: object) -> bool:
    """Returns whether a leaf of a tree is a floating or complex tensor or array."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "fc" or value.dtype.name == "bfloat16"
    if not current().is_tensor(value):
        return False
    dtype = current().dtype_of(value)
    return bool(dtype.is_floating or dtype.is_complex)


def _dtype_for(array: Array, dtype: str) -> str:
    """Returns a floating dtype for a real array, and the complex dtype that computes in it for a complex one."""
    if array.dtype.kind == "f":
        return dtype
    return "complex128" if dtype == "float64" else "complex64"


def _require_dtypes(tensors: Sequence[Any], expected_dtypes: Sequence[str], what: str) -> None:
    for i, (tensor, name) in enumerate(zip(tensors, expected_dtypes, strict=True)):
        dtype_name = ops.dtype(tensor).name
        if dtype_name != name:
            raise GradientMismatchError(f"{what} {i} on backend {ops.get_backend()!r} is {dtype_name}, expected {name}")


def _has_dtype(dtype: str) -> bool:
    return any(available_dtype.name == dtype for available_dtype in current().dtypes.available)


def _to_double(x: Any) -> Array:
    host_array = x if isinstance(x, np.ndarray) else np.asarray(ops.to_numpy(x))
    return host_array.astype(np.complex128 if host_array.dtype.kind == "c" else np.float64)


def _as_tensors(arrays: Arrays, dtypes: Sequence[str]) -> list[Any]:
    def as_native(array: Array, name: str) -> Any:
        # NumPy has no bfloat16 of its own, so the backend makes it.
        tensor = ops.convert_to_tensor(array.astype("float32" if name == "bfloat16" else name))
        return ops.cast(tensor, "bfloat16") if name == "bfloat16" else tensor

    return list(map(as_native, arrays, dtypes))


def _double_arrays(tensors: Sequence[Any]) -> Arrays:
    ops.eval(tensors)
    return [_to_double(x) for x in tensors]


def _draw_like(rng: np.random.Generator, array: Array) -> Array:
    """Returns random numbers of magnitude 0.5 to 1, in the shape of `like`, and complex if `like` is."""
    random_numbers = rng.uniform(0.5, 1.0, array.shape) * rng.choice([-1.0, 1.0], array.shape)
    if array.dtype.kind == "c":
        return np.asarray(random_numbers * np.exp(1j * rng.uniform(0, 2 * np.pi, array.shape)))
    return np.asarray(random_numbers)


def _random_direction(rng: np.random.Generator, x: Array) -> Array:
    """Returns a random direction, scaled so that steps are small relative to `x`; 0 where `x` is not finite."""
    return np.where(np.isfinite(x), _draw_like(rng, x) * np.clip(np.abs(x), 1e-2, 1.0), 0)


def _dot(a: Arrays, b: Arrays) -> float:
    return float(sum(np.sum(np.conj(x) * y).real for x, y in zip(a, b, strict=True)))


def _size_of_dot(a: Arrays, b: Arrays) -> float:
    return float(sum(np.sum(np.abs(x) * np.abs(y)) for x, y in zip(a, b, strict=True)))
