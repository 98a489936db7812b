"""Products by quantised matrices, on PyTorch: by the packed integers, with gradients that keep nothing else."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from emberharmony.backend.shared.neural.quantization import (
    NARROW,
    check_columns,
    check_options,
    check_packed,
    check_product,
)
from emberharmony.backend.torch.dtypes import DTYPES, promotion
from emberharmony.backend.torch.neural import quantized_columns
from emberharmony.backend.torch.tracing import HAS_VALUES, in_functional_transform
from emberharmony.core.cells.forms import Form
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.dispatch import fast

_OPTIONS = 4
"""How many arguments of `_Product` are not tensors: the composite and its options."""

_NARROW = tuple(DTYPES[name] for name in NARROW)

_ROWS = 64
"""The integers of so many rows become float32 numbers at a time, which stay in the cache of a core."""


_BY_COLUMNS = (
    "{1}.__class__ is native_type and {1}.dtype is uint8_of_torch "
    "and {0}.dtype is {2}.dtype is {3}.dtype is native_float32 "
    "and {4} is True and {5}.__class__ is {6}.__class__ is int "
    f"and not ({{0}}.requires_grad or {{2}}.requires_grad or {{3}}.requires_grad) and {HAS_VALUES}"
)
"""When a layer multiplies a tensor that has no gradient."""


def _quick_product(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor,
    transpose: bool,
    group_size: int,
    bits: int,
) -> torch.Tensor:
    """Returns the product by columns; PyTorch raises if the shapes do not fit."""
    if not x.numel() or forward_ad._current_level >= 0:
        raise NotImplementedError
    return quantized_columns.product(x, w, scales, biases, group_size, bits)


class TorchQuantizationOps:
    """Holds the ops of `ops/neural/quantization.py`.

    On a CPU the body takes 20 times as long, and for its gradient it would keep the values of the whole matrix.
    """

    composed: Callable[[str], Callable[..., torch.Tensor]]

    @fast(_quick_product, _BY_COLUMNS)
    def quantized_matmul(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor,
        *,
        transpose: bool = True,
        group_size: int = 64,
        bits: int = 4,
    ) -> torch.Tensor:
        check_options(group_size, bits)
        if w.dtype == torch.uint8:
            check_columns(w.shape, scales.shape, biases.shape, group_size)
            check_product(x.shape, (len(scales), len(w) * bits // 32), transpose, bits)
        else:
            check_packed(DTYPES.neutral[w.dtype].name, w.shape, scales.shape, biases.shape, group_size, bits)
            check_product(x.shape, w.shape, transpose, bits)
        arguments = self, transpose, group_size, bits, x, w, scales, biases
        if _is_transformed():
            # torch.compile (PyTorch 2.13) chooses by itself what it keeps for the gradient.
            return _product_by_composite(*arguments)
        is_recorded = torch.is_grad_enabled() and (x.requires_grad or scales.requires_grad or biases.requires_grad)
        product_function: Callable[..., torch.Tensor] = _Product.apply if is_recorded else _quantized_product
        return product_function(*arguments)

    @staticmethod
    def takes_layouts(x: Any) -> bool:
        """Returns whether `x` is a tensor of PyTorch on the CPU."""
        return x.__class__ is torch.Tensor and x.is_cpu

    def quantized_forms(self, w: Any, scales: Any, biases: Any, bits: int) -> tuple[Form, Any, Any] | None:
        """Returns the integers by columns, and scales and biases whose groups are rows in memory."""
        are_on_cpu = all(array.__class__ is torch.Tensor and array.is_cpu for array in (w, scales, biases))
        if not are_on_cpu or scales.dtype not in _NARROW or not w.numel() or _is_transformed():
            return None
        row_count = len(w)
        with torch.inference_mode(False), torch.no_grad():
            table = quantized_columns.columns_of(w, bits)
            scales, biases = (array.mT.contiguous().mT for array in (scales, biases))
        return Form(table, self.home, lambda: _packed_words(table, row_count, bits)), scales, biases  # type: ignore[attr-defined]

    @staticmethod
    def quantized_rows(table: torch.Tensor, indices: Any, rows: int, bits: int) -> torch.Tensor:
        """Returns rows of a matrix by columns, in words."""
        return quantized_columns.rows_of(table, indices, rows, bits)


def _is_transformed() -> bool:
    """Returns whether a compiler or a transform traces what is computed now."""
    return torch.compiler.is_compiling() or forward_ad._current_level >= 0 or in_functional_transform()


def _packed_words(table: torch.Tensor, rows: int, bits: int) -> HostBits:
    with torch._C._DisableFuncTorch(), torch.inference_mode(False), torch.no_grad():
        return HostBits(quantized_columns.words_of(table, rows, bits).numpy(), "uint32")


def _product_by_composite(
    ops: Any,
    transpose: bool,
    group_size: int,
    bits: int,
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor,
) -> torch.Tensor:
    """Returns the product by the body of the op."""
    if w.dtype == torch.uint8:
        w = quantized_columns.words_of(w, len(scales), bits)
    composite: Callable[..., torch.Tensor] = ops.composed("quantized_matmul")
    return composite(x, w, scales, biases, transpose=transpose, group_size=group_size, bits=bits)


def _quantized_product(
    ops: Any,
    transpose: bool,
    group_size: int,
    bits: int,
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor,
) -> torch.Tensor:
    """Returns the product by words or by columns, without a record for gradients of its parts."""
    result_dtype = promotion.native_result_dtype(x, scales, biases)
    if result_dtype not in _NARROW or not (x.is_cpu and x.numel() and w.numel()):
        return _product_by_composite(ops, transpose, group_size, bits, x, w, scales, biases)
    x, scales, biases = x.float(), scales.float(), biases.float()
    if w.dtype == torch.uint8:
        product_function = quantized_columns.product if transpose else quantized_columns.transposed_product
        return product_function(x, w, scales, biases, group_size, bits).to(result_dtype)
    product = _product_by_rows(x.reshape(-1, x.shape[-1]), w, scales, biases, transpose, bits)
    return product.to(result_dtype).reshape(*x.shape[:-1], -1)


def _product_by_rows(
    x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, transpose: bool, bits: int
) -> torch.Tensor:
    """Returns `x @ matrix.T`, or `x @ matrix`, in float32, where w has the integers in words."""
    row_count, group_count = scales.shape
    weight_bytes, plane_count = w.contiguous().view(torch.uint8), 8 // bits
    vector_count, width = len(x), weight_bytes.shape[1]
    factors_by_plane = (
        [x[:, i::plane_count].T.contiguous() for i in range(plane_count)] if transpose else [x] * plane_count
    )
    results_by_plane = [
        torch.zeros((row_count, vector_count) if transpose else (vector_count, width)) for _ in range(plane_count)
    ]
    for start in range(0, row_count, _ROWS):
        row_slice = slice(start, start + _ROWS)
        for i, (plane_factor, plane_result) in enumerate(zip(factors_by_plane, results_by_plane, strict=True)):
            numbers = (
                weight_bytes[row_slice]
                if plane_count == 1
                else weight_bytes[row_slice] >> 4
                if i
                else weight_bytes[row_slice] & 15
            )
            scaled_weights = (
                numbers.float().view(-1, group_count, width // group_count).mul_(scales[row_slice, :, None]).flatten(1)
            )
            if transpose:
                plane_result[row_slice].addmm_(scaled_weights, plane_factor)
            else:
                plane_result.addmm_(plane_factor[:, row_slice], scaled_weights)
    if transpose:
        return torch.addmm(sum(results_by_plane).T, x.view(vector_count, group_count, -1).sum(-1), biases.T)  # type: ignore[union-attr]
    stacked_results = torch.stack(results_by_plane, -1).view(vector_count, group_count, -1)
    return stacked_results.add_((x @ biases)[..., None]).flatten(1)


class _Product(torch.autograd.Function):
    """Multiplies by a quantised matrix, and keeps the packed integers for the gradient."""

    @staticmethod
    def forward(*arguments: Any) -> torch.Tensor:
        """Returns the product."""
        return _quantized_product(*arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Saves the arguments."""
        ctx.options = inputs[:_OPTIONS]
        ctx.save_for_backward(*inputs[_OPTIONS:])

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> Any:
        """Returns the gradients by `x`, the scales and the biases."""
        ops, transpose, group_size, bits = ctx.options
        x, w, scales, biases = ctx.saved_tensors
        x_gradient = scales_gradient = biases_gradient = None
        if ctx.needs_input_grad[_OPTIONS]:
            gradient: torch.Tensor = _Product.apply(  # type: ignore[no-untyped-call]
                ops, not transpose, group_size, bits, cotangent, w, scales, biases
            )
            x_gradient = gradient.to(x.dtype)
        if any(ctx.needs_input_grad[_OPTIONS + 2 :]):
            wide_dtype = torch.promote_types(torch.promote_types(x.dtype, cotangent.dtype), torch.float32)
            row_factor, column_factor = (
                rows.to(wide_dtype).reshape(-1, rows.shape[-1])
                for rows in ((cotangent, x) if transpose else (x, cotangent))
            )
            products_by_group = (row_factor.mT @ column_factor).reshape(*scales.shape, group_size)
            biases_gradient = products_by_group.sum(-1).to(biases.dtype)
            words = quantized_columns.words_of(w, len(scales), bits) if w.dtype == torch.uint8 else w
            numbers = quantized_columns.unpacked_integers(words, bits).reshape(products_by_group.shape)
            scales_gradient = (products_by_group * numbers).sum(-1).to(scales.dtype)
        return *(None,) * _OPTIONS, x_gradient, None, scales_gradient, biases_gradient
