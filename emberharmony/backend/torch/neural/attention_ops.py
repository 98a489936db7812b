"""Attention, on PyTorch: the fused kernel, except in derivatives that it does not have."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention import SDPBackend

from emberharmony.backend.torch.derivatives import run_engine
from emberharmony.backend.torch.tracing import HAS_VALUES, in_functional_transform, is_unwatched
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import attention as shared_attention
else:
    shared_attention = Deferred("emberharmony.backend.shared.neural.attention")


def _supports_fused_kernel(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None
) -> bool:
    """Returns whether the fused kernel may compute the attention.

    The kernel (PyTorch 2.13) has no forward mode, and `_Attention` cannot be compiled, so the composite runs there. It
    also runs in half precision, where no number is low enough for the additive mask, inside of `vmap`, which calls the
    kernel for one element after the other, and for the gradient of the bias, for which the kernel is slow.
    """
    dtype = query.dtype
    if not (dtype is torch.float32 or dtype is torch.float64):
        return False
    is_mapped, is_recorded = in_functional_transform(), torch.is_grad_enabled()
    is_traced = is_mapped or torch.compiler.is_compiling()
    for x in (query, key, value, bias):
        if x is not None:
            if x.dtype is not dtype or not x.numel():
                return False
            if is_recorded and x.requires_grad and (is_traced or x is bias):
                return False
            if is_mapped and torch._C._functorch.is_batchedtensor(x):
                return False
    return forward_ad._current_level < 0


_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_GRADIENTS = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
_FLASH_CHOICE = SDPBackend.FLASH_ATTENTION.value


class _Attention(torch.autograd.Function):
    """The autograd function of fused attention with a fused gradient; higher derivatives are the composite's.

    A training step of attention takes 1.4 to 5 times as long with the composite, which stores all scores.
    """

    @staticmethod
    def forward(
        ctx: Any, kernel_options: dict[str, Any], options: tuple[Any, ...], *operands: torch.Tensor
    ) -> torch.Tensor:
        """Returns the attention of query, key and value."""
        with torch.enable_grad():
            ctx.leaves = [x.detach().requires_grad_(x.requires_grad) for x in operands]
            ctx.result = _call_kernel(*ctx.leaves, **kernel_options)
        ctx.options = options
        ctx.save_for_backward(*operands)
        attention: torch.Tensor = ctx.result.detach()
        return attention

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients of query, key and value."""
        operands = ctx.saved_tensors  # which raises in a second pass if the graph was not kept
        if torch.is_grad_enabled():
            return None, None, *_gradients_of_composite(operands, ctx.options, cotangent)
        result, leaves = ctx.result, ctx.leaves
        keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph()
        if not keeps_graph:
            ctx.result = ctx.leaves = None  # frees the memory
        return None, None, *_gradients(result, leaves, cotangent, is_differentiated=False, keeps_graph=keeps_graph)


