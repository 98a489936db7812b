"""Activations, on PyTorch: the fused kernels where they give the same results and are faster."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from emberharmony.backend.promote import direct, nonnegative_axes
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number

Native = Callable[..., torch.Tensor]
_FLOATING = "{0}.dtype.is_floating_point"


def _softmax_op(native: Callable[[torch.Tensor, int], torch.Tensor]) -> Any:
    """Returns a softmax over one axis, or over several, which are joined into one for the kernel."""

    @fast(native, f"{{1}}.__class__ is int and {{0}}.ndim and {_FLOATING}")
    def softmax(x: torch.Tensor, axis: Any = -1) -> torch.Tensor:
        x, axes = promotion.floats(x), nonnegative_axes(axis, x.ndim)
        if isinstance(axis, int):
            return native(x, axis)
        if not x.numel():
            return x.clone()
        kept_axes = [a for a in range(x.ndim) if a not in axes]
        axis_order = [*kept_axes, *axes]
        permuted_x = x.permute(*axis_order)
        flat_result = native(permuted_x.reshape([*permuted_x.shape[: len(kept_axes)], -1]), -1).reshape(
            permuted_x.shape
        )
        return flat_result.permute(*sorted(range(x.ndim), key=axis_order.__getitem__))

    return softmax


def _call_by_option(native: Native, composed: Native, x: torch.Tensor, option: Any) -> torch.Tensor:
    """Returns the result of a kernel that takes its option as a Python number, and else that of the composite."""
    return native(promotion.floats(x), option) if is_number(option) else composed(x, option)


class TorchActivationOps:
    """Holds the ops of `ops/neural/activation.py`.

    PyTorch's kernels read and write each element once, and differentiate themselves: the bodies take 2 to 17 times as
    long, for few elements, and their gradients up to 14 times.
    """

    composed: Callable[[str], Native]

    log_sigmoid = direct(functional.logsigmoid)
    selu = direct(functional.selu)
    softmax = staticmethod(_softmax_op(torch.softmax))
    log_softmax = staticmethod(_softmax_op(torch.log_softmax))

    # Above its threshold the kernel returns `x`. A threshold of 40 makes that exact in float64; the default of 20 not.
    @fast(functional.softplus, promotion.inexact, plain=promotion.plain_inexact, arguments="{0}, 1, 40")
    def softplus(self, x: torch.Tensor) -> torch.Tensor:
        return functional.softplus(promotion.floats(x), 1, 40)

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
    def hard_shrink(self, x: torch.Tensor, threshold: Any = 0.5) -> torch.Tensor:
        return self.composed("hard_shrink")(x, threshold)

    @fast(functional.threshold, _FLOATING)
    def threshold(self, x: torch.Tensor, threshold: Any, default_value: Any) -> torch.Tensor:
        return self.composed("threshold")(x, threshold, default_value)

    @fast(functional.softshrink, _FLOATING)
    def soft_shrink(self, x: torch.Tensor, threshold: Any = 0.5) -> torch.Tensor:
        return _call_by_option(functional.softshrink, self.composed("soft_shrink"), x, threshold)

    @fast(functional.leaky_relu, _FLOATING)
    def leaky_relu(self, x: torch.Tensor, negative_slope: Any = 0.2) -> torch.Tensor:
        return _call_by_option(functional.leaky_relu, self.composed("leaky_relu"), x, negative_slope)

    @fast(functional.elu, _FLOATING)
    def elu(self, x: torch.Tensor, alpha: Any = 1.0) -> torch.Tensor:
        return _call_by_option(functional.elu, self.composed("elu"), x, alpha)

    # The derivative of `celu` (PyTorch 2.13) has 1 / alpha rounded to float32; see `docs/upstream.md`.
    @fast(functional.celu, f"{_FLOATING} and {{0}}.dtype is not native_float64")
    def celu(self, x: torch.Tensor, alpha: Any = 1.0) -> torch.Tensor:
        if x.dtype is torch.float64:
            return self.composed("celu")(x, alpha)
        return _call_by_option(functional.celu, self.composed("celu"), x, alpha)

    @fast(functional.glu, _FLOATING)
    def glu(self, x: torch.Tensor, axis: int = -1) -> torch.Tensor:
        nonnegative_axes(axis, x.ndim)
        if x.itemsize == 2 and x.is_floating_point():
            # The forward mode of functional.glu (PyTorch 2.13) has no half precision.
            return self.composed("glu")(x, axis)
        return functional.glu(promotion.floats(x), axis)

    def gelu(self, x: torch.Tensor, approximate: bool = True) -> torch.Tensor:
        if x.is_complex():
            return self.composed("gelu")(x, approximate)
        return functional.gelu(promotion.floats(x), approximate="tanh" if approximate else "none")
