"""Laws of dtypes: results have the dtype of `result_type`, promotion is a lattice, integers do not wrap."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import Sample, cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.properties.strategies import FLOATS, INSTALLED, INTEGERS, arrays, host, on
from tests.sampling import portion

HALVES = ("float16", "bfloat16")
DTYPES = ("bool", *INTEGERS, *HALVES, *FLOATS, "complex64", "complex128")
NUMBERS = (True, 3, 0.5, 1 + 2j)
ARITHMETIC = ("add", "multiply", "where", "power", "subtract")
ORDERED = ("maximum", "minimum", "floor_divide", "remainder")
FLOATING = ("divide", "arctan2", "hypot", "logaddexp")
COMPARING = ("equal", "less", "logical_and")
KINDS = {name: ("complex" if name.startswith("complex") else "real") for name in DTYPES}


def _called(op: str, a: Any, b: Any) -> Any:
    return ops.where([True], a, b) if op == "where" else getattr(ops, op)(a, b)


def _has(name: str, *dtypes: str) -> bool:
    """Returns whether a backend has the given dtypes and their promoted dtype."""
    missing = {"complex128"} if name == "mlx" else set()
    return not missing & {*dtypes, str(ops.result_type(*(getattr(ops, _attribute(d)) for d in dtypes)))}


def _attribute(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


@pytest.mark.parametrize("op", [*ARITHMETIC, *ORDERED, *FLOATING, *COMPARING])
def test_results_have_the_dtype_of_result_type(op: str) -> None:
    for name in INSTALLED:
        with on(name):
            ones = {d: ops.ones((2,), d) for d in DTYPES if _has(name, d)}
            for a, b in product(ones, repeat=2):
                if op not in (*ARITHMETIC, "divide", "equal", "logical_and") and "complex" in (KINDS[a], KINDS[b]):
                    continue
                if not _has(name, a, b) or (op == "subtract" and a == b == "bool"):
                    continue
                if op in ("floor_divide", "remainder", "power", *ORDERED) and a == b == "bool":
                    continue
                wanted = ops.result_type(ones[a], ones[b])
                if op in FLOATING and not (wanted.is_floating or wanted.is_complex):
                    wanted = ops.default_float()
                wanted = ops.bool_ if op in COMPARING else wanted
                assert ops.dtype(_called(op, ones[a], ones[b])) == wanted, (name, op, a, b)


@pytest.mark.parametrize("op", ["add", "multiply", "where"])
def test_a_python_number_does_not_widen_a_tensor_of_its_kind(op: str) -> None:
    for name in INSTALLED:
        with on(name):
            for dtype, number in product(DTYPES, NUMBERS):
                if not _has(name, dtype) or (name == "mlx" and dtype == "float64" and isinstance(number, complex)):
                    continue
                one = ops.ones((2,), dtype)
                wanted = ops.result_type(one, number)
                assert ops.dtype(_called(op, one, number)) == wanted, (name, dtype, number)
                assert ops.dtype(_called(op, number, one)) == wanted, (name, number, dtype)


@given(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4), st.data())
def test_promotion_is_a_lattice(names: list[str], data: st.DataObject) -> None:
    dtypes = [getattr(ops, _attribute(name)) for name in names]
    common = ops.result_type(*dtypes)
    assert ops.result_type(*data.draw(st.permutations(dtypes))) == common
    assert ops.result_type(common, *dtypes) == common
    assert all(ops.can_cast(dtype, common) for dtype in dtypes)
    if common == "float64" and "uint64" in names and not {"float64", "complex64"} & set(names):
        # No integer dtype holds both uint64 and negative numbers. Promotion then takes float64, the float of as many
        # bits, although smaller floats are common dtypes too.
        return
    for above in (getattr(ops, _attribute(dtype)) for dtype in DTYPES):
        # Promotion finds the least upper bound: no smaller dtype is common to all.
        assert not all(ops.can_cast(one, above) for one in dtypes) or ops.can_cast(common, above)


@given(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4))
def test_joined_tensors_have_the_promoted_dtype(names: list[str]) -> None:
    for name in INSTALLED:
        with on(name):
            if not _has(name, *names):
                continue
            parts = [ops.ones((2,), dtype) for dtype in names]
            wanted = ops.result_type(*parts)
            assert ops.dtype(ops.concatenate(parts)) == wanted, name
            assert ops.dtype(ops.stack(parts)) == wanted, name
            if len(parts) == 3:
                whole = wanted.kind == "bool"
                assert whole or ops.dtype(ops.einsum("i,i,i->i", *parts)) == wanted, name


@given(data=st.data())
def test_a_cast_to_a_wider_dtype_and_back_keeps_the_values(data: st.DataObject) -> None:
    narrow, wide = data.draw(
        st.sampled_from(
            [
                (a, b)
                for a, b in product(("bool", *INTEGERS, *FLOATS), repeat=2)
                if np.can_cast(a, b) and (a, b) not in (("int64", "float64"), ("uint64", "float64"))
            ]
        )
    )
    x = data.draw(arrays(narrow))
    for name in INSTALLED:
        with on(name):
            assert ops.dtype(ops.cast(x, wide)) == wide
            assert np.array_equal(host(ops.cast(ops.cast(x, wide), narrow)), x)


def test_reductions_have_the_documented_dtypes() -> None:
    for name in INSTALLED:
        with on(name):
            for dtype in DTYPES:
                if not _has(name, dtype):
                    continue
                x, kind = ops.ones((2, 2), dtype), getattr(ops, _attribute(dtype)).kind
                wide = {"bool": "int64", "signed": "int64", "unsigned": "uint64"}.get(kind, dtype)
                floating = dtype if kind in ("float", "complex") else ops.default_float()
                for op in ("sum", "prod", "cumsum", "cumprod"):
                    assert ops.dtype(getattr(ops, op)(x)) == wide, (name, op, dtype)
                assert ops.dtype(ops.mean(x)) == floating, (name, dtype)
                if kind != "complex":
                    assert ops.dtype(ops.std(x)) == floating
                    assert ops.dtype(ops.max(x)) == ops.dtype(ops.sort(x)) == dtype
                    assert ops.dtype(ops.argmax(x)) == ops.dtype(ops.argsort(x)) == "int64"
                assert ops.dtype(ops.all(x)) == "bool"
                assert ops.dtype(ops.count_nonzero(x)) == "int64"


NARROW = ("int8", "uint8", "int16", "uint16")
FLOATING_ROWS = {
    op: row for op, row in all_samples().items() if row.result == "float" and not row.reference and row.cases
}


def _calls(row: Sample) -> Iterator[tuple[list[Any], list[Any], dict[str, Any]]]:
    """Yields arguments with integers of all sizes instead of floats, the same integers as float32, and options."""
    rng = np.random.default_rng(0)
    for dtype in NARROW:
        limits = np.iinfo(dtype)
        for item in row.cases:
            for chosen in ("all", *range(len(item.args))):
                whole = [
                    rng.integers(limits.min, limits.max, x.shape, endpoint=True).astype(dtype)
                    if isinstance(x, np.ndarray) and x.dtype.kind == "f" and chosen in ("all", i)
                    else cast_to_dtype(x, "float32")
                    for i, x in enumerate(item.args)
                ]
                changed = [isinstance(x, np.ndarray) and x.dtype == dtype for x in whole]
                if any(changed):
                    floats = [x.astype("float32") if c else x for x, c in zip(whole, changed, strict=True)]
                    yield whole, floats, {key: cast_to_dtype(value, "float32") for key, value in item.kwargs.items()}


INTEGRALS = ("beta", "betainc", "betaln", "gammainc", "gammaincc", "polygamma", "zeta")
"""Ops that take seconds in this test; all convert their arguments as `gammaln` does, which stays."""


def _parts(result: Any) -> list[np.ndarray]:
    return [part for item in result for part in _parts(item)] if isinstance(result, (list, tuple)) else [host(result)]


@pytest.mark.parametrize(
    "op", [pytest.param(op, marks=[pytest.mark.slow] * (op in INTEGRALS)) for op in portion([*FLOATING_ROWS], 2)]
)
def test_narrow_integers_give_the_results_of_equal_floats(op: str) -> None:
    row = FLOATING_ROWS[op]
    for name in INSTALLED:
        with on(name):
            for whole, floats, options in _calls(row):
                try:
                    wanted = OPS[op].function(*floats, **options)
                except EmberError:  # the op refuses these numbers in any dtype
                    continue
                for got, want in zip(_parts(OPS[op].function(*whole, **options)), _parts(wanted), strict=True):
                    if got.dtype.kind in "iu":  # integer arithmetic is exact and wraps as documented
                        continue
                    scale = np.max(np.abs(want), initial=0.0, where=np.isfinite(want))
                    close = np.allclose(got, want, 1e-4, 1e-5 * float(scale), equal_nan=True)
                    assert close, (name, [x.dtype for x in whole if isinstance(x, np.ndarray)])
