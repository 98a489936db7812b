"""Fits a Gaussian process by maximum marginal likelihood, with the gradient of a Cholesky decomposition.

Run it on any backend: `EMBERHARMONY_BACKEND=torch python examples/gaussian_process.py`.

Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), algorithm 2.1.
"""

import math
from typing import Any

from emberharmony import ops

Tensor = Any


def samples(count: int, noise: float, seed: int) -> tuple[Tensor, Tensor]:
    """Returns points x from 0 to 6 and sin(x) with normal noise, both of shape (count,) and in float64."""
    generator = ops.random.Generator(seed)
    x = ops.random.uniform((count,), 0.0, 6.0, dtype="float64", generator=generator)
    return x, ops.sin(x) + ops.random.normal((count,), stddev=noise, dtype="float64", generator=generator)


def kernel(logs: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """Returns the squared-exponential covariance of x1 (n,) and x2 (m,), of shape (n, m).

    Args:
        logs: the logarithms of length scale, amplitude and standard deviation of the noise.
    """
    length, amplitude = ops.exp(logs[0]), ops.exp(logs[1])
    apart = (ops.expand_dims(x1, 1) - ops.expand_dims(x2, 0)) / length
    return ops.square(amplitude) * ops.exp(-0.5 * ops.square(apart))


def factor(logs: Tensor, x: Tensor) -> Tensor:
    """Returns the lower Cholesky factor of the covariance of the noisy samples at x."""
    noise = ops.square(ops.exp(logs[2]))
    return ops.cholesky(kernel(logs, x, x) + noise * ops.eye(x.shape[0], dtype="float64"))


def negative_log_likelihood(logs: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Returns the negative log marginal likelihood, divided by the number of samples."""
    low = factor(logs, x)
    whitened = ops.solve_triangular(low, y, lower=True)
    spread = ops.sum(ops.log(ops.diagonal(low)))
    total = 0.5 * ops.sum(ops.square(whitened)) + spread
    return total / x.shape[0] + 0.5 * math.log(2 * math.pi)


def fit(x: Tensor, y: Tensor, steps: int = 60, rate: float = 0.3) -> tuple[Tensor, Tensor]:
    """Returns the logarithms of length scale, amplitude and noise after gradient descent, and the last loss."""
    logs = ops.array([0.0, 0.0, -1.0], dtype="float64")
    value_and_grad = ops.value_and_grad(negative_log_likelihood)
    value = negative_log_likelihood(logs, x, y)
    for _ in range(steps):
        value, gradient = value_and_grad(logs, x, y)
        logs = logs - rate * gradient
        ops.eval(logs)
    return logs, value


def predict(logs: Tensor, x: Tensor, y: Tensor, places: Tensor) -> Tensor:
    """Returns the predicted mean at `places`, given the samples (x, y)."""
    low = factor(logs, x)
    weights = ops.solve_triangular(ops.transpose(low), ops.solve_triangular(low, y, lower=True))
    return kernel(logs, places, x) @ weights


if __name__ == "__main__":
    x, y = samples(40, noise=0.1, seed=0)
    logs, value = fit(x, y)
    places = ops.linspace(0.0, 6.0, 25, dtype="float64")
    error = ops.to_numpy(ops.max(ops.absolute(predict(logs, x, y, places) - ops.sin(places))))
    length, amplitude, noise = ops.to_numpy(ops.exp(logs)).tolist()
    print(f"{ops.get_backend()}: length {length:.2f}, amplitude {amplitude:.2f}, noise {noise:.3f} of 0.1, ", end="")
    print(f"negative log-likelihood {ops.to_numpy(value):.4f}, largest error {error:.3f}")
