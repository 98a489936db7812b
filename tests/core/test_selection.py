"""`use_backend` affects only its own thread or task; ops look for an override only after one named another backend."""

import asyncio
import contextlib
import contextvars
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from emberharmony import ops
from emberharmony.backend import create_backend
from emberharmony.core import selection
from emberharmony.core.dispatch import DISPATCH, SWAP
from emberharmony.ops import sin

swapped = pytest.mark.skipif(DISPATCH != SWAP, reason="no code is exchanged in this process")


def test_source_names_what_made_the_choice(backend: str) -> None:
    assert selection.backend_source() == "set_backend"
    with ops.use_backend("numpy"):
        assert selection.backend_source() == "use_backend"


def test_other_threads_do_not_see_an_override(backend: str) -> None:
    seen: list[str] = []
    with ops.use_backend("numpy"):
        thread = threading.Thread(target=lambda: seen.append(ops.get_backend()))
        thread.start()
        thread.join()
    assert seen == [backend]


def test_a_task_inherits_the_override_that_was_active_at_its_start(backend: str) -> None:
    async def name() -> str:
        await asyncio.sleep(0)
        return ops.get_backend()

    async def main() -> tuple[str, str]:
        with ops.use_backend("numpy"):
            task = asyncio.create_task(name())
        return await task, ops.get_backend()

    assert asyncio.run(main()) == ("numpy", backend)


def test_a_copied_context_keeps_its_override(backend: str) -> None:
    with ops.use_backend("numpy"):
        context = contextvars.copy_context()
    assert context.run(ops.get_backend) == "numpy"
    assert ops.get_backend() == backend


def other_than(name: str) -> str:
    return next((other for other in ops.available_backends() if other != name), None) or pytest.skip("needs two")


def is_direct() -> bool:
    """Returns whether a call of an op runs the code of a backend, without a look-up."""
    return f"{ops.get_backend()}_sin" in sin.__code__.co_names


@swapped
def test_an_override_that_names_the_active_backend_leaves_the_ops_direct(backend: str) -> None:
    ops.set_backend(backend)
    sin([1.0])
    assert is_direct()
    for override in (ops.use_backend(backend), ops.use_backend(like=ops.zeros(2))):
        with override:
            assert ops.to_numpy(sin([0.0])).tolist() == [0.0]
            assert is_direct()
    assert is_direct()


def test_a_backend_set_inside_an_override_is_active_outside_only(backend: str) -> None:
    other, seen = other_than(backend), []
    with ops.use_backend(backend):
        sin([1.0])
        ops.set_backend(other)
        assert ops.get_backend() == backend
        assert type(sin([1.0])) is type(create_backend(backend).zeros(()))
        thread = threading.Thread(target=lambda: seen.append(type(sin([1.0]))))
        thread.start()
        thread.join()
    assert ops.get_backend() == other
    assert [type(sin([1.0]))] == seen == [type(create_backend(other).zeros(()))]


def is_guarded() -> bool:
    """Returns whether a call of an op looks for an override and then runs the code of a backend."""
    return "override" in sin.__code__.co_names


@swapped
def test_an_override_that_names_another_backend_makes_the_ops_guarded_until_the_next_set_backend(backend: str) -> None:
    ops.set_backend(backend)
    sin([1.0])
    with ops.use_backend(other_than(backend)):
        sin([1.0])
    assert is_guarded()
    ops.set_backend(backend)
    sin([1.0])
    assert is_direct()


@swapped
def test_an_op_is_guarded_from_its_first_call_after_an_override(backend: str) -> None:
    other = other_than(backend)
    with ops.use_backend(other):
        selection.switch_backend(type(create_backend(backend))(), "test")  # a backend that has compiled no op yet
        assert type(sin([1.0])) is type(create_backend(other).zeros(()))
    assert type(sin([1.0])) is type(create_backend(backend).zeros(()))
    assert is_guarded()