class _FlashAttention(torch.autograd.Function):
    """Computes what `_Attention` does by PyTorch's kernel for the CPU itself, without a graph inside: 18 µs less."""

    @staticmethod
    def forward(
        ctx: Any, kernel_options: dict[str, Any], options: tuple[Any, ...], *operands: torch.Tensor
    ) -> torch.Tensor:
        """Returns the attention of query, key and value."""
        ctx.is_causal, ctx.scale, ctx.options = kernel_options["is_causal"], kernel_options["scale"], options
        result, logarithms = _FLASH(*(x.transpose(1, 2) for x in operands), 0.0, ctx.is_causal, scale=ctx.scale)
        ctx.save_for_backward(*operands, result, logarithms)
        attention: torch.Tensor = result.transpose(1, 2)
        return attention

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients of query, key and value."""
        *operands, result, logarithms = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, *_gradients_of_composite(operands, ctx.options, cotangent)
        factors = [x.transpose(1, 2) for x in (cotangent, *operands)]
        gradients = _FLASH_GRADIENTS(*factors, result, logarithms, 0.0, ctx.is_causal, scale=ctx.scale)
        return None, None, *(gradient.transpose(1, 2) for gradient in gradients)


def _gradients_of_composite(
    operands: Sequence[torch.Tensor], options: tuple[Any, ...], cotangent: torch.Tensor
) -> list[torch.Tensor | None]:
    """Returns the gradients of query, key and value, which can be differentiated."""
    leaves = [x.view_as(x) for x in operands]  # two may be one tensor
    attention = op_globals.torch_backend.composed("dot_product_attention")(*leaves, *options)
    keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph()
    return _gradients(attention, leaves, cotangent, is_differentiated=True, keeps_graph=keeps_graph)


def _gradients(
    result: torch.Tensor,
    leaves: Sequence[torch.Tensor],
    cotangent: torch.Tensor,
    is_differentiated: bool,
    keeps_graph: bool,
) -> list[torch.Tensor | None]:
    """Returns the gradients of a result by leaves, None for those that require none."""
    needed_leaves = [x for x in leaves if x.requires_grad]
    gradients = iter(run_engine(result, needed_leaves, cotangent, is_differentiated, keeps_graph))
    return [next(gradients) if x.requires_grad else None for x in leaves]


def _attend(
    operands: tuple[torch.Tensor, torch.Tensor, torch.Tensor], kernel_options: dict[str, Any], options: tuple[Any, ...]
) -> torch.Tensor:
    """Returns the fused attention, recorded if it may be differentiated.

    Args:
        operands: query, key and value.
        kernel_options: the options of PyTorch's function.
        options: the arguments of the op after the operands.
    """
    if _needs_gradient(*operands):
        function_class = _FlashAttention if _uses_flash_kernel(*operands, **kernel_options) else _Attention
        recorded_outputs: torch.Tensor = function_class.apply(kernel_options, options, *operands)  # type: ignore[no-untyped-call]
        return recorded_outputs
    return _call_kernel(*operands, **kernel_options)


def _uses_flash_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    scale: float | None,
    attn_mask: torch.Tensor | None = None,
    enable_gqa: bool = False,
) -> bool:
    """Returns whether PyTorch's function would call its kernel for the CPU with these operands, unchanged, and no mask.

    A block of `sdpa_kernel` may forbid the kernel, and one of `torch.autocast` may round the operands.
    """
    if attn_mask is not None or enable_gqa or not query.is_cpu or torch.is_autocast_enabled("cpu"):
        return False
    heads_first = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    return torch._fused_sdp_choice(*heads_first, None, 0.0, is_causal, scale=scale) == _FLASH_CHOICE


def _needs_gradient(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)


def _call_kernel(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **kernel: Any) -> torch.Tensor:
    return functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), **kernel
    ).transpose(1, 2)


def _quick_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: None,
    mask: None,
    scale: Any,
    is_causal: bool,
    *_: Any,
) -> torch.Tensor:
    """Returns the fused attention of tensors of one shape, or of another number of queries or of their heads."""
    q, k = query.shape, key.shape
    if k != value.shape or len(k) != 4 or 0 in q or 0 in k or forward_ad._current_level >= 0:
        raise NotImplementedError
    if q != k and (len(q) != 4 or q[0] != k[0] or q[2] % k[2] or q[3] != k[3]):
        raise NotImplementedError
    kernel_options = {"is_causal": is_causal, "scale": scale, "enable_gqa": q[2] != k[2]}
    return _attend((query, key, value), kernel_options, (bias, mask, scale, is_causal))


_PLAIN = (
    "{3} is None and {4} is None and ({5} is None or {5}.__class__ is float) and {6}.__class__ is bool and {8} is None "
    "and {9}.__class__ is float and not {9} and {0}.dtype is {1}.dtype is {2}.dtype "
    "and ({0}.dtype is native_float32 or {0}.dtype is native_float64) "
    f"and {HAS_VALUES}"
)
"""When nothing is added to the logits."""


def _additive_mask(
    bias: torch.Tensor | None, mask: torch.Tensor | None, is_causal: bool, query: torch.Tensor, keys: int
) -> torch.Tensor | None:
    """Returns the additive mask: the bias, and for masked keys a number so low that it absorbs the logit."""
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask != 0
    if is_causal:
        is_earlier = torch.ones(query.shape[1], keys, dtype=torch.bool, device=query.device).tril()
        mask = is_earlier if mask is None else mask & is_earlier
    if mask is not None:
        base_bias = query.new_zeros(()) if bias is None else bias
        bias = torch.where(mask, base_bias, torch.finfo(query.dtype).min * 0.5)
    # The kernel expects a mask of at least two axes (PyTorch 2.13).
    return bias if bias is None or bias.ndim > 1 else bias.reshape(1, -1)


def _neutralize_empty_rows(query: torch.Tensor, additive_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns queries and an additive mask, both changed where all keys are masked, so that the attention is that of 0.

    The gradient of the kernel divides by sums of weights that are lost where all logits are as low as the mask, and it
    reaches the queries and keys of a row on which their product has no influence.
    """
    has_key = (additive_mask > torch.finfo(query.dtype).min * 0.25).any(-1, keepdim=True)
    additive_mask = torch.where(has_key, additive_mask, 0.0)
    key_rows = has_key.reshape(*(1,) * (4 - has_key.ndim), *has_key.shape)
    return torch.where(key_rows.transpose(1, 2), query, 0.0), additive_mask


