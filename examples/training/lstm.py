"""Trains an LSTM to repeat a row of symbols after a pause: it must keep them in its state.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/training/lstm.py`.
"""

from typing import Any

from emberharmony import nn, ops, optim

Tensor = Any
SYMBOLS, LENGTH, PAUSE = 4, 3, 2
"""How many kinds of symbols there are, how many are to be repeated, and how long the pause is."""


class Repeater(nn.Module):
    """Reads symbols, waits, and writes the symbols.

    Args:
        width: the length of the state.
        seed: decides the initial weights, which are the same on every backend.
    """

    def __init__(self, width: int = 48, seed: int = 0) -> None:
        rngs = nn.Rngs(seed)
        self.inputs = nn.Embedding(SYMBOLS + 1, 16, rng=rngs)
        self.lstm = nn.LSTM(16, width, batch_first=True, rng=rngs)
        self.head = nn.Linear(width, SYMBOLS, rng=rngs)

    def __call__(self, symbols: Tensor) -> Tensor:
        """Returns the logits (batch, LENGTH, SYMBOLS) of the last steps, for symbols (batch, steps)."""
        states, _ = self.lstm(self.inputs(symbols))
        return self.head(states[:, -LENGTH:])


def tasks(number: int, seed: int) -> tuple[Tensor, Tensor]:
    """Returns inputs (number, 2 * LENGTH + PAUSE), in which SYMBOLS stands for nothing, and what is to be repeated."""
    generator = ops.random.Generator(seed)
    symbols = ops.random.randint((number, LENGTH), 0, SYMBOLS, dtype="int32", generator=generator)
    return ops.concat([symbols, ops.full((number, PAUSE + LENGTH), SYMBOLS, "int32")], axis=1), symbols


def loss(net: Repeater, inputs: Tensor, wanted: Tensor) -> Tensor:
    """Returns the mean cross-entropy of the repeated symbols."""
    return nn.losses.cross_entropy(ops.reshape(net(inputs), (-1, SYMBOLS)), ops.reshape(wanted, (-1,)))


def accuracy(net: Repeater, inputs: Tensor, wanted: Tensor) -> Tensor:
    """Returns the share of symbols that are repeated rightly."""
    return ops.mean(ops.equal(ops.argmax(net(inputs), axis=-1), wanted))


def train(steps: int = 250, size: int = 64, progress: bool = True) -> tuple[Repeater, nn.History]:
    """Returns a trained network, and the history of the training."""
    net = Repeater()
    optimizer = optim.Adam(net, lr=1e-2)
    batches = nn.data.batches(*tasks(2048, seed=1), batch_size=size, rng=ops.random.Generator(2))
    history = nn.fit(net, lambda x, y: loss(net, x, y), optimizer, batches, steps=steps, clip=1.0, progress=progress)
    return net, history


if __name__ == "__main__":
    trained, steps_made = train()
    share = accuracy(trained, *tasks(500, seed=3))
    last, percent = steps_made.losses[-1], ops.multiply(share, 100.0)
    print(f"{ops.get_backend()}: loss {last:.4f}, {percent:.2f}% of 1500 symbols are repeated rightly")
