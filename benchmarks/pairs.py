"""What the benchmarks share: pairs of calls, their options, and the one format of results.

A pair is the same computation in native calls and through `ops`.

The calls of a pair take turns in one process, so that the load of the machine meets all of them alike. The time is the
CPU time of the process, in which each library runs one thread, because the time that a busy machine spends elsewhere
would be larger than the differences. The native call is in the pair twice, and the ratio of its two times is the noise
floor: smaller differences mean nothing. Only ratios can be compared between runs and machines.
"""

import argparse
import datetime
import importlib
import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}
RESULTS = Path(__file__).parent / "results"
Call = Callable[[], Any]
Ratios = dict[str, float]
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Numbers by group, which is mostly a backend, by row and by column."""


def restart_with_one_thread() -> None:
    """Restarts this program with one thread per library, unless the environment says so already.

    The libraries read these variables when they are loaded, so it is too late to set them here.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != "1" for name in threads):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | threads)


def make_parser(description: str, rounds: int) -> argparse.ArgumentParser:
    """Returns a parser of the options that the benchmarks share.

    Args:
        description: what the benchmark measures.
        rounds: the default of `--rounds`.
    """
    options_parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    options_parser.add_argument(
        "pattern", nargs="?", default="", help="only rows in which this regular expression is found"
    )
    options_parser.add_argument(
        "--backend", action="append", choices=list(MODULES), help="only this backend (repeatable)"
    )
    options_parser.add_argument("--rounds", type=int, default=rounds, help="how often each call takes its turn")
    options_parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return options_parser


def installed_backends(chosen: list[str] | None) -> list[str]:
    """Returns the names of the chosen backends, or of all, whose libraries are installed."""
    return [name for name in chosen or MODULES if importlib.util.find_spec(MODULES[name].partition(".")[0])]


def library(backend: str) -> Any:
    """Returns the library of a backend, which runs in one thread."""
    module = importlib.import_module(MODULES[backend])
    if backend == "torch":
        module.set_num_threads(1)
    return module


def machine_facts(libraries: Iterable[str]) -> dict[str, str]:
    """Returns the date, the versions and the machine, which belong to every figure."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts = {"date": date, "python": platform.python_version(), "platform": platform.platform()}
    return facts | {"cores": str(os.cpu_count())} | {name: version(name) for name in libraries}


def evaluating_call(backend: str, call: Call) -> Call:
    """Returns a function that also computes the result of a call, which MLX and accelerators do later."""
    if backend == "torch" and os.environ.get("EMBERHARMONY_DEVICE", "cpu") != "cpu":
        wait = library(backend).accelerator.synchronize
        return lambda: (call(), wait())
    if backend != "mlx":
        return call
    evaluate = library(backend).eval
    return lambda: evaluate(call())


def time_pair(native: Call, ours: Call, rounds: int, turn: float = 0.01, most: float = 20.0) -> Ratios:
    """Returns the time of a native call in µs, and the ratios to it of the same call again and of our call.

    A call that is repeated runs once before its turn, uncounted. In every second round the native call follows itself,
    and then finds its code and data in the caches, which ours, between two native ones, never would.

    Args:
        native: the computation in native calls.
        ours: the same through `ops`.
        rounds: how often each call takes its turn.
        turn: about how long a turn lasts, in seconds; a short call is repeated.
        most: after this many seconds no further round begins.

    Returns:
        "native" is the minimum of all rounds in µs. "again" and "ours" are ratios of minima; "again median" and "ours
        median" are the medians of the ratios in each round.
    """
    calls: Mapping[str, Call] = {"native": native, "ours": ours, "again": native}
    for call in calls.values():
        call()
    start = time.process_time()
    native()
    count = max(1, min(1000, int(turn / max(time.process_time() - start, 1e-7))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, end = list(calls), time.perf_counter() + most
    for _ in range(rounds):
        for name in order:
            call = calls[name]
            if count > 1:
                call()
            start = time.process_time()
            for _ in range(count):
                call()
            times[name].append((time.process_time() - start) / count)
        order.reverse()
        if time.perf_counter() > end:
            break
    least_seconds = min(times["native"])
    ratios = {"native": least_seconds * 1e6}
    for name in ("again", "ours"):
        ratios[name] = min(times[name]) / least_seconds
        ratios[f"{name} median"] = statistics.median(a / b for a, b in zip(times[name], times["native"], strict=True))
    return ratios


def table_head(title: str) -> str:
    """Returns the first line of a table of ratios."""
    names = ("native µs", "again", "ours", "again med.", "ours med.")
    return f"\n{title:40}" + "".join(f"{name:>12}" for name in names)


def table_line(title: str, row: Ratios) -> str:
    """Returns a line of a table of ratios."""
    cells = "".join(f"{row[name]:12.3f}" for name in ("again", "ours", "again median", "ours median"))
    return f"{title:40}{row['native']:12.1f}{cells}"


def write_results(path: Path | None, figures: Figures, libraries: Iterable[str] = ()) -> None:
    """Writes results as JSON, if a path is given; docs/benchmarks.md shows those in `benchmarks/results`.

    Args:
        path: the file, which also names the benchmark.
        figures: the numbers.
        libraries: the distributions whose versions belong to the numbers.
    """
    if path is not None:
        report = {"benchmark": Path(sys.argv[0]).stem, "machine": machine_facts(libraries), "figures": figures}
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure_each(options: argparse.Namespace, measure: Callable[[str, Any], Any], *others: str) -> None:
    """Measures each installed backend that the options choose, and writes the results.

    Args:
        options: what `parser` returned.
        measure: takes a backend and the options, prints the figures of the rows and returns them.
        others: the libraries beside those of the backends whose versions belong to the numbers.
    """
    backends = installed_backends(options.backend)
    libraries = dict.fromkeys([*backends, *others])
    print(", ".join(f"{name} {value}" for name, value in machine_facts(libraries).items()))
    write_results(options.json, {name: measure(name, options) for name in backends}, libraries)
