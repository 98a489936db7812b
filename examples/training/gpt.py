"""Trains a small GPT on sonnets by Shakespeare, letter by letter, and lets it write some lines of its own.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/training/gpt.py`. With `--checkpoint FOLDER` it saves
the training there after each 50 steps and after Ctrl-C, and goes on from there when it is run again, on any backend.
"""

import sys
from typing import Any

from emberharmony import io, nn, ops, optim
from emberharmony.data import sonnets

Tensor = Any
CONTEXT = 32
"""How many letters the model sees."""


class Attention(nn.Module):
    """Lets each letter look at the letters before it.

    Args:
        width: the length of the vector of a letter.
        heads: how many parts of the vectors look separately; must divide the width.
        dropout: how many numbers of the output are dropped in training, as a share.
        rngs: the streams `params` and `dropout`.
    """

    def __init__(self, width: int, heads: int, dropout: float, rngs: nn.Rngs) -> None:
        self.heads = heads
        # Without a bias: that of the keys has no effect on the softmax, so its gradient would be nothing but rounding.
        self.inner = nn.Linear(width, 3 * width, bias=False, rng=rngs)
        self.outer = nn.Linear(width, width, rng=rngs)
        self.dropout = nn.Dropout(dropout, rng=rngs)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        batch, letters, width = x.shape
        parts = ops.reshape(self.inner(x), (batch, letters, 3, self.heads, width // self.heads))
        query, key, value = ops.unstack(parts, axis=2)
        found = ops.dot_product_attention(query, key, value, is_causal=True)
        return self.dropout(self.outer(ops.reshape(found, (batch, letters, width))))


class Block(nn.Module):
    """One layer of the model: attention, and then a network for each letter alone.

    Args:
        width, heads, dropout, rngs: see `Attention`.
    """

    def __init__(self, width: int, heads: int, dropout: float, rngs: nn.Rngs) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, rngs)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width, rng=rngs),
            nn.GELU(),
            nn.Linear(4 * width, width, rng=rngs),
            nn.Dropout(dropout, rng=rngs),
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        x = ops.add(x, self.attention(self.norm1(x)))
        return ops.add(x, self.network(self.norm2(x)))


class GPT(nn.Module):
    """Predicts the next letter after each letter of a text.

    Args:
        letters: how many different letters there are.
        width, heads, dropout: see `Attention`.
        layers: how many blocks there are.
        seed: decides the initial weights and the dropout masks, which are the same on every backend.
    """

    def __init__(
        self, letters: int, width: int = 48, heads: int = 4, layers: int = 2, dropout: float = 0.1, seed: int = 0
    ) -> None:
        rngs = nn.Rngs(seed)
        self.letters = nn.Embedding(letters, width, rng=rngs)
        self.places = nn.Embedding(CONTEXT, width, rng=rngs)
        self.blocks = [Block(width, heads, dropout, rngs) for _ in range(layers)]
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False, rng=rngs)

    def __call__(self, numbers: Tensor) -> Tensor:
        """Returns the logits (batch, length, letters) of the letters that follow, for numbers (batch, length)."""
        x = ops.add(self.letters(numbers), self.places(ops.arange(numbers.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Text:
    """A text as numbers, one for each letter, and the pieces of it that the model learns from.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.alphabet = sorted(set(text))
        self.numbers = [self.alphabet.index(letter) for letter in text]

    def batches(self, size: int, seed: int) -> Any:
        """Returns batches of pieces, and of the same pieces one letter later."""
        starts = range(0, len(self.numbers) - CONTEXT, CONTEXT // 2)
        pieces = [self.numbers[start : start + CONTEXT] for start in starts]
        later = [self.numbers[start + 1 : start + CONTEXT + 1] for start in starts]
        return nn.data.batches(pieces, later, batch_size=size, drop_last=True, rng=ops.random.Generator(seed))


def loss(model: GPT, numbers: Tensor, later: Tensor) -> Tensor:
    """Returns the mean cross-entropy of the letters that follow."""
    logits = model(numbers)
    return nn.losses.cross_entropy(ops.reshape(logits, (-1, logits.shape[-1])), ops.reshape(later, (-1,)))


def adamw(model: GPT, steps: int) -> optim.AdamW:
    """Returns the optimizer, whose learning rate rises for a tenth of the steps and then falls."""
    fall = optim.schedules.cosine(3e-3, steps, 3e-4)
    return optim.AdamW(model, lr=optim.schedules.warmup(fall, max(1, steps // 10), 0.1))


def write(model: GPT, text: Text, beginning: str, length: int, seed: int = 0) -> str:
    """Returns a beginning and what the model writes after it."""
    generator = ops.random.Generator(seed)
    numbers = [text.alphabet.index(letter) for letter in beginning]
    model.eval()
    for _ in range(length):
        logits = model(ops.array([numbers[-CONTEXT:]], "int32"))[0, -1]
        drawn = ops.random.categorical(ops.multiply(logits, 1.25)[None], 1, generator=generator)
        numbers += ops.to_numpy(drawn)[0].tolist()
    model.train()
    return "".join(text.alphabet[number] for number in numbers)


def train(
    steps: int = 150, size: int = 16, progress: bool = True, folder: str | None = None
) -> tuple[GPT, Text, nn.History]:
    """Returns a trained model, its text, and the history of the training, which checkpoints in a folder continue."""
    text = Text(sonnets())
    model = GPT(len(text.alphabet))
    history = nn.fit(
        model,
        lambda x, y: loss(model, x, y),
        adamw(model, steps),
        text.batches(size, seed=1),
        steps=steps,
        clip=1.0,
        progress=progress,
        checkpoint=None if folder is None else io.Checkpoint(folder),
        checkpoint_every=50,
    )
    return model, text, history


if __name__ == "__main__":
    kept = sys.argv[sys.argv.index("--checkpoint") + 1] if "--checkpoint" in sys.argv else None
    trained, source, steps_made = train(folder=kept)
    if steps_made:  # else all steps were made before
        print(f"{ops.get_backend()}: loss {steps_made.losses[0]:.3f} at first, {steps_made.losses[-1]:.3f} at last\n")
    print(write(trained, source, "Shall I ", 200))
