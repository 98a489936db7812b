"""Linear algebra, on PyTorch."""

from collections.abc import Callable

import torch

from emberharmony.backend.indices import matrices
from emberharmony.backend.square import check_qr_mode, square
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.results import EigResult, QRResult, SlogdetResult, SVDResult


def _inexact(x: torch.Tensor) -> tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]:
    """Returns `x` in a dtype LAPACK has, and what gives the results their dtype back."""
    x = promotion.floats(x)
    if x.dtype.itemsize > 2:
        return x, lambda result: result
    return x.to(torch.float32), lambda result: result.to(x.dtype)


def _phases(columns: torch.Tensor) -> torch.Tensor:
    """Returns, per column, the factor of magnitude 1 that makes its largest component positive."""
    if not columns.numel():
        return columns.new_ones((*columns.shape[:-2], 1, columns.shape[-1]))
    largest = torch.take_along_dim(columns, columns.abs().argmax(-2, keepdim=True), -2)
    phase = torch.sgn(largest).conj().detach()
    return torch.where(phase == 0, torch.ones_like(phase), phase)


class TorchSolverOps:
    """Holds the ops of `ops/solver.py`."""

    @staticmethod
    def det(x: torch.Tensor) -> torch.Tensor:
        x, back = _inexact(square(x))
        return back(torch.linalg.det(x))

    @staticmethod
    def slogdet(x: torch.Tensor) -> SlogdetResult:
        x, back = _inexact(square(x))
        sign, logarithm = torch.linalg.slogdet(x)
        return SlogdetResult(back(sign), back(logarithm))

    @staticmethod
    def inv(x: torch.Tensor) -> torch.Tensor:
        x, back = _inexact(square(x))
        return back(torch.linalg.inv(x))

    @staticmethod
    def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = promotion.common(square(a), b)
        (a, back), (b, _) = _inexact(a), _inexact(b)
        return back(torch.linalg.solve(a, b))

    @staticmethod
    def solve_triangular(a: torch.Tensor, b: torch.Tensor, lower: bool = False) -> torch.Tensor:
        a, b = promotion.common(square(a), b)
        (a, back), (b, _) = _inexact(a), _inexact(b)
        if b.ndim == 1:
            return back(torch.linalg.solve_triangular(a, b.unsqueeze(-1), upper=not lower).squeeze(-1))
        return back(torch.linalg.solve_triangular(a, b, upper=not lower))

    @staticmethod
    def cholesky(x: torch.Tensor, upper: bool = False) -> torch.Tensor:
        x, back = _inexact(square(x))
        return back(torch.linalg.cholesky(torch.tril(x), upper=False).mH if upper else torch.linalg.cholesky(x))

    @staticmethod
    def qr(x: torch.Tensor, mode: str = "reduced") -> QRResult:
        check_qr_mode(mode)
        x, back = _inexact(matrices(x))
        q, r = torch.linalg.qr(x, mode=mode)
        phase = torch.sgn(torch.diagonal(r, 0, -2, -1)).detach()
        phase = torch.where(phase == 0, torch.ones_like(phase), phase)
        extra = q.shape[-1] - phase.shape[-1]
        columns = torch.cat([phase, phase.new_ones((*phase.shape[:-1], extra))], -1)
        return QRResult(back(q * columns.unsqueeze(-2)), back(r * columns[..., : r.shape[-2]].conj().unsqueeze(-1)))

    @staticmethod
    def svd(x: torch.Tensor, full_matrices: bool = False) -> SVDResult:
        x, back = _inexact(matrices(x))
        u, s, vh = torch.linalg.svd(x, full_matrices=full_matrices)
        k = s.shape[-1]
        phase = _phases(u[..., :k])
        u = torch.cat([u[..., :k] * phase, u[..., k:]], -1)
        vh = torch.cat([vh[..., :k, :] * phase.conj().mT, vh[..., k:, :]], -2)
        return SVDResult(back(u), back(s), back(vh))

    @staticmethod
    def eigh(x: torch.Tensor) -> EigResult:
        x, back = _inexact(square(x))
        values, vectors = torch.linalg.eigh(x)
        return EigResult(back(values), back(vectors * _phases(vectors)))

    @staticmethod
    def eig(x: torch.Tensor) -> EigResult:
        x, _ = _inexact(square(x))
        values, vectors = torch.linalg.eig(x)
        return EigResult(values, vectors * _phases(vectors))
