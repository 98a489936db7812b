"""Linear algebra, on PyTorch."""

import cmath
import math
from typing import Any

import torch
from torch.autograd import forward_ad

from emberharmony.backend.shared.algebra import lapack
from emberharmony.backend.shared.arrays.shape import require_matrices
from emberharmony.backend.shared.solver import (
    cast_to_inexact,
    check_qr_mode,
    check_sides,
    not_finite_error,
    require_square,
)
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.tracing import is_unwatched
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, LUResult, QRResult, SlogdetResult, SVDResult
from emberharmony.core.state.handlers import passing_error

_solve, _svd = torch.linalg.solve, torch.linalg.svd
"""Names of this module, because attributes of the modules `torch` and `torch.linalg` cost more (CPython 3.11)."""

_NEARLY = 0.999
"""A component of at least this fraction of the largest one counts as equal to it; the first such one is chosen.

Rounding would otherwise decide between components of the same magnitude, and the libraries would differ.
"""


def _phases(columns: torch.Tensor) -> torch.Tensor:
    """Returns, for each column, the factor of magnitude 1 that makes its largest component positive.

    For complex columns the factor varies with the column, so it is differentiated too.
    """
    if not columns.numel():
        return columns.new_ones((*columns.shape[:-2], 1, columns.shape[-1]))
    magnitudes = columns.detach().abs()
    largest_indices = (
        (magnitudes >= _NEARLY * magnitudes.amax(-2, keepdim=True)).to(torch.uint8).argmax(-2, keepdim=True)
    )
    pivot_values = torch.gather(columns, -2, largest_indices)  # torch.take_along_dim takes 5 µs more
    return pivot_values.sgn().conj() if columns.is_complex() else pivot_values.detach().sgn()


def _signs(x: torch.Tensor) -> torch.Tensor:
    """Returns the sign or phase of numbers, a factor of magnitude 1; 1 for zero."""
    signs = torch.sgn(x if x.is_complex() else x.detach())
    return torch.where(signs == 0, torch.ones_like(signs), signs)


