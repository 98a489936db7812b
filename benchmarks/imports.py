"""Measures the processor time of `from emberharmony import ops` after the import of the backend's library.

Each process imports the library first, and then `ops` with this backend named; the checkouts take turns. The ratio is
that of both imports to the first one, by their least times. `--beside` names another checkout to compare with.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from pairs import MODULES, alone, installed_backends, parser, write

PROGRAM = """
import time
start = time.process_time()
import {library}
middle = time.process_time()
from emberharmony import ops
print(middle - start, time.process_time() - middle, ops.__file__)
"""


def seconds(backend: str, checkout: Path) -> tuple[float, float]:
    """Returns the processor time of both imports in a process of its own, with bytecode."""
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", PROGRAM.format(library=MODULES[backend])]
    # Python looks first into the folder in which it starts.
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=checkout)
    native, ours, file = done.stdout.split(maxsplit=2)
    assert Path(file).is_relative_to(checkout), file
    return float(native), float(ours)


def measure(backend: str, checkouts: list[Path], rounds: int) -> dict[str, dict[str, float]]:
    """Returns the figures of a backend by checkout, in milliseconds."""
    times: dict[Path, list[tuple[float, float]]] = {checkout: [] for checkout in checkouts}
    for checkout in checkouts:
        seconds(backend, checkout)  # writes the bytecode
    for i in range(rounds):
        for checkout in checkouts[:: 1 if i % 2 else -1]:
            times[checkout].append(seconds(backend, checkout))
    figures = {}
    for checkout, pairs in times.items():
        native, ours = zip(*pairs, strict=True)
        least, added = 1000 * min(native), 1000 * min(ours)
        figures[checkout.name] = row = {"native": least, "added": added, "ratio": (least + added) / least}
        text = f"added {added:6.1f} (median {1000 * median(ours):6.1f}), ratio {row['ratio']:.2f}"
        print(f"{backend:6} {checkout.name:14} native {least:7.1f} ms, {text}", flush=True)
    return figures


def main() -> None:
    """Measures and prints one row for each backend and checkout."""
    options_parser = parser(__doc__, 15)
    options_parser.add_argument("--beside", type=Path, action="append", default=[], help="another checkout")
    options = options_parser.parse_args()
    checkouts = [Path(__file__).parents[1], *(path.resolve() for path in options.beside)]
    backends = installed_backends(options.backend)
    write(options.json, {name: measure(name, checkouts, options.rounds) for name in backends}, backends)


if __name__ == "__main__":
    alone()
    main()
