"""Reads a GPT-2 that the `transformers` package has saved, and continues the tokens that are given.

`python examples/models/gpt2.py FOLDER 464 3290 318` prints 20 tokens; `EMBERHARMONY_BACKEND=mlx` chooses the backend.
The folder is one of `GPT2LMHeadModel.save_pretrained`: config.json, and model.safetensors or its shards. The tokens are
numbers, as those of `GPT2Tokenizer`. The model has no dropout.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
NAMES = {
    "wte": "tokens",
    "wpe": "places",
    "h.*.ln_1": "blocks.*.norm1",
    "h.*.attn.c_attn": "blocks.*.attention.in_proj",
    "h.*.attn.c_proj": "blocks.*.attention.out_proj",
    "h.*.ln_2": "blocks.*.norm2",
    "h.*.mlp.c_fc": "blocks.*.inner",
    "h.*.mlp.c_proj": "blocks.*.outer",
    "ln_f": "norm",
    "lm_head": "head",
}
"""By the module in the file, the module in this model; the star stands for the number of the block."""

ACTIVATIONS = {"gelu_new": lambda: nn.GELU("tanh"), "gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}


class Block(nn.Module):
    """One layer of the model: attention to the tokens before, and then a network for each token alone."""

    def __init__(self, config: dict[str, Any]) -> None:
        width, epsilon = config["n_embd"], config["layer_norm_epsilon"]
        hidden = config["n_inner"] or 4 * width
        self.norm1, self.norm2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)
        self.attention = nn.MultiheadAttention(width, config["n_head"], batch_first=True)
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = ACTIVATIONS[config["activation_function"]]()

    def __call__(self, x: Tensor, cache: nn.KVCache | None) -> Tensor:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        found, _ = self.attention(self.norm1(x), need_weights=False, is_causal=True, cache=cache)
        x = ops.add(x, found)
        return ops.add(x, self.outer(self.activation(self.inner(self.norm2(x)))))


class GPT2(nn.Module):
    """Predicts the next token after each token of a text.

    Args:
        config: the fields of config.json.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.tokens = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.places = nn.LearnedPositional(config["n_positions"], config["n_embd"])
        self.blocks = [Block(config) for _ in range(config["n_layer"])]
        self.norm = nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.head = nn.Linear(config["n_embd"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", True):
            self.head.weight = self.tokens.weight

    def caches(self) -> list[nn.KVCache]:
        """Returns a cache for each block, which `nn.generate` gives to the call."""
        return [nn.KVCache() for _ in self.blocks]

    def __call__(self, tokens: Tensor, caches: list[nn.KVCache] | None = None) -> Tensor:
        """Returns the logits (batch, time, vocabulary) of the next tokens; with caches only those after the last."""
        x = self.places(self.tokens(tokens), caches[0].offset if caches else 0)
        for position, block in enumerate(self.blocks):
            x = block(x, caches[position] if caches else None)
        return self.head(self.norm(x[:, -1:] if caches else x))


def renamed(name: str) -> str:
    """Returns the name in this model for one in the file; one that the table lacks stays, so that loading names it."""
    stem, _, leaf = name.removeprefix("transformer.").rpartition(".")
    number = re.search(r"\.(\d+)\.", stem)
    known = NAMES.get(stem if number is None else stem.replace(number[0], ".*.", 1))
    if known is None:
        return name
    return f"{known if number is None else known.replace('*', number[1])}.{leaf}".replace("in_proj.", "in_proj_")


def load(folder: str | Path) -> GPT2:
    """Returns the model that `save_pretrained` has written into a folder, on the active backend."""
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    model = GPT2(config)
    # Old files also hold the triangles of the causal mask.
    weights = {name: x for name, x in io.load(folder).items() if not re.search(r"\.attn\.(masked_)?bias$", name)}
    for name in weights:
        if re.search(r"\.c_(attn|proj|fc)\.weight$", name):  # (in, out), where nn.Linear has (out, in)
            weights[name] = ops.swapaxes(weights[name], 0, 1)
    model.load_state_dict(weights, rename=renamed)
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    given = [int(number) for number in sys.argv[2:]]
    print(*nn.generate(load(sys.argv[1]), given, 20))