def _right_sides_as_matrices(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Returns right-hand sides as matrices: PyTorch would read some batches of matrices as batches of vectors."""
    if a.ndim == b.ndim:
        return b
    return b.unsqueeze(-1) if b.ndim == 1 else b[(None,) * max(a.ndim - b.ndim, 0)]


def _quick_solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # PyTorch checks two matrices itself. If it raises an error, dispatch runs the complete implementation.
    return _solve(a, b) if a.ndim == b.ndim == 2 else TorchSolverOps.solve(a, b)


def _is_any_true(x: torch.Tensor, unread: bool = False) -> bool:
    """Returns whether any element of a boolean tensor is true; `unread` if no value can be read.

    Args:
        x: a boolean tensor.
        unread: the result under `torch.compile` and `torch.func.vmap`, where no value can be read.
    """
    if torch.compiler.is_compiling():
        return unread
    try:
        return bool(x.any())
    except RuntimeError as error:
        if passing_error(error):
            raise
        return unread


def _is_finite(x: torch.Tensor) -> bool:
    """Returns whether all elements are finite; True under `torch.compile` and vmap, where no value can be read.

    If the sum is finite, all elements are: this costs a fifth of `isfinite` (small matrices, PyTorch 2.13). If the sum
    is not finite, it may have overflowed, so the elements are checked.
    """
    if torch.compiler.is_compiling():
        return True
    try:
        return cmath.isfinite(x.sum().item()) or bool(x.isfinite().all())
    except RuntimeError:
        return True


def _require_finite(x: torch.Tensor) -> torch.Tensor:
    """Returns `x` after a check that its matrices are finite.

    For other matrices MKL (PyTorch 2.13) returns arbitrary numbers or ends the process.

    Raises:
        LinAlgError: if an element is infinite or NaN.
    """
    if not _is_finite(x.detach()):
        raise not_finite_error(x.shape)
    return x


def _require_finite_lower(x: torch.Tensor) -> torch.Tensor:
    """Returns `x` after a check that its matrices are square and have finite lower triangles.

    Raises:
        ShapeError: if the matrices are not square.
        LinAlgError: if an element on or below a diagonal is infinite or NaN.
    """
    if not _is_finite(require_square(x).detach()):
        _require_finite(x.tril())
    return x


def _svd_in_place(x: torch.Tensor, full_matrices: bool) -> SVDResult:
    """Returns the singular value decompositions of real matrices whose values can be read and need no derivatives.

    The signs are those of `_phases`. For few elements this takes half of the time.
    """
    if not math.isfinite(require_matrices(x).sum().item()):
        _require_finite(x)
    u, s, vh = _svd(x, full_matrices=full_matrices)
    columns, rows = (u[..., : s.shape[-1]], vh[..., : s.shape[-1], :]) if full_matrices else (u, vh)
    if x.ndim == 2 and s.numel():
        smallest, largest = columns.aminmax(dim=0)
        extreme_sums = smallest.add_(largest)
        if lapack.have_clear_signs(extreme_sums.tolist()):
            signs = extreme_sums.sgn_()
            columns.mul_(signs)
            rows.mT.mul_(signs)
            return SVDResult(u, s, vh)
    lapack.fix_signs(u.numpy(), vh.numpy(), full_matrices)
    return SVDResult(u, s, vh)


def _keep_hermitian_tangent(x: torch.Tensor) -> torch.Tensor:
    """Returns matrices unchanged, but with a derivative that depends only on the Hermitian part of a tangent.

    The forward mode of PyTorch 2.13 assumes that every tangent is Hermitian. Its reverse mode wrongly propagates the
    imaginary cotangent of the diagonal of a complex Cholesky factor; for real matrices it is right.
    """
    if not x.is_complex() and forward_ad._current_level < 0:
        return x
    detached_x = x.detach()
    tangent_part = torch.where(detached_x.isfinite(), x - detached_x, 0)
    return detached_x + (tangent_part + tangent_part.mH) / 2


def _products_of_others(s: torch.Tensor) -> torch.Tensor:
    """Returns, for each element of the last axis, the product of all other elements."""
    ones = torch.ones_like(s[..., :1])
    products_before = torch.cat([ones, s[..., :-1]], -1).cumprod(-1)
    return products_before * torch.cat([s[..., 1:], ones], -1).flip(-1).cumprod(-1).flip(-1)


def _cofactors(x: torch.Tensor, determinant: torch.Tensor) -> torch.Tensor:
    """Returns the derivative of the determinant, also for singular matrices, which have no inverse."""
    has_zero_determinant = determinant.detach() == 0
    if not _is_any_true(has_zero_determinant, unread=True):
        return determinant[..., None, None] * torch.linalg.inv(x).mT
    # Both formulas run on all matrices. Where a formula is not used, it gets a diagonal matrix on which it and its
    # derivatives are finite, else NaN would enter the gradient.
    is_singular = has_zero_determinant[..., None, None]
    regular_matrix = torch.arange(1, x.shape[-1] + 1, device=x.device).diag().to(x.dtype)
    inverse = torch.linalg.inv(torch.where(is_singular, regular_matrix, x))
    u, s, vh = torch.linalg.svd(torch.where(is_singular, x, regular_matrix))
    weights = (torch.linalg.det(u) * torch.linalg.det(vh))[..., None] * _products_of_others(s)
    cofactors = ((u * weights.conj().unsqueeze(-2)) @ vh).conj()
    return torch.where(is_singular, cofactors, determinant[..., None, None] * inverse.mT)


class _Det(torch.autograd.Function):
    """The autograd function of `torch.linalg.det`, with correct derivatives in both modes and for singular matrices."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        """Returns the determinants of matrices."""
        return torch.linalg.det(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        """Saves the matrices and the determinants for the derivatives."""
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, cotangent: torch.Tensor) -> torch.Tensor:
        """Returns the gradient by the matrices."""
        return cotangent[..., None, None] * _cofactors(*ctx.saved_tensors).conj()

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> torch.Tensor:
        """Returns the tangents of the determinants."""
        return (_cofactors(*ctx.saved_tensors) * tangent).sum((-2, -1))


def _inverse_for_slogdet(x: torch.Tensor) -> torch.Tensor:
    """Returns the inverses of matrices, by which their logarithms of determinants are differentiated.

    Raises:
        LinAlgError: if a matrix is singular.
    """
    try:
        return torch.linalg.inv(x)
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        raise LinAlgError(
            "slogdet() on backend 'torch': the derivative is infinite, because a matrix is singular; check the matrix, "
            "or add a small multiple of the identity"
        ) from error


class _Slogdet(torch.autograd.Function):
    """The autograd function of `torch.linalg.slogdet`, with correct derivatives of every order.

    PyTorch 2.13 treats the factors that it saves for the backward pass as constants.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the sign of the determinant, and the logarithm of its magnitude."""
        sign, logarithm = torch.linalg.slogdet(x)
        return sign, logarithm

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Saves the matrices and the signs for the derivatives."""
        ctx.save_for_backward(inputs[0], output[0])
        ctx.save_for_forward(inputs[0], output[0])

    @staticmethod
    def backward(ctx: Any, by_sign: torch.Tensor, by_logarithm: torch.Tensor) -> torch.Tensor:
        """Returns the gradient by the matrices."""
        x, sign = ctx.saved_tensors
        logarithm_cotangent = by_logarithm
        if x.is_complex():
            logarithm_cotangent = logarithm_cotangent - 1j * (by_sign.conj() * sign).imag
        return logarithm_cotangent[..., None, None] * _inverse_for_slogdet(x).mH

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the tangents of the signs and the logarithms."""
        x, sign = ctx.saved_tensors
        log_derivative = (_inverse_for_slogdet(x) @ tangent).diagonal(0, -2, -1).sum(-1)
        phase_tangent = 1j * log_derivative.imag * sign if x.is_complex() else torch.zeros_like(sign)
        return phase_tangent, log_derivative.real if x.is_complex() else log_derivative


class TorchSolverOps:
    """Holds the ops of `ops/solver.py`.

    The bodies compute on the host, which has no gradient. PyTorch's own derivatives are corrected where values are
    equal or singular.
    """

    @staticmethod
    @cast_to_inexact(promotion)
    def det(x: torch.Tensor) -> torch.Tensor:
        # torch.compile (PyTorch 2.13) cannot trace an autograd.Function that defines `jvp`.
        det_function = torch.linalg.det if torch.compiler.is_compiling() else _Det.apply
        determinant: torch.Tensor = det_function(require_square(x))
        return determinant

    @staticmethod
    @cast_to_inexact(promotion)
    def slogdet(x: torch.Tensor) -> SlogdetResult:
        # torch.compile (PyTorch 2.13) cannot trace this autograd.Function either.
        slogdet_function = torch.linalg.slogdet if torch.compiler.is_compiling() else _Slogdet.apply
        sign, logarithm = slogdet_function(require_square(x))
        # If the determinant is NaN, so is its sign.
        return SlogdetResult(torch.where(logarithm.isnan(), logarithm.detach().to(sign.dtype), sign), logarithm)

    @staticmethod
    @cast_to_inexact(promotion)
    def inv(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(require_square(x))

    @staticmethod
    @cast_to_inexact(promotion, 2, _quick_solve)
    def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        check_sides(a, b)
        solution = _solve(a, _right_sides_as_matrices(a, b))
        return solution.squeeze(-1) if b.ndim == 1 else solution

    @staticmethod
    @cast_to_inexact(promotion, 2)
    def solve_triangular(a: torch.Tensor, b: torch.Tensor, lower: bool = False) -> torch.Tensor:
        check_sides(a, b)
        if _is_any_true(a.detach().diagonal(0, -2, -1) == 0):
            raise LinAlgError("expected an invertible triangular matrix, got a singular one: its diagonal has a zero")
        solution = torch.linalg.solve_triangular(a, _right_sides_as_matrices(a, b), upper=not lower)
        return solution.squeeze(-1) if b.ndim == 1 else solution

    @staticmethod
    @cast_to_inexact(promotion)
    def cholesky(x: torch.Tensor, upper: bool = False) -> torch.Tensor:
        factor = torch.linalg.cholesky(_keep_hermitian_tangent(require_square(x)))
        # PyTorch raises for matrices that are not positive-definite, but not for some with infinities or NaN.
        if _is_any_true(~factor.detach().isfinite()):
            raise LinAlgError(
                "expected a finite matrix, got infinities or NaN, or elements so large that the factor overflows"
            )
        return factor.mH if upper else factor

    @staticmethod
    @cast_to_inexact(promotion)
    def qr(x: torch.Tensor, mode: str = "reduced", positive: bool = True) -> QRResult:
        check_qr_mode(mode)
        q, r = torch.linalg.qr(require_matrices(x), mode=mode)
        if not positive:
            return QRResult(q, r)
        # QR is unique only up to signs, or phases; choose those that make the diagonal of R positive.
        signs = _signs(torch.diagonal(r, 0, -2, -1))
        extra_ones = signs.new_ones((*signs.shape[:-1], q.shape[-1] - signs.shape[-1]))
        signs = torch.cat([signs, extra_ones], -1)
        # A negative sign makes -0.0 of the zeros below the diagonal.
        return QRResult(q * signs.unsqueeze(-2), torch.triu(r * signs.conj().unsqueeze(-1)))

    @staticmethod
    @cast_to_inexact(promotion)
    def svd(x: torch.Tensor, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | torch.Tensor:
        if not compute_uv:
            return torch.linalg.svdvals(_require_finite(require_matrices(x)))
        if x.__class__ is torch.Tensor and x.is_cpu and x.dtype.is_floating_point and is_unwatched(x):
            return _svd_in_place(x, full_matrices)
        u, s, vh = _svd(_require_finite(require_matrices(x)), full_matrices=full_matrices)
        k = s.shape[-1]
        # Singular vectors are unique only up to a common phase; choose it so that the backends agree.
        phases = _phases(u[..., :k])
        if k == u.shape[-1] == vh.shape[-2]:
            return SVDResult(u * phases, s, vh * phases.mH)
        u = torch.cat([u[..., :k] * phases, u[..., k:]], -1)
        return SVDResult(u, s, torch.cat([vh[..., :k, :] * phases.mH, vh[..., k:, :]], -2))

    @staticmethod
    @cast_to_inexact(promotion)
    def svdvals(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(_require_finite(require_matrices(x)))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigh(x: torch.Tensor) -> EigResult:
        eigenvalues, eigenvectors = torch.linalg.eigh(_keep_hermitian_tangent(_require_finite_lower(x)))
        return EigResult(eigenvalues, eigenvectors * _phases(eigenvectors))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigvalsh(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(_require_finite_lower(x))

    @staticmethod
    @cast_to_inexact(promotion)
    def eig(x: torch.Tensor) -> EigResult:
        eigenvalues, eigenvectors = torch.linalg.eig(_require_finite(require_square(x)))
        return EigResult(eigenvalues, eigenvectors * _phases(eigenvectors))

    @staticmethod
    @cast_to_inexact(promotion)
    def eigvals(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(_require_finite(require_square(x)))

    @staticmethod
    @cast_to_inexact(promotion)
    def lu_factor(x: torch.Tensor) -> LUResult:
        factors, pivots, _ = torch.linalg.lu_factor_ex(require_matrices(x))
        return LUResult(factors, pivots.long() - 1)  # LAPACK counts rows from 1
