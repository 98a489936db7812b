"""Overrides are seen by one thread or task only; ops are looked up once any was used."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.ops import sin


def test_source_says_where_the_choice_came_from(backend: str) -> None:
    assert selection.source() == "set_backend"
    with ops.use_backend("numpy"):
        assert selection.source() == "use_backend"


def test_an_override_is_not_seen_by_other_threads(backend: str) -> None:
    seen: list[str] = []
    with ops.use_backend("numpy"):
        thread = threading.Thread(target=lambda: seen.append(ops.get_backend()))
        thread.start()
        thread.join()
    assert seen == [backend]


def test_a_task_inherits_the_override_it_was_started_under(backend: str) -> None:
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


def test_ops_are_looked_up_after_the_first_override(backend: str) -> None:
    with ops.use_backend(backend):
        sin([1.0])
    assert "active" in sin.__code__.co_names
    assert ops.to_numpy(sin([0.0])).tolist() == [0.0]


def test_ops_are_direct_before_any_override() -> None:
    program = (
        "from emberharmony import ops\nfrom emberharmony.ops import sin\n"
        "ops.set_backend('numpy')\nsin([1.0])\nassert 'numpy_sin' in sin.__code__.co_names\n"
        "with ops.use_backend('numpy'): sin([1.0])\nassert 'active' in sin.__code__.co_names\n"
        "ops.set_backend('numpy')\nassert 'active' in sin.__code__.co_names\nassert sin([0.0]).tolist() == [0.0]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unset_choice_is_made_by_the_first_op(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "from emberharmony.core import selection\nfrom emberharmony import ops\n"
        "assert ops.get_backend() == 'numpy', ops.get_backend()\nassert selection.source() == 'EMBERHARMONY_BACKEND'\n"
    )
    monkeypatch.setenv("EMBERHARMONY_BACKEND", "numpy")
    subprocess.run([sys.executable, "-c", program], check=True)
