"""Linear algebra, on PyTorch."""

import cmath
from typing import Any

import torch
from torch.autograd import forward_ad

from emberharmony.backend.shared.shape import matrices
from emberharmony.backend.shared.solver import check_qr_mode, check_sides, inexact, not_finite, square
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult
from emberharmony.core.state.handlers import passing

_NEARLY = 0.999
"""Components so close to the largest one, as a fraction of it, count as equal to it: the first of them decides."""


def _phases(columns: torch.Tensor) -> torch.Tensor:
    """Returns, per column, the factor of magnitude 1 that makes its largest component positive.

    Of complex columns it depends on them, and is differentiated too.
    """
    if not columns.numel():
        return columns.new_ones((*columns.shape[:-2], 1, columns.shape[-1]))
    sizes = columns.detach().abs()
    first = (sizes >= _NEARLY * sizes.amax(-2, keepdim=True)).to(torch.uint8).argmax(-2, keepdim=True)
    return _signs(torch.take_along_dim(columns, first, -2)).conj()


def _signs(x: torch.Tensor) -> torch.Tensor:
    """Returns the factors of magnitude 1 of numbers, 1 for zero."""
    signs = torch.sgn(x if x.is_complex() else x.detach())
    return torch.where(signs == 0, torch.ones_like(signs), signs)


def _columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns right-hand sides as matrices; PyTorch takes what could be either for a batch of vectors."""
    return b.unsqueeze(-1) if b.ndim == 1 else b[(None,) * max(a.ndim - b.ndim, 0)]


def _any(x: torch.Tensor, unread: bool = False) -> bool:
    """Returns whether any element is true; under `torch.compile` and `torch.func.vmap` no value is read."""
    if torch.compiler.is_compiling():
        return unread
    try:
        return bool(x.any())
    except RuntimeError as error:
        if passing(error):
            raise
        return unread


def _is_finite(x: torch.Tensor) -> bool:
    """Returns whether all elements are finite; True where no value is read.

    A finite sum says so at a fifth of the cost of `isfinite` (small matrices, PyTorch 2.13). Where the sum is not
    finite, it may have overflowed, and the elements decide.
    """
    if torch.compiler.is_compiling():
        return True
    try:
        return cmath.isfinite(x.sum().item()) or bool(x.isfinite().all())
    except RuntimeError:
        return True


def _finite(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of finite matrices.

    Raises: LinAlgError for others, which MKL (PyTorch 2.13) answers with anything, or by ending the process.
    """
    if not _is_finite(x.detach()):
        raise not_finite(x.shape)
    return x


