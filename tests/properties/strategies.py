"""Hypothesis strategies for the property tests: shapes with and without (empty) axes, arrays of every dtype."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed

INSTALLED = [name for name in BUILTIN if is_installed(name)]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
FULL_SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@contextmanager
def on(name: str) -> Iterator[None]:
    """Runs a block on a backend with NumPy's floating-point warnings off."""
    with ops.use_backend(name), np.errstate(all="ignore"):
        yield


def host(x: Any) -> np.ndarray:
    """Returns a tensor as a NumPy array."""
    return np.asarray(ops.to_numpy(x))


def numbers(dtype: str, size: float = 1e3, special: bool = False) -> st.SearchStrategy[Any]:
    """Returns numbers of a dtype; `size` bounds the magnitude of floats, `special` adds NaN, infinities and zeros."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        return st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    width = 32 if dtype in ("float32", "complex64") else 64
    finite = st.floats(-size, size, width=width, allow_subnormal=False)
    # Products of tiny numbers underflow, so their errors are not relative any more.
    finite = finite.filter(lambda x: x == 0 or abs(x) > 1e-6)
    if special:
        finite = st.one_of(finite, st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0]))
    return st.builds(complex, finite, finite) if kind == "c" else finite


def arrays(dtype: str, shape: Any = SHAPES, **options: Any) -> st.SearchStrategy[np.ndarray]:
    """Returns host arrays."""
    return hnp.arrays(dtype, shape, elements=numbers(dtype, **options))


@st.composite
def together(draw: Callable[..., Any], dtype: str, count: int = 2, **options: Any) -> list[np.ndarray]:
    """Returns arrays whose shapes broadcast with each other."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=count, min_dims=0, max_dims=3, min_side=0, max_side=3))
    return [draw(arrays(dtype, shape, **options)) for shape in shapes.input_shapes]


@st.composite
def matrices(draw: Callable[..., Any], dtype: str, n: int | None = None) -> np.ndarray:
    """Returns square matrices or stacks of them; a dominant diagonal makes them well-conditioned."""
    n = draw(st.integers(1, 5)) if n is None else n
    shape = (*draw(st.sampled_from([(), (2,), (1, 3)])), n, n)
    return draw(arrays(dtype, shape, size=1.0)) + (n + 1) * np.eye(n, dtype=dtype)


def axes_of(ndim: int) -> st.SearchStrategy[Any]:
    """Returns the values of `axis` that a reduction of a tensor with `ndim` axes accepts."""
    if ndim == 0:
        return st.sampled_from([None, ()])
    one = st.integers(-ndim, ndim - 1)
    several = st.lists(one, max_size=ndim, unique_by=lambda a: a % ndim).map(tuple)
    return st.one_of(st.none(), one, several)


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    """Returns whether dtype, shape and elements are equal; NaN equals NaN, and zeros must have equal signs."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if got.dtype.kind == "c":
        return same(got.real, wanted.real) and same(got.imag, wanted.imag)
    if got.dtype.kind != "f":
        return bool(np.array_equal(got, wanted))
    number = ~np.isnan(wanted)
    signs = np.array_equal(np.signbit(got[number]), np.signbit(wanted[number]))
    return signs and bool(np.array_equal(got, wanted, equal_nan=True))


def near(got: np.ndarray, wanted: np.ndarray, scale: Any, epsilons: float) -> bool:
    """Returns whether two arrays differ by at most `epsilons` times eps of their dtype times `scale`."""
    bound = epsilons * EPSILON[str(got.dtype)] * np.asarray(scale, np.float64)
    return got.shape == wanted.shape and bool(np.all(np.abs(got - wanted) <= bound))
