"""Fits a neural ordinary differential equation: a network learns the flow of a spiral, integrated by `ops.scan`.

Run it on any backend: `EMBERHARMONY_BACKEND=numpy python examples/neural_ode.py`.

Source: Chen et al., "Neural Ordinary Differential Equations" (2018). Unlike there, gradients are computed through the
steps of the integration, without the adjoint method.
"""

from collections.abc import Callable
from typing import Any

from emberharmony import ops

Tensor = Any
Parameters = dict[str, Tensor]
Flow = Callable[[Tensor], Tensor]


def spiral(x: Tensor) -> Tensor:
    """Returns the velocity of the true flow at points (n, 2): a rotation to the left, slowly inwards."""
    return ops.matmul(x, ops.array([[-0.1, 1.0], [-1.0, -0.1]]))


def initial(hidden: int, seed: int) -> Parameters:
    """Returns small random weights, which are the same on every backend."""
    generator = ops.random.Generator(seed)
    return {
        "into": ops.random.normal((2, hidden), stddev=0.5, generator=generator),
        "out": ops.random.normal((hidden, 2), stddev=0.1, generator=generator),
    }


def learned(p: Parameters) -> Flow:
    """Returns the flow whose velocity is a network with one hidden layer."""
    return lambda x: ops.matmul(ops.tanh(ops.matmul(x, p["into"])), p["out"])


def trajectory(flow: Flow, start: Tensor, steps: int, dt: float = 0.1) -> Tensor:
    """Returns the positions of points (n, 2) after each step of the midpoint rule, of shape (steps, n, 2)."""

    def step(x: Tensor, _: Any) -> tuple[Tensor, Tensor]:
        middle = ops.add(x, ops.multiply(flow(x), dt / 2))
        x = ops.add(x, ops.multiply(flow(middle), dt))
        return x, x

    return ops.scan(step, start, length=steps)[1]


def loss(p: Parameters, start: Tensor, wanted: Tensor) -> Tensor:
    """Returns the mean squared error of the positions against the true trajectories."""
    return ops.mean(ops.square(ops.subtract(trajectory(learned(p), start, wanted.shape[0]), wanted)))


def train(
    p: Parameters, start: Tensor, wanted: Tensor, steps: int = 60, rate: float = 0.1
) -> tuple[Parameters, Tensor]:
    """Returns the parameters after gradient descent, and the last loss."""
    value_and_grad = ops.value_and_grad(loss)
    value = loss(p, start, wanted)
    for _ in range(steps):
        value, gradients = value_and_grad(p, start, wanted)
        p = ops.tree_map(lambda w, g: ops.subtract(w, ops.multiply(g, rate)), p, gradients)
        ops.eval(p)
    return p, value


if __name__ == "__main__":
    start = ops.array([[1.0, 0.0], [0.0, 1.5], [-0.5, -0.5]])
    wanted = trajectory(spiral, start, 15)
    p = initial(16, seed=0)
    before = ops.to_numpy(loss(p, start, wanted))
    p, value = train(p, start, wanted)
    print(f"{ops.get_backend()}: mean squared distance {before:.4f} before, {ops.to_numpy(value):.5f} after training")
