"""Fits a linear model by gradient descent, on data that need not fit into memory.

Run it on any backend: `EMBERHARMONY_BACKEND=torch python examples/least_squares.py`. On Dask the rows are made and used
block by block, so that `EMBERHARMONY_BACKEND=dask python examples/least_squares.py 10000000` takes 4 GB of data through
a few blocks of memory; Dask's option `array.chunk-size` (or DASK_ARRAY__CHUNK_SIZE) is the size of a block.
"""

import sys
from typing import Any

from emberharmony import ops

Tensor = Any
COLUMNS = 100


def data(rows: int, noise: float = 0.17) -> tuple[Tensor, Tensor, Tensor]:
    """Returns numbers from -1 to 1 (rows, COLUMNS), what a linear model makes of them (rows,), and its weights."""
    ops.random.seed(0)
    table = ops.random.uniform((rows, COLUMNS + 1), -1.0, 1.0)
    x, rest = table[:, :COLUMNS], table[:, COLUMNS]
    weights = ops.linspace(-1.0, 1.0, COLUMNS)
    return x, x @ weights + noise * rest, weights


def loss(weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Returns the mean squared error of a linear model."""
    return ops.mean(ops.square(x @ weights - y))


def fit(x: Tensor, y: Tensor, steps: int = 3, rate: float = 1.5) -> tuple[Tensor, list[Tensor]]:
    """Returns the weights after steps of gradient descent, and the loss before each step.

    The second derivative of the loss is twice the variance of the columns, 2/3, so a rate of 1.5 is that of Newton.
    """
    weights, losses = ops.zeros((x.shape[1],)), []
    for _ in range(steps):
        value, gradient = ops.value_and_grad(loss)(weights, x, y)
        weights = weights - rate * gradient
        ops.eval(value, weights)  # on Dask, one pass over the data
        losses.append(value)
    return weights, losses


if __name__ == "__main__":
    x, y, true = data(int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 20_000)
    weights, losses = fit(x, y)
    error, first, last = map(ops.to_numpy, (ops.max(ops.absolute(weights - true)), losses[0], losses[-1]))
    print(f"{ops.get_backend()}: loss {first:.3f} before, {last:.4f} in the last step; largest error {error:.4f}")
