"""
Principal components of handwritten digits
==========================================

The singular value decomposition of the centred images. The signs of singular vectors are the same on every backend,
so is the picture.
"""

import matplotlib.pyplot as plt

from emberharmony import ops
from emberharmony.data import digits

data = digits()
images = ops.convert_to_tensor(data.train_images)
centred = ops.subtract(images, ops.mean(images, axis=0))
_, values, directions = ops.linalg.svd(centred, full_matrices=False)
plane = ops.matmul(centred, ops.transpose(directions[:2]))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
points = ops.to_numpy(plane)
shown = left.scatter(points[:, 0], points[:, 1], c=data.train_labels, cmap="tab10", s=6)
left.set(xlabel="first component", ylabel="second component")
figure.colorbar(shown, ax=left, label="digit")
share = ops.divide(ops.cumsum(ops.square(values)), ops.sum(ops.square(values)))
right.plot(ops.to_numpy(share))
right.set(xlabel="components", ylabel="share of the variance")
plt.show()
