"""Reads a Llama that the `transformers` package has saved, and continues the tokens that are given.

`python examples/models/llama.py FOLDER 1 306 4658` prints 20 tokens; `EMBERHARMONY_BACKEND=mlx` chooses the backend.
The folder is one of `LlamaForCausalLM.save_pretrained`: config.json, and model.safetensors or its shards. The tokens
are numbers, as those of the model's tokenizer.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from emberharmony import io, nn, ops

Tensor = Any
NAMES = {
    "model.embed_tokens": "tokens",
    "model.layers.*.input_layernorm": "blocks.*.norm1",
    "model.layers.*.self_attn.q_proj": "blocks.*.attention.query",
    "model.layers.*.self_attn.k_proj": "blocks.*.attention.key",
    "model.layers.*.self_attn.v_proj": "blocks.*.attention.value",
    "model.layers.*.self_attn.o_proj": "blocks.*.attention.outer",
    "model.layers.*.post_attention_layernorm": "blocks.*.norm2",
    "model.layers.*.mlp.gate_proj": "blocks.*.gate",
    "model.layers.*.mlp.up_proj": "blocks.*.inner",
    "model.layers.*.mlp.down_proj": "blocks.*.outer",
    "model.norm": "norm",
    "lm_head": "head",
}
"""By the module in the file, the module in this model; the star stands for the number of the block."""


def rotations(config: dict[str, Any], width: int) -> nn.RoPE:
    """Returns the rotations by position, which new files describe in `rope_parameters` and old ones in two fields."""
    known = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = known.get("rope_theta") or config.get("rope_theta") or 10000.0
    kind = known.get("rope_type") or known.get("type") or "default"
    if kind == "default":
        return nn.RoPE(width, base=base)
    factor = known["factor"]
    if kind == "linear":
        return nn.RoPE(width, base=base, scale=1 / factor)
    if kind != "llama3":
        raise ValueError(f"expected the rope_type default, linear or llama3, got {kind}")
    slow, fast = known["low_freq_factor"], known["high_freq_factor"]
    found = []
    for pair in range(width // 2):
        step = base ** (-2 * pair / width)
        turns = known["original_max_position_embeddings"] * step / (2 * math.pi)
        share = min(1.0, max(0.0, (turns - slow) / (fast - slow)))  # 1 keeps the angle, 0 divides it by the factor
        found.append(step * (share + (1 - share) / factor))
    return nn.RoPE(width, frequencies=found)


class Attention(nn.Module):
    """Attention to the tokens before, in which groups of heads share keys and values."""

    def __init__(self, config: dict[str, Any]) -> None:
        width, heads, bias = config["hidden_size"], config["num_attention_heads"], config.get("attention_bias", False)
        groups = config.get("num_key_value_heads") or heads
        self.width = config.get("head_dim") or width // heads
        self.query = nn.Linear(width, heads * self.width, bias)
        self.key, self.value = (nn.Linear(width, groups * self.width, bias) for _ in range(2))
        self.outer = nn.Linear(heads * self.width, width, bias)
        self.rope = rotations(config, self.width)

    def __call__(self, x: Tensor, cache: nn.KVCache | None) -> Tensor:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        batch, time, _ = x.shape
        past = cache.length if cache else 0
        query, key, value = (
            ops.reshape(part(x), (batch, time, -1, self.width)) for part in (self.query, self.key, self.value)
        )
        query, key = self.rope(query, past, axis=1), self.rope(key, past, axis=1)
        mask = None
        if cache:
            key, value = cache.extend(key, value)
            mask = cache.mask(time)
        found = ops.dot_product_attention(query, key, value, mask=mask, is_causal=not past)
        return self.outer(ops.reshape(found, (batch, time, -1)))


class Block(nn.Module):
    """One layer of the model: attention, and then a gated network for each token alone."""

    def __init__(self, config: dict[str, Any]) -> None:
        width, hidden, bias = config["hidden_size"], config["intermediate_size"], config.get("mlp_bias", False)
        self.norm1, self.norm2 = (nn.RMSNorm(width, config["rms_norm_eps"]) for _ in range(2))
        self.attention = Attention(config)
        self.gate, self.inner = (nn.Linear(width, hidden, bias) for _ in range(2))
        self.outer = nn.Linear(hidden, width, bias)

    def __call__(self, x: Tensor, cache: nn.KVCache | None) -> Tensor:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        x = ops.add(x, self.attention(self.norm1(x), cache))
        found = self.norm2(x)
        return ops.add(x, self.outer(ops.multiply(ops.silu(self.gate(found)), self.inner(found))))


class Llama(nn.Module):
    """Predicts the next token after each token of a text.

    Args:
        config: the fields of config.json.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.blocks = [Block(config) for _ in range(config["num_hidden_layers"])]
        self.norm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", False):
            self.head.weight = self.tokens.weight

    def caches(self) -> list[nn.KVCache]:
        """Returns a cache for each block, which `nn.generate` gives to the call."""
        return [nn.KVCache() for _ in self.blocks]

    def __call__(self, tokens: Tensor, caches: list[nn.KVCache] | None = None) -> Tensor:
        """Returns the logits (batch, time, vocabulary) of the next tokens; with caches only those after the last."""
        x = self.tokens(tokens)
        for position, block in enumerate(self.blocks):
            x = block(x, caches[position] if caches else None)
        return self.head(self.norm(x[:, -1:] if caches else x))


def renamed(name: str) -> str:
    """Returns the name in this model for one in the file; one that the table lacks stays, so that loading names it."""
    stem, _, leaf = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", stem)
    known = NAMES.get(stem if number is None else stem.replace(number[0], ".*.", 1))
    if known is None:
        return name
    return f"{known if number is None else known.replace('*', number[1])}.{leaf}"


def load(folder: str | Path) -> Llama:
    """Returns the model that `save_pretrained` has written into a folder, on the active backend."""
    model = Llama(json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")))
    model.load_state_dict(io.load(folder), rename=renamed)
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    given = [int(number) for number in sys.argv[2:]]
    print(*nn.generate(load(sys.argv[1]), given, 20))
