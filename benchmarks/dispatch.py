"""Measures what a call through `ops` adds to a native call on one element, in time and instructions.

The overhead is the difference to the native call as a user writes it (`np.sin(x)`), in the same run. The tensors have
one element, so that the time of the call dominates. There are two measures:

- additional instructions, counted by valgrind's callgrind if it is installed (repeated counts agree to about 0.1 %,
  those of torch to 150 instructions);
- additional nanoseconds, the minimum of many interleaved rounds. The native call is timed twice: the column
  "native again" is the noise floor, and smaller differences mean nothing.

Other libraries (autoray, array-api-compat, keras, tensorly) are measured in the same run if they are installed.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pairs import write_results

CALLS = {
    "sin(x)": ("{m}.sin(x)", "sin(x)"),
    "exp(x)": ("{m}.exp(x)", "exp(x)"),
    "add(x, y)": ("{m}.add(x, y)", "add(x, y)"),
    "add(x, 2.0)": ("{m}.add(x, 2.0)", "add(x, 2.0)"),
    "maximum(x, y)": ("{m}.maximum(x, y)", "maximum(x, y)"),
    "less(x, y)": ("{m}.less(x, y)", "less(x, y)"),
    "matmul(x, y)": ("{m}.matmul(x, y)", "matmul(x, y)"),
    "sum(x, axis=0)": ("{m}.sum(x, axis=0)", "sum(x, axis=0)"),
}
NAMES = ("sin", "exp", "add", "maximum", "less", "matmul", "sum")
MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}
PEERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "autoray": ("import autoray\ndef {n}(*a, **k): return autoray.do({n!r}, *a, **k)", ("numpy", "torch", "mlx")),
    "array_api_compat": (
        "import array_api_compat as _c\ndef {n}(x, *a, **k): return _c.array_namespace(x).{n}(x, *a, **k)",
        ("numpy", "torch"),
    ),
    "tensorly": ("import tensorly\nfrom tensorly import {n}", ("numpy", "torch")),
    "keras": ("from keras.ops import {n}", ("numpy", "torch")),
}


def statement_names(backend: str, dispatcher: str) -> dict[str, Any]:
    """Returns the names that a statement needs: native module `m`, tensors `x` and `y`, the dispatcher's functions."""
    native = importlib.import_module(MODULES[backend])
    if backend == "numpy":
        x, y = native.ones(1, native.float32), native.ones(1, native.float32)
    else:
        x, y = native.ones(1), native.ones(1)
    space: dict[str, Any] = {"m": native, "x": x, "y": y}
    if dispatcher == "ours":
        from emberharmony import ops

        ops.set_backend(backend)
        space |= {name: getattr(ops, name) for name in NAMES}
    elif dispatcher in PEERS:
        if dispatcher == "tensorly":
            importlib.import_module("tensorly").set_backend({"torch": "pytorch"}.get(backend, backend))
        for name in NAMES:
            if dispatcher != "tensorly" or hasattr(importlib.import_module("tensorly"), name):
                exec(PEERS[dispatcher][0].format(n=name), space)
    return space


def statement_loop(statement: str, space: dict[str, Any]) -> Callable[[int], None]:
    """Returns a function that runs the statement `n` times; its names are globals, as in a user's module."""
    local: dict[str, Any] = {}
    exec(f"def run(n):\n for _ in range(n):\n  {statement}\n", space, local)
    run: Callable[[int], None] = local["run"]
    return run


def statement_of(call: str, dispatcher: str) -> str:
    """Returns the statement that a user of a dispatcher would write."""
    native, ours = CALLS[call]
    return native.format(m="m") if dispatcher.startswith("native") else ours


def is_installed(name: str) -> bool:
    """Returns whether a module can be imported."""
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def dispatcher_names(backend: str) -> list[str]:
    """Returns the names of all that can be measured on a backend; the native call is measured twice."""
    peers = [name for name, (_, backends) in PEERS.items() if backend in backends and is_installed(name)]
    return ["native", "native again", "ours", *peers]


