"""
Random walks
============

A thousand walks by `ops.cumsum`. A `Generator` gives the same numbers on every backend, so the picture is the same
too.
"""

import matplotlib.pyplot as plt

from emberharmony import ops

steps = ops.random.normal((1000, 200), generator=ops.random.Generator(7))
walks = ops.cumsum(steps, axis=1)
low, middle, high = ops.quantile(walks, ops.array([0.05, 0.5, 0.95]), axis=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(2, 1))
left.plot(ops.to_numpy(ops.transpose(walks[:30])), color="tab:blue", alpha=0.25, linewidth=0.8)
for line in (low, middle, high):
    left.plot(ops.to_numpy(line), "k--")
left.set(xlabel="step", title="30 walks, and the quantiles 5 %, 50 %, 95 %")
counts, edges = ops.histogram(walks[:, -1], bins=30)
right.stairs(ops.to_numpy(counts), ops.to_numpy(edges), fill=True)
right.set(xlabel="end", title="Where they end")
plt.show()
