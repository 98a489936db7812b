"""Linear algebra, on MLX: on the CPU, which alone has it, and evaluated at once, for only then errors show."""

from collections.abc import Callable

import mlx.core as mx

from emberharmony.backend.indices import matrices
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.backend.square import check_qr_mode, square
from emberharmony.core.errors import DTypeError, LinAlgError, ShapeError
from emberharmony.core.results import EigResult, QRResult, SlogdetResult, SVDResult


def _inexact(x: mx.array) -> tuple[mx.array, Callable[[mx.array], mx.array]]:
    """Returns `x` in a dtype LAPACK has, and what gives the results their dtype back."""
    x = promotion.floats(x)
    if x.dtype.size > 2:
        return x, lambda result: result
    return x.astype(mx.float32), lambda result: result.astype(x.dtype)


def _real(x: mx.array) -> mx.array:
    if is_complex(x):
        raise DTypeError("MLX has no complex kernel for this op; split the matrix into real and imaginary parts")
    return x


def _phases(columns: mx.array) -> mx.array:
    """Returns, per column, the factor of magnitude 1 that makes its largest component positive."""
    if not columns.size:
        return mx.ones((*columns.shape[:-2], 1, columns.shape[-1]), columns.dtype)
    largest = mx.take_along_axis(columns, mx.argmax(mx.abs(columns), -2, keepdims=True), -2)
    size = mx.abs(largest)
    one = mx.ones_like(size)
    return mx.where(size == 0, one, mx.conj(largest) / mx.where(size == 0, one, size)).astype(columns.dtype)


def _broadcast(a: mx.array, b: mx.array) -> tuple[mx.array, mx.array]:
    """Returns a matrix and right-hand sides with their batches broadcast."""
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"a matrix of shape {a.shape} and right-hand sides of shape {b.shape} do not fit")
    batch = mx.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return mx.broadcast_to(a, (*batch, *a.shape[-2:])), mx.broadcast_to(b, (*batch, *b.shape[-2:]))


def _solved(a: mx.array, b: mx.array, native: Callable[[mx.array, mx.array], mx.array]) -> mx.array:
    a, b = promotion.common(square(a), b)
    (a, back), (b, _) = _inexact(_real(a)), _inexact(b)
    vector = b.ndim == 1
    left, right = _broadcast(a, b[:, None] if vector else b)
    result = native(left, right)
    mx.eval(result)
    return back(result[..., 0] if vector else result)


class MLXSolverOps:
    """Holds the ops of `ops/solver.py`."""

    @staticmethod
    def slogdet(x: mx.array) -> SlogdetResult:
        x, back = _inexact(_real(square(x)))
        sign, logarithm = mx.linalg.slogdet(x)
        return SlogdetResult(back(sign), back(logarithm))

    @staticmethod
    def det(x: mx.array) -> mx.array:
        x, back = _inexact(_real(square(x)))
        if not x.size:
            return mx.ones(x.shape[:-2], x.dtype)
        # mx.linalg.det has the digits of float32 only.
        factors, pivots = mx.linalg.lu_factor(x, stream=mx.cpu)
        swapped = (pivots != mx.arange(x.shape[-1], dtype=pivots.dtype)).astype(x.dtype)
        diagonal = mx.diagonal(factors, 0, -2, -1) * (1 - 2 * swapped)
        return back(mx.prod(diagonal, -1))

    @staticmethod
    def inv(x: mx.array) -> mx.array:
        x, back = _inexact(_real(square(x)))
        result = mx.linalg.inv(x, stream=mx.cpu)
        mx.eval(result)
        return back(result)

    @staticmethod
    def solve(a: mx.array, b: mx.array) -> mx.array:
        return _solved(a, b, lambda left, right: mx.linalg.solve(left, right, stream=mx.cpu))

    @staticmethod
    def solve_triangular(a: mx.array, b: mx.array, lower: bool = False) -> mx.array:
        def native(left: mx.array, right: mx.array) -> mx.array:
            half = mx.tril(left) if lower else mx.triu(left)
            return mx.linalg.solve_triangular(half, right, upper=not lower, stream=mx.cpu)

        return _solved(a, b, native)

    @staticmethod
    def cholesky(x: mx.array, upper: bool = False) -> mx.array:
        x, back = _inexact(_real(square(x)))
        # MLX says nothing of a matrix that is not positive-definite: a diagonal that is not positive does.
        factor = mx.linalg.cholesky(mx.tril(x) + mx.swapaxes(mx.tril(x, -1), -1, -2), stream=mx.cpu)
        if not bool(mx.all(mx.diagonal(factor, 0, -2, -1) > 0)):
            raise LinAlgError("the matrix is not positive-definite")
        return back(mx.swapaxes(factor, -1, -2) if upper else factor)

    @staticmethod
    def qr(x: mx.array, mode: str = "reduced") -> QRResult:
        check_qr_mode(mode)
        x, back = _inexact(_real(matrices(x)))
        m, n = x.shape[-2:]
        if mode == "complete" and m > n:
            # MLX has the reduced form only: unit columns fill the matrix to a square one.
            fill = mx.broadcast_to(mx.eye(m, dtype=x.dtype), (*x.shape[:-2], m, m))
            q, r = mx.linalg.qr(mx.concatenate([x, fill], -1), stream=mx.cpu)
            q, r = q[..., :m], r[..., :n]
        else:
            q, r = mx.linalg.qr(x, stream=mx.cpu)
        phase = mx.sign(mx.diagonal(r, 0, -2, -1))
        phase = mx.where(phase == 0, mx.ones_like(phase), phase)
        extra = q.shape[-1] - phase.shape[-1]
        columns = mx.concatenate([phase, mx.ones((*phase.shape[:-1], extra), x.dtype)], -1)
        r = r * columns[..., : r.shape[-2], None]
        return QRResult(back(q * columns[..., None, :]), back(mx.triu(r)))

    @staticmethod
    def svd(x: mx.array, full_matrices: bool = False) -> SVDResult:
        x, back = _inexact(_real(matrices(x)))
        u, s, vh = mx.linalg.svd(x, stream=mx.cpu)
        mx.eval(u, s, vh)
        k = s.shape[-1]
        phase = _phases(u[..., :k])
        rest_u, rest_v = (u[..., k:], vh[..., k:, :]) if full_matrices else (u[..., :0], vh[..., :0, :])
        u = mx.concatenate([u[..., :k] * phase, rest_u], -1)
        vh = mx.concatenate([vh[..., :k, :] * mx.swapaxes(phase, -1, -2), rest_v], -2)
        return SVDResult(back(u), back(s), back(vh))

    @staticmethod
    def eigh(x: mx.array) -> EigResult:
        x, back = _inexact(square(x))
        values, vectors = mx.linalg.eigh(x, stream=mx.cpu)
        mx.eval(values, vectors)
        return EigResult(back(values), back(vectors * _phases(vectors)))

    @staticmethod
    def eig(x: mx.array) -> EigResult:
        x, _ = _inexact(square(x))
        values, vectors = mx.linalg.eig(x, stream=mx.cpu)
        mx.eval(values, vectors)
        return EigResult(values, vectors * _phases(vectors))
