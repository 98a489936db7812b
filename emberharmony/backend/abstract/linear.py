"""The shapes and dtypes of the results of products, decompositions and Fourier transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.abstract.rules import Rule, call_with_one_element, dtype_from, resized_shape
from emberharmony.backend.shared.algebra.products import check_factors, check_subscripts
from emberharmony.backend.shared.arrays.shape import require_matrices
from emberharmony.backend.shared.images.fft import accept_fft_length, axis_and_length
from emberharmony.backend.shared.solver import check_qr_mode, check_sides, require_square
from emberharmony.core.axes import broadcast_shape
from emberharmony.transforms.abstract_tensor import AbstractTensor

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend

Shapes = Callable[[AbstractTensor], Sequence[Sequence[int]]]


def _decomposition_rule(shapes: Shapes) -> Rule:
    """Returns the rule for the shapes of a decomposition, made of the function that gives the shapes of its results."""

    def decompose(backend: AbstractBackend, name: str, x: AbstractTensor, *options: Any) -> Any:
        return _result_tensors(backend, shapes(x), call_with_one_element(backend, name, x, *options))

    return Rule(decompose)


def _result_tensors(backend: AbstractBackend, shapes: Sequence[Sequence[int]], operand: Any) -> Any:
    """Returns tensors of these shapes with the dtypes of the wrapped backend's results, in the same named tuple."""
    if not isinstance(operand, tuple):
        return backend.tensor_of(shapes[0], operand.dtype)
    result_tensors = [
        backend.tensor_of(shape, operand_tensor.dtype) for shape, operand_tensor in zip(shapes, operand, strict=True)
    ]
    return type(operand)(*result_tensors) if type(operand) is not tuple else tuple(result_tensors)


def _batch_shape(x: AbstractTensor) -> tuple[int, ...]:
    return require_square(x).shape[:-2]


def _solution_tensor(backend: AbstractBackend, name: str, a: AbstractTensor, b: AbstractTensor, *options: Any) -> Any:
    check_sides(a, b)
    dtype = dtype_from(backend, name, a, b, *options)
    if b.ndim == 1:
        return backend.tensor_of(a.shape[:-1], dtype)
    return backend.tensor_of((*broadcast_shape([a.shape[:-2], b.shape[:-2]]), *b.shape[-2:]), dtype)


