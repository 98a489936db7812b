"""Trains a small residual network on handwritten digits.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/training/residual.py`.
"""

from typing import Any

from emberharmony import nn, ops, optim
from emberharmony.data import digits

Tensor = Any


class Block(nn.Module):
    """Two convolutions with batch normalization, added to their input.

    Args:
        channels: of the input and of the output.
        rngs: the stream `params`.
    """

    def __init__(self, channels: int, rngs: nn.Rngs) -> None:
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False, rng=rngs)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False, rng=rngs)
        self.norm2 = nn.BatchNorm2d(channels)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns a tensor of the shape of x, (batch, channels, height, width)."""
        inner = ops.relu(self.norm1(self.conv1(x)))
        return ops.relu(ops.add(x, self.norm2(self.conv2(inner))))


class Net(nn.Module):
    """Predicts the digit in images of 8 x 8 pixels.

    Args:
        channels: how many channels the blocks have.
        seed: decides the initial weights, which are the same on every backend.
    """

    def __init__(self, channels: int = 16, seed: int = 0) -> None:
        rngs = nn.Rngs(seed)
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, padding=1, rng=rngs), nn.BatchNorm2d(channels), nn.ReLU())
        self.blocks = nn.Sequential(Block(channels, rngs), nn.MaxPool2d(2), Block(channels, rngs))
        self.head = nn.Linear(channels * 16, 10, rng=rngs)

    def __call__(self, images: Tensor) -> Tensor:
        """Returns the logits (batch, 10) of images (batch, 64)."""
        x = self.blocks(self.stem(ops.reshape(images, (-1, 1, 8, 8))))
        return self.head(ops.reshape(x, (x.shape[0], -1)))


def accuracy(net: nn.Module, images: Any, labels: Any) -> Tensor:
    """Returns the share of images whose most likely class is the label."""
    net.eval()
    found = ops.argmax(net(images), axis=-1)
    net.train()
    return ops.mean(ops.equal(found, ops.convert_to_tensor(labels)))


def train(steps: int = 150, size: int = 64, progress: bool = True) -> tuple[Net, nn.History]:
    """Returns a trained network, and the history of the training."""
    data = digits()
    net = Net()
    optimizer = optim.AdamW(net, lr=optim.schedules.cosine(4e-3, steps))
    batches = nn.data.batches(data.train_images, data.train_labels, batch_size=size, rng=ops.random.Generator(1))
    history = nn.fit(
        net, lambda x, y: nn.losses.cross_entropy(net(x), y), optimizer, batches, steps=steps, progress=progress
    )
    return net, history


if __name__ == "__main__":
    trained, steps_made = train()
    test = digits()
    share = accuracy(trained, test.test_images, test.test_labels)
    last, percent = steps_made.losses[-1], ops.multiply(share, 100.0)
    print(f"{ops.get_backend()}: loss {last:.4f}, {percent:.2f}% of 397 held-out images")
