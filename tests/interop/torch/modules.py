"""Small modules of PyTorch, each with what was lost in silence by a simpler capture."""

import copy
import functools
from typing import Any

import numpy as np
import torch
from torch import nn

import emberharmony
from emberharmony.interop.torch.captured import Captured
from emberharmony.interop.torch.running import Modes


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


class Operators(nn.Module):
    """One call of many operators, so that one capture checks them all."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(x(4, 4)), nn.Parameter(x(4))
        self.register_buffer("order", torch.tensor([[1, 0, 3, 2], [2, 3, 0, 0], [0, 1, 1, 3], [3, 3, 3, 0]]))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y, order, f = x + self.w, self.order, torch.nn.functional
        image = y.reshape(1, 1, 4, 4)
        return [
            torch.addmm(self.b, y, self.w, beta=0.5, alpha=2.0),
            y.clamp(min=self.b),
            y.cumsum(1),
            y.cummax(0)[0],
            y.gather(1, order),
            y.scatter_add(1, order[:, :2], self.w[:, :2]),
            y.scatter_reduce(1, order, self.w, "amax"),
            y.index_add(0, order[0], self.w),
            y.index_put((order[0], order[1]), self.b, accumulate=True),
            y.topk(2, dim=0)[0],
            y.sort(1)[0],
            y.mode(1)[0],
            y.nanmedian(0)[0],
            torch.linalg.lu_factor(y)[0],
            y.kthvalue(2, 1)[0],
            y.masked_fill(y > 0.5, 0.0),
            y.softmax(0),
            y.log_softmax(1),
            y.logsumexp(1),
            y.var(1, correction=0),
            y.std((0, 1)),
            y.norm(dim=1),
            y.prod(1),
            y.roll(1, 0),
            y.flip(1),
            y.tril(1),
            y.unfold(1, 2, 1),
            y.diagonal(1),
            y.as_strided((2, 2), (1, 4), 1),
            torch.where(y > 0, y, self.b),
            torch.cdist(y, self.w),
            torch.einsum("ij,jk,k->i", y, self.w, self.b),
            torch.lerp(y, self.w, 0.3),
            f.conv2d(image, self.w[None, None, :3, :3], padding=1),
            f.conv_transpose2d(image, self.w[None, None, :2, :2], stride=2),
            f.avg_pool2d(image, 3, 2, 1, count_include_pad=False),
            f.max_pool2d(image, 2, 1),
            f.adaptive_avg_pool2d(image, 3),
            f.interpolate(image, size=(5, 7), mode="bilinear", align_corners=True),
            f.pad(image, (1, 2, -1, 1), mode="constant", value=1.5),
            f.group_norm(y, 2, self.b, self.b),
            f.gelu(y, approximate="tanh"),
            f.softplus(y, 2.0),
            f.grid_sample(
                image, y[:2, :2].reshape(1, 1, 2, 2), mode="bicubic", padding_mode="border", align_corners=False
            ),
            f.grid_sample(image, y[:2, :2].reshape(1, 1, 2, 2) * 0.7, align_corners=True),
            f.embedding_bag(order, self.w, mode="mean"),
            f.embedding(order, self.w),
            f.one_hot(order, 5) * 1.0,
            f.cross_entropy(y, order[0]),
            f.smooth_l1_loss(y, self.w, beta=0.3),
        ]


class Conv1D(nn.Module):
    """A linear layer whose weight is transposed, with the attributes of that of transformers."""

    def __init__(self, nf: int, nx: int) -> None:
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight, self.bias = nn.Parameter(x(nx, nf)), nn.Parameter(x(nf))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.addmm(self.bias, x.reshape(-1, self.nx), self.weight)
        return rows.reshape(*x.shape[:-1], self.nf)


class Layers(nn.Module):
    """One of each layer that is the same function here."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1, groups=2)
        self.same = nn.Conv1d(4, 4, 2, padding="same", dilation=2, bias=False)
        self.table, self.line = nn.Embedding(5, 32, padding_idx=1), nn.Linear(32, 32)
        self.norm, self.groups = nn.LayerNorm(32, eps=1e-3), nn.GroupNorm(2, 4)
        self.root = nn.RMSNorm(32)

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        y = self.groups(self.same(self.conv(x)))
        return self.root(self.norm(self.line(y)) + self.table(tokens).mean(1, keepdim=True))


class OtherOptions(nn.Module):
    """Layers whose parameters are used in another way, or that do more than one function."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.around = nn.Conv1d(4, 4, 3), nn.Conv1d(4, 4, 3, padding=1, padding_mode="circular")
        self.norm, self.line, self.short = nn.LayerNorm(4), nn.Linear(4, 4), nn.Embedding(5, 4, max_norm=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        f = torch.nn.functional
        y = f.conv1d(x, self.conv.weight, self.conv.bias, padding=2)
        y = f.layer_norm(self.around(y)[..., :4], (4,), self.norm.weight, self.norm.bias, eps=0.1)
        return f.linear(y, self.line.weight) + f.linear(y, self.line.weight, self.norm.bias)


class ModesOf(Base):
    """A layer that is called in evaluation only, and in training by its parameters."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x) if not self.training else x @ self.a.weight)


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
    "operators": (Operators, (x(4, 4),)),
    "layers": (Layers, (x(2, 4, 32), torch.tensor([[1, 4], [0, 2]]))),
    "other_options": (OtherOptions, (x(2, 4, 4),)),
    "modes": (ModesOf, (x(2, 4),)),
}


def made(name: str) -> nn.Module:
    """Returns the module of a case, with the same values each time."""
    torch.manual_seed(0)
    return CASES[name][0]()


def copy_of(name: str) -> Captured:
    """Returns a captured module that reads the table of ATen anew."""
    net = copy.deepcopy(captured(name))
    net._modes = Modes(net.graphs, net.source)
    return net


@functools.cache
def captured(name: str) -> Captured:
    """Returns the captured module of a case; tests leave its parameters as they are."""
    dynamic = True if name == "shapes" else None
    return emberharmony.from_torch(made(name), CASES[name][1], dynamic=dynamic)
