"""Looks for faces with the three networks of MTCNN, whose weights the package `facenet-pytorch` has in .pt files.

`python examples/pretrained/mtcnn.py FOLDER picture.npz` prints squares of the picture in which the first network sees a
face of about 12 pixels, and what the third thinks of the whole picture; `EMBERHARMONY_BACKEND=mlx` chooses the backend,
and PyTorch reads the files. The folder has pnet.pt, rnet.pt and onet.pt, and the picture's file the array `picture`
(height, width, 3) of bytes.

Source: Zhang et al., "Joint Face Detection and Alignment Using Multitask Cascaded Convolutional Networks" (2016);
https://github.com/timesler/facenet-pytorch (MIT licence), version 2.6.0.
"""

import sys
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any


class PNet(nn.Module):
    """Looks at every other square of 12 x 12 pixels in pictures of any size."""

    def __init__(self) -> None:
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
        self.pool1 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
        self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns offsets of boxes (batch, 4, rows, columns), and the probabilities (batch, 2, ...) of none and a face.

        Args:
            x: (batch, 3, height, width) colours from -1 to 1.
        """
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), ops.softmax(self.conv4_1(x), 1)


class RNet(nn.Module):
    """Judges pictures of 24 x 24 pixels that the first network has found."""

    def __init__(self) -> None:
        self.conv1, self.prelu1 = nn.Conv2d(3, 28, 3), nn.PReLU(28)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(28, 48, 3), nn.PReLU(48)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3, self.prelu3 = nn.Conv2d(48, 64, 2), nn.PReLU(64)
        self.dense4, self.prelu4 = nn.Linear(576, 128), nn.PReLU(128)
        self.dense5_1, self.dense5_2 = nn.Linear(128, 2), nn.Linear(128, 4)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns offsets of boxes (batch, 4), and the probabilities (batch, 2), for pictures (batch, 3, 24, 24)."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.prelu4(self.dense4(columns_first(self.prelu3(self.conv3(x)))))
        return self.dense5_2(x), ops.softmax(self.dense5_1(x), 1)


class ONet(nn.Module):
    """Judges pictures of 48 x 48 pixels that the second network has kept, and finds eyes, nose and mouth."""

    def __init__(self) -> None:
        self.conv1, self.prelu1 = nn.Conv2d(3, 32, 3), nn.PReLU(32)
        self.pool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2, self.prelu2 = nn.Conv2d(32, 64, 3), nn.PReLU(64)
        self.pool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv3, self.prelu3 = nn.Conv2d(64, 64, 3), nn.PReLU(64)
        self.pool3 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.conv4, self.prelu4 = nn.Conv2d(64, 128, 2), nn.PReLU(128)
        self.dense5, self.prelu5 = nn.Linear(1152, 256), nn.PReLU(256)
        self.dense6_1, self.dense6_2, self.dense6_3 = nn.Linear(256, 2), nn.Linear(256, 4), nn.Linear(256, 10)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns offsets (batch, 4), five points (batch, 10) and probabilities (batch, 2) for (batch, 3, 48, 48)."""
        x = self.pool1(self.prelu1(self.conv1(x)))
        x = self.pool2(self.prelu2(self.conv2(x)))
        x = self.pool3(self.prelu3(self.conv3(x)))
        x = self.prelu5(self.dense5(columns_first(self.prelu4(self.conv4(x)))))
        return self.dense6_2(x), self.dense6_3(x), ops.softmax(self.dense6_1(x), 1)


NETWORKS = {"pnet": PNet, "rnet": RNet, "onet": ONet}


def columns_first(x: Tensor) -> Tensor:
    """Returns (batch, channels, rows, columns) as (batch, -1), column by column, as the weights came from Caffe."""
    return ops.reshape(ops.transpose(x, (0, 3, 2, 1)), (x.shape[0], -1))


def scaled(picture: Any) -> Tensor:
    """Returns a picture (height, width, 3) of bytes as (1, 3, height, width) from -1 to 1."""
    x = ops.transpose(ops.convert_to_tensor(picture, dtype="float32"), (2, 0, 1))
    return ops.multiply(ops.subtract(ops.expand_dims(x, 0), 127.5), 0.0078125)


def squares(probability: Tensor, threshold: float = 0.6) -> list[tuple[int, int, float]]:
    """Returns row, column and probability of each square of 12 x 12 pixels that may have a face, from those of PNet."""
    rows = ops.to_numpy(probability)[0, 1].tolist()
    return [
        (2 * row, 2 * column, share)
        for row, shares in enumerate(rows)
        for column, share in enumerate(shares)
        if share > threshold
    ]


def load(folder: str | Path) -> dict[str, nn.Module]:
    """Returns the three networks with the weights in a folder, on the active backend."""
    models = {name: kind() for name, kind in NETWORKS.items()}
    for name, model in models.items():
        model.load_state_dict(io.load(Path(folder) / f"{name}.pt"))
        model.eval()
    return models


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    networks, pixels = load(sys.argv[1]), scaled(io.load(sys.argv[2])["picture"])
    for row, column, share in squares(networks["pnet"](pixels)[1]):
        print(f"row {row}, column {column}: {share:.2f}")
    whole = networks["onet"](ops.resize(pixels, (48, 48), data_format="channels_first"))
    print(f"the whole picture: {float(ops.to_numpy(whole[2][0, 1])):.2f}")
