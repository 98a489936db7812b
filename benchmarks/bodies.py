"""Measures whether what stands beside the body of an op, such as a gradient rule, is faster than the body.

An op with a body needs nothing else. KIND is what some ops have in addition:

- `definition`: the backend's own definition, often a function of its library;
- `gradient`: the rule by which the tape differentiates (NumPy, Dask, and backends of `from_array_api`);
- `batching`: the rule of `vmap` on these backends;
- `shape`: the rule of `eval_shape`.

Each row makes the calls of the op's sample row with it and without it, in turns. The columns are the time with it in
µs, and the ratio of the body's time to that: the least and the largest of the calls, and for 100,000 elements if the
op is elementwise. For definitions, "gradient" is the same ratio for gradients. "wrong" is the number of calls of the
sample row that the body fails. Where none is wrong and all ratios are below 1.05, what stands beside the body can go.
"""

import argparse
import contextlib
import functools
import importlib
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from pairs import evaluating_call, restart_with_one_thread

from emberharmony import ops
from emberharmony.backend.abstract import AbstractBackend
from emberharmony.core.op_code.code_swap import op_before_first_call
from emberharmony.core.registry import OPS
from emberharmony.core.selection import current
from emberharmony.core.types import BackendName
from emberharmony.rules import RULES
from emberharmony.rules.batching import RULES as BATCHING
from emberharmony.testing import checks, gradient_rows
from emberharmony.testing.call import Call
from emberharmony.testing.gradient_check import Problem
from emberharmony.testing.inputs import as_argument
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples

KINDS = ("definition", "gradient", "batching", "shape")
LARGE = 100_000
SLICES = 2, 50
Run = Callable[[], Any]


def owner_of_rule(kind: str, op: str) -> Any:
    """Returns the class or the table that has what stands beside the body of an op; None if nothing does."""
    if kind in ("gradient", "batching"):
        table = RULES if kind == "gradient" else BATCHING
        return table if op in table else None
    current().import_categories()
    backend = type(current()) if kind == "definition" else AbstractBackend
    holder = next((cls for cls in backend.__mro__ if op in vars(cls)), None)
    # Where it has no rule, the class of abstract tensors has one for all elementwise ops.
    return None if kind == "shape" and holder is AbstractBackend else holder


@contextlib.contextmanager
def leave_body_alone(kind: str, op: str, where: Any) -> Iterator[None]:
    """Leaves an op its body alone."""
    with contextlib.ExitStack() as stack:
        if isinstance(where, dict):
            stack.callback(where.__setitem__, op, where.pop(op))
        else:
            stack.callback(compile_again, op)  # the last to run
            for cls in (type(current()) if kind == "definition" else AbstractBackend).__mro__:
                if op in vars(cls) and cls is not AbstractBackend:
                    stack.callback(setattr, cls, op, vars(cls)[op])
                    delattr(cls, op)
            compile_again(op)
        yield


def compile_again(op: str) -> None:
    """Makes the next call of an op compile it."""
    for backend in (current(), AbstractBackend.over(current())):
        backend.bound.forget(op)
    OPS[op].function.__code__ = op_before_first_call(OPS[op]).__code__


def _can_be_enlarged(op: str, call: Call) -> bool:
    """Returns whether a call can be made with more elements."""
    shapes = {x.shape for x in (*call.args, *call.kwargs.values()) if isinstance(x, np.ndarray)}
    return OPS[op].facts.elementwise and len(shapes) == 1


