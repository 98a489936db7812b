"""
A Gaussian process with learned scales
======================================

The negative log-likelihood of a Gaussian process is minimised over the logarithms of its length scale, amplitude and
noise, by its gradient. Then the process is conditioned on the observations.
"""

import math

import matplotlib.pyplot as plt

from emberharmony import ops, optim

generator = ops.random.Generator(3)
x = ops.random.uniform((25,), 0.0, 6.0, generator=generator)
y = ops.add(ops.sin(ops.multiply(x, 1.5)), ops.random.normal((25,), stddev=0.15, generator=generator))


def kernel(a, b, scales):
    """Returns the covariance of the values at a with those at b."""
    distance = ops.divide(ops.subtract(ops.expand_dims(a, 1), ops.expand_dims(b, 0)), ops.exp(scales[0]))
    return ops.multiply(ops.exp(ops.multiply(ops.square(distance), -0.5)), ops.exp(ops.multiply(scales[1], 2.0)))


def covariance(scales):
    """Returns the covariance of the observations."""
    noise = ops.add(ops.exp(ops.multiply(scales[2], 2.0)), 1e-4)
    return ops.add(kernel(x, x, scales), ops.multiply(ops.eye(25), noise))


def loss(scales):
    """Returns the negative log-likelihood."""
    factor = ops.linalg.cholesky(covariance(scales))
    white = ops.linalg.solve_triangular(factor, ops.expand_dims(y, 1), lower=True)
    return ops.add(ops.multiply(ops.sum(ops.square(white)), 0.5), ops.sum(ops.log(ops.linalg.diagonal(factor))))


scales = ops.array([0.0, 0.0, math.log(0.5)])
adam = optim.Adam(lr=0.05)
state = adam.init(scales)
for _ in range(120):
    scales, state = adam.update(ops.grad(loss)(scales), state, scales)

grid = ops.linspace(0.0, 6.0, 200)
between = kernel(grid, x, scales)
weights = ops.linalg.solve(covariance(scales), ops.matrix_transpose(between))
mean = ops.matmul(ops.matrix_transpose(weights), y)
variance = ops.subtract(
    ops.exp(ops.multiply(scales[1], 2.0)), ops.sum(ops.multiply(ops.matrix_transpose(between), weights), axis=0)
)
width = ops.multiply(ops.sqrt(ops.maximum(variance, 0.0)), 2.0)

low, high = ops.to_numpy(ops.subtract(mean, width)), ops.to_numpy(ops.add(mean, width))
plt.fill_between(ops.to_numpy(grid), low, high, alpha=0.25, label="two standard deviations")
plt.plot(ops.to_numpy(grid), ops.to_numpy(mean), label="mean")
plt.plot(ops.to_numpy(x), ops.to_numpy(y), "k.", label="observations")
plt.legend()
plt.show()
