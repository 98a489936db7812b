"""`use_backend` affects only its own thread or task; after its first use, ops look the backend up at each call."""

import asyncio
import contextlib
import contextvars
import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.dispatch import DISPATCH, SWAP
from emberharmony.ops import sin


def test_source_names_what_made_the_choice(backend: str) -> None:
    assert selection.source() == "set_backend"
    with ops.use_backend("numpy"):
        assert selection.source() == "use_backend"


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


def test_ops_look_the_backend_up_after_the_first_override(backend: str) -> None:
    with ops.use_backend(backend):
        sin([1.0])
    assert "active" in sin.__code__.co_names
    assert ops.to_numpy(sin([0.0])).tolist() == [0.0]


@pytest.mark.skipif(DISPATCH != SWAP, reason="no code is exchanged in this process")
def test_ops_call_the_native_function_directly_before_any_override() -> None:
    program = (
        "from emberharmony import ops\nfrom emberharmony.ops import sin\n"
        "ops.set_backend('numpy')\nsin([1.0])\nassert 'numpy_sin' in sin.__code__.co_names\n"
        "with ops.use_backend('numpy'): sin([1.0])\nassert 'active' in sin.__code__.co_names\n"
        "ops.set_backend('numpy')\nassert 'active' in sin.__code__.co_names\nassert sin([0.0]).tolist() == [0.0]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_asking_for_the_backend_makes_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "from emberharmony.core import selection\nfrom emberharmony import ops\n"
        "assert ops.get_backend() == 'numpy', ops.get_backend()\nassert selection.source() == 'EMBERHARMONY_BACKEND'\n"
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
