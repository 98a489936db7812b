"""The conformance checks name faults that are planted into a backend: by check, and with the size of the error."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.selection import Override
from emberharmony.errors import ShapeError
from emberharmony.rules import RULES
from emberharmony.testing.conformance import Outcome, run_sample
from emberharmony.testing.sample import EPSILON
from emberharmony.testing.samples import all_samples
from tests.sampling import portion
from tests.testing.differences.faults import faulty
from tests.testing.differences.kinds import as_dtype, at_end, then

SAMPLES = all_samples()
SIDES = [name for name in ("numpy", "torch", "mlx") if is_installed(name)]
INF, NAN = math.inf, math.nan
Change = Callable[..., Any]


def outcomes(op: str, backend: str, change: Change, most: int = 4) -> list[Outcome]:
    """Returns the outcomes of all checks of an op on a backend where it has a fault."""
    with Override(faulty(backend, op, change)):
        return [*run_sample(SAMPLES[op], backend, most=most)]


def off(op: str, share: float) -> Change:
    """Returns the change that moves each element of a result by a share of the tolerance of the op's row."""
    row = SAMPLES[op]

    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        dtype = ops.dtype(y)
        if not dtype.is_floating or not row.tolerance:
            return y
        wide = ops.cast(y, "float64")
        unit = row.tolerance * EPSILON[dtype.name] * share
        return ops.cast(wide + unit * ops.maximum(ops.abs(wide), max(row.floor, 1e-300)), dtype)

    return change


def on_some(cases: Iterable[str]) -> list[tuple[str, str]]:
    """Returns each case with the backends that this run tries it on: one, and the next case on the next one."""
    sides = [SIDES[at:] + SIDES[:at] for at in range(len(SIDES))]
    return [(case, side) for at, case in enumerate(cases) for side in portion(sides[at % len(sides)], len(sides))]


@pytest.mark.parametrize(("op", "side"), on_some(["tanh", "exp", "sum", "matmul", "softmax", "log1p"]))
def test_an_error_is_measured_in_units_of_the_tolerance(op: str, side: str) -> None:
    ops.set_backend(side)
    for share in (0.25, 2, 8, 64):
        found = [o for o in outcomes(op, side, off(op, share), most=3) if o.check in ("value", "0-d")]
        assert found
        for each in found:
            assert (each.op, each.backend) == (op, side)
            if each.dtype not in ("float32", "float64"):  # the change leaves the others, or is rounded to few digits
                continue
            assert each.error == pytest.approx(share, abs=0.75), (each.dtype, each.label)
            assert bool(each.failure) is (share > 1), each
            assert "exceeds the tolerance" in each.failure or share < 1


def _refuses(f: Any, *args: Any, **kwargs: Any) -> Any:
    raise ValueError("no")