def _transform_rule(halves: bool = False, halved: bool = False) -> Rule:
    """Returns the rule for the shape and dtype of a Fourier transform.

    Args:
        halves: whether the result is the non-negative half of a spectrum.
        halved: whether the input is.
    """

    def transform(
        backend: AbstractBackend,
        name: str,
        x: AbstractTensor,
        n: int | None = None,
        axis: int = -1,
        norm: str = "backward",
    ) -> Any:
        axis_index, length = axis_and_length(x.shape, n, axis, norm, halved)
        shape = resized_shape(x.shape, axis_index, length // 2 + 1 if halves else length)
        return backend.tensor_of(shape, dtype_from(backend, name, x, 1, axis, norm))

    def transform_by_either_name(backend: AbstractBackend, name: str, *args: Any, **kwargs: Any) -> Any:
        return accept_fft_length(functools.partial(transform, backend, name))(*args, **kwargs)

    return Rule(transform_by_either_name)


class AbstractLinear:
    """Holds the primitives of `ops/algebra/products.py`, `ops/solver.py` and `ops/images/fft_ops.py`."""

    det = _decomposition_rule(lambda x: [_batch_shape(x)])
    slogdet = _decomposition_rule(lambda x: [_batch_shape(x)] * 2)
    inv = _decomposition_rule(lambda x: [require_square(x).shape])
    cholesky = _decomposition_rule(lambda x: [require_square(x).shape])
    eigh = _decomposition_rule(lambda x: [require_square(x).shape[:-1], x.shape])
    eig = _decomposition_rule(lambda x: [require_square(x).shape[:-1], x.shape])
    lu_factor = _decomposition_rule(lambda x: [require_matrices(x).shape, (*x.shape[:-2], min(x.shape[-2:]))])
    # Dask asks for the shape of both while it is the active backend, which the ops of a body would then run on.
    solve, solve_triangular = Rule(_solution_tensor), Rule(_solution_tensor)
    fft, ifft, rfft, irfft = (
        _transform_rule(),
        _transform_rule(),
        _transform_rule(halves=True),
        _transform_rule(halved=True),
    )

    tensor_of: Any

    @Rule
    def qr(self: Any, name: str, x: AbstractTensor, mode: str = "reduced", positive: bool = True) -> Any:
        check_qr_mode(mode)
        *batch_shape, row_count, column_count = require_matrices(x).shape
        inner_length = row_count if mode == "complete" else min(row_count, column_count)
        return _result_tensors(
            self,
            [(*batch_shape, row_count, inner_length), (*batch_shape, inner_length, column_count)],
            call_with_one_element(self, name, x, mode, positive),
        )

    @Rule
    def svd(self: Any, name: str, x: AbstractTensor, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        *batch_shape, row_count, column_count = require_matrices(x).shape
        inner_length = min(row_count, column_count)
        sample_result = call_with_one_element(self, name, x, full_matrices, compute_uv)
        if not compute_uv:
            return self.tensor_of((*batch_shape, inner_length), sample_result.dtype)
        left_length, right_length = (row_count, column_count) if full_matrices else (inner_length, inner_length)
        return _result_tensors(
            self,
            [
                (*batch_shape, row_count, left_length),
                (*batch_shape, inner_length),
                (*batch_shape, right_length, column_count),
            ],
            sample_result,
        )

    @Rule
    def matmul(self: Any, name: str, x1: AbstractTensor, x2: AbstractTensor) -> AbstractTensor:
        check_factors(x1.shape, x2.shape)
        batch_shape = broadcast_shape([x1.shape[:-2], x2.shape[:-2]])
        shape = (*batch_shape, *x1.shape[-2:-1], *(x2.shape[-1:] if x2.ndim > 1 else ()))
        return self.tensor_of(shape, dtype_from(self, name, x1, x2))

    @Rule
    def einsum(self: Any, name: str, subscripts: str, *operands: AbstractTensor) -> AbstractTensor:
        check_subscripts(subscripts, *(x.shape for x in operands))
        dtype = dtype_from(self, name, subscripts, *operands)
        return self.tensor_of(_einsum_shape(subscripts, [x.shape for x in operands]), dtype)


def _einsum_shape(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the shape of the result of an einsum expression that was checked."""
    operand_subscripts, arrow, result_subscripts = subscripts.replace(" ", "").partition("->")
    length_by_letter: dict[str, int] = {}
    batch_shapes = []
    for term, shape in zip(operand_subscripts.split(","), shapes, strict=True):
        leading_letters, dots, trailing_letters = term.partition("...")
        trailing_start = len(shape) - len(trailing_letters)
        if dots:
            batch_shapes.append(shape[len(leading_letters) : trailing_start])
        for letter, length in [
            *zip(leading_letters, shape, strict=False),
            *zip(trailing_letters, shape[trailing_start:], strict=True),
        ]:
            length_by_letter[letter] = length if length_by_letter.get(letter, 1) == 1 else length_by_letter[letter]
    batch_shape = broadcast_shape(batch_shapes)
    if not arrow:
        single_letters = sorted(letter for letter in length_by_letter if operand_subscripts.count(letter) == 1)
        return (*batch_shape, *(length_by_letter[letter] for letter in single_letters))
    leading_letters, dots, trailing_letters = result_subscripts.partition("...")
    return (
        *(length_by_letter[letter] for letter in leading_letters),
        *(batch_shape if dots else ()),
        *(length_by_letter[letter] for letter in trailing_letters),
    )
