"""
k-means
=======

Lloyd's algorithm: the nearest centre of each point by `ops.cdist`, the mean of each cluster by `ops.segment_sum`.
"""

import matplotlib.pyplot as plt

from emberharmony import ops

generator = ops.random.Generator(0)
places = ops.array([[0.0, 0.0], [4.0, 1.0], [1.0, 4.0], [5.0, 5.0]])
points = ops.add(ops.repeat(places, 80, axis=0), ops.random.normal((320, 2), stddev=0.7, generator=generator))

centres = ops.take(points, ops.array([0, 90, 170, 250]), axis=0)
for _ in range(10):
    nearest = ops.argmin(ops.cdist(points, centres), axis=1)
    counts = ops.segment_sum(ops.ones(320), nearest, num_segments=4)
    sums = ops.segment_sum(points, nearest, num_segments=4)
    centres = ops.divide(sums, ops.expand_dims(ops.maximum(counts, 1.0), 1))

columns = ops.to_numpy(points)
plt.scatter(columns[:, 0], columns[:, 1], c=ops.to_numpy(nearest), cmap="tab10", s=12)
plt.plot(*ops.to_numpy(centres).T, "k*", markersize=14)
plt.title("Four clusters and their centres")
plt.show()
