"""Measures how long `emberharmony.compare` takes, compared with both runs.

The program is a training step of the demo's GPT. The script prints the processor time, of all cores together, of a
step on each backend ("run"), of a step that is recorded with the backward pass by the tape, and of
`emberharmony.compare`; then the ratio of the last to the sum of the steps, and to the sum of the recorded steps.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pairs import write_results

from emberharmony import compare, ops
from emberharmony.demo.programs import load_example
from emberharmony.testing.differences.copies import Copies


def least_seconds(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Returns the least processor time of each call; in a round all are made in turn, and one round is not counted."""
    times_by_call: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            start_time = time.process_time()
            call()
            times_by_call[name].append(time.process_time() - start_time)
    return {name: min(times[1:]) for name, times in times_by_call.items()}


def run_step(step: Callable[..., Any], arguments: Sequence[Any]) -> float:
    """Makes a step and returns its loss."""
    return float(step(*arguments))


def record_step(step: Callable[..., Any], arguments: Sequence[Any]) -> int:
    """Makes a step that is recorded with its backward pass, and returns the number of calls."""
    with ops.record(backward=True) as log:
        run_step(step, arguments)
    return len(log)


STEP_KINDS: dict[str, Callable[..., float]] = {"run": run_step, "recorded": record_step}
"""By the names of the rows, the functions that make a step."""


def measure(backends: Sequence[str], layers: int, rounds: int) -> tuple[dict[str, float], str]:
    """Returns the times of a step and of its comparison with the number of calls and the ratios, and what it said."""
    program = load_example("training/gpt")
    rng = np.random.default_rng(0)
    input_numbers, target_numbers = (rng.integers(0, 59, (8, program.CONTEXT)) for _ in range(2))
    with ops.use_backend(backends[0]):
        model = program.GPT(59, layers=layers, seed=0)
        optimizer = program.adamw(model, 10)

    def step(model: Any, optimizer: Any, input_numbers: Any, target_numbers: Any) -> Any:
        loss = ops.backward(lambda: program.loss(model, input_numbers, target_numbers), model)
        optimizer.step()
        return loss

    calls: dict[str, Callable[[], Any]] = {}
    for name in backends:
        with ops.use_backend(name):
            copies = Copies()
            backend_copies = [
                copies.copy_of(model),
                copies.copy_of(optimizer),
                *map(ops.convert_to_tensor, (input_numbers, target_numbers)),
            ]
        for kind, call_step in STEP_KINDS.items():
            calls[f"{kind} {name}"] = partial(call_on_backend, name, partial(call_step, step, backend_copies))
    report = None

    def make_report() -> None:
        nonlocal report
        report = compare(step, model, optimizer, input_numbers, target_numbers, backends=backends, stop="all")

    figures = least_seconds({**calls, "compare": make_report}, rounds)
    assert report is not None
    figures["calls"] = len(report.rows)
    for kind in STEP_KINDS:
        figures[f"ratio to {kind}"] = figures["compare"] / sum(figures[f"{kind} {name}"] for name in backends)
    return figures, report.summary()


def call_on_backend(name: str, call: Callable[[], Any]) -> Any:
    """Makes a call on a backend."""
    with ops.use_backend(name):
        return call()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", default="torch,mlx")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    backends = options.backends.split(",")
    row, said = measure(backends, options.layers, options.rounds)
    print("\n".join([f"{name:24}{number:12.4g}" for name, number in row.items()] + [said]))
    write_results(options.json, {options.backends: {f"a GPT of {options.layers} layers, seconds": row}}, backends)


if __name__ == "__main__":
    main()
