"""Watchers see the same calls on every backend, others see nothing, and nothing remains afterwards."""

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from emberharmony import backend as backends
from emberharmony import nn, ops
from emberharmony.core import selection
from emberharmony.core.dispatch import DISPATCH
from emberharmony.core.errors import EmberError, ShapeError
from emberharmony.core.op_code.code_swap import SWAP
from emberharmony.core.tracing import TensorProxy
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher, is_observing, twin_of


class Names(Watcher):
    """Notes the calls that end, and everything else that a watcher sees."""

    def __init__(self, backward: bool = False) -> None:
        self.backward = backward
        self.calls: list[WatchedCall] = []
        self.modules: list[str] = []
        self.failures: list[str] = []
        self.notes: list[str] = []

    def after(self, call: WatchedCall, result: Any) -> None:
        self.calls.append(call)

    def on_return(self, path: str, result: Any) -> None:
        self.modules.append(path)

    def on_error(self, call: WatchedCall, error: Exception) -> None:
        self.failures.append(call.op)

    def on_note(self, text: str) -> None:
        self.notes.append(text)

    def names(self, depth: int | None = 0) -> list[str]:
        return [call.op for call in self.calls if depth is None or call.depth == depth]


@pytest.fixture(autouse=True)
def _nothing_remains() -> Iterator[None]:
    call = nn.Linear.__call__
    yield
    assert not is_observing()
    assert nn.Linear.__call__ is call
    assert selection._PROCESS.observers is None
    assert selection.Override.__enter__ is selection._PLAIN_ENTER


def program(x: Any) -> Any:
    y = ops.gelu(ops.linear(x, ops.ones((4, 5)), ops.zeros((5,))))
    return ops.sum(ops.layer_normalization(ops.add(y, 1.0)))


CALLS = ["ones", "zeros", "linear", "gelu", "add", "layer_normalization", "sum"]


def test_calls_at_the_top_are_the_same_on_every_backend(backend: str) -> None:
    with Observation(Names()) as seen:
        program(ops.ones((3, 4)))
    assert seen.names() == ["ones", *CALLS]
    for taped in (False, True):
        with Observation(Names(taped)) as seen:
            ops.value_and_grad(program)(ops.ones((3, 4)))
        assert seen.names()[: len(CALLS) + 1] == ["ones", *CALLS]


def test_the_tape_shows_the_backward_pass_on_every_backend(backend: str) -> None:
    x = ops.reshape(ops.linspace(-1.0, 1.0, 12), (3, 4))
    plain = ops.grad(program)(x)
    with Observation(Names(True)) as seen:
        found = ops.grad(program)(x)
    assert ops.to_numpy(found) == pytest.approx(ops.to_numpy(plain), abs=1e-5)
    pulled = [call.gradient_of for call in seen.calls if call.gradient_of]
    assert {"sum", "linear"} <= set(pulled)
    assert all(call.backend.without_watchers is selection.current() for call in seen.calls)


def test_calls_inside_of_transforms_have_modules(backend: str) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.GELU(), nn.Linear(3, 1)))
    with Observation(Names(True)) as seen:
        ops.backward(lambda: ops.sum(net(ops.ones((2, 4)))), net)
        ops.vmap(net)(ops.ones((2, 4)))
    assert seen.modules[:5] == [f"Sequential{part}" for part in (".0", ".1.0", ".1.1", ".1", "")]
    places = {(call.path, call.op) for call in seen.calls}
    assert {("Sequential.0", "linear"), ("Sequential.1.0", "gelu"), ("Sequential.1.1", "linear")} <= places
    assert ("Sequential.0", "linear") in {(call.path, call.gradient_of) for call in seen.calls}


def test_a_class_that_is_made_meanwhile_has_a_path(backend: str) -> None:
    with Observation(Names()) as seen:

        class Double(nn.Module):
            def __call__(self, x: Any) -> Any:
                return ops.add(x, x)

        nn.Sequential(Double())(ops.ones(2))
    assert seen.calls[-1].path == "Sequential.0"
    assert not hasattr(Double.__call__, "of_watching")


def test_a_recording_may_begin_inside_of_a_gradient(backend: str) -> None:
    seen = []

    def loss(x: Any) -> Any:
        with Observation(Names()) as names:
            y = ops.concat([ops.gelu(x), ops.softmax(x)])
        seen.append(names.names())
        return ops.sum(y)

    assert ops.grad(loss)(ops.ones(3)).shape == (3,)
    assert seen[0] == ["gelu", "softmax", "concatenate"]


def test_other_overrides_are_observed_too(backend: str) -> None:
    with Observation(Names()) as seen:
        with ops.use_backend("numpy"):
            ops.sin(0.0)
        with ops.autocast("float16"):
            half = ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))
        with ops.use_backend(like=half):
            ops.cos(half)
        ops.eval_shape(ops.tan, ops.TensorSpec((2,)))
    assert [name for name in seen.names() if name != "cast"] == ["sin", "ones", "ones", "matmul", "cos"]
    assert seen.calls[0].backend.name == "numpy"
    with ops.autocast("float16"), Observation(Names()) as seen:
        assert ops.dtype(ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))) == ops.float16


