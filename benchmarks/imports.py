"""Measures the processor time of `from emberharmony import ops` after the import of the backend's library.

Each process imports the library first, and then `ops` with this backend named, and calls three ops, whose first call
loads the backend; the checkouts take turns. The ratio is that of both imports to the first one, by their least times.
`--beside` names another checkout to compare with.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from pairs import MODULES, installed_backends, make_parser, restart_with_one_thread, write_results

PROGRAM = """
import time
start = time.process_time()
import {library}
x = {library}.ones((2, 2))
middle = time.process_time()
from emberharmony import ops
end = time.process_time()
ops.sum(ops.matmul(ops.add(x, x), x))
print(middle - start, end - middle, time.process_time() - middle, ops.__file__)
"""


def import_seconds(backend: str, checkout: Path) -> tuple[float, float, float]:
    """Returns the processor time of both imports, and of the second with three calls, in a process of its own."""
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", PROGRAM.format(library=MODULES[backend])]
    # Python looks first into the folder in which it starts.
    completed_process = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=checkout
    )
    native_seconds, added_seconds, call_seconds, file = completed_process.stdout.split(maxsplit=3)
    assert Path(file).is_relative_to(checkout), file
    return float(native_seconds), float(added_seconds), float(call_seconds)


def measure(backend: str, checkouts: list[Path], rounds: int) -> dict[str, dict[str, float]]:
    """Returns the figures of a backend by checkout, in milliseconds."""
    times: dict[Path, list[tuple[float, float, float]]] = {checkout: [] for checkout in checkouts}
    for checkout in checkouts:
        import_seconds(backend, checkout)  # writes the bytecode
    for i in range(rounds):
        for checkout in checkouts[:: 1 if i % 2 else -1]:
            times[checkout].append(import_seconds(backend, checkout))
    figures = {}
    for checkout, processes in times.items():
        columns = list(zip(*processes, strict=True))
        least, added, called = (1000 * min(column) for column in columns)
        figures[checkout.name] = {"native": least, "added": added, "ratio": (least + added) / least, "called": called}
        added_median, called_median = (1000 * median(column) for column in columns[1:])
        text = f"added {added:6.1f} (median {added_median:6.1f}), ratio {(least + added) / least:.2f}"
        text += f", with three calls {called:6.1f} (median {called_median:6.1f})"
        print(f"{backend:6} {checkout.name:14} native {least:7.1f} ms, {text}", flush=True)
    return figures


def main() -> None:
    """Measures and prints one row for each backend and checkout."""
    options_parser = make_parser(__doc__, 15)
    options_parser.add_argument("--beside", type=Path, action="append", default=[], help="another checkout")
    options = options_parser.parse_args()
    checkouts = [Path(__file__).parents[1], *(path.resolve() for path in options.beside)]
    backends = installed_backends(options.backend)
    write_results(options.json, {name: measure(name, checkouts, options.rounds) for name in backends}, backends)


if __name__ == "__main__":
    restart_with_one_thread()
    main()
