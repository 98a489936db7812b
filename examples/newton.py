"""Minimizes Rosenbrock's function by Newton's method, with `ops.hessian` and its eigenvalues.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/newton.py`.
"""

from collections.abc import Callable
from typing import Any

from emberharmony import ops

Tensor = Any


def rosenbrock(x: Tensor) -> Tensor:
    """Returns Rosenbrock's function, a curved valley whose minimum, 0, is where all elements are 1."""
    ahead, behind = ops.get_item(x, slice(1, None)), ops.get_item(x, slice(None, -1))
    across = ops.square(ops.subtract(ahead, ops.square(behind)))
    return ops.sum(ops.add(ops.multiply(across, 100.0), ops.square(ops.subtract(1.0, behind))))


def minimize(function: Callable[[Tensor], Tensor], start: Tensor, steps: int = 50) -> tuple[Tensor, int]:
    """Returns a local minimum, and the number of steps after which the gradient vanished.

    A step that would increase the function is halved. In directions of negative curvature the step is reversed, so that
    it descends.
    """
    gradient, hessian = ops.grad(function), ops.hessian(function)
    x = ops.convert_to_tensor(start)
    for taken in range(steps):
        slope = gradient(x)
        if ops.to_numpy(ops.max(ops.absolute(slope))) < 1e-9:
            return x, taken
        curvatures, directions = ops.eigh(hessian(x))
        along = ops.divide(ops.matmul(ops.transpose(directions), slope), ops.maximum(ops.absolute(curvatures), 1e-6))
        step, height = ops.matmul(directions, along), function(x)
        while ops.to_numpy(ops.greater(function(ops.subtract(x, step)), height)):
            step = ops.multiply(step, 0.5)
        x = ops.subtract(x, step)
    return x, steps


if __name__ == "__main__":
    start = ops.array([-1.2, 1.0, 1.0], dtype="float64")
    minimum, steps = minimize(rosenbrock, start)
    print(f"{ops.get_backend()}: {ops.to_numpy(minimum).round(6).tolist()} after {steps} steps of Newton's method")