def _takes_any_axis(f: Any, x: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    return f(x, 0 if axis == 99 else axis, *rest, **kwargs)


def _refuses_the_shape(f: Any, x: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    if axis == 99:
        raise ShapeError("no")
    return f(x, axis, *rest, **kwargs)


def _without_nan(f: Any, *args: Any, **kwargs: Any) -> Any:
    return ops.nan_to_num(f(*args, **kwargs), nan=0.0, posinf=INF, neginf=-INF)


def _with_a_wide_sum(f: Any, *args: Any, **kwargs: Any) -> Any:
    y = f(*args, **kwargs)
    return ops.cast(y, "float64") if len({ops.dtype(x) for x in args if ops.is_tensor(x)}) > 1 else y


def _as_a_vector(f: Any, *args: Any, **kwargs: Any) -> Any:
    y = f(*args, **kwargs)
    return ops.reshape(y, (1,)) if ops.shape(y) == () else y


def _empty(f: Any, *args: Any, **kwargs: Any) -> Any:
    y = f(*args, **kwargs)
    return ops.zeros((1, 3), dtype=ops.dtype(y)) if 0 in ops.shape(y) else y


# By name: the op, the fault, the check that finds it, and what the failure says.
FAULTS: dict[str, tuple[str, Change, str, str]] = {
    "another op": ("sin", lambda f, x: ops.cos(x), "value", "exceeds the tolerance"),
    "the other argument": ("subtract", lambda f, a, b: f(b, a), "value", "exceeds the tolerance"),
    "a late NaN": ("tanh", at_end(NAN), "value", "error inf eps"),
    "a late infinity": ("erf", at_end(INF), "value", "error inf eps"),
    "a late element": ("sigmoid", at_end(2.0), "value", "exceeds the tolerance"),
    "a wider dtype": ("mean", as_dtype("float64"), "value", "has dtype float64, expected float32"),
    "a narrower dtype": ("exp", as_dtype("float16"), "value", "has dtype float16, expected float32"),
    "narrow positions": ("argsort", as_dtype("int32"), "value", "has dtype int32, expected int64"),
    "numbers in place of truth": ("greater", as_dtype("int8"), "value", "has dtype int8, expected bool"),
    "a lost axis": ("expand_dims", then(ops.ravel), "value", "result has shape"),
    "one off": ("argmax", then(lambda y: ops.add(y, 1)), "value", "error inf eps"),
    "the second result": ("top_k", then(lambda y: (y[0], ops.add(y[1], 1))), "value", "error inf eps"),
    "a result too few": ("divmod", then(lambda y: y[:1]), "value", "returns 1 results, expected 2"),
    "another order": ("sort", then(lambda y: ops.flip(y, -1)), "value", "error 1"),
    "an untyped error": ("cos", _refuses, "value", "raises"),
    "no 0-d result": ("sqrt", _as_a_vector, "0-d", "result has shape (1,), expected ()"),
    "an element of nothing": ("square", _empty, "empty", "result has shape (1, 3), expected (0, 3)"),
    "NaN in place of infinity": (
        "exp",
        then(lambda y: ops.where(ops.isinf(y), NAN, y)),
        "NaN and infinity",
        "error inf",
    ),
    "a lost NaN": ("sinh", _without_nan, "NaN and infinity", "error inf eps"),
    "the other zero": ("arctan2", lambda f, a, b: f(ops.add(a, 0.0), b), "NaN and infinity", "exceeds the tolerance"),
    "the other infinity": ("negative", lambda f, x: ops.where(ops.isinf(x), x, f(x)), "NaN and infinity", "error inf"),
    "a wide sum of two dtypes": ("add", _with_a_wide_sum, "promotion", "has dtype float64"),
    "another typed error": ("sum", _refuses_the_shape, "error", "raises ShapeError, expected AxisError"),
    "any axis": ("sum", _takes_any_axis, "error", "expected AxisError"),
    "the gradient of another op": (
        "tanh",
        lambda f, x: f(ops.stop_gradient(x)) + ops.sin(x) - ops.stop_gradient(ops.sin(x)),
        "gradient",
        "the gradient: derivatives give",
    ),
}


def test_a_wrong_second_derivative_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tape on NumPy differentiates by rules; this one is right, but has no derivative itself."""
    monkeypatch.setitem(RULES, "tanh", (lambda g, y, x: ops.multiply(g, ops.stop_gradient(1.0 - y * y)),))
    failed = [o for o in run_sample(SAMPLES["tanh"], "numpy", most=2) if o.failure]
    assert {o.check for o in failed} == {"gradient"}
    assert all("the second order: derivatives give" in o.failure for o in failed)


@pytest.mark.parametrize(("name", "side"), on_some(FAULTS))
def test_a_fault_is_named(name: str, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ops.set_backend(side)
    op, change, check, message = FAULTS[name]
    if check == "gradient" and side == "numpy":
        monkeypatch.setitem(RULES, op, RULES["sin"])  # the tape on NumPy differentiates by rules
        found = [*run_sample(SAMPLES[op], side, most=4)]
    else:
        found = outcomes(op, side, change)
    failed = [o for o in found if o.failure]
    assert failed
    assert any(o.check == check and message in o.failure for o in failed), {(o.check, o.failure[:150]) for o in failed}
    assert all((o.op, o.backend) == (op, side) and o.snippet for o in failed)
    if check in ("0-d", "empty", "promotion", "error"):
        assert {o.check for o in failed} == {check}
