"""Measures what arrays of `emberharmony.xp` add to operators of native tensors.

Microseconds of operators on four elements of float32: native, and what the array adds. The rows of array-api-strict
and of NumPy through array-api-compat are whole times. Each figure is the smallest of several runs, which take turns.
"""

import argparse
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pairs import write

from emberharmony.xp import namespace

ROUNDS, REPEATS, NUMBER = 12, 3, 300
Cases = dict[str, Callable[[], Any]]


def cases(xp: Any, x: Any, apart: Any) -> Cases:
    """Returns the calls for an array, and for another one, which no view belongs to."""
    return {
        "x + y": lambda: x + x,
        "x * 2.0": lambda: x * 2.0,
        "x < y": lambda: x < x,
        "-x": lambda: -x,
        "exp(x)": lambda: xp.exp(x),
        "x[0]": lambda: x[0],
        "x[1:3]": lambda: x[1:3],
        "x += 0.0": lambda: apart.__iadd__(0.0),
        "x.shape": lambda: x.shape,
    }


def natives(backend: str, data: np.ndarray) -> tuple[Any, Any]:
    """Returns the library of a backend, and a function that makes its tensors."""
    if backend == "numpy":
        return np, lambda: data.copy()
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
        return torch, lambda: torch.tensor(data)
    if backend == "mlx":
        import mlx.core as mx

        return mx, lambda: mx.array(data)
    sys.exit(f"no native calls are known for {backend}")


def others(data: np.ndarray) -> dict[str, Cases]:
    """Returns the calls of other arrays of the standard, as far as these are installed."""
    cases_by_library: dict[str, Cases] = {}
    try:
        import array_api_compat.numpy as compat
        import array_api_strict as strict
    except ImportError:
        return cases_by_library
    cases_by_library["array-api-strict"] = cases(strict, strict.asarray(data), strict.asarray(data))
    cases_by_library["array-api-compat, numpy"] = cases(compat, data.copy(), data.copy())
    return cases_by_library


def main() -> None:
    """Prints a table for each backend."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("backends", nargs="*", default=["numpy", "torch", "mlx"], metavar="BACKEND")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    data, tables = np.ones(4, np.float32), {}
    for backend in options.backends:
        library, make = natives(backend, data)
        xp = namespace(backend)
        tables[backend] = cases(library, make(), make())
        tables[f"{backend}, xp"] = cases(xp, xp.asarray(data, copy=True), xp.asarray(data, copy=True))
    tables |= others(data)
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for table, calls in tables.items():
            for name, call in calls.items():
                taken = min(timeit.repeat(call, number=NUMBER, repeat=REPEATS)) / NUMBER * 1e6
                best[table, name] = min(taken, best.get((table, name), taken))
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for table, calls in tables.items():
        native = table.removesuffix(", xp")
        added = native != table
        print(f"{table}{' (added)' if added else ''}")
        for name in calls:
            figure = best[table, name] - (best[native, name] if added else 0.0)
            print(f"  {name:10} {figure:6.2f}")
            figures.setdefault(f"{table}, µs{' added' if added else ''}", {})[name] = {"µs": figure}
    write(options.json, figures, options.backends)


if __name__ == "__main__":
    main()
