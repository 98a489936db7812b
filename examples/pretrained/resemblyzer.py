"""Compares voices with the encoder of Resemblyzer, whose weights the package `resemblyzer` has in pretrained.pt.

`python examples/pretrained/resemblyzer.py pretrained.pt one.npz other.npz` prints the similarity of two voices, at
most 1; `EMBERHARMONY_BACKEND=mlx` chooses the backend, and PyTorch reads the weights. The file of a voice has the array
`mels` (frames, 40) of `resemblyzer.wav_to_mel_spectrogram`: 40 mel bands every 10 ms.

Source: Wan et al., "Generalized End-to-End Loss for Speaker Verification" (2018);
https://github.com/resemble-ai/Resemblyzer (Apache 2.0 licence), version 0.1.4.
"""

import sys
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
BANDS, WIDTH, LAYERS = 40, 256, 3
FRAMES, HOP = 160, 77
"""The frames of which the model was trained to make an embedding, and those from one part to the next."""


class Encoder(nn.Module):
    """Turns a spectrogram of speech into the embedding of the voice, a vector of length 1 without negative numbers."""

    def __init__(self) -> None:
        self.lstm = nn.LSTM(BANDS, WIDTH, LAYERS, batch_first=True)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def __call__(self, mels: Tensor) -> Tensor:
        """Returns embeddings (batch, WIDTH) of spectrograms (batch, frames, BANDS)."""
        _, (states, _) = self.lstm(mels)
        return ops.normalize(ops.relu(self.linear(states[-1])))


def voice(model: Encoder, mels: Tensor) -> Tensor:
    """Returns the embedding (WIDTH,) of a spectrogram (frames, BANDS) of any length.

    It is the mean of the embeddings of parts of FRAMES, scaled to length 1. Zeros fill the last part, which is left out
    if it is filled for more than a quarter.
    """
    mels = ops.convert_to_tensor(mels, dtype="float32")
    frames = mels.shape[0]
    starts = list(range(0, max(1, frames - FRAMES + HOP + 1), HOP))
    if len(starts) > 1 and frames - starts[-1] < 0.75 * FRAMES:
        starts.pop()
    mels = ops.pad(mels, ((0, max(0, starts[-1] + FRAMES - frames)), (0, 0)))
    parts = ops.stack([mels[start : start + FRAMES] for start in starts])
    return ops.normalize(ops.mean(model(parts), 0))


def load(path: str | Path) -> Encoder:
    """Returns the encoder with the weights of pretrained.pt, on the active backend."""
    weights = io.load(path, entry="model_state")
    trained = {name: x for name, x in weights.items() if not name.startswith("similarity_")}  # only training needs it
    model = Encoder()
    model.load_state_dict(trained)
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    encoder = load(sys.argv[1])
    one, other = (voice(encoder, io.load(path)["mels"]) for path in sys.argv[2:4])
    print(f"{float(ops.to_numpy(ops.sum(ops.multiply(one, other)))):.3f}")
