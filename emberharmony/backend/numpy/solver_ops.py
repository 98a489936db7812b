"""Linear algebra, on NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony.backend.indices import matrices
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.square import check_qr_mode, square
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, QRResult, SlogdetResult, SVDResult


def _inexact(x: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Returns `x` in a dtype LAPACK has, and what gives the results their dtype back."""
    x = promotion.floats(x)
    if x.dtype.itemsize > 2:
        return x, lambda result: result
    return x.astype(np.float32), lambda result: result.astype(x.dtype)


def _phases(columns: np.ndarray) -> np.ndarray:
    """Returns, per column, the factor of magnitude 1 that makes its largest component positive."""
    if not columns.size:
        return np.ones((*columns.shape[:-2], 1, columns.shape[-1]), columns.dtype)
    largest = np.take_along_axis(columns, np.abs(columns).argmax(-2, keepdims=True), -2)
    size = np.abs(largest)
    return np.where(size == 0, 1, np.conj(largest) / np.where(size == 0, 1, size)).astype(columns.dtype)


class NumpySolverOps:
    """Holds the ops of `ops/solver.py`."""

    @staticmethod
    def det(x: np.ndarray) -> np.ndarray:
        x, back = _inexact(square(x))
        return back(np.linalg.det(x))

    @staticmethod
    def slogdet(x: np.ndarray) -> SlogdetResult:
        x, back = _inexact(square(x))
        sign, logarithm = np.linalg.slogdet(x)
        return SlogdetResult(back(sign), back(logarithm))

    @staticmethod
    def inv(x: np.ndarray) -> np.ndarray:
        x, back = _inexact(square(x))
        return back(np.linalg.inv(x))

    @staticmethod
    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = promotion.common(square(a), b)
        (a, back), (b, _) = _inexact(a), _inexact(b)
        return back(np.linalg.solve(a, b[:, None])[:, 0] if b.ndim == 1 and a.ndim == 2 else np.linalg.solve(a, b))

    @staticmethod
    def solve_triangular(a: np.ndarray, b: np.ndarray, lower: bool = False) -> np.ndarray:
        a, b = promotion.common(square(a), b)
        (a, back), (b, _) = _inexact(a), _inexact(b)
        a = np.tril(a) if lower else np.triu(a)
        return back(np.linalg.solve(a, b[:, None])[:, 0] if b.ndim == 1 else np.linalg.solve(a, b))

    @staticmethod
    def cholesky(x: np.ndarray, upper: bool = False) -> np.ndarray:
        x, back = _inexact(square(x))
        factor = np.linalg.cholesky(x)
        if np.isnan(factor).any():
            raise LinAlgError("the matrix is not positive-definite")
        return back(np.conj(factor.swapaxes(-1, -2)) if upper else factor)

    @staticmethod
    def qr(x: np.ndarray, mode: str = "reduced") -> QRResult:
        check_qr_mode(mode)
        x, back = _inexact(matrices(x))
        q, r = np.linalg.qr(x, mode)  # type: ignore[call-overload]
        diagonal = np.diagonal(r, 0, -2, -1)
        size = np.abs(diagonal)
        phase = np.where(size == 0, 1, diagonal / np.where(size == 0, 1, size)).astype(x.dtype)
        columns = np.ones((*q.shape[:-2], q.shape[-1]), x.dtype)
        columns[..., : phase.shape[-1]] = phase
        return QRResult(back(q * columns[..., None, :]), back(r * np.conj(columns)[..., : r.shape[-2], None]))

    @staticmethod
    def svd(x: np.ndarray, full_matrices: bool = False) -> SVDResult:
        x, back = _inexact(matrices(x))
        u, s, vh = np.linalg.svd(x, full_matrices)
        k = s.shape[-1]
        phase = _phases(u[..., :k])
        u[..., :k] *= phase
        vh[..., :k, :] *= np.conj(phase).swapaxes(-1, -2)
        return SVDResult(back(u), back(s), back(vh))

    @staticmethod
    def eigh(x: np.ndarray) -> EigResult:
        x, back = _inexact(square(x))
        values, vectors = np.linalg.eigh(x)
        return EigResult(back(values), back(vectors * _phases(vectors)))

    @staticmethod
    def eig(x: np.ndarray) -> EigResult:
        x, _ = _inexact(square(x))
        kind: Any = np.complex64 if x.dtype.itemsize == 4 or x.dtype == np.complex64 else np.complex128
        values, vectors = np.linalg.eig(x.astype(kind))
        return EigResult(values, vectors * _phases(vectors))
