"""Checked mode: in which threads and tasks it is on, and which indices it checks."""

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, IndexOutOfBoundsError
from emberharmony.core.state import checked_mode
from emberharmony.core.state.checked_mode import checked, checking

OUTSIDE: dict[str, Any] = {
    "take": lambda x, i: ops.take(x, i),
    "take along": lambda x, i: ops.take_along_axis(x, i),
    "get_item": lambda x, i: ops.get_item(x, i),
    "get_item in a tuple": lambda x, i: ops.get_item(x, (i,)),
    "scatter_update": lambda x, i: ops.scatter_update(x, ops.expand_dims(i, -1), ops.ones_like(i)),
    "segment_sum": lambda x, i: ops.segment_sum(x, i, num_segments=3),
    "unravel_index": lambda x, i: ops.unravel_index(i, (3,)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_out_of_bounds_raises_in_checked_mode(name: str, backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0])
    inside, outside = ops.array([0, 2, 1]), ops.array([0, 99, 1])
    plain = OUTSIDE[name](x, inside)
    with ops.checked():
        checked_result = OUTSIDE[name](x, inside)
        with pytest.raises(IndexOutOfBoundsError) as caught:
            OUTSIDE[name](x, outside)
        if name.startswith(("take", "get")):
            assert "index 99 is out of bounds" in str(caught.value)
            assert "(3,)" in str(caught.value)
        if name.startswith(("take", "get")) and backend == "mlx":
            assert "at (1,) of indices of shape (3,)" in str(caught.value)
    assert ops.tree_map(lambda t: ops.to_numpy(t).tolist(), checked_result) == ops.tree_map(
        lambda t: ops.to_numpy(t).tolist(), plain
    )


def test_a_boolean_mask_still_selects_in_checked_mode(backend: str) -> None:
    with ops.checked():
        assert ops.to_numpy(ops.get_item([1, 2, 3], ops.array([True, False, True]))).tolist() == [1, 3]


def test_blocks_nest_and_an_error_restores_the_outer_mode() -> None:
    assert not checking()
    with checked():
        assert checking()
        with checked(False):
            assert not checking()
        assert checking()
        with pytest.raises(ValueError, match="inside"), checked(False):
            raise ValueError("inside")
        assert checking()
    assert not checking()


def test_the_decorator_turns_the_mode_on_for_each_call() -> None:
    @checked()
    def deep(n: int) -> list[bool]:
        return [checking(), *(deep(n - 1) if n else [])]

    assert deep(3) == [True] * 4
    assert not checking()
    found: list[list[bool]] = []
    threads = [threading.Thread(target=lambda: found.append(deep(5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[True] * 6] * 8


def test_other_threads_and_tasks_are_not_in_checked_mode() -> None:
    seen: list[bool] = []

    async def other() -> bool:
        await asyncio.sleep(0)
        return checking()

    async def main() -> bool:
        task = asyncio.create_task(other())
        with checked():
            await asyncio.sleep(0)
            return await task

    assert asyncio.run(main()) is False
    with checked():
        thread = threading.Thread(target=lambda: seen.append(checking()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_the_environment_variable_names_checks() -> None:
    read = checked_mode._checks_from_environment
    assert [read(text) for text in ("1", "0", "")] == [{"bounds"}, set(), set()]
    assert read("nan, bounds,lazy") == {"nan", "bounds", "lazy"}
    with pytest.raises(ArgumentError, match="EMBERHARMONY_CHECK: 'nam' is no check; the checks are nan, bounds, dtype"):
        read("bounds,nam")


PROGRAM = """
from emberharmony import ops
from emberharmony.core.state.checked_mode import checking
ops.set_backend("numpy")
print(checking())
try:
    ops.sqrt(ops.array([-1.0]))
except ArithmeticError as error:
    print(error)
"""


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("value", "on", "found"), [("1", True, ""), ("nan", False, "sqrt() on backend 'numpy' made 1")]
)
def test_the_environment_variable_turns_the_mode_on(value: str, on: bool, found: str) -> None:
    env = {**os.environ, "EMBERHARMONY_CHECK": value}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    first, _, rest = done.stdout.partition("\n")
    assert first == str(on)
    assert rest.startswith(found)
    assert bool(rest) == bool(found)


@pytest.mark.fresh_process
def test_a_program_fails_for_what_is_found_as_it_ends(backend: str) -> None:
    """MLX computes late: a value that `float` reads is judged when the process ends."""
    program = f"from emberharmony import ops\nops.set_backend({backend!r})\nfloat(ops.sum(ops.sqrt(ops.array([-1.0]))))"
    env = {**os.environ, "EMBERHARMONY_CHECK": "nan"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"sqrt() on backend '{backend}' made 1" in done.stderr
    assert "Exception ignored" not in done.stderr