def test_the_backend_may_be_set_inside_of_the_block(backend: str) -> None:
    with Observation(Names()) as seen:
        ops.set_backend("numpy")
        ops.sin(0.0)
        assert ops.get_backend() == "numpy"
        with ops.use_backend(backend):
            ops.set_backend("numpy")
            assert ops.get_backend() == backend
    assert [(call.op, call.backend.name) for call in seen.calls] == [("sin", "numpy")]
    assert ops.get_backend() == "numpy"


def test_errors_are_told_and_stay_what_they_are(backend: str) -> None:
    with Observation(Names()) as seen:
        with pytest.raises(ShapeError, match=r"matmul\(\)"):
            ops.matmul(ops.ones((2, 3)), ops.ones((2, 3)))
        assert "matmul" in seen.failures
        ops.softmax(ops.array([1, 2]))  # which the native function of PyTorch refuses
    assert "softmax" in seen.names()


class StopError(Exception):
    """An exception of a watcher."""


@pytest.mark.parametrize("kind", [StopError, EmberError])
@pytest.mark.parametrize("method", ["before", "after"])
def test_the_exception_of_a_watcher_passes_unchanged(backend: str, kind: Any, method: str) -> None:
    error = kind("stop here")

    class Stopping(Watcher):
        def told(self, call: WatchedCall, *result: Any) -> None:
            ops.isnan(ops.ones(()))  # no watcher sees it
            if call.op == "square":
                raise error

    setattr(Stopping, method, Stopping.told)

    def loss(x: Any) -> Any:
        return ops.sum(ops.square(x))

    for run in (lambda x: loss(x), ops.grad(loss), lambda x: ops.var(ops.square(x))):
        with Observation(Stopping()), pytest.raises(kind) as raised:
            run(ops.ones(3))
        assert raised.value is error
        assert str(error) == "stop here"


def test_a_composite_is_not_run_again_after_the_exception_of_a_watcher(backend: str) -> None:
    begun: list[str] = []

    class Stopping(Watcher):
        def before(self, call: WatchedCall) -> None:
            begun.append(call.op)
            if call.depth:
                raise StopError

    with Observation(Stopping()), contextlib.suppress(StopError):
        ops.var(ops.ones(3))
    assert begun.count("var") == 1


def test_compiled_functions_run_uncompiled_and_say_so(backend: str) -> None:
    compiled = ops.compile(lambda x: ops.tanh(x))
    with Observation(Names()) as seen:
        compiled(ops.ones(2))
    assert seen.names() == ["ones", "tanh"]
    assert "uncompiled" in seen.notes[0]


def test_several_watchers_share_a_twin(backend: str) -> None:
    outer = Observation(Names())
    with outer as first, Observation(Names()) as second:
        ops.sin(0.0)
        with outer:
            ops.cos(0.0)
        assert backends.current() is twin_of(backends.current())
    assert first.names() == ["sin", "cos", "cos"]
    assert second.names() == ["sin", "cos"]
    assert twin_of(selection.current()) is twin_of(selection.current())


def test_ops_get_their_code_back(backend: str) -> None:
    x = ops.ones(2)
    gc.collect()  # garbage of other tests may hold an override; if it were collected in the block, `sin` would change
    ops.set_backend(backend)
    ops.sin(x)
    before = ops.sin.__code__
    with Observation(Names()):
        ops.sin(x)
    if DISPATCH == SWAP:
        assert ops.sin.__code__ is before


def test_half_of_the_threads_are_observed(backend: str) -> None:
    if backend == "mlx":
        ops.eval(ops.ones(1))
    barrier, wrong = threading.Barrier(16), []
    names = ["sin", "cos", "tan", "exp", "tanh", "square", "negative", "absolute"]

    def run(number: int) -> None:
        barrier.wait()
        op = getattr(ops, names[number % 8])
        with ops.use_backend(backend):
            for _ in range(20):
                if number < 8:
                    with Observation(Names()) as seen:
                        op(op(1.0))
                    if seen.names() != [names[number]] * 2:
                        wrong.append((number, seen.names()))
                else:
                    op(op(1.0))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_tasks_see_their_own_calls() -> None:
    async def watched(op: Any) -> list[str]:
        with Observation(Names()) as seen:
            for _ in range(3):
                op(1.0)
                await asyncio.sleep(0)
        return seen.names()

    async def run() -> list[list[str]]:
        return await asyncio.gather(watched(ops.sin), watched(ops.cos), watched(ops.tan))

    assert asyncio.run(run()) == [["sin"] * 3, ["cos"] * 3, ["tan"] * 3]


def test_watchers_of_a_gradient_get_values_also_of_composites(backend: str) -> None:
    class Arguments(Watcher):
        backward = True

        def __init__(self) -> None:
            self.seen: dict[str, list[Any]] = {}

        def before(self, call: WatchedCall) -> None:
            self.seen.setdefault(call.op, []).extend((*call.args, *call.kwargs.values()))

        def after(self, call: WatchedCall, result: Any) -> None:
            self.seen[call.op].append(result)

    with Observation(watcher := Arguments()):
        ops.grad(lambda x: ops.sum(ops.glu(ops.multiply(x, 2.0))))(ops.ones(4))
    assert "glu" in watcher.seen
    kinds = {type(x) for values in watcher.seen.values() for x in values}
    assert not any(issubclass(kind, TensorProxy) for kind in kinds)
