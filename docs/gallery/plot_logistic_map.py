"""
The logistic map
================

x ← r x (1 − x) for 1,200 values of r at once: from a fixed point over doubled periods to chaos.
"""

import matplotlib.pyplot as plt

from emberharmony import ops

r = ops.linspace(2.5, 4.0, 1200)
x = ops.full((1200,), 0.5)
seen = []
for step in range(500):
    x = ops.multiply(ops.multiply(r, x), ops.subtract(1.0, x))
    if step >= 420:
        seen.append(x)
rates = ops.broadcast_to(r, (len(seen), 1200))

plt.plot(ops.to_numpy(ops.ravel(rates)), ops.to_numpy(ops.concatenate(seen)), ",", color="black", alpha=0.4)
plt.xlabel("r")
plt.ylabel("x after many steps")
plt.show()