def _finite_below(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of square matrices whose lower halves are finite."""
    if not _is_finite(square(x).detach()):
        _finite(x.tril())
    return x


def _hermitian(x: torch.Tensor) -> torch.Tensor:
    """Returns a matrix as it is, but with derivatives by its Hermitian part alone.

    The forward mode of PyTorch 2.13 takes every tangent for Hermitian. Its reverse mode lets the imaginary cotangent of
    the diagonal of a complex Cholesky factor through; that of real matrices is right.
    """
    if not x.is_complex() and forward_ad._current_level < 0:
        return x
    value = x.detach()
    change = torch.where(value.isfinite(), x - value, 0)
    return value + (change + change.mH) / 2


def _products_of_others(s: torch.Tensor) -> torch.Tensor:
    """Returns for each element of the last axis the product of all the others."""
    ones = torch.ones_like(s[..., :1])
    before = torch.cat([ones, s[..., :-1]], -1).cumprod(-1)
    return before * torch.cat([s[..., 1:], ones], -1).flip(-1).cumprod(-1).flip(-1)


def _cofactors(x: torch.Tensor, determinant: torch.Tensor) -> torch.Tensor:
    """Returns the derivative of the determinant, also where that is zero and there is no inverse."""
    singular = determinant.detach() == 0
    if not _any(singular, unread=True):
        return determinant[..., None, None] * torch.linalg.inv(x).mT
    # Each way is left out by a matrix that has derivatives there.
    chosen = singular[..., None, None]
    steps = torch.arange(1, x.shape[-1] + 1, device=x.device).diag().to(x.dtype)
    inverse = torch.linalg.inv(torch.where(chosen, steps, x))
    u, s, vh = torch.linalg.svd(torch.where(chosen, x, steps))
    weights = (torch.linalg.det(u) * torch.linalg.det(vh))[..., None] * _products_of_others(s)
    others = ((u * weights.conj().unsqueeze(-2)) @ vh).conj()
    return torch.where(chosen, others, determinant[..., None, None] * inverse.mT)


class _Det(torch.autograd.Function):
    """Is `torch.linalg.det`, with derivatives right in both modes and where it is zero."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        """Returns the determinant."""
        return torch.linalg.det(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        """Keeps the matrix and the determinant."""
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> torch.Tensor:
        """Returns the gradient."""
        return cotangent[..., None, None] * _cofactors(*ctx.saved_tensors).conj()

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> torch.Tensor:
        """Returns the tangent."""
        return (_cofactors(*ctx.saved_tensors) * tangent).sum((-2, -1))


class _Slogdet(torch.autograd.Function):
    """Is `torch.linalg.slogdet`, with derivatives right in every order: PyTorch's own take its factors for fixed."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns sign and logarithm."""
        sign, logarithm = torch.linalg.slogdet(x)
        return sign, logarithm

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Keeps the matrix and the sign."""
        ctx.save_for_backward(inputs[0], output[0])
        ctx.save_for_forward(inputs[0], output[0])

    @staticmethod
    def backward(ctx: Any, by_sign: torch.Tensor, by_logarithm: torch.Tensor) -> torch.Tensor:
        """Returns the gradient."""
        x, sign = ctx.saved_tensors
        weight = by_logarithm
        if x.is_complex():
            weight = weight - 1j * (by_sign.conj() * sign).imag
        return weight[..., None, None] * torch.linalg.inv(x).mH

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the tangents."""
        x, sign = ctx.saved_tensors
        growth = (torch.linalg.inv(x) @ tangent).diagonal(0, -2, -1).sum(-1)
        turned = 1j * growth.imag * sign if x.is_complex() else torch.zeros_like(sign)
        return turned, growth.real if x.is_complex() else growth


class TorchSolverOps:
    """Holds the ops of `ops/solver.py`."""

    @staticmethod
    @inexact(promotion)
    def det(x: torch.Tensor) -> torch.Tensor:
        # `torch.compile` cannot trace a function that has a forward mode of its own.
        native = torch.linalg.det if torch.compiler.is_compiling() else _Det.apply
        determinant: torch.Tensor = native(square(x))
        return determinant

    @staticmethod
    @inexact(promotion)
    def slogdet(x: torch.Tensor) -> SlogdetResult:
        native = torch.linalg.slogdet if torch.compiler.is_compiling() else _Slogdet.apply
        sign, logarithm = native(square(x))
        return SlogdetResult(torch.where(logarithm.isnan(), logarithm.detach().to(sign.dtype), sign), logarithm)

    @staticmethod
    @inexact(promotion)
    def inv(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(square(x))

    @staticmethod
    @inexact(promotion, 2)
    def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        check_sides(a, b)
        result = torch.linalg.solve(a, _columns(a, b))
        return result.squeeze(-1) if b.ndim == 1 else result

    @staticmethod
    @inexact(promotion, 2)
    def solve_triangular(a: torch.Tensor, b: torch.Tensor, lower: bool = False) -> torch.Tensor:
        check_sides(a, b)
        if _any(a.detach().diagonal(0, -2, -1) == 0):
            raise LinAlgError("the matrix is singular: its diagonal has a zero")
        result = torch.linalg.solve_triangular(a, _columns(a, b), upper=not lower)
        return result.squeeze(-1) if b.ndim == 1 else result

    @staticmethod
    @inexact(promotion)
    def cholesky(x: torch.Tensor, upper: bool = False) -> torch.Tensor:
        factor = torch.linalg.cholesky(_hermitian(square(x)))
        if _any(~factor.detach().isfinite()):
            raise LinAlgError("the matrix is not finite")
        return factor.mH if upper else factor

    @staticmethod
    @inexact(promotion)
    def qr(x: torch.Tensor, mode: str = "reduced") -> QRResult:
        check_qr_mode(mode)
        q, r = torch.linalg.qr(matrices(x), mode=mode)
        signs = _signs(torch.diagonal(r, 0, -2, -1))
        extra = signs.new_ones((*signs.shape[:-1], q.shape[-1] - signs.shape[-1]))
        signs = torch.cat([signs, extra], -1)
        return QRResult(q * signs.unsqueeze(-2), r * signs.conj().unsqueeze(-1))

    @staticmethod
    @inexact(promotion)
    def svd(x: torch.Tensor, full_matrices: bool = True) -> SVDResult:
        u, s, vh = torch.linalg.svd(_finite(matrices(x)), full_matrices=full_matrices)
        k = s.shape[-1]
        phases = _phases(u[..., :k])
        if k == u.shape[-1] == vh.shape[-2]:
            return SVDResult(u * phases, s, vh * phases.mH)
        u = torch.cat([u[..., :k] * phases, u[..., k:]], -1)
        return SVDResult(u, s, torch.cat([vh[..., :k, :] * phases.mH, vh[..., k:, :]], -2))

    @staticmethod
    @inexact(promotion)
    def svdvals(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(_finite(matrices(x)))

    @staticmethod
    @inexact(promotion)
    def eigh(x: torch.Tensor) -> EigResult:
        values, vectors = torch.linalg.eigh(_hermitian(_finite_below(x)))
        return EigResult(values, vectors * _phases(vectors))

    @staticmethod
    @inexact(promotion)
    def eigvalsh(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(_finite_below(x))

    @staticmethod
    @inexact(promotion)
    def eig(x: torch.Tensor) -> EigResult:
        values, vectors = torch.linalg.eig(_finite(square(x)))
        return EigResult(values, vectors * _phases(vectors))

    @staticmethod
    @inexact(promotion)
    def eigvals(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(_finite(square(x)))

    @staticmethod
    @inexact(promotion)
    def lu_factor(x: torch.Tensor) -> LUResult:
        factors, pivots, _ = torch.linalg.lu_factor_ex(matrices(x))
        return LUResult(factors, pivots.long() - 1)
