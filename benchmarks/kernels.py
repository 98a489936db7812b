"""Measures how fast an op is on 4 to 4 million elements, in several dtypes.

The ops are products, reductions and elementwise ops on tensors of 4 to 4 million elements, in float32, float64, float16
and int32. Each row holds an op against the native function of the library. float32 runs in all sizes, the other dtypes
in two; `--all` adds the rest, and large products. A row is left out where the library has no such function or dtype.

`benchmarks/pairs.py` explains the columns. To show that a change makes a kernel faster, write the figures of both
versions by `--json` and compare the ratios of their rows.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pairs import (
    evaluating_call,
    library,
    make_parser,
    measure_each,
    restart_with_one_thread,
    table_head,
    table_line,
    time_pair,
)

from emberharmony import ops

SIZES = (4, 1024, 65536, 4194304)
FEWER = (4, 65536)
LARGEST_PRODUCT = 65536
DTYPES = ("float32", "float64", "float16", "int32")
Pair = tuple[Callable[..., Any], Callable[..., Any]]


def call_pairs(backend: str) -> dict[str, Pair]:
    """Returns the native function and the op by title; both take two matrices of one shape."""
    n = library(backend)
    largest = n.amax if backend == "torch" else n.max
    by_title: dict[str, Pair] = {
        f"sum(x, {axis})": (lambda x, y, axis=axis: n.sum(x, axis), lambda x, y, axis=axis: ops.sum(x, axis))
        for axis in (0, -1)
    }
    by_title["sum(x)"] = lambda x, y: n.sum(x), lambda x, y: ops.sum(x)
    by_title["mean(x, -1)"] = lambda x, y: n.mean(x, -1), lambda x, y: ops.mean(x, -1)
    by_title["max(x, -1)"] = lambda x, y: largest(x, -1), lambda x, y: ops.max(x, -1)
    by_title["add(x, y)"] = n.add, ops.add
    by_title["exp(x)"] = lambda x, y: n.exp(x), lambda x, y: ops.exp(x)
    by_title["tanh(x)"] = lambda x, y: n.tanh(x), lambda x, y: ops.tanh(x)
    by_title["where(x, x, y)"] = lambda x, y: n.where(x > 0, x, y), lambda x, y: ops.where(ops.greater(x, 0), x, y)
    by_title["matmul(x, y)"] = n.matmul, ops.matmul
    return by_title


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(table_head(backend))
    for title, (native, ours) in call_pairs(backend).items():
        for dtype in DTYPES:
            for size in options.size or SIZES:
                row = f"{title}, {dtype}, {size}"
                is_long = dtype != "float32" and size not in FEWER
                left_out = (is_long or (title == "matmul(x, y)" and size > LARGEST_PRODUCT)) and not options.all
                if left_out or not re.search(options.pattern, f"{backend} {row}"):
                    continue
                side = math.isqrt(size)
                random = np.random.default_rng(0)
                x, y = (ops.convert_to_tensor(random.uniform(0, 3, (side, side)).astype(dtype)) for _ in range(2))
                theirs, mine = (evaluating_call(backend, partial(call, x, y)) for call in (native, ours))
                try:
                    theirs()
                except (TypeError, ValueError, RuntimeError, NotImplementedError):
                    continue  # the library has no such function for the dtype
                figures[row] = time_pair(theirs, mine, options.rounds, turn=0.002, most=options.seconds)
                print(table_line(row, figures[row]), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    arguments = make_parser(__doc__, 15)
    arguments.add_argument("--size", type=int, action="append", help="only this number of elements (repeatable)")
    arguments.add_argument("--seconds", type=float, default=0.25, help="after this time a row begins no further round")
    arguments.add_argument("--all", action="store_true", help="every dtype in every size, and large products")
    measure_each(arguments.parse_args(), measure)


if __name__ == "__main__":
    main()
