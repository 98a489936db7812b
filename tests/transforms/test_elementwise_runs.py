"""Elementwise calls of a program that follow each other become one call, as long as their shapes are equal."""

from typing import Any

import pytest

from emberharmony.transforms.elementwise_runs import join_runs
from emberharmony.transforms.program import Program, ProgramCall, Register


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["s", "s", "t", "t"], [["a", "b"], ["c", "d"]]),
        (["s", "s", "s", "t"], [["a", "b", "c"]]),
        (["s", "s", None, "s"], [["a", "b"]]),
        (["s", None, "s", None], []),
        (["s", "t", "s", "t"], []),
    ],
)
def test_a_run_ends_where_the_shape_changes(kinds: list[str | None], expected: list[list[str]]) -> None:
    calls = tuple(ProgramCall(name, (Register(i),), (Register(i + 1),)) for i, name in enumerate("abcd"))
    runs: list[list[str]] = []

    def runner(program: Program, numbers: list[Any]) -> Any:
        runs.append([call.function for call in program.calls])
        return runs[-1]

    kind_of = dict(zip("abcd", kinds, strict=True))
    joined = join_runs(Program(1, calls, (Register(4),)), lambda call: kind_of[call.function], lambda x: False, runner)
    assert runs == expected
    # Each call begins where the one before ended.
    ends = [(*call.args, *call.results) for call in joined.calls]
    assert [first for first, _ in ends] == [0, *(last for _, last in ends[:-1])]
    assert ends[-1][1] == 4
