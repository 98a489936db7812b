"""Linear algebra with derivatives, on MLX: LAPACK on the host reads MLX's memory without a copy.

Matrices are float32, float64 or complex64. The differential of a function `f` is `_f_moved` (see
`derivatives.Differential`), those of decompositions are in `shared.solver_derivatives`.
"""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.derivatives import Arrays, Differential, Function, ReverseRule, with_own_derivatives
from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.backend.shared.algebra import lapack
from emberharmony.backend.shared.algebra.solver_derivatives import Differentials
from emberharmony.backend.shared.solver import require_square


def import_array(array: np.ndarray) -> mx.array:
    """Returns a copy of a host array as a tensor of the same dtype; complex128 becomes complex64."""
    # Without a dtype MLX 0.32 would narrow float64 to float32.
    dtype_name = "complex64" if array.dtype.kind == "c" else array.dtype.name
    return of_host(array, promotion.dtypes[dtype_name])


def wrap_host_function(function: Function, *options: Any) -> Function:
    """Returns a function of `backend.shared.algebra.lapack` as a function of MLX arrays, without derivatives."""

    def call_on_host(*tensors: mx.array) -> Any:
        host_result = function(*map(np.asarray, tensors), *options)
        return tuple(map(import_array, host_result)) if isinstance(host_result, tuple) else import_array(host_result)

    return call_on_host


def lapack_function(
    function: Function, differential: Differential, pull: ReverseRule | None = None, *options: Any
) -> Function:
    """Returns a function of `backend.shared.algebra.lapack` as a function of MLX arrays, with derivatives.

    Args:
        function: the function of host arrays.
        differential: its differential.
        pull: its reverse mode, if it is not to be derived from the differential.
        options: further arguments of `function`.
    """
    return with_derivatives(wrap_host_function(function, *options), differential, pull, True)


def with_derivatives(
    function: Function, differential: Differential, pull: ReverseRule | None = None, read: bool = False
) -> Function:
    """Returns a function with derivatives of its own, which empty inputs do not get, because MLX 0.32 can hang then.

    Args:
        function: a function of MLX arrays.
        differential: its differential.
        pull: its reverse mode, if it is not to be derived from the differential.
        read: whether `function` reads its arguments on the host.
    """
    smooth_function = with_own_derivatives(function, differential, pull, read)
    return lambda *tensors: smooth_function(*tensors) if all(x.size for x in tensors) else function(*tensors)


def _divide_by_triangle(x: mx.array, r: mx.array) -> mx.array:
    """Returns `x @ inv(triu(r))`, where only the leading square block of `r` counts."""
    return x @ _inverse_of_upper(r)


def _similarity_transform(vectors: mx.array, x: mx.array) -> mx.array:
    """Returns `inv(vectors) @ x @ vectors`."""
    return inv(vectors) @ x @ vectors


def _congruence_transform(factor: mx.array, x: mx.array) -> mx.array:
    """Returns `inv(factor) @ x @ adjoint(inv(factor))`."""
    inverse = _inverse_of_lower(factor)
    return inverse @ x @ adjoint(inverse)


_RULES = Differentials(
    mx,
    is_complex,
    mx.stop_gradient,
    same=lambda gaps: gaps == 0,
    over=_divide_by_triangle,
    within=_congruence_transform,
    similar=_similarity_transform,
)
adjoint = _RULES.adjoint


def _trace_of_product(x: mx.array, y: mx.array) -> mx.array:
    return mx.sum(x * mx.swapaxes(y, -1, -2), axis=(-2, -1))


def _inv_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    return (-(outputs[0] @ tangents[0] @ outputs[0]),)


inv = lapack_function(lapack.inv, _inv_tangent)


def _apply_to_valid(function: Function, x: mx.array, is_invalid: mx.array) -> mx.array:
    """Returns `function(x)`, with NaN for the matrices that `is_invalid` marks.

    For these MLX would return arbitrary numbers, or raise an error only when the result is computed. So the function
    gets identity matrices in their place.
    """
    is_invalid = mx.stop_gradient(is_invalid)[..., None, None]
    valid_output: mx.array = function(mx.where(is_invalid, mx.eye(x.shape[-1], dtype=x.dtype), x))
    return mx.where(is_invalid, mx.array(mx.nan, x.dtype), valid_output)


_lazy_inv = with_derivatives(lambda x: mx.linalg.inv(x, stream=mx.cpu), _inv_tangent)


