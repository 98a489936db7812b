"""Trains a variational autoencoder on handwritten digits, and draws digits that nobody wrote.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/training/vae.py`. With `--picture FILE` it writes a
picture, for which matplotlib must be installed.
"""

import sys
from typing import Any

from emberharmony import nn, ops, optim
from emberharmony.data import digits

Tensor = Any


class VAE(nn.Module):
    """Describes an image by a few numbers, and draws images from such numbers.

    Args:
        numbers: how many numbers describe an image.
        width: of the hidden layers.
        seed: decides the initial weights and the draws, which are the same on every backend.
    """

    def __init__(self, numbers: int = 8, width: int = 128, seed: int = 0) -> None:
        rngs = nn.Rngs(seed)
        self.numbers = numbers
        self.encoder = nn.Sequential(nn.Linear(64, width, rng=rngs), nn.ReLU(), nn.Linear(width, 2 * numbers, rng=rngs))
        self.decoder = nn.Sequential(nn.Linear(numbers, width, rng=rngs), nn.ReLU(), nn.Linear(width, 64, rng=rngs))
        self.rng = rngs.draws

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the logits of the pixels (batch, 64), and the means and log-variances (batch, numbers)."""
        mean, log_variance = ops.split(self.encoder(images), 2, axis=-1)
        noise = ops.random.normal(mean.shape, generator=self.rng)
        drawn = ops.add(mean, ops.multiply(ops.exp(ops.multiply(log_variance, 0.5)), noise))
        return self.decoder(drawn), mean, log_variance

    def draw(self, count: int) -> Tensor:
        """Returns new images (count, 64)."""
        return ops.sigmoid(self.decoder(ops.random.normal((count, self.numbers), generator=self.rng)))


def loss(net: VAE, images: Tensor) -> Tensor:
    """Returns the negative evidence lower bound per image, in nats (Kingma and Welling, 2014, equation 10)."""
    logits, mean, log_variance = net(images)
    pixels = nn.losses.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    spread = ops.subtract(ops.add(ops.square(mean), ops.exp(log_variance)), ops.add(log_variance, 1.0))
    return ops.divide(ops.add(pixels, ops.multiply(ops.sum(spread), 0.5)), images.shape[0])


def train(steps: int = 400, size: int = 64, progress: bool = True) -> tuple[VAE, nn.History]:
    """Returns a trained autoencoder, and the history of the training."""
    net = VAE()
    batches = nn.data.batches(digits().train_images, batch_size=size, rng=ops.random.Generator(1))
    history = nn.fit(
        net, lambda x: loss(net, x), optim.Adam(net, lr=3e-3), batches, steps=steps, clip=100.0, progress=progress
    )
    return net, history


def picture(net: VAE, file: str) -> None:
    """Writes a picture of 32 new digits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    images = ops.to_numpy(ops.reshape(net.draw(32), (32, 8, 8)))
    for axes, image in zip(figure.subplots(4, 8).flat, images, strict=True):
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axes.set_axis_off()
    figure.savefig(file)


if __name__ == "__main__":
    trained, steps_made = train()
    first, last = steps_made.losses[0], sum(steps_made.losses[-20:]) / 20
    print(f"{ops.get_backend()}: {first:.2f} nats per image at first, {last:.2f} at last")
    if "--picture" in sys.argv:
        picture(trained, sys.argv[sys.argv.index("--picture") + 1])