def _table_on_device(table: np.ndarray, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    # A tensor that is made in inference mode could not be used outside of it.
    with torch.inference_mode(False):
        return torch.from_numpy(table).to(device, dtype)


class TorchAttentionOps:
    """Holds the ops of `ops/neural/attention.py`.

    PyTorch's kernel need not store the scores; the bodies take 2.4 times (attention) and 10 times as long, for few
    elements.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    @fast(_quick_attention, _PLAIN)
    def dot_product_attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        bias: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
        scale: Any = None,
        is_causal: bool = False,
        flash_attention: bool | None = None,
        attn_logits_soft_cap: Any = None,
        dropout_rate: Any = 0.0,
        seed: Any = None,
        empty_rows: str = "mean",
    ) -> torch.Tensor:
        if empty_rows != "mean" and not (bias is None and mask is None):
            composed_op, logit_cap = self.composed("dot_product_attention"), attn_logits_soft_cap
            return composed_op(
                query, key, value, bias, mask, scale, is_causal, None, logit_cap, dropout_rate, seed, empty_rows
            )
        shared_attention.check_attention(query, key, value, bias, mask)
        is_supported = (
            attn_logits_soft_cap is None
            and (scale is None or is_number(scale))
            and is_number(dropout_rate)
            and not dropout_rate
        )
        options = (bias, mask, scale, is_causal, None, attn_logits_soft_cap, dropout_rate, seed)
        if not is_supported or not _supports_fused_kernel(query, key, value, bias):
            return self.composed("dot_product_attention")(query, key, value, *options)
        additive_mask = _additive_mask(
            bias, mask, is_causal and not (bias is None and mask is None), query, key.shape[1]
        )
        if mask is not None and additive_mask is not None and _needs_gradient(query, key, value):
            query, additive_mask = _neutralize_empty_rows(query, additive_mask)
        kernel_options = {
            "attn_mask": additive_mask,
            "is_causal": is_causal and additive_mask is None,
            "scale": scale,
            "enable_gqa": query.shape[2] != key.shape[2],
        }
        return _attend((query, key, value), kernel_options, options)

    def rope(
        self,
        x: torch.Tensor,
        dims: int | None = None,
        offset: Any = 0,
        traditional: bool = False,
        base: Any = 10000.0,
        scale: Any = 1.0,
        frequencies: Any = None,
        axis: int = 1,
    ) -> torch.Tensor:
        position_axis = shared_attention.supported_position_axis(
            x.shape, dims, offset, traditional, base, scale, frequencies, axis
        )
        if position_axis is None or x.dtype not in (torch.float32, torch.float64) or not is_unwatched(x):
            return self.composed("rope")(x, dims, offset, traditional, base, scale, frequencies, axis)
        dtype_and_device = x.dtype, x.device
        cosine, sine = shared_attention.rotation_tables(
            x.shape,
            offset,
            position_axis,
            base,
            scale,
            dtype_and_device,
            lambda table: _table_on_device(table, *dtype_and_device),
        )
        return torch.addcmul(x * cosine, x.roll(x.shape[-1] // 2, -1), sine)
