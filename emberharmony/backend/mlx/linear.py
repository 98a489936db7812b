"""Linear algebra with derivatives, on MLX: LAPACK on the host reads MLX's memory without a copy.

Matrices are float32, float64 or complex64. The differential of a function `f` is `_f_moved` (see
`derivatives.Differential`). Factors that are unique only up to phases get the phases that `shared.lapack` chooses, and
the differentials keep them. The differentials are right where the factors are unique: singular values and eigenvalues
are distinct, and matrices have full rank.

Source: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); for complex factors Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from emberharmony.backend.mlx.derivatives import Arrays, Differential, Function, ReverseRule, differentiated
from emberharmony.backend.mlx.dtypes import of_host, promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.backend.shared import lapack
from emberharmony.core.errors import UnsupportedOpError


def imported(array: np.ndarray) -> mx.array:
    """Returns a copy of a host array as a tensor of the same dtype; complex128 becomes complex64."""
    # Without a dtype MLX 0.32 would narrow float64 to float32.
    name = "complex64" if array.dtype.kind == "c" else array.dtype.name
    return of_host(array, promotion.dtypes[name])


def on_host(function: Function, *options: Any) -> Function:
    """Returns a function of `backend.shared.lapack` as a function of MLX arrays, without derivatives."""

    def called(*tensors: mx.array) -> Any:
        result = function(*map(np.asarray, tensors), *options)
        return tuple(map(imported, result)) if isinstance(result, tuple) else imported(result)

    return called


def hosted(function: Function, differential: Differential, pull: ReverseRule | None = None, *options: Any) -> Function:
    """Returns a function of `backend.shared.lapack` as a function of MLX arrays, with derivatives.

    Args:
        function: the function of host arrays.
        differential: its differential.
        pull: its reverse mode, if it is not to be derived from the differential.
        options: further arguments of `function`.
    """
    return smooth(on_host(function, *options), differential, pull, True)


def smooth(
    function: Function, differential: Differential, pull: ReverseRule | None = None, read: bool = False
) -> Function:
    """Adds derivatives to `function`, except for empty inputs: MLX 0.32 can hang when it reduces an empty array.

    Args:
        function: a function of MLX arrays.
        differential: its differential.
        pull: its reverse mode, if it is not to be derived from the differential.
        read: whether `function` reads its arguments on the host.
    """
    derived = differentiated(function, differential, pull, read)
    return lambda *tensors: derived(*tensors) if all(x.size for x in tensors) else function(*tensors)


def adjoint(x: mx.array) -> mx.array:
    """Returns the conjugate transpose of matrices."""
    turned = mx.swapaxes(x, -1, -2)
    return mx.conj(turned) if is_complex(x) else turned


def _hermitian(x: mx.array) -> mx.array:
    return (x + adjoint(x)) / 2


def _diagonal(x: mx.array) -> mx.array:
    return mx.diagonal(x, 0, -2, -1)


def _as_matrix(diagonal: mx.array) -> mx.array:
    return diagonal[..., None] * mx.eye(diagonal.shape[-1], dtype=diagonal.dtype)


def _real(x: mx.array) -> mx.array:
    return mx.real(x) if is_complex(x) else x


def _imaginary(x: mx.array) -> mx.array:
    """Returns the imaginary part of complex numbers times i, as complex numbers."""
    return x - mx.real(x)


def _trace_of_product(x: mx.array, y: mx.array) -> mx.array:
    return mx.sum(x * mx.swapaxes(y, -1, -2), axis=(-2, -1))


def _inv_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    return (-(outputs[0] @ tangents[0] @ outputs[0]),)


inv = hosted(lapack.inv, _inv_moved)


def _with_nan(function: Function, x: mx.array, wrong: mx.array) -> mx.array:
    """Returns `function(x)`, with NaN for the matrices that `wrong` marks.

    For these MLX would return arbitrary numbers, or raise an error only when the result is computed. So the function
    gets identity matrices in their place.
    """
    wrong = mx.stop_gradient(wrong)[..., None, None]
    result: mx.array = function(mx.where(wrong, mx.eye(x.shape[-1], dtype=x.dtype), x))
    return mx.where(wrong, mx.array(mx.nan, x.dtype), result)


_lazy_inv = smooth(lambda x: mx.linalg.inv(x, stream=mx.cpu), _inv_moved)


def _inverse_of(half: Callable[[Any, Any], Any], upper: bool, unit: bool = False) -> Function:
    """Returns a function that inverts a triangular part of matrices; for real matrices it is lazy.

    Args:
        half: called as `half(xp, x)`, returns the triangular part; `xp` is NumPy or MLX.
        upper: whether the part is the upper triangle.
        unit: whether the diagonal is 1, and `half` leaves it out.
    """

    def whole(xp: Any, x: Any) -> Any:
        part = half(xp, x)
        return part + xp.eye(part.shape[-1], dtype=x.dtype) if unit else part

    def moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (-(outputs[0] @ half(mx, tangents[0]) @ outputs[0]),)

    lazy = smooth(lambda x: mx.linalg.tri_inv(whole(mx, x), upper, stream=mx.cpu), moved)
    complexes = hosted(lambda x: np.linalg.inv(whole(np, x)), moved)
    return lambda x: complexes(x) if is_complex(x) else lazy(x)


def _square_of(x: Any) -> Any:
    """Returns the largest leading square block of matrices."""
    k = min(x.shape[-2:])
    return x[..., :k, :k]


_of_lower = _inverse_of(lambda xp, x: xp.tril(x), False)
_of_upper = _inverse_of(lambda xp, x: xp.triu(_square_of(x)), True)
_of_unit_lower = _inverse_of(lambda xp, x: xp.tril(_square_of(x), -1), False, unit=True)


def _lazy_adjugate(x: mx.array) -> mx.array:
    """Returns the adjugates of real matrices by their singular values, which works for singular matrices too."""
    u, s, vh = mx.linalg.svd(x, stream=mx.cpu)
    one = mx.eye(s.shape[-1], dtype=mx.bool_)
    others = mx.prod(mx.where(one, mx.ones_like(s)[..., None], s[..., None, :]), -1)
    factor = mx.linalg.det(u, stream=mx.cpu) * mx.linalg.det(vh, stream=mx.cpu)
    # The determinants of the orthogonal factors are 1 or -1.
    return mx.round(factor)[..., None, None] * (adjoint(vh) * others[..., None, :]) @ adjoint(u)


def _adjugate_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    # This divides by the determinant, so the second derivative of the determinant is not finite for singular matrices.
    (cofactors,) = outputs
    moved = cofactors @ tangents[0]
    grown = mx.sum(_diagonal(moved), -1)[..., None, None] * cofactors - moved @ cofactors
    determinant = _trace_of_product(cofactors, primals[0]) / cofactors.shape[-1]
    return (grown / determinant[..., None, None],)


_hosted_adjugate, _real_adjugate = hosted(lapack.adjugate, _adjugate_moved), smooth(_lazy_adjugate, _adjugate_moved)


def det_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    """Returns the tangent of a determinant, also for singular matrices; for real matrices it is lazy."""
    (x,) = primals
    if is_complex(x):
        cofactors = _hosted_adjugate(x)
    else:
        cofactors = _with_nan(_real_adjugate, x, ~mx.all(mx.isfinite(x), (-2, -1)))
    return (_trace_of_product(cofactors, tangents[0]),)


def slogdet_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    """Returns the tangents of the sign and the logarithm of a determinant; for real matrices they are lazy."""
    (x,), sign = primals, outputs[0]
    inverse = inv(x) if is_complex(x) else _with_nan(_lazy_inv, x, mx.abs(sign) != 1)
    growth = _trace_of_product(inverse, tangents[0])
    return (_imaginary(growth) * sign if is_complex(sign) else mx.zeros_like(sign)), _real(growth)


def _solver(function: Function, inverse: Function, part: Function, *options: Any) -> Function:
    """Returns the function that solves `part(a) @ x = b`, where `b` is a matrix.

    Args:
        function: the solver on host arrays, called as `function(a, b, *options)`.
        inverse: returns the inverse of `part(a)`.
        part: returns the part of `a` that the solver reads.
        options: further arguments of `function`.
    """

    def moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return (inverse(primals[0]) @ (tangents[1] - part(tangents[0]) @ outputs[0]),)

    def pull(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
        right = adjoint(inverse(primals[0])) @ cotangents[0]
        return part(-(right @ adjoint(outputs[0]))), right

    return hosted(function, moved, pull, *options)


solve = _solver(lapack.solve, inv, lambda a: a)
below = _solver(lapack.solve_triangular, _of_lower, mx.tril, True)
above = _solver(lapack.solve_triangular, _of_upper, mx.triu, False)


def _cholesky_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    (factor,) = outputs
    inverse = _of_lower(factor)
    inner = inverse @ _hermitian(tangents[0]) @ adjoint(inverse)
    return (factor @ (mx.tril(inner, -1) + _as_matrix(_diagonal(inner) / 2)),)


cholesky = hosted(lapack.cholesky, _cholesky_moved)


def _qr_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    q, r = outputs
    k = min(r.shape[-2:])
    if q.shape[-1] > k:
        raise UnsupportedOpError(
            "the additional columns of Q in mode 'complete' are arbitrary and have no derivative; use mode 'reduced'"
        )
    square = r[..., :k]
    scaled = tangents[0][..., :k] @ _of_upper(r)
    inner = adjoint(q) @ scaled
    lower = mx.tril(inner, -1)
    turn = lower - adjoint(lower)
    if is_complex(inner):
        # The diagonal of R must stay real.
        turn = turn + _as_matrix(_imaginary(_diagonal(inner)))
    grown = mx.triu(inner - turn)
    beside = adjoint(q) @ tangents[0][..., k:] - turn @ r[..., k:] if r.shape[-1] > k else r[..., k:]
    return scaled - q @ grown, mx.concatenate([grown @ square, beside], -1)


def qr(x: mx.array, mode: str) -> Any:
    """Returns the factors Q and R; `mode` is "reduced" or "complete"."""
    return hosted(lapack.qr, _qr_moved, None, mode)(x)


def _gaps(values: mx.array) -> mx.array:
    """Returns `1 / (values[j] - values[i])` as a matrix, and 0 where the two are equal, because infinity gives NaN."""
    gaps = values[..., None, :] - values[..., :, None]
    same = gaps == 0
    return mx.where(same, mx.zeros_like(gaps), 1 / mx.where(same, mx.ones_like(gaps), gaps))


def _turned_back(columns: mx.array, moved: mx.array) -> mx.array:
    """Returns the rates, times i, at which columns must rotate so that their largest components stay real.

    Args:
        columns: the vectors, shape (..., n, k).
        moved: their tangents before the rotation.
    """
    sizes = mx.abs(columns)
    nearly = sizes >= lapack.NEARLY * mx.max(sizes, -2, keepdims=True)
    first = mx.stop_gradient(mx.argmax(nearly.astype(mx.uint8), -2, keepdims=True))
    largest = mx.real(mx.take_along_axis(columns, first, -2))
    return -_imaginary(mx.take_along_axis(moved, first, -2)) / largest


def _padded(columns: mx.array, like: mx.array) -> mx.array:
    """Returns columns followed by zero columns, as many as `like` has in all."""
    extra = like.shape[-1] - columns.shape[-1]
    return mx.concatenate([columns, mx.zeros((*like.shape[:-1], extra), like.dtype)], -1) if extra else columns


def _svd_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    u_full, s, vh_full = outputs
    k = s.shape[-1]
    u, v, tangent = u_full[..., :k], adjoint(vh_full[..., :k, :]), tangents[0]
    scale, gaps = s[..., None, :].astype(u.dtype), _gaps(s * s).astype(u.dtype)
    inner = adjoint(u) @ tangent @ v
    left, right = inner * scale, adjoint(inner) * scale
    turn = gaps * (left + adjoint(left))
    if is_complex(u):
        turn = turn + _as_matrix(_imaginary(_diagonal(inner)) / s)
    u_moved, v_moved = u @ turn, v @ (gaps * (right + adjoint(right)))
    if u.shape[-2] > k:
        u_moved = u_moved + (tangent @ v - u @ inner) / scale
    if v.shape[-2] > k:
        v_moved = v_moved + (adjoint(tangent) @ u - v @ adjoint(inner)) / scale
    if is_complex(u):
        angle = _turned_back(u, u_moved)
        u_moved, v_moved = u_moved + angle * u, v_moved + angle * v
    # Columns beyond the singular values are arbitrary, and are treated as constant.
    return _padded(u_moved, u_full), _real(_diagonal(inner)), adjoint(_padded(v_moved, adjoint(vh_full)))


def svd(x: mx.array, full_matrices: bool) -> Any:
    """Returns the factors U and Vh of the singular value decomposition, and between them the singular values."""
    return hosted(lapack.svd, _svd_moved, None, full_matrices)(x)


def _svdvals_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    u, _, vh = svd(primals[0], False)
    return (_real(_diagonal(adjoint(u) @ tangents[0] @ adjoint(vh))),)


svdvals = hosted(lapack.svdvals, _svdvals_moved)


def _eigh_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    values, vectors = outputs
    inner = adjoint(vectors) @ _hermitian(tangents[0]) @ vectors
    moved = vectors @ (_gaps(values).astype(inner.dtype) * inner)
    if is_complex(vectors):
        moved = moved + _turned_back(vectors, moved) * vectors
    return _real(_diagonal(inner)), moved


eigh = hosted(lapack.eigh, _eigh_moved)


def _eigvalsh_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    _, vectors = eigh(primals[0])
    return (_real(_diagonal(adjoint(vectors) @ _hermitian(tangents[0]) @ vectors)),)


eigvalsh = hosted(lapack.eigvalsh, _eigvalsh_moved)


def _eig_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    values, vectors = outputs
    inner = inv(vectors) @ tangents[0].astype(vectors.dtype) @ vectors
    moved = vectors @ (_gaps(values) * inner)
    along = mx.real(mx.sum(mx.conj(vectors) * moved, -2, keepdims=True))
    return _diagonal(inner), moved + (_turned_back(vectors, moved) - along) * vectors


eig = hosted(lapack.eig, _eig_moved)


def _eigvals_moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    _, vectors = eig(primals[0])
    return (_diagonal(inv(vectors) @ tangents[0].astype(vectors.dtype) @ vectors),)


eigvals = hosted(lapack.eigvals, _eigvals_moved)


def lu(x: mx.array) -> tuple[mx.array, mx.array]:
    """Returns the LU decomposition: the triangular factors packed in one matrix, and the pivots, counted from 0."""
    # The pivots are integers without a derivative, so only the factors go through `smooth`.
    packed, pivots = map(np.asarray, lapack.lu_factor(np.asarray(x)))
    rows = of_host(lapack.order_of(pivots, x.shape[-2]))

    def moved(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
        return _lu_moved(outputs[0], mx.take_along_axis(tangents[0], rows[..., None], -2))

    return smooth(lambda _: imported(packed), moved, read=True)(x), imported(pivots)


def _lu_moved(packed: mx.array, tangent: mx.array) -> Arrays:
    """Returns the tangent of the packed factors; `tangent` is that of the matrix, with its rows in pivoted order."""
    k = min(packed.shape[-2:])
    lower, upper = mx.tril(packed[..., :k, :k], -1) + mx.eye(k, dtype=packed.dtype), mx.triu(packed[..., :k, :k])
    left, right = _of_unit_lower(packed), _of_upper(packed)
    inner = left @ tangent[..., :k, :k] @ right
    lower_moved, upper_moved = lower @ mx.tril(inner, -1), mx.triu(inner) @ upper
    result = lower_moved + upper_moved
    if packed.shape[-1] > k:
        beside = left @ (tangent[..., k:] - lower_moved @ packed[..., k:])
        result = mx.concatenate([result, beside], -1)
    if packed.shape[-2] > k:
        under = (tangent[..., k:, :] - packed[..., k:, :] @ upper_moved) @ right
        result = mx.concatenate([result, under], -2)
    return (result,)
