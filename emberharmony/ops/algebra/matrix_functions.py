"""Functions of matrices by their decompositions: the exponential, solutions by a Cholesky factor, the factors L and U.

The last two axes hold the matrices; the other axes are batches. Integers become the default float; half precision is
computed in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.numeric.promotion import as_inexact, promote
from emberharmony.core.results import PLUResult
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.creation import arange, eye, tril, triu
from emberharmony.ops.arrays.indexing import where
from emberharmony.ops.arrays.shape import expand_dims, matrix_transpose
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.elementwise.complex_numbers import conj
from emberharmony.ops.flow.transforms import stop_gradient
from emberharmony.ops.logic.comparison import equal, greater, isfinite
from emberharmony.ops.math import absolute, add, multiply, subtract
from emberharmony.ops.reductions.reduction import max, sum
from emberharmony.ops.solver import lu_factor, solve, solve_triangular, to_compute_dtype
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared import solver as shared_solver
    from emberharmony.backend.shared.algebra import lapack as shared_lapack
    from emberharmony.backend.shared.algebra import matrix_functions as shared_matrix_functions
else:
    shared_lapack = Deferred("emberharmony.backend.shared.algebra.lapack")
    shared_matrix_functions = Deferred("emberharmony.backend.shared.algebra.matrix_functions")
    shared_solver = Deferred("emberharmony.backend.shared.solver")


@op(along="matrix", reads="host")
def expm(x: TensorLike) -> Tensor:
    """Returns the exponential of square matrices, `I + x + x @ x / 2 + …`; NaN for a matrix that is not finite.

    The norms of the matrices are read on the host, which forces evaluation on MLX.

    Args:
        x: square matrices (..., n, n), real or complex; integers become the default float.

    Raises:
        ShapeError: if the matrices are not square.

    See also: `matrix_power`, of whole exponents; `exp`, element by element.

    Example:
        >>> ops.expm([[0.0, 0.0], [0.0, 0.0]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
    """
    result_dtype = as_inexact(dtype_of(x))
    a = to_compute_dtype(shared_solver.require_square(x))
    if not a.shape[-1]:
        return cast(a, result_dtype)
    norm = max(sum(absolute(stop_gradient(a)), -2), -1, initial=0.0)
    is_finite_matrix = expand_dims(isfinite(norm), (-2, -1))
    degree = 7 if dtype_of(norm).bits == 32 else 13
    squaring_counts = shared_matrix_functions.squaring_counts(
        to_numpy(where(isfinite(norm), norm, 0.0)), shared_matrix_functions.PADE[degree]
    )
    halving_factors = convert_to_tensor(
        shared_matrix_functions.halving_factors(squaring_counts), dtype_of(norm), device=get_device(a)
    )
    exponential = _pade_approximant(
        multiply(where(is_finite_matrix, a, 0.0), expand_dims(halving_factors, (-2, -1))), degree
    )
    for done_squarings in range(squaring_counts.max(initial=0)):
        needs_squaring = expand_dims(
            greater(convert_to_tensor(squaring_counts, device=get_device(a)), done_squarings), (-2, -1)
        )
        # A matrix that is done would overflow if it were squared again, and make the gradient NaN.
        unsquared = where(needs_squaring, exponential, 0.0)
        exponential = where(needs_squaring, matmul(unsquared, unsquared), exponential)
    return cast(where(is_finite_matrix, exponential, float("nan")), result_dtype)


def _pade_approximant(a: Tensor, degree: int) -> Tensor:
    """Returns the Padé approximant of the exponential of matrices, whose norms are small."""
    pade_coefficients = shared_matrix_functions.pade_coefficients(degree)
    even_terms = multiply(eye(a.shape[-1], dtype=dtype_of(a), device=get_device(a)), pade_coefficients[0])
    odd_terms, even_power = multiply(even_terms, pade_coefficients[1] / pade_coefficients[0]), None
    squared_a = matmul(a, a)
    for k in range(2, degree, 2):
        even_power = squared_a if even_power is None else matmul(even_power, squared_a)
        even_terms, odd_terms = (
            add(even_terms, multiply(even_power, pade_coefficients[k])),
            add(odd_terms, multiply(even_power, pade_coefficients[k + 1])),
        )
    odd_terms = matmul(a, odd_terms)
    return solve(subtract(even_terms, odd_terms), add(even_terms, odd_terms))


@op(reads="checks")
def cho_solve(c: TensorLike, b: TensorLike, upper: bool = False) -> Tensor:
    """Returns the x that satisfies `a @ x = b`, given the Cholesky factor `c = cholesky(a, upper)`.

    SciPy takes the factor and its triangle as one pair, `cho_solve((c, lower), b)`.

    Args:
        c: the Cholesky factor (..., n, n) of `a`, a triangle; integers become the default float.
        b: a vector (n,) for one right-hand side, or matrices (..., n, k) whose columns are the right-hand sides.
        upper: whether the factor is upper triangular; by default it is lower triangular.

    Raises:
        ShapeError: if `c` is not square, or if `b` does not fit it.
        LinAlgError: if the diagonal of the factor holds a zero.

    See also: `cholesky`, the factor; `solve`, without it.

    Example:
        >>> ops.cho_solve([[2.0, 0.0], [0.0, 1.0]], [8.0, 3.0]).tolist()
        [2.0, 3.0]
    """
    result_dtype = as_inexact(promote(dtype_of(c), dtype_of(b)))
    cholesky_factor = to_compute_dtype(shared_solver.require_square(cast(c, result_dtype)))
    adjoint = conj(matrix_transpose(cholesky_factor))
    lower_factor, upper_factor = (adjoint, cholesky_factor) if upper else (cholesky_factor, adjoint)
    half_solved = solve_triangular(lower_factor, to_compute_dtype(cast(b, result_dtype)), True)
    return cast(solve_triangular(upper_factor, half_solved, False), result_dtype)


@op(along="matrix", reads="host")
def lu(x: TensorLike) -> PLUResult:
    """Returns P, L and U with `x = P @ L @ U`: a permutation, a lower triangle of unit diagonal, an upper triangle.

    The pivots are read on the host. `lu_factor` returns L and U in one matrix, and the pivots.

    Shape: (..., m, n) to (..., m, m), (..., m, k) and (..., k, n), where k is the smaller of m and n.

    Args:
        x: matrices (..., m, n), real or complex; integers become the default float.

    Raises:
        ShapeError: if `x` has fewer than two axes.

    See also: `lu_factor`, packed.

    Example:
        >>> [part.tolist() for part in ops.lu([[0.0, 1.0], [2.0, 4.0]])]
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[2.0, 4.0], [0.0, 1.0]]]
    """
    packed, pivots = lu_factor(x)
    row_count, diagonal_length = packed.shape[-2], pivots.shape[-1]
    dtype, device = dtype_of(packed), get_device(packed)
    row_order = convert_to_tensor(shared_lapack.row_order(to_numpy(pivots), row_count), device=device)
    permutation = equal(expand_dims(arange(row_count, device=device), -1), expand_dims(row_order, -2))
    lower = add(tril(packed[..., :, :diagonal_length], -1), eye(row_count, diagonal_length, dtype=dtype, device=device))
    return PLUResult(cast(permutation, dtype), lower, triu(packed[..., :diagonal_length, :]))
