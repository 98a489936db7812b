"""The GPT that `benchmarks/compiled.py` measures, in `torch.nn` and `mlx.nn`; names as in `examples/training/gpt.py`.

Each is written as users of the library write it: with its fused kernel of attention, its layer norm and its loss.
"""

import mlx.core as mx
import mlx.nn as mlx_nn
import torch
from torch import nn
from torch.nn import functional


class TorchAttention(nn.Module):
    """Lets each letter look at the letters before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inner = nn.Linear(width, 3 * width, bias=False)
        self.outer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        batch, letters, width = x.shape
        projections = self.inner(x).view(batch, letters, 3, self.heads, width // self.heads)
        query, key, value = projections.permute(2, 0, 3, 1, 4).unbind(0)
        attention_output = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.outer(attention_output.transpose(1, 2).reshape(batch, letters, width))  # type: ignore[no-any-return]


class TorchBlock(nn.Module):
    """One layer of the model."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = TorchAttention(width, heads)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))  # type: ignore[no-any-return]


class TorchGPT(nn.Module):
    """Predicts the next letter after each letter of a text.

    Args:
        letters: how many different letters there are.
        width, heads, layers: the sizes.
        context: how many letters the model sees.
    """

    def __init__(self, letters: int, width: int, heads: int, layers: int, context: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([TorchBlock(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Returns the logits (batch, length, letters)."""
        x = self.letters(numbers) + self.places(torch.arange(numbers.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


class MLXAttention(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """Lets each letter look at the letters before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inner = mlx_nn.Linear(width, 3 * width, bias=False)
        self.outer = mlx_nn.Linear(width, width)

    def __call__(self, x: mx.array) -> mx.array:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        batch, letters, width = x.shape
        projections = self.inner(x).reshape(batch, letters, 3, self.heads, width // self.heads)
        query, key, value = (projections[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scale = (width // self.heads) ** -0.5
        attention_output = mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask="causal")
        return self.outer(attention_output.transpose(0, 2, 1, 3).reshape(batch, letters, width))


class MLXBlock(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """One layer of the model."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = mlx_nn.LayerNorm(width), mlx_nn.LayerNorm(width)
        self.attention = MLXAttention(width, heads)
        self.network = mlx_nn.Sequential(
            mlx_nn.Linear(width, 4 * width), mlx_nn.GELU(), mlx_nn.Linear(4 * width, width)
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Returns a tensor of the shape of x, (batch, letters, width)."""
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class MLXGPT(mlx_nn.Module):  # type: ignore[misc, name-defined]
    """Predicts the next letter after each letter of a text.

    Args:
        letters, width, heads, layers, context: see `TorchGPT`.
    """

    def __init__(self, letters: int, width: int, heads: int, layers: int, context: int) -> None:
        super().__init__()
        self.letters, self.places = mlx_nn.Embedding(letters, width), mlx_nn.Embedding(context, width)
        self.blocks = [MLXBlock(width, heads) for _ in range(layers)]
        self.norm = mlx_nn.LayerNorm(width)
        self.head = mlx_nn.Linear(width, letters, bias=False)

    def __call__(self, numbers: mx.array) -> mx.array:
        """Returns the logits (batch, length, letters)."""
        x = self.letters(numbers) + self.places(mx.arange(numbers.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
