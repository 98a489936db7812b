"""Gradient rules of the ops in `ops/solver.py`.

Decompositions of complex matrices are not holomorphic functions. Their rules are written as in the literature, with
the conjugate of the tape's cotangent, and `_conjugated` adapts them.
Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
Murray, "Differentiation of the Cholesky decomposition" (2016); Townsend, "Differentiating the singular value
decomposition" (2016); Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020).

The bodies compute on the host, where the tape cannot follow; the gradient of that of `solve_triangular` takes 1.2 times
as long.
"""

import functools
from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.algebra.lapack import NEARLY, row_order
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import arange, eye, tril, triu
from emberharmony.ops.arrays.indexing import get_item, take_along_axis, where
from emberharmony.ops.arrays.shape import concatenate, expand_dims, flip, matrix_transpose, squeeze
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import conj, imag, real
from emberharmony.ops.logic.comparison import equal, greater_equal
from emberharmony.ops.math import absolute, add, divide, multiply, negative, reciprocal, square, subtract
from emberharmony.ops.reductions.reduction import any as any_
from emberharmony.ops.reductions.reduction import argmax
from emberharmony.ops.reductions.reduction import max as max_
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.ops.reductions.sorting import argsort
from emberharmony.ops.solver import det, inv, solve, solve_triangular, svd
from emberharmony.ops.tensor import cast, to_numpy
from emberharmony.rules.reductions.reduction import products_before

T = Any


def _adjoint(x: T) -> T:
    return conj(matrix_transpose(x))


def _conjugate_rule(rule: Callable[..., T]) -> Callable[..., T]:
    """Returns a rule in the convention of the tape, from one that takes and returns conjugated gradients."""

    def pull_back(g: T, *arguments: Any) -> T:
        return conj(rule([conj(component) for component in g] if isinstance(g, list) else conj(g), *arguments))

    return pull_back


def _scale_matrices(weight: T, matrices: T) -> T:
    """Returns matrices `(..., m, n)`, each multiplied by its number in `weight` `(...)`."""
    return multiply(expand_dims(weight, (-2, -1)), matrices)


def _inv_gradient(g: T, y: T, x: T) -> T:
    inverse_transpose = matrix_transpose(y)
    return negative(matmul(matmul(inverse_transpose, g), inverse_transpose))


def _solver_rule(solver: Callable[..., T], triangle: Callable[..., T]) -> Callable[..., list[T]]:
    """Returns the gradient rule of an op that solves systems of linear equations.

    Args:
        solver: solves the transposed system.
        triangle: sets to zero the elements of a gradient of `a` that the op does not read.
    """

    def pull_back(g: T, y: T, a: T, b: T, *options: Any) -> list[T]:
        is_vector = len(b.shape) == 1
        if is_vector:
            g, y = expand_dims(g, -1), expand_dims(y, -1)
        b_gradient = solver(matrix_transpose(a), g, *options)
        a_gradient = triangle(negative(matmul(b_gradient, matrix_transpose(y))), *options)
        return [a_gradient, squeeze(b_gradient, -1) if is_vector else b_gradient]

    return pull_back


def _cofactors(x: T) -> T:
    """Returns the derivative of the determinant, from the SVD: it exists for singular matrices too."""
    u, s, vh = svd(x, False)
    products_of_others = multiply(products_before(s), flip(products_before(flip(s, -1)), -1))
    return _scale_matrices(
        multiply(det(u), det(vh)), conj(matmul(multiply(u, expand_dims(products_of_others, -2)), vh))
    )


def _det_gradient(g: T, y: T, x: T) -> T:
    if any_(equal(y, 0)):  # emberlint: ignore[tensor-truth] -- only singular matrices need the SVD, which is slow
        return _scale_matrices(g, _cofactors(x))
    return _scale_matrices(multiply(g, y), matrix_transpose(inv(x)))


def _halve_diagonal(x: T) -> T:
    """Returns the lower triangle, with the diagonal divided by 2."""
    n = x.shape[-1]
    return multiply(tril(x), subtract(1, multiply(eye(n, dtype=dtype_of(real(x))), 0.5)))


def _hermitian_part(x: T) -> T:
    """Returns the Hermitian part, which is the gradient of a Hermitian matrix, whichever triangle the op reads."""
    return multiply(add(x, _adjoint(x)), 0.5)


def _cholesky_gradient(g: T, y: T, x: T, upper: bool = False) -> T:
    upper_factor, cotangent = (y, _adjoint(g)) if upper else (_adjoint(y), g)
    halved_product = _halve_diagonal(matmul(upper_factor, tril(cotangent)))
    left_solution = solve_triangular(upper_factor, halved_product, False)
    return _hermitian_part(_adjoint(solve_triangular(upper_factor, _adjoint(left_solution), False)))


def _inverse_gaps(eigenvalues: T) -> T:
    """Returns the matrix whose element [i, j] is 1 / (values[j] - values[i]), or 0 where the two are equal.

    Vectors of equal values are not unique; if a loss does not depend on their choice, these terms vanish.
    """
    gaps = subtract(expand_dims(eigenvalues, -2), expand_dims(eigenvalues, -1))
    is_same = equal(gaps, 0)
    return where(is_same, 0.0, reciprocal(where(is_same, 1.0, gaps)))


