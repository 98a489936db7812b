"""Measures how fast files of weights are opened, read and written, beside `safetensors` and the disk.

All rows are on NumPy. Opening a file and making views of its tensors is measured in milliseconds and in resident
memory. Reading 20,000 small tensors is compared with `safetensors.numpy.load_file`, in processor time. Saving is
compared with the time in which `dd conv=fsync` writes as many bytes to a fresh file on the same disk, and loading into
memory with the time in which `dd` reads the file, after the system has dropped the file from its cache. Both take
turns, because the rate of a shared disk changes within seconds. A ratio is ours divided by theirs; for rates, above 1
is faster.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pairs import restart_with_one_thread, time_pair, write_results

from emberharmony import io, ops

SMALL = 20_000
PAGES = """
import json, sys, time
from emberharmony import io, ops
ops.set_backend("numpy")

def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096

with io.open(sys.argv[2]) as file:  # so that what the first call imports is not counted
    list(file.values())
times, taken = [], []
for _ in range(int(sys.argv[3])):
    before, start = resident(), time.perf_counter()
    file = io.open(sys.argv[1])
    tensors = dict(file)
    times.append(time.perf_counter() - start)
    taken.append(resident() - before)
    file.close()
    del file, tensors
print(json.dumps({"ms": 1e3 * min(times), "median ms": 1e3 * sorted(times)[len(times) // 2],
                  "resident MB": max(taken) / 1e6}))
"""
"""Opens a file in a process of its own, whose memory nothing else has used; Linux tells how much is resident."""


def call_seconds(call: Callable[[], Any]) -> float:
    """Returns the time that a call takes on the clock, because a disk needs no processor."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def copy_file(source: Path | str, target: Path | str, *options: str) -> None:
    """Copies a file with dd.

    Raises:
        subprocess.CalledProcessError: if the disk is full.
    """
    command = ["dd", f"if={source}", f"of={target}", "bs=8M", *options]
    subprocess.run(command, check=True, capture_output=True)


def drop_from_cache(path: Path) -> None:
    """Drops a file from the cache of the system, where it can do so."""
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load_all(path: Path, mmap: bool) -> None:
    """Reads all tensors of a file; with a map, by a sum over each, since a map is read where it is used."""
    with io.open(path, mmap=mmap) as file:
        for tensor in file.values():
            if mmap:
                tensor.view(np.int64).sum()


def opening_costs(large: Path, tiny: Path, rounds: int) -> dict[str, float]:
    """Returns what it takes to open a file and to make views of its tensors."""
    command = [sys.executable, "-c", PAGES, str(large), str(tiny), str(rounds)]
    completed_process = subprocess.run(command, check=True, capture_output=True, text=True)
    costs: dict[str, float] = json.loads(completed_process.stdout)
    return costs


def rates_in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], nbytes: int, rounds: int, before: Callable[[], Any]
) -> dict[str, float]:
    """Returns the rates of two ways to move bytes, which take turns, and the ratio of ours to theirs.

    Args:
        ours: the one way.
        theirs: the other.
        nbytes: how many bytes they move.
        rounds: how often each takes its turn.
        before: what is called before each turn.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(rounds):
        for which in (0, 1) if i % 2 else (1, 0):
            before()
            times[which].append(call_seconds((ours, theirs)[which]))
    ratios = [b / a for a, b in zip(*times, strict=True)]
    return {
        "ours MB/s": nbytes / min(times[0]) / 1e6,
        "theirs MB/s": nbytes / min(times[1]) / 1e6,
        "ratio": min(times[1]) / min(times[0]),
        "ratio median": statistics.median(ratios),
    }


def print_figure(title: str, figure: float, goal: str, reached: bool, note_text: str = "") -> None:
    """Prints a figure beside its goal."""
    print(f"{title:44}{figure:10.3f}   goal {goal:9}{'reached' if reached else 'MISSED':9}{note_text}", flush=True)


def measure(folder: Path, megabytes: int, rounds: int) -> dict[str, dict[str, float]]:
    """Returns the figures, and prints them."""
    rng = np.random.default_rng(0)
    count = 100
    tensors = {
        f"layer.{i}": rng.integers(0, 1 << 30, megabytes * 250_000 // count, dtype=np.int32) for i in range(count)
    }
    nbytes = sum(x.nbytes for x in tensors.values())
    large, small = folder / "large.safetensors", folder / "small.safetensors"
    tiny = folder / "tiny.safetensors"
    fresh, written = folder / "fresh.bin", folder / "written.safetensors"
    figures: dict[str, dict[str, float]] = {}

    def clean() -> None:
        fresh.unlink(missing_ok=True)
        written.unlink(missing_ok=True)

    io.save(tensors, large)
    io.save({f"model.layers.{i}.self_attn.q_proj.weight": np.zeros((4, 4), np.float32) for i in range(SMALL)}, small)
    io.save({"w": np.zeros(3, np.float32)}, tiny)
    if os.path.exists("/proc/self/statm"):
        figures["open"] = row = opening_costs(large, tiny, max(rounds, 5))
        print_figure(
            f"open {megabytes} MB, {count} views: ms",
            row["ms"],
            "<= 2",
            row["ms"] <= 2,
            f"median {row['median ms']:.2f}",
        )
        print_figure("  resident MB", row["resident MB"], "<= 4", row["resident MB"] <= 4)
    try:
        from safetensors.numpy import load_file
    except ImportError:
        print("safetensors is not installed, so 20,000 tensors are not compared")
    else:
        row = time_pair(lambda: load_file(small), lambda: io.load(small), rounds)
        figures["20,000 tensors"] = row
        note_text = f"median {row['ours median']:.2f}, again {row['again']:.2f}"
        print_figure(
            f"{SMALL:,} tensors, ours / safetensors.numpy", row["ours"], "<= 1.3", row["ours"] <= 1.3, note_text
        )
    copies_by_title: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]] = {
        "save": (lambda: io.save(tensors, written), lambda: copy_file(large, fresh, "conv=fsync"), clean),
        "load": (lambda: load_all(large, False), lambda: copy_file(large, "/dev/null"), lambda: drop_from_cache(large)),
        "load by a map": (
            lambda: load_all(large, True),
            lambda: copy_file(large, "/dev/null"),
            lambda: drop_from_cache(large),
        ),
    }
    for title, (ours, theirs, before) in copies_by_title.items():
        row = rates_in_turn(ours, theirs, nbytes, rounds, before)
        figures[title] = row
        note_text = f"median {row['ratio median']:.2f}; {row['ours MB/s']:.0f} against {row['theirs MB/s']:.0f} MB/s"
        print_figure(f"{title} {megabytes} MB, rate / dd", row["ratio"], ">= 0.9", row["ratio"] >= 0.9, note_text)
    return figures


def main() -> None:
    """Measures in a new folder, and removes it."""
    restart_with_one_thread()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", help="measure on the disk of this folder; by default that of temporary files")
    parser.add_argument("--megabytes", type=int, default=400, help="the size of the large file")
    parser.add_argument("--rounds", type=int, default=7, help="how often each way takes its turn")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    ops.set_backend("numpy")
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        figures = measure(folder, options.megabytes, options.rounds)
    finally:
        shutil.rmtree(folder)
    write_results(options.json, {"numpy": figures}, ["numpy"])


if __name__ == "__main__":
    main()
