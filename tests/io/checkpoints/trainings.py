"""A small training with all kinds of state, for the tests of checkpoints."""

import functools
import warnings
from typing import Any

import numpy as np

from emberharmony import io, nn, ops, optim


@functools.cache
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(20, 3)).astype("float32"), rng.integers(0, 3, 20)


class Model(nn.Module):
    """Has parameters, one of them tied, buffers of floats and integers, and a stream that several layers share."""

    def __init__(self, seed: int) -> None:
        rngs = nn.Rngs(seed)
        self.layers = nn.Sequential(
            nn.Linear(3, 8, rng=rngs), nn.BatchNorm1d(8), nn.Dropout(0.3, rng=rngs), nn.Linear(8, 3, rng=rngs)
        )
        self.last = nn.Dropout(0.1, rng=rngs)
        self.tied = self.layers[3]

    def __call__(self, x: Any) -> Any:
        return self.last(self.layers(x))


class Training:
    """A model, AdamW with a schedule, and shuffled batches."""

    def __init__(self, seed: int = 0, rate: Any = None) -> None:
        self.model = Model(seed)
        self.optimizer = optim.AdamW(self.model, lr=rate or optim.schedules.cosine(0.05, 50))
        self.random = ops.random.Generator(seed + 1)
        self.data = nn.data.batches(*data(), batch_size=6, rng=ops.random.Generator(seed + 2))
        self._stream = self.data.forever()

    @property
    def parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("model", "optimizer", "random", "data")}

    def train(self, steps: int) -> list[str]:
        """Makes steps, and returns the losses to the last digit."""
        losses = []
        for _ in range(steps):
            x, y = next(self._stream)
            x = ops.add(x, ops.multiply(0.1, ops.random.normal(x.shape, generator=self.random)))
            loss = ops.backward(lambda x=x, y=y: nn.losses.cross_entropy(self.model(x), y), self.model)  # type: ignore[misc]
            self.optimizer.step()
            losses.append(float(loss).hex())
        return losses

    def tensors(self) -> dict[str, bytes]:
        """Returns the bits of the weights and of the state of the optimizer."""
        found = {f"model.{name}": x for name, x in self.model.state_dict(host=True).items()}
        for i, row in self.optimizer.state_dict(host=True)["state"].items():
            found |= {f"optimizer.{i}.{name}": np.asarray(x) for name, x in row.items()}
        return {name: f"{x.dtype}{x.shape}".encode() + x.tobytes() for name, x in found.items()}

    def everything(self) -> list[Any]:
        """Returns the whole state."""
        rest = [self.random.state_dict(), self.data.state_dict(), self.model.last.rng.state_dict()]
        return [self.tensors(), self.optimizer.count, self.optimizer.learning_rates(), *rest]


def restored(checkpoint: io.Checkpoint, training: Training, step: int | None = None) -> list[str]:
    """Restores a training, and returns the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checkpoint.restore(**training.parts, step=step)
    return [str(each.message) for each in caught]