def test_guarded_ops_pass_all_kinds_of_arguments_to_the_override(backend: str) -> None:
    other = other_than(backend)
    kind = type(create_backend(other).zeros(()))
    calls = {
        "optional": lambda: ops.clip([1.0, 5.0], max=2.0),
        "keyword_only": lambda: ops.sum([[1.0, 2.0]], axis=1, keepdims=True),
        "variadic": lambda: ops.einsum("i,i->", [1.0, 2.0], [3.0, 4.0]),
        "dtype": lambda: ops.zeros((2,), dtype="float32"),
    }
    expected = {name: ops.to_numpy(call()).tolist() for name, call in calls.items()}
    with ops.use_backend(other):
        assert {type(call()) for call in calls.values()} == {kind}
        assert {name: ops.to_numpy(call()).tolist() for name, call in calls.items()} == expected
    assert {name: ops.to_numpy(call()).tolist() for name, call in calls.items()} == expected


@swapped
def test_a_copied_context_that_is_alive_keeps_the_ops_guarded(backend: str) -> None:
    other = other_than(backend)
    with ops.use_backend(backend):
        context = contextvars.copy_context()
    ops.set_backend(other)
    assert context.run(ops.get_backend) == backend
    assert type(context.run(sin, [1.0])) is type(create_backend(backend).zeros(()))
    assert type(sin([1.0])) is type(create_backend(other).zeros(()))
    del context
    ops.set_backend(other)
    sin([1.0])
    assert is_direct()


def test_threads_that_override_while_another_sets_the_backend_see_their_own(backend: str) -> None:
    other, stop = other_than(backend), threading.Event()
    seen: set[tuple[str, str, type]] = set()
    kinds = {name: type(create_backend(name).zeros(())) for name in (backend, other)}

    def pinned(name: str) -> None:
        while not stop.is_set():
            with ops.use_backend(name):
                seen.update((name, ops.get_backend(), type(sin([1.0]))) for _ in range(5))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=pinned, args=(name,)) for name in (backend, other)]
    try:
        for thread in threads:
            thread.start()
        for i in range(40):
            ops.set_backend((backend, other)[i % 2])
            time.sleep(0.0005)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert seen == {(name, name, kind) for name, kind in kinds.items()}


def test_asking_for_the_backend_makes_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "from emberharmony.core import selection\nfrom emberharmony import ops\n"
        "assert ops.get_backend() == 'numpy', ops.get_backend()\n"
        "assert selection.backend_source() == 'EMBERHARMONY_BACKEND'\n"
    )
    monkeypatch.setenv("EMBERHARMONY_BACKEND", "numpy")
    subprocess.run([sys.executable, "-c", program], check=True)


def _suspended(name: str) -> Iterator[str]:
    with ops.use_backend(name):
        while True:
            yield ops.get_backend()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_suspended_generators_may_be_closed_in_any_order(order: tuple[int, ...]) -> None:
    """The newest block that is still open decides; after the last one the former backend is active again."""
    pytest.importorskip("torch")
    pytest.importorskip("mlx.core")
    before, names = ops.get_backend(), ["torch", "numpy", "mlx"]
    open_blocks = dict(enumerate(_suspended(name) for name in names))
    assert [next(block) for block in open_blocks.values()] == names
    for i in order:
        open_blocks.pop(i).close()
        assert ops.get_backend() == (names[max(open_blocks)] if open_blocks else before)
        assert [next(block) for block in open_blocks.values()] == [ops.get_backend()] * len(open_blocks)
    assert selection._OVERRIDE.get() is None


def test_a_block_that_ends_in_another_context_does_not_change_that_context(backend: str) -> None:
    def steps() -> Iterator[None]:
        with ops.use_backend("numpy"):
            yield

    block = steps()
    inside = contextvars.copy_context()
    inside.run(next, block)
    with ops.use_backend(backend):
        block.close()
        assert ops.get_backend() == backend
    assert inside.run(ops.get_backend) == "numpy"


def test_one_object_may_be_entered_again_inside_itself(backend: str) -> None:
    block = ops.use_backend("numpy")
    with block, ops.use_backend(backend):
        with block:
            assert ops.get_backend() == "numpy"
        assert ops.get_backend() == backend
    assert ops.get_backend() == backend


def test_an_exit_stack_can_enter_a_block(backend: str) -> None:
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(ops.use_backend("numpy")).name == "numpy"
        assert ops.get_backend() == "numpy"
    assert ops.get_backend() == backend
