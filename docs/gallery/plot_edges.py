"""
Edges of an image
=================

Two convolutions give the gradient of an image, whose length shows the edges. The image is a digit, enlarged by
`ops.resize`.
"""

import matplotlib.pyplot as plt

from emberharmony import ops
from emberharmony.data import digits

small = ops.reshape(ops.convert_to_tensor(digits().train_images[3]), (1, 8, 8, 1))
image = ops.image.resize(small, (96, 96), interpolation="bicubic")
sobel = ops.array([[1.0, 2.0, 1.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -1.0]])
kernels = ops.expand_dims(ops.stack([sobel, ops.transpose(sobel)], axis=-1), 2)
slopes = ops.conv(image, kernels, padding="same")
edges = ops.sqrt(ops.sum(ops.square(slopes), axis=-1))

figure, axes = plt.subplots(1, 2, figsize=(8, 4))
for axis, picture, title in ((axes[0], image[0, :, :, 0], "image"), (axes[1], edges[0], "edges")):
    axis.imshow(ops.to_numpy(picture), cmap="gray_r")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
