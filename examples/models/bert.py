"""Reads a BERT that the `transformers` package has saved, and fills in the tokens that are masked.

`python examples/models/bert.py FOLDER 101 1996 103 2003 102` prints the likeliest token at each place;
`EMBERHARMONY_BACKEND=mlx` chooses the backend. The folder is one of `BertForMaskedLM.save_pretrained`: config.json,
and model.safetensors or its shards. The tokens are numbers, as those of `BertTokenizer`. The model has no dropout.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
NAMES = {
    "bert.embeddings.word_embeddings": "tokens",
    "bert.embeddings.position_embeddings": "places",
    "bert.embeddings.token_type_embeddings": "parts",
    "bert.embeddings.LayerNorm": "norm",
    "bert.encoder.layer.*.attention.self.in_proj": "layers.*.self_attn.in_proj",
    "bert.encoder.layer.*.attention.output.dense": "layers.*.self_attn.out_proj",
    "bert.encoder.layer.*.attention.output.LayerNorm": "layers.*.norm1",
    "bert.encoder.layer.*.intermediate.dense": "layers.*.linear1",
    "bert.encoder.layer.*.output.dense": "layers.*.linear2",
    "bert.encoder.layer.*.output.LayerNorm": "layers.*.norm2",
    "cls.predictions.transform.dense": "dense",
    "cls.predictions.transform.LayerNorm": "last",
    "cls.predictions.decoder": "head",
    "cls.predictions": "head",
}
"""By the module in the file, the module in this model; the star stands for the number of the layer."""

ACTIVATIONS = {"gelu": nn.GELU, "gelu_new": lambda: nn.GELU("tanh"), "relu": nn.ReLU, "silu": nn.SiLU}


class Bert(nn.Module):
    """Predicts the token at each place of a text from all places.

    Args:
        config: the fields of config.json.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        width, words, epsilon = config["hidden_size"], config["vocab_size"], config["layer_norm_eps"]
        self.activation = ACTIVATIONS[config["hidden_act"]]()
        self.tokens = nn.Embedding(words, width)
        self.places = nn.LearnedPositional(config["max_position_embeddings"], width)
        self.parts = nn.Embedding(config["type_vocab_size"], width)
        self.norm, self.last = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        heads, hidden = config["num_attention_heads"], config["intermediate_size"]
        self.layers = [
            nn.TransformerEncoderLayer(width, heads, hidden, 0.0, self.activation, epsilon, batch_first=True)
            for _ in range(config["num_hidden_layers"])
        ]
        self.dense = nn.Linear(width, width)
        self.head = nn.Linear(width, words)
        if config.get("tie_word_embeddings", True):
            self.head.weight = self.tokens.weight

    def encoded(self, tokens: Tensor, parts: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Returns the vectors (batch, time, width) of tokens (batch, time).

        Args:
            tokens: (batch, time).
            parts: 0 or 1 for tokens of the first or second part of the text; None is 0 for all.
            mask: 1 for tokens, and 0 for those that only fill the row; None is 1 for all.
        """
        x = ops.add(self.tokens(tokens), self.parts([[0]] if parts is None else parts))
        x = self.norm(self.places(x))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=None if mask is None else ops.equal(mask, 0))
        return x

    def __call__(self, tokens: Tensor, parts: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Returns the logits (batch, time, vocabulary) of the token at each place; see `encoded`."""
        return self.head(self.last(self.activation(self.dense(self.encoded(tokens, parts, mask)))))


def renamed(name: str) -> str:
    """Returns the name in this model for one in the file; one that the table lacks stays, so that loading names it."""
    stem, _, leaf = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", stem)
    known = NAMES.get(stem if number is None else stem.replace(number[0], ".*.", 1))
    if known is None:
        return name
    return f"{known if number is None else known.replace('*', number[1])}.{leaf}".replace("in_proj.", "in_proj_")


def load(folder: str | Path) -> Bert:
    """Returns the model that `save_pretrained` has written into a folder, on the active backend."""
    model = Bert(json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")))
    weights = {name: x for name, x in io.load(folder).items() if "pooler" not in name}  # which serves other tasks
    if "cls.predictions.decoder.bias" in weights:  # a decoder that is not tied has a bias of its own, which is used
        weights.pop("cls.predictions.bias", None)
    for name in [name for name in weights if ".self.query." in name]:  # nn.MultiheadAttention has the three in one
        parts = [weights.pop(name.replace("query", part)) for part in ("query", "key", "value")]
        weights[name.replace("query", "in_proj")] = ops.concatenate(parts)
    model.load_state_dict(weights, rename=renamed)
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    given = ops.array([[int(number) for number in sys.argv[2:]]])
    print(*ops.to_numpy(ops.argmax(load(sys.argv[1])(given), -1))[0])
