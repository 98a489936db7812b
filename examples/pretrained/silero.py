"""Finds speech in a recording with Silero VAD, whose weights the package `silero-vad` has in a safetensors file.

`python examples/pretrained/silero.py silero_vad_16k.safetensors speech.wav` prints the seconds with speech;
`EMBERHARMONY_BACKEND=mlx` chooses the backend. The recording has 16,000 samples per second, one channel and 16 bits.

Source: https://github.com/snakers4/silero-vad (MIT licence), version 6.2.3.
"""

import sys
import wave
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
RATE = 16000
STEP, CONTEXT = 512, 64
"""The samples for which there is one probability, and the samples before them that the model sees again."""


class Silero(nn.Module):
    """Estimates the probability that 32 ms of sound contain speech.

    The magnitudes of a short-time Fourier transform, which is a convolution with fixed weights, go through four
    convolutions and an LSTM, whose state carries what was heard before.
    """

    def __init__(self) -> None:
        self.pad = nn.ReflectionPad1d((0, 64))
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def __call__(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Returns the probabilities (batch,) and the next state.

        Args:
            x: (batch, CONTEXT + STEP) samples from -1 to 1.
            state: the state that the samples before have left; None at the beginning.
        """
        real, imaginary = ops.split(self.stft_conv(self.pad(ops.expand_dims(x, 1))), 2, axis=1)
        x = ops.sqrt(ops.add(ops.square(real), ops.square(imaginary)))
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = ops.relu(layer(x))
        h, c = self.lstm_cell(ops.squeeze(x, -1), state)
        found = ops.sigmoid(self.final_conv(ops.expand_dims(ops.relu(h), -1)))
        return ops.reshape(found, (-1,)), (h, c)


def probabilities(model: Silero, samples: Tensor) -> Tensor:
    """Returns the probability of speech in each STEP of samples (time,), the last of which is filled with zeros."""
    samples = ops.convert_to_tensor(samples, dtype="float32")
    steps = -(-samples.shape[0] // STEP)
    samples = ops.pad(samples, (CONTEXT, steps * STEP - samples.shape[0]))
    state, found = None, []
    for start in range(0, steps * STEP, STEP):
        x, state = model(ops.expand_dims(samples[start : start + CONTEXT + STEP], 0), state)
        ops.eval(x)
        found.append(x)
    return ops.concatenate(found)


def spans(probability: Tensor, threshold: float = 0.5) -> list[tuple[float, float]]:
    """Returns where speech begins and ends, in seconds: it ends where the probability is 0.15 below the threshold."""
    found: list[tuple[float, float]] = []
    begun = None
    for position, share in enumerate([*ops.to_numpy(probability).tolist(), 0.0]):
        if begun is None and share >= threshold:
            begun = position
        elif begun is not None and share < threshold - 0.15:
            found.append((begun * STEP / RATE, position * STEP / RATE))
            begun = None
    return found


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


def load(path: str | Path) -> Silero:
    """Returns the model with the weights of silero_vad_16k.safetensors, on the active backend."""
    model = Silero()
    model.load_state_dict(io.load(path))
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for begin, end in spans(probabilities(load(sys.argv[1]), read(sys.argv[2]))):
        print(f"{begin:.2f} to {end:.2f} s")
