"""
Fitting a curve by its gradient
===============================

Five parameters of a damped oscillation are fitted to noisy values by Gauss-Newton steps, whose Jacobian `ops.jacfwd`
computes.
"""

import matplotlib.pyplot as plt

from emberharmony import ops

time = ops.linspace(0.0, 8.0, 120)


def model(p):
    """Returns the values of a damped oscillation for its five parameters."""
    phase = ops.add(ops.multiply(time, p[2]), p[3])
    return ops.add(ops.multiply(ops.multiply(ops.exp(ops.multiply(time, -p[1])), p[0]), ops.sin(phase)), p[4])


noise = ops.random.normal((120,), stddev=0.08, generator=ops.random.Generator(1))
values = ops.add(model(ops.array([1.5, 0.3, 2.2, 0.4, 0.2])), noise)

guess = ops.array([1.0, 0.1, 2.0, 0.0, 0.0])
p = guess
for _ in range(12):
    slope, rest = ops.jacfwd(model)(p), ops.subtract(values, model(p))
    normal = ops.add(ops.matmul(ops.matrix_transpose(slope), slope), ops.multiply(ops.eye(5), 1e-3))
    p = ops.add(p, ops.linalg.solve(normal, ops.matmul(ops.matrix_transpose(slope), rest)))

plt.plot(ops.to_numpy(time), ops.to_numpy(values), ".", label="measured")
plt.plot(ops.to_numpy(time), ops.to_numpy(model(guess)), ":", label="first guess")
plt.plot(ops.to_numpy(time), ops.to_numpy(model(p)), label="fitted")
plt.legend()
plt.show()
