"""Checks of the elementwise functions: every dtype, every pair that promotes, Python numbers, shapes."""

import functools
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy as np

from emberharmony import ops
from tests.standard.harness import FLOATS, INTEGRAL, KINDS, WIDE, Check, array, expect, functions, refused, supported

REAL = (-3.5, -1.0, -0.75, -0.25, 0.0, 0.25, 0.5, 1.0, 1.75, 3.5)
SIGNED = (-7, -3, -2, -1, 0, 1, 2, 3, 5, 6)
UNSIGNED = (0, 1, 2, 3, 4, 5, 6, 7, 9, 11)
# These numbers avoid branch cuts, where the sign of a zero decides the result.
IMAGINARY = (0.5, -0.25, 1.0, 3.0, -1.5, -0.5, 2.0, 0.25, -2.5, 1.5)
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((10,), (10,)),
    ((), ()),
    ((), (10,)),
    ((10,), ()),
    ((2, 5), (5,)),
    ((2, 1, 5), (2, 1)),
    ((1,), (0,)),
    ((0, 1), (1, 3)),
)
NUMBERS: dict[str, tuple[Any, ...]] = {
    "bool": (True,),
    "integral": (2,),
    "real floating": (2, 0.5),
    "complex floating": (2, 0.5, 1.5 - 0.5j),
}
# The standard does not specify negative powers of integers, shifts by negative numbers and integer division by zero.
_EXPONENTS = {"pow", "bitwise_left_shift", "bitwise_right_shift"}
_DIVISORS = {"floor_divide", "remainder"}
_UNARY = ("x, /",)


Operand = tuple[Any, ...] | bool | int | float | complex
"""The arguments of `sample`, or a Python number."""


@functools.cache
def sample(dtype: str, shape: tuple[int, ...] = (10,), second: str = "") -> np.ndarray:
    """Returns host values of a dtype; `second` names a function that takes them as second operand."""
    size = int(np.prod(shape))
    if dtype == "bool":
        values = np.arange(10) % 3 == 1
    elif dtype.startswith("complex"):
        values = np.asarray(REAL) + 1j * np.asarray(IMAGINARY)
    elif dtype in FLOATS:
        values = np.asarray(REAL)
    else:
        values = np.asarray(SIGNED if dtype.startswith("int") else UNSIGNED)
        values = np.abs(values) if second in _EXPONENTS else values
        values = np.where(values == 0, 4, values) if second in _DIVISORS else values
    values = np.roll(values, 3) if second else values
    return np.resize(values, shape).astype(dtype) if size else np.zeros(shape, dtype)


def checks() -> Iterator[Check]:
    """Yields the checks of every elementwise function but `clip`, which has two optional operands."""
    for function in functions():
        if function.category != "elementwise" or function.name == "clip":
            continue
        dtypes = KINDS[function.dtypes]
        if function.signature in _UNARY:
            for dtype in dtypes:
                yield Check(function.name, dtype, lambda n=function.name, d=dtype: _unary(n, d))
            continue
        for first in dtypes:
            for other in dtypes:
                if _promotes(first, other):
                    label = first if first == other else f"{first} with {other}"
                    yield Check(function.name, label, lambda n=function.name, a=first, b=other: _binary(n, a, b))
            for number in _numbers(first):
                label = f"{first} with {number}"
                yield Check(function.name, label, lambda n=function.name, d=first, k=number: _weak(n, d, k))


def _promotes(a: str, b: str) -> bool:
    """Returns whether the standard's table gives two dtypes a common one."""
    kinds = [[k for k in ("bool", "integral", "floating") if d in KINDS[k]] for d in (a, b)]
    signed = any(d == "uint64" for d in (a, b)) and any(d.startswith("int") for d in (a, b))
    return kinds[0] == kinds[1] and not signed


def _numbers(dtype: str) -> tuple[Any, ...]:
    return next(numbers for kind, numbers in NUMBERS.items() if dtype in KINDS[kind])


def _present(*dtypes: str) -> bool:
    """Returns whether the backend has dtypes; a missing dtype is a deviation of its own."""
    return set(dtypes) <= supported()


def _called(namespace: Any, name: str, operands: tuple[Operand, ...], wide: bool = False) -> Any:
    """Returns the result of a function of a namespace, for arrays in their dtype or in the widest dtype of its kind."""
    given = [
        array(namespace, sample(*x), WIDE.get(x[0], x[0]) if wide else x[0]) if isinstance(x, tuple) else x
        for x in operands
    ]
    return getattr(namespace, name)(*given)


@functools.lru_cache(None, typed=True)  # typed, because 2 and 2.0 are equal
def _expected(name: str, *operands: Operand, wide: bool = False) -> Any:
    """Returns the result of array-api-strict, which is that for every backend."""
    return _called(strict, name, operands, wide)


def _both(name: str, *operands: Operand) -> None:
    """Compares one call."""
    with np.errstate(all="ignore"):
        shaped = _expected(name, *operands)
        if not refused(lambda: _called(ops, name, operands), {str(np.asarray(shaped).dtype)}):
            expect(_called(ops, name, operands), shaped, _expected(name, *operands, wide=True))


def _unary(name: str, dtype: str) -> None:
    if _present(dtype):
        for shape in ((10,), (), (2, 5), (0,), (2, 0, 3)):
            _both(name, (dtype, shape))


def _binary(name: str, first: str, other: str) -> None:
    if _present(first, other):
        for a, b in SHAPES:
            _both(name, (first, a), (other, b, name))


def _weak(name: str, dtype: str, number: Any) -> None:
    if _present(dtype):
        _both(name, (dtype,), number)
        if name in _EXPONENTS | _DIVISORS and dtype in INTEGRAL:
            return _both(name, number, (dtype, (10,), name))
        _both(name, number, (dtype,))
    return None
