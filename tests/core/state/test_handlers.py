"""Exceptions of signal handlers, warning filters and numpy.seterr reach the caller unchanged."""

import signal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import DTypeError, EmberError, ShapeError
from emberharmony.core.state.handlers import passing_error
from tests.interruptions.harness import moments, raising, trace

X = [[3.0, 1.0, 2.0]] * 4
CALLS: dict[str, Callable[[], object]] = {
    "add": lambda: ops.add(X, 1),
    "sum": lambda: ops.sum(X, axis=-1),
    "median": lambda: ops.median(X),
    "take": lambda: ops.take(X, [0, -1], axis=1),
    "pad": lambda: ops.pad(X, ((1, 1), (0, 0))),
    "reshape": lambda: ops.reshape(X, (2, 6)),
    "solve": lambda: ops.solve([[2.0, 0.0], [0.0, 1.0]], [1.0, 2.0]),
    "to_numpy": lambda: ops.to_numpy(ops.ones((2,))),
    "convolution": lambda: ops.conv(np.ones((1, 8, 1), "f4"), np.ones((3, 1, 1), "f4"), strides=(2,)),
    "randint": lambda: ops.random.randint((3,), 0, 9),
    "normal": lambda: ops.random.normal((3,)),
}


class StopError(Exception):
    """An exception class that a user defines."""


@pytest.mark.parametrize("kind", [StopError, TimeoutError, ValueError, TypeError, RuntimeError, KeyError, IndexError])
def test_an_exception_raised_anywhere_in_an_op_reaches_the_caller(kind: type[Exception], backend: str) -> None:
    for name, call in CALLS.items():
        call()
        instants = moments(call)
        for at in instants[:: -(-len(instants) // 15)]:
            where, arrived = trace(call, at, kind)
            assert arrived, f"{kind.__name__} was lost in {name} after {where[-1:]}"


@pytest.mark.parametrize("kind", [StopError, TimeoutError, RuntimeError, ValueError])
def test_an_exception_of_a_signal_handler_reaches_the_caller(kind: type[Exception], backend: str) -> None:
    x = [1.0] * 50
    raised: list[Exception]

    def run(count: int) -> None:
        # A function of its own, because Python 3.13 may raise at the end of a loop outside of the `try` around it.
        while len(raised) == count:
            ops.add(x, 1)
            ops.softmax(ops.convert_to_tensor(np.ones(50)))
            ops.median(x)

    with raising(kind) as raised:
        for i in range(60):
            caught: Exception | None = None
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + i % 13))
                run(i)
            except kind as error:
                caught = error
            assert len(raised) == i + 1
            assert caught is raised[-1]


HANDLERS: dict[str, Callable[[Any], Any]] = {
    "function": lambda run: lambda signum, frame: run(),
    "starred": lambda run: lambda *args: run(),
    "keyword": lambda run: lambda signum, frame, more=1: run(),
    "object": lambda run: type("Handler", (), {"__call__": lambda self, signum, frame: run()})(),
}


@pytest.mark.parametrize("shape", HANDLERS)
def test_a_signal_handler_is_recognised_by_its_frame(shape: str) -> None:
    """The handler uninstalls itself before it raises, so its frame is the only trace of it."""
    before = signal.getsignal(signal.SIGUSR1)

    def run() -> None:
        signal.signal(signal.SIGUSR1, before)
        raise ValueError("from the handler")

    signal.signal(signal.SIGUSR1, HANDLERS[shape](run))
    with pytest.raises(ValueError, match="from the handler") as caught:
        signal.raise_signal(signal.SIGUSR1)
    assert passing_error(caught.value) is caught.value
    typed = ShapeError("no shape")
    typed.__cause__ = caught.value
    assert passing_error(typed) is caught.value


def test_an_error_that_no_handler_raised_is_translated(backend: str) -> None:
    for error_kind in (ValueError, TypeError):
        with pytest.raises(error_kind) as caught:
            raise error_kind("plain")
        assert passing_error(caught.value) is None
    with pytest.raises(DTypeError):
        ops.add(object(), 1)
    with pytest.raises(ShapeError):
        ops.add(np.ones(2), np.ones(3))


def test_an_exception_that_was_handled_before_the_call_does_not_count(backend: str) -> None:
    """An op that fails inside `except TimeoutError` raises its own error."""
    try:
        raise TimeoutError("earlier")
    except TimeoutError:
        with pytest.raises(ShapeError, match="do not broadcast") as caught:
            ops.add(np.ones(2), np.ones(3))
    assert isinstance(caught.value, EmberError)


def test_numpy_seterr_and_warning_filters_take_effect() -> None:
    with ops.use_backend("numpy"):
        for call in (lambda: ops.divide([1.0], [0.0]), lambda: ops.log([0.0]), lambda: ops.softmax([np.inf, 1.0])):
            with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                call()
            with warnings.catch_warnings(), np.errstate(all="warn"):
                warnings.simplefilter("error")
                with pytest.raises(RuntimeWarning):
                    call()


def test_a_library_warning_that_is_turned_into_an_error_reaches_the_caller(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deprecated(UserWarning):
        pass

    def warns(*args: object, **kwargs: object) -> None:
        warnings.warn("old", Deprecated, stacklevel=2)

    from emberharmony.backend import current
    from emberharmony.core.registry import OPS

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = type(current())()
        monkeypatch.setattr(made, "implementation", lambda spec: warns)
        assert OPS["sin"].name == "sin"
        with pytest.raises(Deprecated):
            made.bound.sin([1.0])


@pytest.mark.parametrize("kind", [TimeoutError, FloatingPointError, UserWarning])
def test_errors_that_are_not_those_of_an_op_pass_through(kind: type[Exception], backend: str) -> None:
    class Remote:
        """An array elsewhere, whose numbers cannot be had."""

        shape, dtype = (2,), np.dtype("float32")

        def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
            raise kind("late")

    assert passing_error(kind("late")).args == ("late",)
    for call in (ops.sin, ops.sum, lambda x: ops.add(ops.ones(2), x), lambda x: ops.concatenate([x, x])):
        with pytest.raises(kind, match="late"):
            call(Remote())
