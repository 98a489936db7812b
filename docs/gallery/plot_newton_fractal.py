"""
Newton's method in the plane
============================

Newton's method for z³ = 1, from each point of the complex plane. The colour says which of the three roots it finds.
"""

import matplotlib.pyplot as plt
import numpy as np

from emberharmony import ops

real, imaginary = ops.meshgrid(ops.linspace(-1.5, 1.5, 400), ops.linspace(-1.5, 1.5, 400))
z = ops.add(ops.cast(real, "complex64"), ops.multiply(imaginary, 1j))
for _ in range(30):
    z = ops.subtract(z, ops.divide(ops.subtract(ops.power(z, 3), 1.0), ops.multiply(ops.square(z), 3.0)))

roots = ops.convert_to_tensor(np.exp(2j * np.pi * np.arange(3) / 3).astype("complex64"))
nearest = ops.argmin(ops.absolute(ops.subtract(ops.expand_dims(z, -1), roots)), axis=-1)

plt.imshow(ops.to_numpy(nearest), extent=(-1.5, 1.5, -1.5, 1.5), cmap="viridis", origin="lower")
plt.title("The root that Newton's method finds")
plt.show()