def enlarge(value: Any) -> Any:
    """Returns arrays with many elements."""
    return np.resize(value, (LARGE // 100, 100)) if isinstance(value, np.ndarray) and value.ndim else value


def timed_runs(kind: str, sample: Sample) -> Iterator[tuple[str, Run]]:
    """Yields the calls that are timed, each with the name of its column."""
    backend, function = current(), OPS[sample.op].function
    if kind == "gradient":
        yield from _gradient_runs(sample)
        return
    calls = list(checks.value_calls(sample))
    if not calls:
        return
    dtype = "float32" if any(call.dtype == "float32" for call in calls) else calls[0].dtype
    calls = [call for call in calls if call.dtype == dtype and call.raises is None][:4]
    for call in calls:
        if kind == "shape":
            yield "small", functools.partial(_run_shapes, function, call.args, call.kwargs, call.options)
        elif kind == "batching":
            yield from _mapped_runs(function, call.args, {**call.kwargs, **call.options})
        else:
            for enlarged in (False, True) if call is calls[0] and _can_be_enlarged(sample.op, call) else (False,):
                args, kwargs = [enlarge(x) if enlarged else x for x in call.args], call.kwargs | call.options
                run = functools.partial(
                    function, *_to_native(args), **{name: _to_native(x) for name, x in kwargs.items()}
                )
                yield "large" if enlarged else "small", evaluating_call(backend.name, run)
    if kind == "definition":
        yield from _gradient_runs(sample)


def _to_native(value: Any) -> Any:
    """Returns an argument with native tensors in place of host arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_to_native, value))
    value = as_argument(value)
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _run_shapes(function: Callable[..., Any], args: Any, kwargs: Any, options: Any) -> Any:
    return ops.eval_shape(lambda given, named: function(*given, **named, **options), args, kwargs)


def _mapped_runs(function: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Iterator[tuple[str, Run]]:
    places = [i for i, x in enumerate(args) if isinstance(x, np.ndarray)]

    def call(*slices: Any) -> Any:
        all_args = list(args)
        for place, value in zip(places, slices, strict=True):
            all_args[place] = value
        return function(*all_args, **kwargs)

    for count in SLICES if places else ():
        tensors = [ops.convert_to_tensor(np.stack([args[i]] * count)) for i in places]
        yield "small", functools.partial(ops.vmap(call), *tensors)


def _gradient_runs(sample: Sample) -> Iterator[tuple[str, Run]]:
    function, is_first_call = gradient_rows.gradient_function(sample), True
    for call in islice(gradient_rows.gradient_calls(sample), 3):
        for enlarged in (False, True) if is_first_call and _can_be_enlarged(sample.op, call) else (False,):
            args = [enlarge(x) if enlarged else x for x in call.args]
            problem = Problem(lambda given, named: function(*given, **named), (args, call.kwargs), dtype=call.dtype)
            primals = problem._primals(problem.points)
            run = functools.partial(problem._pull_back, *primals)
            yield "gradient", evaluating_call(current().name, run)
        is_first_call = False


def wrong_call_count(kind: str, sample: Sample) -> int:
    """Returns how many calls of the sample row fail."""
    calls: list[Call] = [*checks.value_calls(sample), *checks.special_value_calls(sample)] if kind != "gradient" else []
    return sum(_fails(call, sample) for call in (*calls, *gradient_rows.gradient_calls(sample)))


def _fails(call: Call, sample: Sample) -> bool:
    try:
        call.judge(sample)
    except Exception:  # noqa: BLE001  (also where the body cannot run)
        return True
    return False


def time_and_ratio(kind: str, op: str, run: Run, rounds: int) -> tuple[float, float]:
    """Returns the time with what stands beside the body in µs, and the ratio of the body's time to it."""
    rule_owner = owner_of_rule(kind, op)
    run()
    start = time.process_time()
    run()
    count = max(1, min(1000, int(0.003 / max(time.process_time() - start, 1e-7))))

    def time_per_run() -> float:
        run()
        start = time.process_time()
        for _ in range(count):
            run()
        return (time.process_time() - start) / count * 1e6

    time_pairs = []
    for _ in range(rounds):
        rule_time = time_per_run()
        with leave_body_alone(kind, op, rule_owner):
            time_pairs.append((rule_time, time_per_run()))
    least_time, body_time = (min(column) for column in zip(*time_pairs, strict=True))
    return least_time, body_time / least_time


def table_row(kind: str, op: str, sample: Sample, rounds: int) -> str:
    """Returns the line of an op."""
    figures: dict[str, list[tuple[float, float]]] = {"small": [], "large": [], "gradient": []}
    with leave_body_alone(kind, op, owner_of_rule(kind, op)):
        wrong_count = wrong_call_count(kind, sample)
    try:
        for column, run in timed_runs(kind, sample):
            figures[column].append(time_and_ratio(kind, op, run, rounds))
    except Exception as error:  # noqa: BLE001  (the body cannot run)
        return f"{op:32} {type(error).__name__}: {str(error)[:60]}"
    cells = []
    for column, pairs in figures.items():
        ratios = [ratio for _, ratio in pairs]
        times = f"{min(t for t, _ in pairs):9.1f} µs" if pairs else ""
        cells.append(f"{column} {times} {min(ratios):6.2f} to {max(ratios):6.2f}" if pairs else "")
    return f"{op:32} " + "".join(f"{cell:42}" for cell in cells) + (f"{wrong_count} wrong" if wrong_count else "")


def main() -> None:
    """Prints a line for each op that has something beside its body."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("kind", choices=KINDS)
    options.add_argument("pattern", nargs="?", default="")
    options.add_argument("--backend", default="numpy")
    options.add_argument("--rounds", type=int, default=8)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    ops.set_backend(BackendName(arguments.backend))
    if arguments.kind == "batching":
        importlib.import_module("emberharmony.rules.batching")
    for op, sample in sorted(all_samples().items()):
        if OPS[op].composite and re.search(arguments.pattern, op) and owner_of_rule(arguments.kind, op) is not None:
            print(table_row(arguments.kind, op, sample, arguments.rounds), flush=True)


if __name__ == "__main__":
    restart_with_one_thread()
    main()
