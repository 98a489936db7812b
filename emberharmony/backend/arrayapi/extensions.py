"""Linear algebra and Fourier transforms, over the extensions `linalg` and `fft` of the standard."""

# ruff: noqa: D102  (the declarations have the docstrings)

from collections.abc import Callable
from typing import Any

from emberharmony.backend.arrayapi.library import Definitions, Library
from emberharmony.backend.shared.algebra.lapack import NEARLY
from emberharmony.backend.shared.arrays.shape import require_matrices
from emberharmony.backend.shared.images.fft import accept_fft_length, axis_and_length
from emberharmony.backend.shared.solver import check_qr_mode, check_sides, not_finite_error, require_square
from emberharmony.core.errors import LinAlgError
from emberharmony.core.results import EigResult, QRResult, SlogdetResult, SVDResult

Function = Callable[..., Any]
_FFT = ("fft", "ifft", "rfft", "irfft")


def bind(library: Library) -> dict[str, Function]:
    """Returns the ops that the extensions of the namespace have functions for."""
    transform_by_op = {name: _transform_op(library, name) for name in _FFT if hasattr(library.fft, name)}
    return Factors(library).bound_definitions() | transform_by_op


def _transform_op(library: Library, name: str) -> Function:
    is_real, is_halved = name == "rfft", name == "irfft"
    native_transform = getattr(library.fft, name)

    def run_transform(x: Any, length: int, place: int, norm: str) -> Any:
        if not is_real and library.kind(x) == "float":
            x = library.astype(x, library.dtypes["complex128" if library.bits(x.dtype) == 64 else "complex64"])
        return native_transform(x, n=length, axis=place, norm=norm)

    run_transform = library.program(run_transform, "length", "place", "norm")

    def transform(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        if is_real:
            library.promotion.refuse(x, ("complex",))
        axis_index, length = axis_and_length(tuple(x.shape), n, axis, norm, is_halved)
        x = library.widen(library.promotion.floats(x))
        if not x.shape[axis_index]:  # irfft of NumPy 2.4 returns uninitialised memory for an empty spectrum
            x = library.xp.zeros((*x.shape[:axis_index], 1, *x.shape[axis_index + 1 :]), dtype=x.dtype)
        if not all(x.shape):
            return _transform_of_empty(
                library,
                x,
                (*x.shape[:axis_index], length // 2 + 1 if is_real else length, *x.shape[axis_index + 1 :]),
                is_halved,
            )
        return run_transform(x, length, axis_index, norm)

    return accept_fft_length(transform) if is_real or is_halved else transform


def _transform_of_empty(library: Library, x: Any, shape: tuple[int, ...], real: bool) -> Any:
    """Returns the Fourier transform of an empty tensor, zeros, because some libraries raise an error for it."""
    dtype_names = ("float64", "float32") if real else ("complex128", "complex64")
    is_double = library.dtypes.neutral[x.dtype] in ("float64", "complex128")
    return library.xp.zeros(shape, dtype=library.dtypes[dtype_names[0 if is_double else 1]])


class Factors(Definitions):
    """The linear algebra ops over the extension `linalg`, with the signs and errors that `ops/solver.py` documents.

    The library's own extension stays on its device, and may be differentiated by it; the bodies compute on the host.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self._linalg = library.linalg

    def has_function(self, op: str) -> bool:
        """Returns whether the extension `linalg` of the library has the function of an op."""
        return hasattr(self._linalg, op)

    def _common_operands(self, *operands: Any) -> tuple[list[Any], Function]:
        """Returns operands in a common floating dtype of LAPACK, and the function that casts results back."""
        library = self._library
        tensors = library.promotion.common(*operands, inexact=True)
        dtype, float32_dtype = tensors[0].dtype, library.dtypes["float32"]
        if not library.is_half(tensors[0]):
            return tensors, lambda x: x
        wide_tensors = [library.widen(x) for x in tensors]
        return wide_tensors, lambda x: library.astype(x, dtype) if x.dtype == float32_dtype else x

    def _require_finite(self, x: Any) -> Any:
        """Returns a tensor of matrices, checked to be finite, because some LAPACK hang on other ones.

        Raises:
            LinAlgError: if a matrix has infinities or NaN.
        """
        if not bool(self._xp.all(self._xp.isfinite(x))):
            raise not_finite_error(tuple(x.shape))
        return x

    def _adjoint(self, x: Any) -> Any:
        transposed_x = self._xp.matrix_transpose(x)
        return self._library.function("conj")(transposed_x) if self._library.kind(x) == "complex" else transposed_x

    def _signs(self, x: Any) -> Any:
        """Returns `x / abs(x)`, but 1 for zero and NaN."""
        xp, magnitude = self._xp, self._xp.abs(x)
        is_nonzero = xp.greater(magnitude, self._library.number(0, magnitude))
        one = self._library.number(1, x)
        magnitude = self._library.astype(xp.where(is_nonzero, magnitude, self._library.number(1, magnitude)), x.dtype)
        return xp.where(is_nonzero, xp.divide(x, magnitude), one)

    def _phases(self, columns: Any) -> Any:
        """Returns, for each column, the factor of magnitude 1 that makes its largest component positive."""
        xp = self._xp
        if not all(columns.shape):
            return xp.ones((*columns.shape[:-2], 1, columns.shape[-1]), dtype=columns.dtype)
        magnitudes = xp.abs(columns)
        largest_magnitude = xp.max(magnitudes, axis=-2, keepdims=True)
        is_near = xp.greater_equal(magnitudes, xp.multiply(largest_magnitude, self._library.number(NEARLY, magnitudes)))
        largest_index = xp.argmax(self._library.astype(is_near, self._library.dtypes["uint8"]), axis=-2, keepdims=True)
        signs = self._signs(xp.take_along_axis(columns, largest_index, axis=-2))
        return self._library.function("conj")(signs) if self._library.kind(signs) == "complex" else signs

    def det(self, x: Any) -> Any:
        (x,), cast_back = self._common_operands(x)
        return cast_back(self._linalg.det(require_square(x)))

    def slogdet(self, x: Any) -> SlogdetResult:
        (x,), cast_back = self._common_operands(x)
        sign, logarithm = self._linalg.slogdet(require_square(x))
        is_nan = self._xp.isnan(logarithm)
        return SlogdetResult(
            cast_back(self._xp.where(is_nan, self._library.astype(logarithm, sign.dtype), sign)), cast_back(logarithm)
        )

    def inv(self, x: Any) -> Any:
        (x,), cast_back = self._common_operands(x)
        return cast_back(self._linalg.inv(require_square(x)))

    def solve(self, a: Any, b: Any) -> Any:
        (a, b), cast_back = self._common_operands(a, b)
        check_sides(a, b)
        return cast_back(self._linalg.solve(a, b))

    def cholesky(self, x: Any, upper: bool = False) -> Any:
        (x,), cast_back = self._common_operands(x)
        factor = self._linalg.cholesky(require_square(x))
        # LAPACK reports no error for matrices with NaN.
        if not bool(self._xp.all(self._xp.isfinite(factor))):
            raise LinAlgError("the matrix is not positive-definite")
        return cast_back(self._adjoint(factor) if upper else factor)

    def qr(self, x: Any, mode: str = "reduced", positive: bool = True) -> QRResult:
        (x,), cast_back = self._common_operands(x)
        check_qr_mode(mode)
        return QRResult(*map(cast_back, self.qr_factors(require_matrices(x), mode, positive)))

    def qr_factors(self, x: Any, mode: str, positive: bool) -> tuple[Any, Any]:
        """Returns Q and R of matrices; if `positive`, with signs, or phases, that make the diagonal of R positive."""
        xp = self._xp
        q, r = self._linalg.qr(x, mode=mode)
        if not positive:
            return q, r
        signs = self._signs(self._linalg.diagonal(r))
        row_factors = self._with_trailing_ones(signs, r.shape[-2])
        conjugate_factors = (
            self._library.function("conj")(row_factors) if self._library.kind(row_factors) == "complex" else row_factors
        )
        q = xp.multiply(q, xp.expand_dims(self._with_trailing_ones(signs, q.shape[-1]), axis=-2))
        # A negative sign turns the zeros of R below the diagonal into -0.0, so set them again.
        return q, xp.triu(xp.multiply(r, xp.expand_dims(conjugate_factors, axis=-1)))

    def _with_trailing_ones(self, factors: Any, length: int) -> Any:
        """Returns a vector of factors extended by ones to a length."""
        missing_count = length - factors.shape[-1]
        if not missing_count:
            return factors
        ones = self._xp.ones((*factors.shape[:-1], missing_count), dtype=factors.dtype)
        return self._library.function("concatenate")([factors, ones], axis=-1)

    def svd(self, x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        (x,), cast_back = self._common_operands(x)
        x = self._require_finite(require_matrices(x))
        if not compute_uv:
            return cast_back(self._linalg.svdvals(x))
        return SVDResult(*map(cast_back, self.svd_factors(x, full_matrices)))

    def svd_factors(self, x: Any, full_matrices: bool) -> tuple[Any, Any, Any]:
        """Returns the factors of the singular value decomposition, with the phases on which the backends agree."""
        u, s, vh = self._linalg.svd(x, full_matrices=full_matrices)
        k = s.shape[-1]
        phases = self._phases(u[..., :k])[..., 0, :]
        u = self._xp.multiply(u, self._xp.expand_dims(self._with_trailing_ones(phases, u.shape[-1]), axis=-2))
        conjugate_phases = self._library.function("conj")(phases) if self._library.kind(phases) == "complex" else phases
        return (
            u,
            s,
            self._xp.multiply(
                vh, self._xp.expand_dims(self._with_trailing_ones(conjugate_phases, vh.shape[-2]), axis=-1)
            ),
        )

    def eigh(self, x: Any) -> EigResult:
        (x,), cast_back = self._common_operands(x)
        self._require_finite(self._xp.tril(require_square(x)))
        return EigResult(*map(cast_back, self.eigh_factors(x)))

    def eigh_factors(self, x: Any) -> tuple[Any, Any]:
        """Returns the eigenvalues and eigenvectors of Hermitian matrices."""
        eigenvalues, eigenvectors = self._linalg.eigh(x)
        return eigenvalues, self._xp.multiply(eigenvectors, self._phases(eigenvectors))

    def eig(self, x: Any) -> EigResult:
        (x,), _ = self._common_operands(x)
        return EigResult(*self.eig_factors(self._require_finite(require_square(x))))

    def eig_factors(self, x: Any) -> tuple[Any, Any]:
        """Returns the eigenvalues and eigenvectors of any square matrices."""
        eigenvalues, eigenvectors = self._linalg.eig(x)
        is_double = self._library.dtypes.neutral[x.dtype] in ("float64", "complex128")
        complex_dtype = self._library.dtypes["complex128" if is_double else "complex64"]
        eigenvectors = self._library.astype(eigenvectors, complex_dtype)
        return self._library.astype(eigenvalues, complex_dtype), self._xp.multiply(
            eigenvectors, self._phases(eigenvectors)
        )
