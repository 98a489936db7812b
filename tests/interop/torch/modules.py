"""Small modules of PyTorch, each with what was lost in silence by a simpler capture."""

import functools
from typing import Any

import numpy as np
import torch
from torch import nn

import emberharmony
from emberharmony.interop.torch.captured import Captured


class Base(nn.Module):
    """Two linear layers and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)


class NoGrad(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            h = self.a(x)
        return self.b(h) + h + self.a(x.detach() * 2).detach()


class InPlace(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x).clone()
        y[:, 1:3] += 2.0
        y.view(-1).mul_(3)
        y.t()[0].add_(1)
        return self.b(y.relu_())


class Kinks(Base):
    """Inputs at the bounds of hardtanh and clamp, a row of padding, and ties."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(5, 4, padding_idx=1)

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        rows = self.e(tokens)
        zero = self.a.weight - self.a.weight.detach()
        at = torch.nn.functional.hardtanh(zero + 1) + torch.nn.functional.relu6(zero + 6) + (zero + 1).clamp(-1, 1)
        return self.b(x) + rows + at + (zero + 2).max(dim=0)[0]


class Scalars(Base):
    """Tensors without axes, which do not promote in PyTorch, and gathering with short indices."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(2.0, dtype=torch.float64))
        self.register_buffer("order", torch.tensor([[1, 0], [2, 3]]))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        y = self.a(x) * self.scale
        short = y.gather(1, self.order)
        put = torch.zeros_like(y).scatter(0, self.order[:1], short.detach()) + torch.tensor(0.5)
        return {"y": y, "parts": (short, put), "n": 3}


class Masked(nn.Module):
    """Attention in which a query has no key."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Linear(4, 12)
        self.register_buffer("mask", torch.tensor([[True, False, True], [False, False, False], [True, True, True]]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.p(x)[None].chunk(3, dim=-1)
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)
        bias = torch.zeros(3, 3).masked_fill(~self.mask, -torch.inf)
        return found + torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class Norms(nn.Module):
    """Batch norm with its statistics, layer norm, convolution, and a counter that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.c, self.n = nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4)
        self.l = nn.LayerNorm(4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        y = torch.nn.functional.max_pool2d(self.n(self.c(x)), 2)
        return self.l(y.mean((2, 3))) * self.count


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.r, self.g = nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), nn.GRU(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, (h, c) = self.r(x[None])
        return self.g(y)[0] + h.sum() + c.sum()


class Shapes(Base):
    """A batch of any length, and a branch on it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x) if x.shape[0] > 1 else self.b(x)
        return y.reshape(x.shape[0] * 2, -1) / x.shape[0] + torch.arange(x.shape[0] * 2)[:, None]


class Tied(nn.Module):
    """A table that is also the last layer, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.e, self.out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.out.weight = self.e.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.e(tokens)))


def x(*shape: int) -> torch.Tensor:
    """Returns the same numbers for a shape each time."""
    return torch.tensor(np.random.default_rng(7).normal(size=shape).astype("float32"))


TOKENS = torch.tensor([1, 3, 0])

CASES: dict[str, tuple[type[nn.Module], tuple[torch.Tensor, ...]]] = {
    "no_grad": (NoGrad, (x(3, 4),)),
    "in_place": (InPlace, (x(3, 4),)),
    "kinks": (Kinks, (x(3, 4)[:1], TOKENS[:, None])),
    "scalars": (Scalars, (x(4, 4),)),
    "masked": (Masked, (x(3, 4),)),
    "norms": (Norms, (x(3, 2, 4, 4),)),
    "recurrent": (Recurrent, (x(3, 4),)),
    "shapes": (Shapes, (x(3, 4),)),
    "tied": (Tied, (TOKENS,)),
}


def made(name: str) -> nn.Module:
    """Returns the module of a case, with the same values each time."""
    torch.manual_seed(0)
    return CASES[name][0]()


@functools.cache
def captured(name: str) -> Captured:
    """Returns the captured module of a case; tests leave its parameters as they are."""
    dynamic = True if name == "shapes" else None
    return emberharmony.from_torch(made(name), CASES[name][1], dynamic=dynamic)
