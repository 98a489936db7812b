"""A pass over programs: runs of elementwise calls become one call each, which a backend makes block by block."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from emberharmony.transforms.program import Number, Program, ProgramCall, Register

Runner = Callable[[Program, list[Any]], Callable[..., list[Any]]]
"""Returns the function that runs a program with numbers; scalars in the place of registers come behind its inputs."""


def join_runs(
    program: Program, kind: Callable[[ProgramCall], Any], is_scalar: Callable[[Register], bool], runner: Runner
) -> Program:
    """Returns a program in which each run of elementwise calls is one call; calls that need no result of it come first.

    Args:
        program: the program.
        kind: returns what the calls of a run have in common; None if a call is in none.
        is_scalar: returns whether an operand has no axes.
        runner: makes the function of a run.
    """
    call_kinds = list(map(kind, program.calls))
    if call_kinds.count(None) > len(call_kinds) - 2:  # as for all small arrays
        return program
    use_count_by_operand = Counter(x for call in program.calls for x in call.operands)
    use_count_by_operand.update(x for x in program.outputs if x.__class__ is Register)
    joined_calls: list[ProgramCall] = []
    run_calls: list[ProgramCall] = []
    run_results: set[Register] = set()
    run_kind = None
    for call, call_kind in zip(program.calls, call_kinds, strict=True):
        if call_kind is None and run_results.isdisjoint(call.operands):
            joined_calls.append(call)
            continue
        if call_kind != run_kind:
            joined_calls += _join_calls(run_calls, use_count_by_operand, is_scalar, runner)
            run_calls, run_results, run_kind = [], set(), call_kind
        if call_kind is None:
            joined_calls.append(call)
        else:
            run_calls.append(call)
            run_results.update(call.results)
    return replace(program, calls=(*joined_calls, *_join_calls(run_calls, use_count_by_operand, is_scalar, runner)))


def _join_calls(
    run: list[ProgramCall], use_counts: Counter[Register], is_scalar: Callable[[Register], bool], runner: Runner
) -> list[ProgramCall]:
    """Returns the calls of a run as one call, if there are several."""
    if len(run) < 2:
        return run
    results = [call.results[0] for call in run]
    use_count_by_operand = Counter(x for call in run for x in call.operands)
    inputs = [x for x in use_count_by_operand if x not in results and not is_scalar(x)]
    register_by_operand = {x: Register(i) for i, x in enumerate([*inputs, *results])}
    numbers: list[Any] = []
    renumbered_calls = []
    for call in run:
        renumbered_args: list[Any] = []
        for x in call.args:
            if x.__class__ is Register and x in register_by_operand:
                renumbered_args.append(register_by_operand[x])
            else:
                renumbered_args.append(Number(len(numbers)))
                numbers.append(x)
        renumbered_calls.append(
            ProgramCall(call.function, tuple(renumbered_args), (register_by_operand[call.results[0]],))
        )
    outputs = [x for x in results if use_counts[x] > use_count_by_operand[x]]
    run_program = Program(
        len(inputs), tuple(renumbered_calls), tuple(register_by_operand[x] for x in outputs), len(numbers)
    )
    scalar_registers = [x for x in numbers if x.__class__ is Register]
    return [ProgramCall(runner(run_program, numbers), (*inputs, *scalar_registers), tuple(outputs), several=True)]
