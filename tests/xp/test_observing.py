"""Tests of what watchers see of the arrays: operators, functions, views and writes are calls of ops."""

import threading
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.core.errors import NonFiniteError
from tests.another import another


def _program(xp: Any, x: Any) -> Any:
    y = xp.exp(x) * 2.0 + x
    y += 1.0
    return xp.sum(-y[1:] @ xp.softmax(x[1:], axis=0))


CALLS = ["exp", "multiply", "add", "add", "get_item", "negative", "get_item", "softmax", "matmul", "sum"]


def _called(log: Any) -> list[str]:
    return [event.op for event in log if event.depth == 0]


def test_a_log_has_the_calls_of_operators_and_functions(xp: Any) -> None:
    x = xp.asarray([0.5, 1.0, 2.0])
    wanted = float(_program(xp, x))
    with ops.record() as log:
        seen = _program(xp, x)
    assert _called(log) == CALLS
    assert {event.frame.rpartition(":")[0].rpartition("/")[2] for event in log if event.depth == 0} == {
        "test_observing.py"
    }
    assert float(seen) == wanted
    with ops.record() as log:
        pass
    assert float(_program(xp, x)) == wanted
    assert len(log) == 0


def test_a_log_of_another_backend_has_them_too(xp: Any, backend: str) -> None:
    x = xp.asarray([0.5, 1.0, 2.0])
    with ops.use_backend(another(backend)), ops.record() as log:
        _program(xp, x)
    assert _called(log) == CALLS


def test_a_profile_counts_them(xp: Any) -> None:
    x = xp.asarray([0.5, 1.0, 2.0])
    with ops.profile() as profile:
        x = x + x * x
    assert "multiply" in str(profile.table())


def test_checked_mode_names_the_operator_that_made_a_nan(xp: Any) -> None:
    x = xp.asarray([0.0, 1.0])
    with pytest.raises(NonFiniteError, match=r"divide\(\).*test_observing\.py"), ops.checked("nan"):
        x / x


def test_a_thread_that_nobody_watches_is_not_in_the_log(xp: Any) -> None:
    x = xp.asarray([0.5, 1.0])
    with ops.record() as log:
        thread = threading.Thread(target=lambda: x + x)
        thread.start()
        thread.join()
    assert len(log) == 0


def test_an_op_that_gets_an_array_is_one_call(xp: Any, backend: str) -> None:
    x = xp.asarray([0.5, 1.0])
    with ops.use_backend(backend), ops.record() as log:
        ops.add(x, 1.0)
    assert _called(log) == ["add"]
