"""
The Mandelbrot set
==================

Iterates z ← z² + c for all points of a plane at once. `ops.where` keeps the points that have left the disk of radius
2 where they were, in the place of a loop with `if`.
"""

import matplotlib.pyplot as plt

from emberharmony import ops

real, imaginary = ops.meshgrid(ops.linspace(-2.2, 0.8, 480), ops.linspace(-1.2, 1.2, 384))
c = ops.add(ops.cast(real, "complex64"), ops.multiply(imaginary, 1j))
z = ops.zeros_like(c)
steps = ops.zeros(c.shape)
for _ in range(60):
    inside = ops.less(ops.absolute(z), 2.0)
    z = ops.where(inside, ops.add(ops.square(z), c), z)
    steps = ops.add(steps, ops.cast(inside, "float32"))

plt.imshow(ops.to_numpy(steps), extent=(-2.2, 0.8, -1.2, 1.2), cmap="magma", origin="lower")
plt.title("Steps until |z| exceeds 2")
plt.show()
