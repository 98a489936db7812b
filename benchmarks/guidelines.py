"""Measures the loop over rows and the vectorised form of docs/guidelines.md.

`python -m benchmarks guidelines` runs the loop and the vectorised form in turn on every backend, and prints the ratio
of their fastest runs. Beside it is the noise floor: the ratio of the vectorised form to itself.
"""

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pairs import make_parser, write_results

from emberharmony import ops

PAGE = Path(__file__).parents[1] / "docs" / "guidelines.md"
ROWS, ROUNDS = 256, 30
Function = Callable[[Any], Any]


def row_functions() -> list[Function]:
    """Returns the loop and the vectorised form, read from the page."""
    blocks = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "normalise_rows" in block
    ]
    forms: list[Function] = []
    for block in blocks:
        space: dict[str, Any] = {}
        exec(compile(block.partition("\nprint(")[0], str(PAGE), "exec"), space)
        forms.append(space["normalise_rows"])
    return forms


def call_seconds(function: Function, x: object) -> float:
    """Returns the time of one call in seconds, with its result computed."""
    # An untimed call first, so that the caches do not depend on what ran before.
    ops.eval(function(x))
    start = time.perf_counter()
    ops.eval(function(x))
    return time.perf_counter() - start


def main() -> None:
    """Prints a line for each backend."""
    options = make_parser(__doc__, ROUNDS).parse_args()
    # Read when a backend is loaded. With several threads the times would depend on the load of the machine.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    loop, whole_array = row_functions()
    print(f"Python {sys.version.split()[0]}; {ROWS} rows of {ROWS} float32; {options.rounds} rounds in turn")
    figures = {}
    for backend, backend_facts in ops.available_backends().items():
        with ops.use_backend(backend):
            x = ops.random.normal((ROWS, ROWS))
            ops.eval(x)
            runs = [
                (call_seconds(loop, x), call_seconds(whole_array, x), call_seconds(whole_array, x))
                for _ in range(options.rounds)
            ]
            slow, fast, again = (min(column) for column in zip(*runs, strict=True))
            print(
                f"{backend:6} loop / whole {slow / fast:6.1f}   whole / whole {again / fast:5.2f}   "
                f"{backend_facts['version']}"
            )
            figures[backend] = {"normalise_rows": {"loop / whole": slow / fast, "whole / whole": again / fast}}
    write_results(options.json, figures, figures)


if __name__ == "__main__":
    main()
