"""Fits a logistic regression by gradient descent, with the gradients from `ops.value_and_grad`.

Run it on any backend: `EMBERHARMONY_BACKEND=torch python examples/logistic_regression.py`.
"""

from typing import Any

from emberharmony import ops

Tensor = Any


def clouds(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Returns points (2 * count, 2), drawn from two overlapping normal distributions, and their classes, 0 or 1."""
    generator = ops.random.Generator(seed)
    low = ops.random.normal((count, 2), mean=-1.0, generator=generator)
    high = ops.random.normal((count, 2), mean=1.0, generator=generator)
    return ops.concatenate([low, high]), ops.concatenate([ops.zeros((count,)), ops.ones((count,))])


def scores(parameters: dict[str, Tensor], points: Tensor) -> Tensor:
    """Returns the log-odds of class 1 for each point."""
    return points @ parameters["weights"] + parameters["bias"]


def loss(parameters: dict[str, Tensor], points: Tensor, classes: Tensor) -> Tensor:
    """Returns the mean negative log-likelihood."""
    odds = scores(parameters, points)
    return ops.mean(ops.softplus(odds) - classes * odds)


def fit(points: Tensor, classes: Tensor, steps: int = 200, rate: float = 0.5) -> tuple[dict[str, Tensor], Tensor]:
    """Returns the parameters after gradient descent, and the last loss."""
    parameters = {"weights": ops.zeros((2,)), "bias": ops.zeros(())}
    value_and_grad = ops.value_and_grad(loss)
    value = loss(parameters, points, classes)
    for _ in range(steps):
        value, gradients = value_and_grad(parameters, points, classes)
        parameters = ops.tree_map(lambda p, g: p - rate * g, parameters, gradients)
        ops.eval(parameters)
    return parameters, value


def accuracy(parameters: dict[str, Tensor], points: Tensor, classes: Tensor) -> Tensor:
    """Returns the fraction of points that are classified correctly."""
    return ops.mean(ops.equal(scores(parameters, points) > 0, classes > 0))


if __name__ == "__main__":
    points, classes = clouds(200, seed=0)
    parameters, value = fit(points, classes)
    share = ops.to_numpy(accuracy(parameters, points, classes))
    print(f"{ops.get_backend()}: loss {ops.to_numpy(value):.4f}, {share:.1%} of the points on the right side")
