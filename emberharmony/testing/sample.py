"""Sample rows (the inputs, oracle and tolerance by which an op is checked), and the error of a result in eps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emberharmony.core.errors import EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.gradient_row import GradientRow

Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTEGERS = ("int32", "int64", "uint8")
WHOLE = ("bool", *INTEGERS)
COMPLEX = ("complex64", "complex128")
TINY = {"float16": 2.0**-14, "float32": 2.0**-126, "bfloat16": 2.0**-126, "complex64": 2.0**-126}
"""The smallest normal numbers; below them the spacing of the numbers is constant."""
EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
}


@dataclass(frozen=True)
class Case:
    """The arguments of one call of a sample row, with host arrays in place of tensors."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def case(*args: Any, **kwargs: Any) -> Case:
    """Returns the `Case` with these arguments."""
    return Case(args, kwargs)


LEFT_OUT = {
    "results of empty axes": "the op may refuse an empty axis where the oracle gives a result",
    "empty axes": "the oracle is wrong for empty axes",
    "large offsets": "the values are not moved far from 0",
    "extremes": "an elementwise op is not called with the extreme integers",
    "special values": "an elementwise op is not called with NaN and infinities",
    "promotion": "an elementwise op is not called with mixed dtypes and with booleans",
    "complex refusals": "an elementwise op may take complex numbers although the row has none",
    "complex infinities": "an elementwise op is not called with complex infinities",
}
"""The checks that a sample row can leave out, each with its meaning."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample row: the inputs, the oracle, the tolerance and the options by which an op is checked.

    Args:
        op: the op's name in `OPS`.
        oracle: computes the expected result from the same arguments, floating arrays being float64 (complex128).
        cases: the calls; each floating array argument is cast to every dtype in `dtypes`, all others are kept.
        dtypes: the floating or complex dtypes in which the cases are run.
        integers: integer dtypes in which the cases are run as well (the values of the cases must fit).
        tolerance: the largest allowed error in units of eps of the result's dtype, times `max(|expected|, floor)`;
            0 if the result must be exact.
        floor: the magnitude of the expected value below which the allowed error no longer shrinks; see `tolerance`.
        result: words that turn the inputs' dtype into that of the result: "promoted" (the same), "float" (integers
            become the default float), "wide" (half precision becomes float32), "real" and "complex" (the counterpart of
            that kind), "sum" (integers become 64 bits wide), the name of a dtype, or "any" (not checked); a tuple with
            the words of each of several results. By default what the declaration says the op `gives`, or "promoted".
        elementwise: whether the op works element by element; if so, 0-d, empty and strided inputs are run as well. By
            default what the declaration says.
        differentiable: whether gradients are defined and checked.
        reference: "" if values are compared with the oracle; "tests" if only tests in `tests/ops` check them.
        fixed: whether the values have a structure (sorted, positive-definite, …), so that no other values may be made.
        named: whether the op's option `dtype` names the dtype of the result; the oracle does not take this option.
        narrows: whether a backend without complex128 computes in single precision, instead of raising an error.
        refuses: calls that the op must refuse, with the class of the error, which no other field tells.
        gradient: the exceptions of the check of its gradients.
        left_out: what is not checked, one of `LEFT_OUT`, and the reason.
        usual: the sources of the positional arguments of usual calls, which the fuzzer varies if there are no cases.
    """

    op: str
    oracle: Callable[..., Any]
    cases: Sequence[Case]
    dtypes: tuple[str, ...] = FLOATS
    integers: tuple[str, ...] = ()
    tolerance: float = 0.0
    floor: float = 1.0
    result: str | tuple[str, ...] = ""
    elementwise: bool | None = None
    differentiable: bool = False
    reference: str = ""
    fixed: bool = False
    named: bool = False
    narrows: bool = False
    refuses: Sequence[tuple[type[EmberError], Case]] = ()
    gradient: GradientRow = field(default_factory=GradientRow)
    left_out: Mapping[str, str] = field(default_factory=dict)
    usual: Sequence[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Fills in the dtype of the result, and checks the names in the row.

        Raises:
            ValueError: if `left_out` has an unknown one.
        """
        if self.elementwise is None:
            has_calls = bool(self.cases and (self.dtypes or self.integers))
            object.__setattr__(self, "elementwise", has_calls and self.op in OPS and OPS[self.op].facts.elementwise)
        if not self.result:
            object.__setattr__(self, "result", (OPS[self.op].facts.gives if self.op in OPS else "") or "promoted")
        if unknown_names := set(self.left_out) - set(LEFT_OUT):
            raise ValueError(
                f"{self.op}: nothing is called {unknown_names.pop()!r}; a row leaves out {', '.join(LEFT_OUT)}"
            )


def grid(low: float, high: float, n: int = 101) -> Array:
    """Returns `n` points from `low` to `high`, unevenly spaced so that only the ends are special values."""
    fractions = np.linspace(0.0, 1.0, n)
    return np.asarray(low + (high - low) * (fractions + 0.03 * np.sin(7.0 * fractions) * fractions * (1.0 - fractions)))


def by_tests(op: str, *default_tests: tuple[str, ...]) -> Sample:
    """Returns the row of an op that only tests in `tests/ops` check.

    Args:
        op: the op.
        default_tests: the sources of the positional arguments of usual calls.
    """
    return Sample(op, str, (), reference="tests", usual=default_tests)


def unary(op: str, oracle: Callable[..., Any], low: float = -10.0, high: float = 10.0, **options: Any) -> Sample:
    """Returns the row of an elementwise op of one tensor, with values from `low` to `high`."""
    sample_cases = (case(grid(low, high)), case(grid(low, high, 12).reshape(3, 4)))
    return Sample(op, oracle, sample_cases, **options)


def binary(
    op: str,
    oracle: Callable[..., Any],
    low: float = -10.0,
    high: float = 10.0,
    second: tuple[float, float] | None = None,
    **options: Any,
) -> Sample:
    """Returns the row of an elementwise op of two tensors, with values from `low` to `high`.

    Args:
        second: the bounds of the second tensor's values, if they differ.
    """
    a, b = grid(low, high, 24), grid(*(second or (low, high)), 24)[::-1].copy()
    sample_cases = (case(a, b), case(a.reshape(2, 3, 4), b[:4]), case(a.reshape(4, 6), b[:4].reshape(4, 1)))
    return Sample(op, oracle, sample_cases, **options)


def variants(sample: Sample) -> Iterator[tuple[str, Case]]:
    """Yields (label, case) of a row's cases and, for elementwise ops, of 0-d, empty and strided forms of the first."""
    for i, item in enumerate(sample.cases):
        yield f"case {i}", item
    if not sample.elementwise:
        return
    first_case = sample.cases[0]
    form_by_label: dict[str, Callable[[Array], Array]] = {
        "0-d": lambda a: np.asarray(a.reshape(-1)[1]),
        "empty": lambda a: a.reshape(-1)[:0].reshape(0, 3),
        "strided": lambda a: a.reshape(-1)[: a.size // 4 * 4].reshape(4, -1).T[::2],
        "reversed": lambda a: a.reshape(-1)[::-1],
    }
    for label, form in form_by_label.items():
        formed_args = tuple(form(a) if isinstance(a, np.ndarray) else a for a in first_case.args)
        yield label, Case(formed_args, first_case.kwargs)


def combined_arguments(item: Case, numbers: Sequence[Any] | Array) -> tuple[Any, ...]:
    """Returns the arguments of a case with all combinations of some numbers in place of its arrays."""
    array_positions = [i for i, value in enumerate(item.args) if isinstance(value, np.ndarray)]
    combined_args = list(item.args)
    for i, numbers_at in zip(array_positions, np.meshgrid(*[numbers] * len(array_positions)), strict=True):
        combined_args[i] = numbers_at.reshape(-1)
    return tuple(combined_args)


def cast_to_dtype(value: Any, dtype: str, is_rotated: bool = True) -> Any:
    """Returns floating and complex host arrays (also in lists and tuples) cast to a dtype; other values are kept.

    Casting to an integer dtype rounds and clips to its range; casting to bool returns `x > 0`; casting to a real dtype
    returns the real part.

    Args:
        is_rotated: whether real numbers get an imaginary part in complex dtypes: 0.75 times the reversed array.
    """
    if isinstance(value, (list, tuple)):
        return type(value)(cast_to_dtype(item, dtype, is_rotated) for item in value)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    numpy_dtype = np.dtype(_dtype_name(dtype))
    with np.errstate(all="ignore"):
        if numpy_dtype.kind == "c":
            reversed_values = value.reshape(-1)[::-1].reshape(value.shape)
            imaginary_parts = np.where(
                np.isfinite(value) & np.isfinite(reversed_values) & is_rotated, 0.75 * reversed_values.real, 0.0
            )
            return np.asarray(value + 1j * imaginary_parts if value.dtype.kind == "f" else value).astype(numpy_dtype)
        if numpy_dtype.kind == "b":
            return np.asarray(value.real > 0)
        if numpy_dtype.kind in "iu":
            integer_limits = np.iinfo(numpy_dtype)
            # 2**53, because float64 rounds 2**63 - 1 up to 2**63, which int64 cannot hold.
            value = np.clip(np.rint(value.real), max(integer_limits.min, -(2**53)), min(integer_limits.max, 2**53))
        return np.asarray(value.real).astype(numpy_dtype)


def as_reference(value: Any, result: str | tuple[str, ...] = "") -> Any:
    """Returns arrays as the oracle takes them: in float64 or complex128, integers as well if the result is floating."""
    if isinstance(value, (list, tuple)):
        return type(value)(as_reference(item, result) for item in value)
    is_floating = "float" in (result.split() if isinstance(result, str) else result[0].split())
    if isinstance(value, np.ndarray) and (value.dtype.kind in "fV" or (is_floating and value.dtype.kind in "iu")):
        return value.astype(np.float64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "c":
        return value.astype(np.complex128)
    return value


def _dtype_name(dtype: str) -> Any:
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return dtype


def error_in_eps(actual: Array, expected: Any, dtype: str, floor: float) -> float:
    """Returns the largest error in units of eps times `max(|expected|, floor)`; NaN and infinities must coincide."""
    wide_expected = np.asarray(expected)
    if actual.shape != wide_expected.shape:
        return float("inf")
    if dtype not in EPSILON:
        return 0.0 if np.array_equal(actual, wide_expected) else float("inf")
    wide_dtype = np.complex128 if actual.dtype.kind == "c" or wide_expected.dtype.kind == "c" else np.float64
    wide_actual, wide_expected = actual.astype(wide_dtype), wide_expected.astype(wide_dtype)
    with np.errstate(all="ignore"):
        if not np.array_equal(np.isnan(wide_actual), np.isnan(wide_expected)):
            return float("inf")
        is_infinite = ~np.isfinite(wide_expected) & ~np.isnan(wide_expected)
        if is_infinite.any() and wide_dtype is np.complex128:  # compare the parts: one may be finite, and has an error
            infinite_numbers, expected_infinite = (
                np.stack([z[is_infinite].real, z[is_infinite].imag]) for z in (wide_actual, wide_expected)
            )
            return max(
                error_in_eps(
                    infinite_numbers.astype(actual.real.dtype), expected_infinite, actual.real.dtype.name, floor
                ),
                error_in_eps(actual[~is_infinite], wide_expected[~is_infinite], dtype, floor),
            )
        is_finite = np.isfinite(wide_expected)
        if not np.array_equal(wide_actual[is_infinite], wide_expected[is_infinite]):
            return float("inf")
        error_unit = EPSILON[dtype] * np.maximum(
            np.abs(wide_expected[is_finite]), max(floor, TINY.get(dtype, 2.0**-1022))
        )
        # A difference of 0 counts as no error even if the scale is 0.
        deviation = np.abs(wide_actual[is_finite] - wide_expected[is_finite])
        errors_in_eps = np.where(deviation == 0, 0.0, deviation / error_unit)
    return float(errors_in_eps.max()) if errors_in_eps.size else 0.0
