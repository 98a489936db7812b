"""Measures training steps and steps of optimizers over 100 parameters, beside `torch.nn` and `mlx.nn`.

The rows are training steps (`benchmarks/training.py`), and steps of optimizers over 100 parameters: small ones (up to
400 elements), mixed ones (up to 65,536) and large ones (4,096 to 262,144).
The native call is the step of `torch.optim` with `foreach=True`, in the same process, and for MLX also that of
`mlx.optimizers`, whose results are computed too. Gradients are the same in all steps. NumPy has no optimizers, so it is
compared with PyTorch. There SGD of large parameters is measured by hand too, with all blocks and calls made before.

`benchmarks/pairs.py` explains the columns.
"""

import importlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import starmap
from operator import call
from typing import Any, NamedTuple

import numpy as np
import training
from pairs import (
    Call,
    installed_backends,
    library,
    make_parser,
    measure_each,
    restart_with_one_thread,
    table_head,
    table_line,
    time_pair,
)

from emberharmony import Parameter, ops, optim

COUNT = 100
SIZES: dict[str, Callable[[np.random.Generator], tuple[int, ...]]] = {
    "small": lambda rng: tuple(rng.integers(1, 21, size=rng.integers(1, 3)).tolist()),
    "mixed": lambda rng: tuple((2 ** rng.integers(0, 9, size=rng.integers(1, 3))).tolist()),
    "large": lambda rng: (256, int(2 ** rng.integers(4, 11))),
}
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "AdamW": ("AdamW", {}),
    "SGD": ("SGD", {"lr": 1e-3}),
    "SGD with momentum": ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    "Adam": ("Adam", {}),
    "RMSprop": ("RMSprop", {}),
    "Lion": ("Lion", {}),
}
MLX_OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"learning_rate": 1e-3},
    "RMSprop": {"learning_rate": 1e-2, "alpha": 0.99},
    "Lion": {"learning_rate": 1e-4},
}
"""Options of `mlx.optimizers` where its defaults differ; Adam gets the rate 1e-3, and corrects the bias."""

Arrays = list[np.ndarray[Any, Any]]


class Row(NamedTuple):
    """A pair of calls to compare: its title, what the native library does, and what ours does."""

    title: str
    native: Call
    ours: Call


def random_values(size: str) -> tuple[Arrays, Arrays]:
    """Returns the values of parameters, and their gradients."""
    rng = np.random.default_rng(0)
    shapes = [SIZES[size](rng) for _ in range(COUNT)]
    values, gradients = ([rng.standard_normal(shape).astype(np.float32) for shape in shapes] for _ in range(2))
    return values, gradients


def torch_step(kind: str, options: dict[str, Any], values: Arrays, gradients: Arrays) -> Call | None:
    """Returns the step of an optimizer of PyTorch, if it has it."""
    torch = library("torch")
    if not hasattr(torch.optim, kind):
        return None
    cells = [torch.tensor(value, requires_grad=True) for value in values]
    for cell, gradient in zip(cells, gradients, strict=True):
        cell.grad = torch.tensor(gradient)
    step: Call = getattr(torch.optim, kind)(cells, **options, foreach=True).step
    return step


def mlx_step(kind: str, options: dict[str, Any], values: Arrays, gradients: Arrays) -> Call:
    """Returns the step of an optimizer of MLX, which also computes the results."""
    mx, mlx_optimizers = library("mlx"), importlib.import_module("mlx.optimizers")
    mlx_options = {"learning_rate": 1e-3, "bias_correction": True} if kind.startswith("Adam") else MLX_OPTIONS[kind]
    shared_options = {name: x for name, x in options.items() if name != "lr"}
    optimizer = getattr(mlx_optimizers, kind)(**mlx_options, **shared_options)
    state = {"params": {str(i): mx.array(value) for i, value in enumerate(values)}}
    gradient_by_index = {str(i): mx.array(gradient) for i, gradient in enumerate(gradients)}
    optimizer.init(state["params"])
    mx.eval(state, gradient_by_index)

    def step() -> None:
        state["params"] = optimizer.apply_gradients(gradient_by_index, state["params"])
        mx.eval(state["params"], optimizer.state)

    return step


def numpy_step(rate: float, values: Arrays, gradients: Arrays, block: int = 2**17) -> Call:
    """Returns the step of SGD by hand in NumPy, over blocks, with all calls made before."""
    factor, memory = np.asarray(rate, np.float32), np.empty(block, np.float32)
    calls: list[tuple[Any, ...]] = []
    for value, gradient in zip(values, gradients, strict=True):
        parameter, flat_gradient = value.flatten(), gradient.flatten()
        for start in range(0, value.size, block):
            block_slice = slice(start, start + block)
            product = memory[: parameter[block_slice].size]
            calls.append((np.multiply, flat_gradient[block_slice], factor, product))
            calls.append((np.subtract, parameter[block_slice], product, parameter[block_slice]))
    return lambda: deque(starmap(call, calls), 0)


def our_step(kind: str, options: dict[str, Any], values: Arrays, gradients: Arrays) -> Call:
    """Returns the step of an optimizer of ours on the active backend."""
    cells = [Parameter(value) for value in values]
    for cell, gradient in zip(cells, gradients, strict=True):
        cell.grad = ops.convert_to_tensor(gradient)
    ops.eval([cell.grad for cell in cells])
    optimizer = getattr(optim, kind)(cells, **options)
    return lambda: optimizer.step(clear=False)


def optimizer_rows(backend: str) -> Iterator[Row]:
    """Yields the steps of optimizers."""
    for size in SIZES:
        for name, (kind, options) in OPTIMIZERS.items():
            values, gradients = random_values(size)
            ours = our_step(kind, options, values, gradients)
            title = f"{name}, {COUNT} {size}"
            native = torch_step(kind, options, values, gradients) if installed_backends(["torch"]) else None
            if native is not None:
                yield Row(f"{title}, torch", native, ours)
                if (backend, size, name) == ("numpy", "large", "SGD"):
                    yield Row(f"the same by hand in NumPy, {size}", native, numpy_step(1e-3, values, gradients))
            if backend == "mlx":
                yield Row(f"{title}, mlx", mlx_step(kind, options, values, gradients), ours)


def training_rows(backend: str) -> Iterator[Row]:
    """Yields training steps of small models."""
    yield from (Row(*row_fields) for row_fields in training.training_rows(backend))


KINDS: tuple[Callable[[str], Iterator[Row]], ...] = (training_rows, optimizer_rows)
"""What yields the rows of a backend."""


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(table_head(backend))
    for rows in KINDS:
        for row in rows(backend):
            if re.search(options.pattern, f"{backend} {row.title}"):
                figures[row.title] = time_pair(row.native, row.ours, options.rounds, most=10)
                print(table_line(row.title, figures[row.title]), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    measure_each(make_parser(__doc__, 20).parse_args(), measure, *installed_backends(["torch"]))


if __name__ == "__main__":
    main()
