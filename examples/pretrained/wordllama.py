"""Compares texts with the word vectors of WordLlama, which the package `wordllama` has in a safetensors file of 16 MB.

`python examples/pretrained/wordllama.py l2_supercat_256.safetensors 3444 3681` prints the similarity of "France" and
"Paris", at most 1; `EMBERHARMONY_BACKEND=mlx` chooses the backend. The tokens of a text are numbers with commas between
them, as those of the tokenizer of Llama 2. Only their rows are read from the file.

Source: https://github.com/dleemiller/WordLlama (MIT licence), version 0.4.0.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
TABLE = "embedding.weight"


class WordLlama(nn.Module):
    """Turns texts into the means of the vectors of their tokens.

    Args:
        known: the tokens that the table has, by rising number.
        width: the length of the vectors.
    """

    def __init__(self, known: Sequence[int], width: int) -> None:
        self.places = {token: place for place, token in enumerate(known)}
        self.embedding = nn.Embedding(len(known), width)

    def __call__(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Returns vectors (len(texts), width) of length 1."""
        longest = max(map(len, texts))
        rows = [[self.places[token] for token in text] + [0] * (longest - len(text)) for text in texts]
        mask = ops.array([[1.0] * len(text) + [0.0] * (longest - len(text)) for text in texts], dtype="float32")
        x = ops.multiply(self.embedding(ops.array(rows)), ops.expand_dims(mask, -1))
        mean = ops.divide(ops.sum(x, 1), ops.maximum(ops.sum(mask, 1, keepdims=True), 1.0))
        return ops.normalize(mean)


def load(path: str | Path, texts: Sequence[Sequence[int]]) -> WordLlama:
    """Returns the model for the tokens in texts, on the active backend; the pages of other tokens are not read."""
    known = sorted({token for text in texts for token in text})
    with io.open(path) as file:
        table = file.slice(TABLE)
        model = WordLlama(known, table.shape[1])
        model.load_state_dict({TABLE: ops.stack([ops.cast(table[token], "float32") for token in known])})
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    given = [[int(token) for token in text.split(",")] for text in sys.argv[2:4]]
    one, other = load(sys.argv[1], given)(given)
    print(f"{float(ops.to_numpy(ops.sum(ops.multiply(one, other)))):.3f}")
