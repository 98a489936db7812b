"""The Llama that `benchmarks/decoding.py` measures, in `torch.nn` and `mlx.nn`; names as in `examples/models/llama.py`.

The one of MLX is written as mlx-lm writes it, with the fused kernels of `mx.fast` and a cache that grows by 256 time
steps. That of PyTorch is eager, with the fused kernel of attention and a cache that grows by concatenation, as that of
transformers does.
"""

from typing import Any

import mlx.core as mx
import mlx.nn as mlx_nn
import torch
from torch import nn
from torch.nn import functional

STEP = 256
"""The cache of mlx-lm makes room for so many time steps at once."""


class TorchAttention(nn.Module):
    """Attention to the tokens before, in which groups of heads share keys and values."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, heads, groups = (config[n] for n in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
        self.width = width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.width, bias=False) for _ in range(2))
        self.outer = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, cache: list[Any]) -> torch.Tensor:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        batch, time, _ = x.shape
        q, k, v = (
            layer(x).view(batch, time, -1, self.width).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        q, k = (x * cosine + _rotate_half(x) * sine for x in (q, k))
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        cache[:] = k, v
        attention_output = functional.scaled_dot_product_attention(q, k, v, is_causal=time > 1, enable_gqa=True)
        return self.outer(attention_output.transpose(1, 2).reshape(batch, time, -1))  # type: ignore[no-any-return]


def _rotate_half(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


class TorchBlock(nn.Module):
    """One layer of the model."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, hidden, epsilon = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
        self.norm1, self.norm2 = nn.RMSNorm(width, epsilon), nn.RMSNorm(width, epsilon)
        self.attention = TorchAttention(config)
        self.gate, self.inner = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.outer = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, cache: list[Any]) -> torch.Tensor:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        x = x + self.attention(self.norm1(x), cosine, sine, cache)
        normalized = self.norm2(x)
        return x + self.outer(functional.silu(self.gate(normalized)) * self.inner(normalized))  # type: ignore[no-any-return]


class TorchLlama(nn.Module):
    """Predicts the next token.

    Args:
        config: the fields of config.json.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, words = config["hidden_size"], config["vocab_size"]
        self.tokens = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([TorchBlock(config) for _ in range(config["num_hidden_layers"])])
        self.norm = nn.RMSNorm(width, config["rms_norm_eps"])
        self.head = nn.Linear(width, words, bias=False)
        pairs = width // config["num_attention_heads"] // 2
        self.steps = config["rope_theta"] ** (-torch.arange(pairs) / pairs)

    def forward(self, tokens: torch.Tensor, caches: list[list[Any]]) -> torch.Tensor:
        """Returns the logits after the last token."""
        past = caches[0][0].shape[2] if caches[0] else 0
        angles = torch.arange(past, past + tokens.shape[1])[:, None] * torch.cat((self.steps, self.steps))
        cosine, sine = angles.cos(), angles.sin()
        x = self.tokens(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cosine, sine, cache)
        return self.head(self.norm(x[:, -1:]))  # type: ignore[no-any-return]

    def generate(self, prompt: list[int], count: int) -> list[int]:
        """Returns so many of the likeliest tokens."""
        generated_tokens, caches = [], [[] for _ in self.blocks]  # type: ignore[var-annotated]
        tokens = torch.tensor([prompt])
        with torch.no_grad():
            for _ in range(count):
                tokens = self(tokens, caches)[:, -1].argmax(-1, keepdim=True)
                generated_tokens.append(int(tokens.item()))
        return generated_tokens


class MLXCache:
    """The cache of mlx-lm, which grows by 256 time steps."""

    def __init__(self) -> None:
        self.keys: Any = None
        self.values: Any = None
        self.offset = 0

    def extend(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Returns all keys and values."""
        past, self.offset = self.offset, self.offset + keys.shape[2]
        if self.keys is None or self.offset > self.keys.shape[2]:
            batch, heads, time, width = keys.shape
            room = mx.zeros((batch, heads, (STEP + time - 1) // STEP * STEP, width), keys.dtype)
            if self.keys is None:
                self.keys, self.values = room, mx.zeros(room.shape, room.dtype)
            else:
                self.keys = mx.concatenate([self.keys[..., :past, :], room], 2)
                self.values = mx.concatenate([self.values[..., :past, :], room], 2)
        self.keys[..., past : self.offset, :] = keys
        self.values[..., past : self.offset, :] = values
        return self.keys[..., : self.offset, :], self.values[..., : self.offset, :]


class MLXAttention(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """Attention to the tokens before, in which groups of heads share keys and values."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, heads, groups = (config[n] for n in ("hidden_size", "num_attention_heads", "num_key_value_heads"))
        self.width = width // heads
        self.query = mlx_nn.Linear(width, width, bias=False)
        self.key = mlx_nn.Linear(width, groups * self.width, bias=False)
        self.value = mlx_nn.Linear(width, groups * self.width, bias=False)
        self.outer = mlx_nn.Linear(width, width, bias=False)
        self.rope = mlx_nn.RoPE(self.width, base=config["rope_theta"])

    def __call__(self, x: mx.array, mask: Any, cache: MLXCache) -> mx.array:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        batch, time, _ = x.shape
        q, k, v = (
            layer(x).reshape(batch, time, -1, self.width).transpose(0, 2, 1, 3)
            for layer in (self.query, self.key, self.value)
        )
        q, k = self.rope(q, offset=cache.offset), self.rope(k, offset=cache.offset)
        k, v = cache.extend(k, v)
        attention_output = mx.fast.scaled_dot_product_attention(q, k, v, scale=self.width**-0.5, mask=mask)
        return self.outer(attention_output.transpose(0, 2, 1, 3).reshape(batch, time, -1))


class MLXBlock(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """One layer of the model."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, hidden, epsilon = config["hidden_size"], config["intermediate_size"], config["rms_norm_eps"]
        self.norm1, self.norm2 = mlx_nn.RMSNorm(width, epsilon), mlx_nn.RMSNorm(width, epsilon)
        self.attention = MLXAttention(config)
        self.gate = mlx_nn.Linear(width, hidden, bias=False)
        self.inner = mlx_nn.Linear(width, hidden, bias=False)
        self.outer = mlx_nn.Linear(hidden, width, bias=False)

    def __call__(self, x: mx.array, mask: Any, cache: MLXCache) -> mx.array:
        """Returns a tensor of the shape of x, (batch, time, width)."""
        x = x + self.attention(self.norm1(x), mask, cache)
        normalized = self.norm2(x)
        return x + self.outer(mlx_nn.silu(self.gate(normalized)) * self.inner(normalized))


class MLXLlama(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """Predicts the next token.

    Args:
        config: the fields of config.json.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.tokens = mlx_nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.blocks = [MLXBlock(config) for _ in range(config["num_hidden_layers"])]
        self.norm = mlx_nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.head = mlx_nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def __call__(self, tokens: mx.array, caches: list[MLXCache]) -> mx.array:
        """Returns the logits after the last token."""
        x, mask = self.tokens(tokens), "causal" if tokens.shape[1] > 1 else None
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, mask, cache)
        return self.head(self.norm(x[:, -1:]))

    def generate(self, prompt: list[int], count: int) -> list[int]:
        """Returns so many of the likeliest tokens."""
        generated_tokens, caches = [], [MLXCache() for _ in self.blocks]
        tokens = mx.array([prompt])
        for _ in range(count):
            tokens = mx.argmax(self(tokens, caches)[:, -1], -1, keepdims=True)
            generated_tokens.append(int(tokens.item()))
        return generated_tokens
