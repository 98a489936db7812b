"""Activations, normalisations and losses, on PyTorch: the fused kernels where they mean the same and are faster.

Left to the composites are `batch_normalization`, whose kernel knows no gradient of the statistics and loses digits
where the mean is large (200 times the error at 1e4), and `rms_normalization` and `binary_crossentropy` of
probabilities, whose kernels are no faster.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import functional

from emberharmony.backend.promote import normalized
from emberharmony.backend.torch.derivatives import is_nested
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.dispatch import fast

Native = Callable[..., torch.Tensor]
_FLOATING = "{0}.dtype.is_floating_point"


def _over_axes(native: Callable[[torch.Tensor, int], torch.Tensor]) -> Any:
    """Returns a softmax over one axis or several, which are joined to one."""

    @fast(native, f"{{1}}.__class__ is int and {{0}}.ndim and {_FLOATING}")
    def softmax(x: torch.Tensor, axis: Any = -1) -> torch.Tensor:
        x, axes = promotion.floats(x), normalized(axis, x.ndim)
        if isinstance(axis, int):
            return native(x, axis)
        if not x.numel():
            return x.clone()
        kept = [a for a in range(x.ndim) if a not in axes]
        order = [*kept, *axes]
        moved = x.permute(*order)
        flat = native(moved.reshape([*moved.shape[: len(kept)], -1]), -1).reshape(moved.shape)
        return flat.permute(*sorted(range(x.ndim), key=order.__getitem__))

    return softmax


def _is_fused(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Returns whether the fused attention may be called.

    It has no second derivatives and no forward mode, and training it is no faster: where a derivative may be asked for
    the composite is run. Half precision is left to it too, in which no number is low enough to mask with.
    """
    tensors = (query, key, value) if bias is None else (query, key, value, bias)
    if forward_ad._current_level >= 0 or (torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return False
    suited = query.dtype in (torch.float32, torch.float64) and all(t.dtype is query.dtype for t in tensors)
    return suited and query.ndim == 4 and query.numel() > 0 and key.numel() > 0 and query.shape[2] % key.shape[2] == 0


def _mask(
    bias: torch.Tensor | None, mask: torch.Tensor | None, is_causal: bool, query: torch.Tensor, keys: int
) -> torch.Tensor | None:
    """Returns what is added to the products, so low where a key is not looked at that the product is lost in it."""
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask != 0
    if is_causal:
        earlier = torch.ones(query.shape[1], keys, dtype=torch.bool, device=query.device).tril()
        mask = earlier if mask is None else mask & earlier
    if mask is not None:
        nothing = query.new_zeros(()) if bias is None else bias
        bias = torch.where(mask, nothing, torch.finfo(query.dtype).min * 0.5)
    # PyTorch takes no vector.
    return bias if bias is None or bias.ndim > 1 else bias.reshape(1, -1)


class TorchNnOps:
    """Holds the ops of `ops/nn.py` and `ops/activation.py`."""

    composed: Callable[[str], Native]

    log_sigmoid = staticmethod(promotion.unary(functional.logsigmoid))
    selu = staticmethod(promotion.unary(functional.selu))
    # Beyond its threshold the kernel returns x: at 40 that is exact in float64 too.
    softplus = staticmethod(promotion.unary(lambda x: functional.softplus(x, 1.0, 40.0)))
    softmax = staticmethod(_over_axes(torch.softmax))
    log_softmax = staticmethod(_over_axes(torch.log_softmax))

    @fast(torch.sigmoid, _FLOATING)
    def sigmoid(self, x: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x, ("complex",))
        return torch.sigmoid(promotion.floats(x))

    @fast(functional.silu, _FLOATING)
    def silu(self, x: torch.Tensor) -> torch.Tensor:
        promotion.refuse(x, ("complex",))
        return functional.silu(promotion.floats(x))

    @fast(torch.relu, _FLOATING)
    def relu(self, x: torch.Tensor) -> torch.Tensor:
        return self.composed("relu")(x)

    @fast(functional.hardshrink, _FLOATING)
    def hard_shrink(self, x: torch.Tensor, threshold: float = 0.5) -> torch.Tensor:
        return self.composed("hard_shrink")(x, threshold)

    @fast(functional.threshold, _FLOATING)
    def threshold(self, x: torch.Tensor, threshold: float, default_value: float) -> torch.Tensor:
        return self.composed("threshold")(x, threshold, default_value)

    @staticmethod
    @fast(functional.softshrink, _FLOATING)
    def soft_shrink(x: torch.Tensor, threshold: float = 0.5) -> torch.Tensor:
        return functional.softshrink(promotion.floats(x), threshold)

    @staticmethod
    @fast(functional.leaky_relu, _FLOATING)
    def leaky_relu(x: torch.Tensor, negative_slope: float = 0.2) -> torch.Tensor:
        return functional.leaky_relu(promotion.floats(x), negative_slope)

    @staticmethod
    @fast(functional.elu, _FLOATING)
    def elu(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
        return functional.elu(promotion.floats(x), alpha)

    @staticmethod
    @fast(functional.celu, _FLOATING)
    def celu(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
        return functional.celu(promotion.floats(x), alpha)

    @staticmethod
    @fast(functional.glu, _FLOATING)
    def glu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
        normalized(axis, x.ndim)
        return functional.glu(promotion.floats(x), axis)

    def gelu(self, x: torch.Tensor, approximate: bool = True) -> torch.Tensor:
        if x.is_complex():
            return self.composed("gelu")(x, approximate)
        return functional.gelu(promotion.floats(x), approximate="tanh" if approximate else "none")

    def sparse_categorical_crossentropy(
        self, target: torch.Tensor, output: torch.Tensor, from_logits: bool = False, axis: int = -1
    ) -> torch.Tensor:
        plain = target.dtype is torch.int64 and target.shape == output.shape[:-1] and output.is_floating_point()
        if not (plain and from_logits and axis == -1):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        known = (target >= 0) & (target < output.shape[-1])
        place = torch.where(known, target, 0).unsqueeze(-1)
        lost = torch.log_softmax(output, -1).gather(-1, place).squeeze(-1).neg()
        return torch.where(known, lost, 0)

    def layer_normalization(
        self,
        x: torch.Tensor,
        gamma: torch.Tensor | None = None,
        beta: torch.Tensor | None = None,
        axis: Any = -1,
        epsilon: float = 1e-3,
    ) -> torch.Tensor:
        length = x.shape[-1:]
        plain = all(t is None or (t.dtype is x.dtype and t.shape == length) for t in (gamma, beta))
        if axis == -1 and length and plain and x.is_floating_point() and not is_nested(x):
            return functional.layer_norm(x, length, gamma, beta, epsilon)
        return self.composed("layer_normalization")(x, gamma, beta, axis, epsilon)

    def dot_product_attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        bias: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
        scale: float | None = None,
        is_causal: bool = False,
    ) -> torch.Tensor:
        if not _is_fused(query, key, value, bias):
            return self.composed("dot_product_attention")(query, key, value, bias, mask, scale, is_causal)
        added = _mask(bias, mask, is_causal and not (bias is None and mask is None), query, key.shape[1])
        return functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            added,
            is_causal=is_causal and added is None,
            scale=scale,
            enable_gqa=query.shape[2] != key.shape[2],
        ).transpose(1, 2)
