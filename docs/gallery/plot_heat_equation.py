"""
The heat equation, and where the heat came from
===============================================

An explicit scheme for the heat equation on a ring. The gradient of a mismatch at the end with respect to the
*initial* temperature solves the inverse problem by gradient descent.
"""

import matplotlib.pyplot as plt

from emberharmony import ops


def flow(temperature, steps=60, rate=0.4):
    """Returns the temperature after some steps; the neighbours of the last point are the first ones."""
    for _ in range(steps):
        neighbours = ops.add(ops.roll(temperature, 1), ops.roll(temperature, -1))
        temperature = ops.add(temperature, ops.multiply(ops.subtract(neighbours, 2.0 * temperature), rate))
    return temperature


position = ops.linspace(0.0, 1.0, 100)
truth = ops.add(
    ops.exp(ops.multiply(ops.square(ops.subtract(position, 0.3)), -300.0)),
    ops.multiply(ops.exp(ops.multiply(ops.square(ops.subtract(position, 0.7)), -100.0)), 0.6),
)
observed = flow(truth)


def mismatch(start):
    """Returns the sum of the squared differences from what was observed."""
    return ops.sum(ops.square(ops.subtract(flow(start), observed)))


start = ops.zeros_like(truth)
gradient = ops.grad(mismatch)
for _ in range(150):
    start = ops.subtract(start, ops.multiply(gradient(start), 0.45))

for name, values in (("initial", truth), ("observed later", observed), ("recovered", start)):
    plt.plot(ops.to_numpy(position), ops.to_numpy(values), label=name, linestyle="--" if name == "recovered" else "-")
plt.xlabel("position")
plt.ylabel("temperature")
plt.legend()
plt.show()
