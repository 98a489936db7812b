"""Measures how fast 1, 2 and 4 processes train together, and whether the formula of a ring fits.

It times `all_sum` for several lengths and fits the latency of a message and the bandwidth between two ranks to the
times, by the formula of a ring: `2 (n - 1) latency + 2 (n - 1) / n bytes / bandwidth`. It then times the step of an MLP
on NumPy with one batch for all ranks together (strong scaling) and one for each (weak scaling), and compares the time
for communication with that of the formula. All times are those of the clock, the least of many rounds, because ranks
wait for each other. `docs/distributed.md` has the figures, and the cost of more ranks by the same formula.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pairs import write_results

from emberharmony import nn, ops, optim

LENGTHS = (1, 256, 4096, 65536, 262144, 1048576, 4194304)
BUCKETS = (2**16, 2**18, 2**20, 2**22, 2**24)
BATCH, WIDTH, LAYERS = 256, 512, 4


def ring_seconds(latency: float, bandwidth: float, ranks: int, size: float) -> float:
    """Returns the seconds of a sum of vectors of so many bytes on a ring."""
    return 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / bandwidth


def fit_latency_and_bandwidth(ranks: int, points: dict[int, float]) -> tuple[float, float]:
    """Returns the latency in seconds and the bandwidth in bytes per second that fit best, by relative errors."""
    sizes, seconds = np.array(list(points), float) * 4, np.array(list(points.values()))
    columns = np.stack([np.full_like(sizes, 2.0 * (ranks - 1)), 2 * (ranks - 1) / ranks * sizes], axis=1)
    solution = np.linalg.lstsq(columns / seconds[:, None], np.ones_like(seconds), rcond=None)[0]
    return float(max(solution[0], 0.0)), float(1.0 / max(solution[1], 1e-15))


def least_seconds(rounds: int, call: Callable[[], Any]) -> float:
    """Returns the least seconds of a call on the slowest rank, after one that warms up."""
    best_seconds = float("inf")
    for _ in range(rounds + 1):
        ops.distributed.barrier()
        start_time = time.perf_counter()
        call()
        seconds = np.float32(time.perf_counter() - start_time)
        slowest = float(ops.max(ops.distributed.all_gather(ops.convert_to_tensor(seconds))))
        best_seconds = min(best_seconds, slowest)
    return best_seconds


def training_step(batch: int, communicates: bool) -> Callable[[], Any]:
    """Returns a step of training with so many rows."""
    rng = ops.random.Generator(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH, rng=rng), nn.ReLU())]
    net = nn.DataParallel(nn.Sequential(*layers))
    optimizer = optim.SGD(net, lr=1e-3)
    x = ops.random.normal((batch, WIDTH), generator=rng)

    def step() -> None:
        loss = ops.backward(lambda: ops.mean(ops.square(net(x))), net)
        if communicates:
            net.synchronize(loss)
        optimizer.step()

    return step


def measure_on_rank(rounds: int) -> None:
    """Measures on one rank of a run; rank 0 prints the figures."""
    ops.set_backend("numpy")
    world = ops.distributed.init(timeout=300)
    figures: dict[str, Any] = {"ranks": world.size, "all_sum": {}, "buckets": {}}
    for length in LENGTHS if world.size > 1 else ():
        x = ops.ones((length,))
        few_rounds = max(3, min(rounds, rounds * 65536 // length))
        figures["all_sum"][length] = least_seconds(few_rounds, lambda x=x: ops.distributed.all_sum(x))
    x = ops.ones((LENGTHS[-1],))
    for size in BUCKETS if world.size > 1 else ():
        figures["buckets"][size] = least_seconds(3, lambda size=size: ops.distributed.all_sum(x, bucket_bytes=size))
    for kind, batch in (("strong", BATCH // world.size), ("weak", BATCH)):
        figures[kind] = least_seconds(rounds, training_step(batch, True))
        figures[f"{kind} alone"] = least_seconds(rounds, training_step(batch, False))
    if world.rank == 0:
        sys.stdout.write(f"figures {json.dumps(figures)}\n")
        sys.stdout.flush()


def measure(ranks: int, transport: str, rounds: int) -> dict[str, Any]:
    """Returns the figures of a run with so many ranks."""
    launch = [sys.executable, "-m", "emberharmony", "launch", "-n", str(ranks), "--no-prefix", "--transport", transport]
    command = [*launch, str(Path(__file__)), "--worker", "--rounds", str(rounds)]
    environ = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    completed_process = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    figures_line = next(line for line in completed_process.stdout.splitlines() if line.startswith("figures "))
    figures: dict[str, Any] = json.loads(figures_line.partition(" ")[2])
    return figures


def figure_rows(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the figures of a run by row and column."""
    lists = {name: {str(size): seconds for size, seconds in found[name].items()} for name in ("all_sum", "buckets")}
    others = {name: x for name, x in found.items() if not isinstance(x, dict) and name != "ranks"}
    return {**{name: row for name, row in lists.items() if row}, "steps and fit": others}


def main() -> None:
    """Measures all numbers of ranks, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", default="torch", help="what connects the ranks")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], help="how many ranks there are")
    parser.add_argument("--rounds", type=int, default=30, help="how often each call is timed")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        measure_on_rank(options.rounds)
        return
    size = 4 * LAYERS * (WIDTH * WIDTH + WIDTH)
    print(f"transport {options.transport}, {os.cpu_count()} cores, NumPy ranks, {size / 1e6:.1f} MB of gradients")
    runs, first_figures = [], None
    for ranks in options.ranks:
        figures = measure(ranks, options.transport, options.rounds)
        runs.append(figures)
        first_figures = first_figures or figures
        print(f"\n{ranks} ranks")
        points = {int(length): seconds for length, seconds in figures["all_sum"].items()}
        if points:
            latency, bandwidth = fit_latency_and_bandwidth(ranks, points)
            figures |= {"latency": latency, "bandwidth": bandwidth}
            print(f"  fitted: {latency * 1e6:.0f} us a message, {bandwidth / 1e9:.2f} GB/s")
            for length, seconds in points.items():
                model = ring_seconds(latency, bandwidth, ranks, 4 * length)
                print(f"  all_sum of {4 * length:>9} bytes: {seconds * 1e3:9.3f} ms, formula {model * 1e3:9.3f} ms")
            for bucket, seconds in figures["buckets"].items():
                bucket_count = 4 * LENGTHS[-1] // int(bucket)
                model = bucket_count * ring_seconds(latency, bandwidth, ranks, int(bucket))
                print(
                    f"  {4 * LENGTHS[-1]} bytes by {bucket:>8}: {seconds * 1e3:9.3f} ms, formula {model * 1e3:9.3f} ms"
                )
        for kind in ("strong", "weak"):
            step_seconds, compute_seconds = figures[kind], figures[f"{kind} alone"]
            speed = first_figures[kind] / step_seconds * (ranks if kind == "weak" else 1)
            communication = step_seconds - compute_seconds
            text = f"  {kind:6} step {step_seconds * 1e3:8.2f} ms, of which communication {communication * 1e3:7.2f} ms"
            if points:
                text += f" (formula {ring_seconds(figures['latency'], figures['bandwidth'], ranks, size) * 1e3:.2f} ms)"
            print(f"{text}, {speed:.2f} times the rows per second of {first_figures['ranks']} ranks")
    write_results(
        options.json, {f"{figures['ranks']} ranks, seconds": figure_rows(figures) for figures in runs}, ["numpy"]
    )


if __name__ == "__main__":
    main()