def _add_phase_cotangent(columns: T, *pairs: tuple[T, T]) -> T:
    """Returns the cotangent of complex columns plus the part that comes from the convention for their phases.

    A singular vector or eigenvector is defined up to its phase. The ops choose the phase that makes the largest
    component real, so the phase varies with the matrix.

    Args:
        columns: the vectors; their largest components are real.
        pairs: (cotangent, vectors): first those of `columns`, then those of other vectors with the same phases.
    """
    magnitudes = absolute(columns)
    is_near_largest = greater_equal(magnitudes, multiply(max_(magnitudes, -2, True), NEARLY))
    positions = expand_dims(arange(columns.shape[-2]), -1)
    pivot_indicators = cast(equal(positions, argmax(is_near_largest, -2, True)), dtype_of(columns))
    phase_turns = [imag(sum_(multiply(conj(g), x), -2, True)) for g, x in pairs]
    total_turn = functools.reduce(add, phase_turns)
    largest_components = sum_(multiply(pivot_indicators, columns), -2, True)
    return add(pairs[0][0], multiply(pivot_indicators, divide(multiply(total_turn, 1j), largest_components)))


def _eigh_gradient(g: list[T], y: T, x: T) -> T:
    eigenvalues, eigenvectors = y
    cotangent = _add_phase_cotangent(eigenvectors, (g[1], eigenvectors)) if dtype_of(x).is_complex else g[1]
    scaled_components = multiply(_inverse_gaps(eigenvalues), matmul(_adjoint(eigenvectors), cotangent))
    n = x.shape[-1]
    scaled_cotangent = add(multiply(eye(n, dtype=dtype_of(eigenvalues)), expand_dims(g[0], -2)), scaled_components)
    return _hermitian_part(matmul(matmul(eigenvectors, scaled_cotangent), _adjoint(eigenvectors)))


def _eig_gradient(g: list[T], y: T, x: T) -> T:
    eigenvalues, eigenvectors = y
    parallel_components = real(sum_(multiply(conj(g[1]), eigenvectors), -2, True))
    cotangent = subtract(
        _add_phase_cotangent(eigenvectors, (g[1], eigenvectors)), multiply(eigenvectors, parallel_components)
    )
    scaled_components = multiply(conj(_inverse_gaps(eigenvalues)), matmul(_adjoint(eigenvectors), cotangent))
    scaled_cotangent = add(
        scaled_components, multiply(eye(x.shape[-1], dtype=dtype_of(eigenvectors)), expand_dims(g[0], -2))
    )
    x_gradient = matmul(solve(_adjoint(eigenvectors), scaled_cotangent), _adjoint(eigenvectors))
    return x_gradient if dtype_of(x).is_complex else real(x_gradient)


def _svd_gradient(g: T, y: T, x: T, full_matrices: bool = True, compute_uv: bool = True) -> T:
    """Returns the gradient of svd, computed from the reduced form.

    The vectors that complete U and Vh to square matrices are not unique, so their cotangents are ignored.
    """
    if not compute_uv:
        u, _, vh = svd(x, False)
        return matmul(multiply(u, expand_dims(g, -2)), vh)
    value_count = y[1].shape[-1]
    column_key, row_key = (..., slice(None), slice(value_count)), (..., slice(value_count), slice(None))
    u, s, vh = get_item(y[0], column_key), y[1], get_item(y[2], row_key)
    gu, gs, gvh = get_item(g[0], column_key), g[1], get_item(g[2], row_key)
    v, gv = _adjoint(vh), _adjoint(gvh)
    if dtype_of(x).is_complex:
        gu = _add_phase_cotangent(u, (gu, u), (gv, v))
    inverse_gaps = _inverse_gaps(square(s))
    values_as_row = expand_dims(s, -2)
    inverse_values = where(equal(values_as_row, 0), 0.0, reciprocal(where(equal(values_as_row, 0), 1.0, values_as_row)))
    left_product, right_product = matmul(_adjoint(u), gu), matmul(_adjoint(v), gv)
    identity = eye(value_count, dtype=dtype_of(s))
    scaled_cotangent = add(
        add(
            multiply(multiply(inverse_gaps, subtract(left_product, _adjoint(left_product))), values_as_row),
            multiply(expand_dims(s, -1), multiply(inverse_gaps, subtract(right_product, _adjoint(right_product)))),
        ),
        multiply(identity, expand_dims(gs, -2)),
    )
    if dtype_of(x).is_complex:
        phase_part = multiply(
            identity, multiply(subtract(left_product, _adjoint(left_product)), multiply(inverse_values, 0.5))
        )
        scaled_cotangent = add(scaled_cotangent, phase_part)
    x_gradient = matmul(matmul(u, scaled_cotangent), vh)
    if x.shape[-2] > value_count:
        orthogonal_part = subtract(gu, matmul(u, left_product))
        x_gradient = add(x_gradient, matmul(multiply(orthogonal_part, inverse_values), vh))
    if x.shape[-1] > value_count:
        orthogonal_part = subtract(gv, matmul(v, right_product))
        x_gradient = add(x_gradient, matmul(u, _adjoint(multiply(orthogonal_part, inverse_values))))
    return x_gradient