def _triangle_inverter(triangle_of: Callable[[Any, Any], Any], upper: bool, unit: bool = False) -> Function:
    """Returns a function that inverts a triangular part of matrices; for real matrices it is lazy.

    Args:
        triangle_of: called as `triangle_of(xp, x)`, returns the triangular part; `xp` is NumPy or MLX.
        upper: whether the part is the upper triangle.
        unit: whether the diagonal is 1, and `triangle_of` leaves it out.
    """

    def full_triangle(xp: Any, x: Any) -> Any:
        triangle = triangle_of(xp, x)
        return triangle + xp.eye(triangle.shape[-1], dtype=x.dtype) if unit else triangle

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (-(outputs[0] @ triangle_of(mx, tangents[0]) @ outputs[0]),)

    invert_lazily = with_derivatives(
        lambda x: mx.linalg.tri_inv(full_triangle(mx, x), upper, stream=mx.cpu), push_tangents
    )
    invert_on_host = lapack_function(lambda x: np.linalg.inv(full_triangle(np, x)), push_tangents)
    return lambda x: invert_on_host(x) if is_complex(x) else invert_lazily(x)


def _leading_square(x: Any) -> Any:
    """Returns the largest leading square block of matrices."""
    k = min(x.shape[-2:])
    return x[..., :k, :k]


_inverse_of_lower = _triangle_inverter(lambda xp, x: xp.tril(x), False)
_inverse_of_upper = _triangle_inverter(lambda xp, x: xp.triu(_leading_square(x)), True)
_inverse_of_unit_lower = _triangle_inverter(lambda xp, x: xp.tril(_leading_square(x), -1), False, unit=True)


def _lazy_adjugate(x: mx.array) -> mx.array:
    """Returns the adjugates of real matrices by their singular values, which works for singular matrices too."""
    u, s, vh = mx.linalg.svd(x, stream=mx.cpu)
    diagonal_mask = mx.eye(s.shape[-1], dtype=mx.bool_)
    products_of_others = mx.prod(mx.where(diagonal_mask, mx.ones_like(s)[..., None], s[..., None, :]), -1)
    unit_determinant = mx.linalg.det(u, stream=mx.cpu) * mx.linalg.det(vh, stream=mx.cpu)
    # The determinants of the orthogonal factors are 1 or -1.
    return mx.round(unit_determinant)[..., None, None] * (adjoint(vh) * products_of_others[..., None, :]) @ adjoint(u)


def _adjugate_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    # The tangent divides by the determinant, so the determinant's second derivative is infinite for singular matrices.
    (cofactors,) = outputs
    cofactor_products = cofactors @ tangents[0]
    adjugate_tangent = (
        mx.sum(_RULES.diagonal(cofactor_products), -1)[..., None, None] * cofactors - cofactor_products @ cofactors
    )
    determinant = _trace_of_product(cofactors, primals[0]) / cofactors.shape[-1]
    return (adjugate_tangent / determinant[..., None, None],)


_hosted_adjugate, _real_adjugate = (
    lapack_function(lapack.adjugate, _adjugate_tangent),
    with_derivatives(_lazy_adjugate, _adjugate_tangent),
)


def _det_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    """Returns the tangent of a determinant, also for singular matrices; for real matrices it is lazy."""
    (x,) = primals
    if is_complex(x):
        cofactors = _hosted_adjugate(x)
    else:
        cofactors = _apply_to_valid(_real_adjugate, x, ~mx.all(mx.isfinite(x), (-2, -1)))
    return (_trace_of_product(cofactors, tangents[0]),)


def _slogdet_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    """Returns the tangents of the sign and the logarithm of a determinant; for real matrices they are lazy."""
    (x,), sign = primals, outputs[0]
    inverse = inv(x) if is_complex(x) else _apply_to_valid(_lazy_inv, x, mx.abs(sign) != 1)
    log_derivative = _trace_of_product(inverse, tangents[0])
    return (
        _RULES.imaginary_part(log_derivative) * sign if is_complex(sign) else mx.zeros_like(sign)
    ), _RULES.real_part(log_derivative)


def _det(x: mx.array) -> mx.array:
    if x.dtype == mx.float32:
        return mx.linalg.det(x, stream=mx.cpu)
    # mx.linalg.det (MLX 0.32) computes float64 with the precision of float32, so use the diagonal of the LU factors.
    factors, pivots = mx.linalg.lu_factor(x, stream=mx.cpu)
    is_swapped = (pivots != mx.arange(x.shape[-1], dtype=pivots.dtype)).astype(x.dtype)
    return mx.prod(mx.diagonal(factors, 0, -2, -1) * (1 - 2 * is_swapped), -1)


def _slogdet(x: mx.array) -> tuple[mx.array, mx.array]:
    sign, logarithm = mx.linalg.slogdet(x, stream=mx.cpu)
    # If the determinant is NaN, so is its sign.
    return mx.where(mx.isnan(logarithm), logarithm, sign), logarithm


_lazy_det, _hosted_det = with_derivatives(_det, _det_tangent), lapack_function(lapack.det, _det_tangent)
_lazy_slogdet = with_derivatives(_slogdet, _slogdet_tangent)
_hosted_slogdet = lapack_function(lapack.slogdet, _slogdet_tangent)


def _is_lazy(x: mx.array) -> bool:
    """Returns whether MLX itself, which is lazy, can compute the determinants of square matrices.

    Raises:
        ShapeError: if the matrices are not square.
    """
    return bool(require_square(x).size) and not is_complex(x)


