"""Measures how fast tensors of 16 and of a million elements are made.

Each row makes a tensor of 16 or of a million elements, and compares the op with the native function that makes the same
one. A row is left out where the library has no such function. NumPy computes the samples of `linspace`, `logspace` and
`geomspace` and the windows in float64 for all backends, so their native calls do other work: those of PyTorch and MLX
compute in float32. `benchmarks/pairs.py` explains the columns.
"""

import math
import re
from typing import Any

import numpy as np
from pairs import (
    Call,
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

SIZES = (16, 1_000_000)


def call_pairs(backend: str, size: int, x: Any, host: np.ndarray) -> dict[str, tuple[Call | None, Call]]:
    """Returns the native call, or None, and the op, by title.

    Args:
        backend: the name of the backend.
        size: the number of elements.
        x: a square matrix of float32.
        host: the same as an array of NumPy.
    """
    n, side, vector = library(backend), len(x), x.reshape(-1)[: len(x)]
    windows: dict[str, Any] = {}
    for name in ("hanning", "hamming", "blackman", "bartlett"):
        windows[name] = getattr(n, name, None)
        if backend == "torch":
            window = getattr(n, f"{name.replace('ning', 'n')}_window")
            windows[name] = lambda size, window=window: window(size, periodic=False)
    single: Any = {"dtype": n.float32} if backend == "numpy" else {}
    copy_function = n.tensor if backend == "torch" else n.array
    copy = None if backend == "mlx" else True  # MLX copies every array of NumPy
    pairs: dict[str, tuple[Call | None, Call]] = {
        "zeros(n)": (lambda: n.zeros((size,), **single), lambda: ops.zeros((size,))),
        "ones(n)": (lambda: n.ones((size,), **single), lambda: ops.ones((size,))),
        "full(n, 3.0)": (lambda: n.full((size,), 3.0, **single), lambda: ops.full((size,), 3.0)),
        "zeros_like(x)": (lambda: n.zeros_like(x), lambda: ops.zeros_like(x)),
        "ones_like(x)": (lambda: n.ones_like(x), lambda: ops.ones_like(x)),
        "full_like(x, 3.0)": (
            None if backend == "mlx" else lambda: n.full_like(x, 3.0),
            lambda: ops.full_like(x, 3.0),
        ),
        "eye(m)": (lambda: n.eye(side, **single), lambda: ops.eye(side)),
        "tri(m)": (
            None if backend == "torch" else lambda: n.tri(side, **single),
            lambda: ops.tri(side),
        ),
        "tril(x)": (lambda: n.tril(x), lambda: ops.tril(x)),
        "triu(x, 1)": (lambda: n.triu(x, 1), lambda: ops.triu(x, 1)),
        "diag(x)": (lambda: n.diag(x), lambda: ops.diag(x)),
        "diag(vector)": (lambda: n.diag(vector), lambda: ops.diag(vector)),
        "arange(n)": (lambda: n.arange(0, size, 1, dtype=n.int64), lambda: ops.arange(size)),
        "arange(n, dtype='float32')": (
            lambda: n.arange(0, size, 1, dtype=n.float32),
            lambda: ops.arange(size, dtype="float32"),
        ),
        "arange(0.0, n, 1.0)": (
            lambda: n.arange(0.0, size, 1.0, dtype=n.float32),
            lambda: ops.arange(0.0, float(size), 1.0),
        ),
        "linspace(0, 1, n)": (lambda: n.linspace(0, 1, size, **single), lambda: ops.linspace(0, 1, size)),
        "logspace(0, 1, n)": (
            None if backend == "mlx" else lambda: n.logspace(0, 1, size, **single),
            lambda: ops.logspace(0, 1, size),
        ),
        "geomspace(1, 9, n)": (
            (lambda: n.geomspace(1, 9, size, **single)) if backend == "numpy" else None,
            lambda: ops.geomspace(1, 9, size),
        ),
        "meshgrid(v, v)": (
            lambda: n.meshgrid(vector, vector, indexing="ij"),
            lambda: ops.meshgrid(vector, vector, indexing="ij"),
        ),
        "convert_to_tensor(host)": (lambda: copy_function(host), lambda: ops.convert_to_tensor(host, copy=copy)),
    }
    for name, window in windows.items():
        ours = getattr(ops, name)
        native = None if window is None else lambda window=window: window(size)
        pairs[f"{name}(n)"] = native, lambda ours=ours: ours(size)
    return pairs


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(table_head(backend))
    for size in SIZES:
        side = math.isqrt(size)
        host = np.random.default_rng(0).standard_normal((side, side)).astype(np.float32)
        for title, (native, ours) in call_pairs(backend, size, ops.convert_to_tensor(host), host).items():
            row = f"{title}, {size}"
            if native is not None and re.search(options.pattern, f"{backend} {row}"):
                theirs, mine = evaluating_call(backend, native), evaluating_call(backend, ours)
                figures[row] = time_pair(theirs, mine, options.rounds, turn=0.002, most=options.seconds)
                print(table_line(row, figures[row]), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    arguments = make_parser(__doc__, 25)
    arguments.add_argument("--seconds", type=float, default=2.0, help="after this time a row begins no further round")
    measure_each(arguments.parse_args(), measure)


if __name__ == "__main__":
    main()