def nanoseconds(backend: str, rounds: int = 60, calls: int = 400) -> dict[str, dict[str, float]]:
    """Returns the time in ns by call and dispatcher: the minimum of `rounds` interleaved rounds."""
    table: dict[str, dict[str, float]] = {}
    for call in CALLS:
        runs: dict[str, Callable[[int], None]] = {}
        for dispatcher in dispatcher_names(backend):
            try:
                run = statement_loop(statement_of(call, dispatcher), statement_names(backend, dispatcher))
                run(50)
            except Exception as error:  # noqa: BLE001  (a library that lacks the call is reported and left out)
                print(f"  {dispatcher} on {backend} cannot {call}: {type(error).__name__}", file=sys.stderr)
                continue
            runs[dispatcher] = run
        least_by_name = dict.fromkeys(runs, float("inf"))
        for _ in range(rounds):
            for dispatcher, run in runs.items():
                least_by_name[dispatcher] = min(
                    least_by_name[dispatcher], timeit.timeit(lambda run=run: run(calls), number=1) / calls
                )  # type: ignore[misc]
        table[call] = {dispatcher: seconds * 1e9 for dispatcher, seconds in least_by_name.items()}
    return table


def instruction_count(backend: str, dispatcher: str, call: str, calls: int) -> int:
    """Returns the number of instructions of a process that makes `calls` calls.

    Raises:
        RuntimeError: if the process fails, as when the dispatcher lacks the call.
    """
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__]
    environment = os.environ | {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    completed_process = subprocess.run(
        [*command, "--child", backend, dispatcher, call, str(calls)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    count_match = re.search(r"Collected : (\d+)", completed_process.stderr)
    if completed_process.returncode or not count_match:
        raise RuntimeError(completed_process.stderr[-300:])
    return int(count_match[1])


def instructions_per_call(backend: str, calls: int = 20000) -> dict[str, dict[str, float]]:
    """Returns the number of instructions per call, by call and dispatcher.

    The processes run in parallel, which would disturb times but not counts of instructions.
    """
    counted_dispatchers = [name for name in dispatcher_names(backend) if name not in ("native again", "keras")]
    cells = [(call, dispatcher) for call in CALLS for dispatcher in counted_dispatchers]

    def measure(cell: tuple[str, str]) -> float | None:
        call, dispatcher = cell
        try:
            few_instructions, many_instructions = (
                instruction_count(backend, dispatcher, call, n) for n in (2000, 2000 + calls)
            )
        except RuntimeError as error:
            print(f"  {dispatcher} on {backend} cannot {call}: {error}", file=sys.stderr)
            return None
        return (many_instructions - few_instructions) / calls

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        values = list(pool.map(measure, cells))
    table: dict[str, dict[str, float]] = {call: {} for call in CALLS}
    for (call, dispatcher), value in zip(cells, values, strict=True):
        if value is not None:
            table[call][dispatcher] = value
    return table


def print_overheads(title: str, table: dict[str, dict[str, float]]) -> None:
    """Prints the overhead of each dispatcher over the native call, and its median over the calls."""
    columns = list(dict.fromkeys(name for row in table.values() for name in row if name != "native"))
    print(f"\n{title}\n{'':18}{'native':>10}" + "".join(f"{'+ ' + name:>20}" for name in columns))
    overheads: dict[str, list[float]] = {name: [] for name in columns}
    for call, row in table.items():
        cells = ""
        for name in columns:
            if name in row:
                overheads[name].append(row[name] - row["native"])
            cells += f"{row[name] - row['native']:20.0f}" if name in row else f"{'-':>20}"
        print(f"{call:18}{row['native']:10.0f}{cells}")
    medians = "".join(f"{statistics.median(values):20.0f}" if values else f"{'-':>20}" for values in overheads.values())
    print(f"{'median':18}{'':10}{medians}")


def main() -> None:
    """Measures every installed backend."""
    if sys.argv[1:2] == ["--child"]:
        backend, dispatcher, call, calls = sys.argv[2:]
        statement_loop(statement_of(call, dispatcher), statement_names(backend, dispatcher))(int(calls))
        return
    parser = argparse.ArgumentParser(description="Measure what dispatch costs over the native call.")
    parser.add_argument("--backend", action="append", choices=list(MODULES), help="only this backend (repeatable)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--no-callgrind", action="store_true", help="measure times only")
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} cores")
    figures: dict[str, Any] = {}
    backends = arguments.backend or [name for name, module in MODULES.items() if is_installed(module)]
    for backend in backends:
        figures[f"{backend}, nanoseconds"] = nanoseconds(backend)
        print_overheads(
            f"{backend}: ns added per call (minimum of interleaved rounds)", figures[f"{backend}, nanoseconds"]
        )
        if not arguments.no_callgrind and shutil.which("valgrind"):
            figures[f"{backend}, instructions"] = instructions_per_call(backend)
            print_overheads(f"{backend}: instructions added per call (callgrind)", figures[f"{backend}, instructions"])
    if not shutil.which("valgrind") and not arguments.no_callgrind:
        print("\nvalgrind is not installed: no instructions were counted")
    write_results(arguments.json, figures, backends)


if __name__ == "__main__":
    main()