def _tall_qr_gradient(gq: T, gr: T, q: T, r: T) -> T:
    upper_product = triu(subtract(matmul(gr, _adjoint(r)), matmul(_adjoint(q), gq)))
    identity = eye(r.shape[-1], dtype=dtype_of(real(r)))
    hermitian_part = multiply(add(upper_product, _adjoint(upper_product)), subtract(1, multiply(identity, 0.5)))
    return _adjoint(solve_triangular(r, _adjoint(add(gq, matmul(q, hermitian_part))), False))


def _qr_gradient(g: list[T], y: T, x: T, mode: str = "reduced", positive: bool = True) -> T:
    m, n = x.shape[-2:]
    if m >= n:
        if mode == "complete" and m > n:
            raise UnsupportedOpError(
                "qr with mode='complete' has no gradient for a matrix with more rows than columns, because the columns "
                "that complete Q are not unique; use mode='reduced'"
            )
        return _tall_qr_gradient(g[0], g[1], *y)
    leading_columns, remaining_columns = (..., slice(m)), (..., slice(m, None))
    extra_cotangent = get_item(g[1], remaining_columns)
    gq = add(g[0], matmul(get_item(x, remaining_columns), _adjoint(extra_cotangent)))
    return concatenate(
        [
            _tall_qr_gradient(gq, get_item(g[1], leading_columns), y[0], get_item(y[1], leading_columns)),
            matmul(y[0], extra_cotangent),
        ],
        -1,
    )


def _lu_factor_gradient(g: list[T], y: T, x: T) -> T:
    """Returns the gradient of lu_factor: first for the permuted rows, then with the rows back in their old order."""
    packed_factors, square_size = y[0], min(x.shape[-2:])
    square_block, right_block = (
        (..., slice(square_size), slice(square_size)),
        (..., slice(square_size), slice(square_size, None)),
    )
    lower_block = (..., slice(square_size, None), slice(square_size))
    square_factors, square_cotangent = get_item(packed_factors, square_block), get_item(g[0], square_block)
    lower_adjoint = _adjoint(add(tril(square_factors, -1), eye(square_size, dtype=dtype_of(packed_factors))))
    upper_adjoint = _adjoint(triu(square_factors))

    def solve_from_right(block: T) -> T:
        return _adjoint(solve_triangular(_adjoint(upper_adjoint), _adjoint(block), False))

    right_gradient = solve_triangular(lower_adjoint, get_item(g[0], right_block), False)
    lower_gradient = solve_from_right(get_item(g[0], lower_block))
    lower_cotangent = subtract(
        tril(square_cotangent, -1), matmul(right_gradient, _adjoint(get_item(packed_factors, right_block)))
    )
    upper_cotangent = subtract(
        triu(square_cotangent), matmul(_adjoint(get_item(packed_factors, lower_block)), lower_gradient)
    )
    factor_gradient = add(
        tril(matmul(lower_adjoint, lower_cotangent), -1), triu(matmul(upper_cotangent, upper_adjoint))
    )
    square_gradient = solve_from_right(solve_triangular(lower_adjoint, factor_gradient, False))
    permuted_gradient = (
        concatenate([concatenate([square_gradient, right_gradient], -1), lower_gradient], -2)
        if x.shape[-2] > square_size
        else concatenate([square_gradient, right_gradient], -1)
    )
    inverse_order = expand_dims(argsort(row_order(to_numpy(y[1]), x.shape[-2])), -1)
    return take_along_axis(permuted_gradient, inverse_order, -2)


def _slogdet_gradient(g: list[T], y: T, x: T) -> T:
    determinant_weight = g[1]
    if dtype_of(x).is_complex:
        determinant_weight = add(determinant_weight, multiply(imag(multiply(g[0], y[0])), 1j))
    return _scale_matrices(determinant_weight, matrix_transpose(inv(x)))


RULES: dict[str, Any] = {
    "det": (_det_gradient,),
    "slogdet": (_slogdet_gradient,),
    "inv": (_inv_gradient,),
    "solve": _solver_rule(solve, lambda whole: whole),
    "solve_triangular": _solver_rule(
        lambda a, b, lower: solve_triangular(a, b, not lower),
        lambda whole, lower: tril(whole) if lower else triu(whole),
    ),
    "cholesky": (_conjugate_rule(_cholesky_gradient),),
    "lu_factor": (_conjugate_rule(_lu_factor_gradient),),
    "qr": (_conjugate_rule(_qr_gradient),),
    "svd": (_conjugate_rule(_svd_gradient),),
    "eigh": (_conjugate_rule(_eigh_gradient),),
    "eig": (_conjugate_rule(_eig_gradient),),
}