def det(x: mx.array) -> Any:
    """Returns the determinants of square matrices."""
    return _lazy_det(x) if _is_lazy(x) else _hosted_det(x)


def slogdet(x: mx.array) -> Any:
    """Returns the signs and the logarithms of the absolute values of the determinants of square matrices."""
    return _lazy_slogdet(x) if _is_lazy(x) else _hosted_slogdet(x)


def _linear_solver(function: Function, inverse: Function, part: Function, *options: Any) -> Function:
    """Returns the function that solves `part(a) @ x = b`, where `b` is a matrix.

    Args:
        function: the solver on host arrays, called as `function(a, b, *options)`.
        inverse: returns the inverse of `part(a)`.
        part: returns the part of `a` that the solver reads.
        options: further arguments of `function`.
    """

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (inverse(primals[0]) @ (tangents[1] - part(tangents[0]) @ outputs[0]),)

    def pull_cotangents(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        b_cotangent = adjoint(inverse(primals[0])) @ cotangents[0]
        return part(-(b_cotangent @ adjoint(outputs[0]))), b_cotangent

    return lapack_function(function, push_tangents, pull_cotangents, *options)


solve = _linear_solver(lapack.solve, inv, lambda a: a)
solve_lower = _linear_solver(lapack.solve_triangular, _inverse_of_lower, mx.tril, True)
solve_upper = _linear_solver(lapack.solve_triangular, _inverse_of_upper, mx.triu, False)


cholesky = lapack_function(lapack.cholesky, _RULES.cholesky)


def qr(x: mx.array, mode: str, positive: bool) -> Any:
    """Returns the factors Q and R; `mode` is "reduced" or "complete"."""
    return lapack_function(lapack.qr, _RULES.qr, None, mode, positive)(x)


def svd(x: mx.array, full_matrices: bool) -> Any:
    """Returns the factors U and Vh of the singular value decomposition, and between them the singular values."""
    return lapack_function(lapack.svd, _RULES.svd, None, full_matrices)(x)


def _svdvals_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    return (_RULES.singular_values(svd(primals[0], False), tangents[0]),)


svdvals = lapack_function(lapack.svdvals, _svdvals_tangent)


eigh = lapack_function(lapack.eigh, _RULES.eigh)


def _eigvalsh_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    _, vectors = eigh(primals[0])
    return (_RULES.real_part(_RULES.diagonal(adjoint(vectors) @ _RULES.hermitian_part(tangents[0]) @ vectors)),)


eigvalsh = lapack_function(lapack.eigvalsh, _eigvalsh_tangent)


eig = lapack_function(lapack.eig, _RULES.eig)


def _eigvals_tangent(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    _, vectors = eig(primals[0])
    return (_RULES.diagonal(_similarity_transform(vectors, tangents[0].astype(vectors.dtype))),)


eigvals = lapack_function(lapack.eigvals, _eigvals_tangent)


def lu(x: mx.array) -> tuple[mx.array, mx.array]:
    """Returns the LU decomposition: the triangular factors packed in one matrix, and the pivots, counted from 0."""
    # The pivots are integers without a derivative, so only the factors go through `with_derivatives`.
    packed_factors, pivots = map(np.asarray, lapack.lu_factor(np.asarray(x)))
    row_order = of_host(lapack.row_order(pivots, x.shape[-2]))

    def push_tangents(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return _lu_tangent(outputs[0], mx.take_along_axis(tangents[0], row_order[..., None], -2))

    return with_derivatives(lambda _: import_array(packed_factors), push_tangents, read=True)(x), import_array(pivots)


def _lu_tangent(packed: mx.array, tangent: mx.array) -> Arrays:
    """Returns the tangent of the packed factors; `tangent` is that of the matrix, with its rows in pivoted order."""
    k = min(packed.shape[-2:])
    lower, upper = mx.tril(packed[..., :k, :k], -1) + mx.eye(k, dtype=packed.dtype), mx.triu(packed[..., :k, :k])
    inverse_lower, inverse_upper = _inverse_of_unit_lower(packed), _inverse_of_upper(packed)
    scaled_tangent = inverse_lower @ tangent[..., :k, :k] @ inverse_upper
    lower_block_tangent, upper_block_tangent = lower @ mx.tril(scaled_tangent, -1), mx.triu(scaled_tangent) @ upper
    packed_tangent = lower_block_tangent + upper_block_tangent
    if packed.shape[-1] > k:
        right_tangent = inverse_lower @ (tangent[..., k:] - lower_block_tangent @ packed[..., k:])
        packed_tangent = mx.concatenate([packed_tangent, right_tangent], -1)
    if packed.shape[-2] > k:
        lower_tangent = (tangent[..., k:, :] - packed[..., k:, :] @ upper_block_tangent) @ inverse_upper
        packed_tangent = mx.concatenate([packed_tangent, lower_tangent], -2)
    return (packed_tangent,)
