"""Which exceptions of a fuzzed call are findings, and how a changed argument is detected."""

from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import BackendExecutionError, ShapeError
from emberharmony.testing.fuzz.judge import PROGRAM, digest, verdict
from emberharmony.testing.fuzz.scope import Hostile


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:  # noqa: BLE001  (the test judges it)
        return error
    raise AssertionError("nothing was raised")


def of_program(source: str) -> Callable[..., object]:
    """Returns a function whose code belongs to the program of a fuzzed call."""
    return eval(compile(source, PROGRAM, "eval"), {"ops": ops})


def test_typed_errors_and_documented_builtin_errors_are_not_findings(backend: str) -> None:
    assert verdict(ShapeError("x")) == "typed"
    assert verdict(BackendExecutionError("x")) == "native"
    assert verdict(MemoryError()) == "admitted"
    assert verdict(raised(lambda: ops.add())) == "admitted"  # type: ignore[call-arg]
    assert verdict(raised(lambda: ops.add(1, 2, 3))) == "admitted"  # type: ignore[call-arg]
    ops.sum([1])  # before its first call, an op has a typed error for an unknown keyword
    assert verdict(raised(lambda: ops.sum([1], axes=0))) == "admitted"  # type: ignore[call-arg]


def test_an_exception_of_the_program_itself_is_not_a_finding(backend: str) -> None:
    assert verdict(raised(lambda: ops.map(of_program("lambda x: x.nothing"), [1.0]))) == "admitted"
    # The function lacks a parameter that the op passes; the op raises the error itself, so it is typed.
    assert verdict(raised(lambda: ops.map(of_program("lambda x, y: x"), [1.0]))) == "typed"
    assert verdict(raised(lambda: bool(Hostile()))) == "admitted"


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("no array"), RecursionError(), SystemExit(1), KeyError()])
def test_any_other_exception_is_a_finding(error: BaseException) -> None:
    assert verdict(error) == "untyped"


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given["array"].__setitem__(0, 9),
        lambda given: given["rows"][1].append(3),
        lambda given: given["rows"].pop(),
        lambda given: given.__setitem__("more", 1),
        lambda given: given.__setitem__("number", 2.0),
    ],
)
def test_a_changed_argument_changes_the_digest(change: Callable[[dict[str, object]], object], backend: str) -> None:
    given = {"array": np.arange(3.0), "rows": ([1], [2]), "number": 1.0, "tensor": ops.ones((2,))}
    given["rows"] = [[1], [2]]
    before = digest((given,))
    assert digest((given,)) == before
    change(given)
    assert digest((given,)) != before


def test_the_digest_of_a_tensor_depends_on_values_shape_and_signs_of_zero(backend: str) -> None:
    assert digest((ops.array([1.0, float("nan")]),)) == digest((ops.array([1.0, float("nan")]),))
    assert digest((ops.array([0.0]),)) != digest((ops.array([-0.0]),))
    assert digest((ops.ones((2,)),)) != digest((ops.ones((1, 2)),))
    assert digest((np.broadcast_to(1.0, (2**40,)),)) == ["float64 (1099511627776,)"]
