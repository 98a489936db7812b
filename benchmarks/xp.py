"""Measures what arrays of `emberharmony.xp` add to operators of native tensors.

CPU time in microseconds of operators on four elements of float32: of the library itself, twice, and of the array;
"added" is the difference. array-api-strict and array-api-compat are measured in the same run. Each figure is the
smallest of many short turns, because other programs on the machine lengthen most of them. MLX and JAX compute later:
their figures are those of the calls, and what waits is computed between the turns.
"""

import argparse
import gc
import importlib
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pairs import restart_with_one_thread, write_results

from emberharmony.xp import namespace

BACKENDS = ("numpy", "torch", "mlx", "jax")
TURN = 100
"""How many calls a turn has."""
Run = Callable[[int], float]
EXPRESSIONS = ("x + y", "x * 2.0", "x < y", "-x", "exp(x)", "x[0]", "x[1:3]", "x += 1.0", "x += y", "x.shape")


def expression_loops(xp: Any, make: Callable[[], Any], wait: Callable[[Any], Any]) -> dict[str, Run]:
    """Returns for each expression a function that evaluates it `n` times.

    Args:
        xp: the namespace.
        make: returns a new array.
        wait: computes an array.
    """
    functions: dict[str, Run] = {}
    for expression in EXPRESSIONS:
        text = f"def run(n):\n x, y, exp = make(), make(), xp.exp\n start = clock()\n for _ in range(n): {expression}\n"
        scope = {"make": make, "xp": xp, "wait": wait, "clock": time.process_time}
        exec(f"{text} end = clock()\n wait(x)\n return (end - start) / n", scope)
        functions[expression] = scope["run"]
    return functions


def library_and_helpers(backend: str) -> tuple[Any, Callable[[], Any], Callable[[Any], Any]]:
    """Returns the library of a backend, a function that makes its arrays, and one that computes them."""
    data = np.ones(4, np.float32)
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
        return torch, lambda: torch.tensor(data), lambda x: x
    if backend == "mlx":
        import mlx.core as mx

        return mx, lambda: mx.array(data), mx.eval
    if backend == "jax":
        import jax

        namespace("jax")  # lets JAX have float64, as the backend does
        return jax.numpy, lambda: jax.numpy.asarray(data), jax.block_until_ready
    return np, data.copy, lambda x: x


def loops_by_column(backend: str) -> dict[str, dict[str, Run]]:
    """Returns the loops of a backend by column: the library twice, the array, and other arrays of the standard."""
    native, make, wait = library_and_helpers(backend)
    xp = namespace(backend)
    ours = expression_loops(xp, lambda: xp.asarray(make(), copy=True), lambda x: wait(x.native))
    table = {"native": expression_loops(native, make, wait), "again": expression_loops(native, make, wait), "xp": ours}
    if importlib.util.find_spec("array_api_strict") and backend == "numpy":
        import array_api_strict as strict

        table["strict"] = expression_loops(strict, lambda: strict.asarray(make()), lambda x: x)
    if importlib.util.find_spec("array_api_compat") and backend in ("numpy", "torch"):
        table["compat"] = expression_loops(importlib.import_module(f"array_api_compat.{backend}"), make, wait)
    return table


def measure(table: dict[str, dict[str, Run]], seconds: float) -> dict[str, dict[str, float]]:
    """Returns the microseconds of each expression by column; the columns take turns."""
    rows: dict[str, dict[str, float]] = {}
    for expression in EXPRESSIONS:
        row = dict.fromkeys(table, float("inf"))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for name, functions in table.items():
                row[name] = min(row[name], functions[expression](TURN) * 1e6)
        rows[expression] = {**row, "added": row["xp"] - min(row["native"], row["again"])}
    return rows


def main() -> None:
    """Prints a table for each backend."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("backends", nargs="*", default=list(BACKENDS), metavar="BACKEND")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long the turns of an expression go on")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    restart_with_one_thread()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for backend in options.backends:
        table = loops_by_column(backend)
        gc.disable()
        rows = figures[f"{backend}, µs"] = measure(table, options.seconds)
        gc.enable()
        names = [*table, "added"]
        print(f"\n{backend:10}" + "".join(f"{name:>9}" for name in names))
        for expression, row in rows.items():
            print(f"{expression:10}" + "".join(f"{row[name]:9.2f}" for name in names))
    write_results(options.json, figures, options.backends)


if __name__ == "__main__":
    main()
