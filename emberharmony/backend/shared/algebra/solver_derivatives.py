"""The differentials of decompositions of matrices, for libraries that lack them.

A differential maps primals, outputs and tangents to the tangents of the outputs. Factors that are unique only up to
phases have the phases that `lapack` chooses, and the differentials keep them. The differentials are right where the
factors are unique: singular values and eigenvalues are distinct, and matrices have full rank.

Source: M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); for complex factors Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019).
"""

from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.backend.shared.algebra.lapack import NEARLY
from emberharmony.core.errors import UnsupportedOpError

Tensors = Sequence[Any]


class Differentials:
    """The differentials of decompositions, from tangents of matrices to tangents of factors, computed by one library.

    Args:
        xp: its namespace, with NumPy's function names.
        is_complex: returns whether a tensor is complex.
        constant: returns a tensor as a constant, through which no gradient flows.
        same: returns where differences of values are zero, and on the diagonal.
        over: called as `over(x, r)`, returns `x @ inv(triu(r))`.
        within: called as `within(factor, x)`, returns `inv(factor) @ x @ adjoint(inv(factor))`, with a lower factor.
        similar: called as `similar(vectors, x)`, returns `inv(vectors) @ x @ vectors`.
    """

    def __init__(
        self,
        xp: Any,
        is_complex: Callable[[Any], bool],
        constant: Callable[[Any], Any],
        same: Callable[[Any], Any],
        over: Callable[[Any, Any], Any],
        within: Callable[[Any, Any], Any],
        similar: Callable[[Any, Any], Any],
    ) -> None:
        self._xp, self._is_complex, self._constant, self._same = xp, is_complex, constant, same
        self._over, self._within, self._similar = over, within, similar

    def adjoint(self, x: Any) -> Any:
        """Returns the conjugate transpose of matrices."""
        transposed = self._xp.swapaxes(x, -1, -2)
        return self._xp.conj(transposed) if self._is_complex(x) else transposed

    def hermitian_part(self, x: Any) -> Any:
        """Returns the Hermitian part of matrices."""
        return (x + self.adjoint(x)) / 2

    def diagonal(self, x: Any) -> Any:
        """Returns the diagonals of matrices."""
        return self._xp.diagonal(x, 0, -2, -1)

    def diagonal_matrix(self, diagonal: Any) -> Any:
        """Returns the matrices that have these diagonals."""
        return diagonal[..., None] * self._xp.eye(diagonal.shape[-1], dtype=diagonal.dtype)

    def real_part(self, x: Any) -> Any:
        """Returns the real part of numbers."""
        return self._xp.real(x) if self._is_complex(x) else x

    def imaginary_part(self, x: Any) -> Any:
        """Returns the imaginary part of complex numbers times i, as complex numbers."""
        return x - self._xp.real(x)

    def row_of_largest(self, columns: Any) -> Any:
        """Returns the row of the first of the nearly largest components of each column."""
        magnitudes = self._xp.abs(columns)
        is_nearly_largest = magnitudes >= NEARLY * self._xp.max(magnitudes, -2, keepdims=True)
        return self._constant(self._xp.argmax(is_nearly_largest.astype(self._xp.uint8), -2, keepdims=True))

    def cholesky(self, primals: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        """Returns the tangent of the lower triangular factor of a Cholesky decomposition."""
        (factor,) = outputs
        scaled_tangent = self._within(factor, self.hermitian_part(tangents[0]))
        return (factor @ (self._xp.tril(scaled_tangent, -1) + self.diagonal_matrix(self.diagonal(scaled_tangent) / 2)),)

    def qr(self, primals: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        """Returns the tangents of the factors Q and R of a QR decomposition.

        Raises:
            UnsupportedOpError: if Q has more columns than the rank.
        """
        q, r = outputs
        k = min(r.shape[-2:])
        if q.shape[-1] > k:
            raise UnsupportedOpError(
                "the additional columns of Q in mode 'complete' are arbitrary and have no derivative; use mode "
                "'reduced'"
            )
        square_r = r[..., :k]
        tangent_over_r = self._over(tangents[0][..., :k], r)
        scaled_tangent = self.adjoint(q) @ tangent_over_r
        lower_triangle = self._xp.tril(scaled_tangent, -1)
        rotation = lower_triangle - self.adjoint(lower_triangle)
        if self._is_complex(scaled_tangent):
            # The diagonal of R must stay real.
            rotation = rotation + self.diagonal_matrix(self.imaginary_part(self.diagonal(scaled_tangent)))
        r_tangent = self._xp.triu(scaled_tangent - rotation)
        extra_tangent = (
            self.adjoint(q) @ tangents[0][..., k:] - rotation @ r[..., k:] if r.shape[-1] > k else r[..., k:]
        )
        return tangent_over_r - q @ r_tangent, self._xp.concatenate([r_tangent @ square_r, extra_tangent], -1)

    def svd(self, primals: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        """Returns the tangents of U, the singular values and Vh of a singular value decomposition."""
        u_full, s, vh_full = outputs
        k = s.shape[-1]
        u, v, tangent = u_full[..., :k], self.adjoint(vh_full[..., :k, :]), tangents[0]
        scale, inverse_gaps = s[..., None, :].astype(u.dtype), self._inverse_gaps(s * s).astype(u.dtype)
        scaled_tangent = self.adjoint(u) @ tangent @ v
        left_factor, right_factor = scaled_tangent * scale, self.adjoint(scaled_tangent) * scale
        rotation = inverse_gaps * (left_factor + self.adjoint(left_factor))
        if self._is_complex(u):
            rotation = rotation + self.diagonal_matrix(self.imaginary_part(self.diagonal(scaled_tangent)) / s)
        u_tangent, v_tangent = u @ rotation, v @ (inverse_gaps * (right_factor + self.adjoint(right_factor)))
        if u.shape[-2] > k:
            u_tangent = u_tangent + (tangent @ v - u @ scaled_tangent) / scale
        if v.shape[-2] > k:
            v_tangent = v_tangent + (self.adjoint(tangent) @ u - v @ self.adjoint(scaled_tangent)) / scale
        if self._is_complex(u):
            phase_rates = self._phase_rates(u, u_tangent)
            u_tangent, v_tangent = u_tangent + phase_rates * u, v_tangent + phase_rates * v
        # Columns beyond the singular values are arbitrary, and are treated as constant.
        vh_tangent = self._pad_columns(v_tangent, self.adjoint(vh_full))
        return (
            self._pad_columns(u_tangent, u_full),
            self.real_part(self.diagonal(scaled_tangent)),
            self.adjoint(vh_tangent),
        )

    def singular_values(self, factors: Tensors, tangent: Any) -> Any:
        """Returns the tangent of the singular values, from the factors U and Vh and the tangent of the matrices."""
        u, _, vh = factors
        return self.real_part(self.diagonal(self.adjoint(u) @ tangent @ self.adjoint(vh)))

    def eigh(self, primals: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        """Returns the tangents of the eigenvalues and eigenvectors of Hermitian matrices."""
        eigenvalues, eigenvectors = outputs
        scaled_tangent = self.adjoint(eigenvectors) @ self.hermitian_part(tangents[0]) @ eigenvectors
        vectors_tangent = eigenvectors @ (self._inverse_gaps(eigenvalues).astype(scaled_tangent.dtype) * scaled_tangent)
        if self._is_complex(eigenvectors):
            vectors_tangent = vectors_tangent + self._phase_rates(eigenvectors, vectors_tangent) * eigenvectors
        return self.real_part(self.diagonal(scaled_tangent)), vectors_tangent

    def eig(self, primals: Tensors, outputs: Tensors, tangents: Tensors) -> Tensors:
        """Returns the tangents of the eigenvalues and eigenvectors of general matrices."""
        eigenvalues, eigenvectors = outputs
        scaled_tangent = self._similar(eigenvectors, tangents[0].astype(eigenvectors.dtype))
        vectors_tangent = eigenvectors @ (self._inverse_gaps(eigenvalues) * scaled_tangent)
        parallel_components = self._xp.real(
            self._xp.sum(self._xp.conj(eigenvectors) * vectors_tangent, -2, keepdims=True)
        )
        return self.diagonal(scaled_tangent), vectors_tangent + (
            self._phase_rates(eigenvectors, vectors_tangent) - parallel_components
        ) * eigenvectors

    def _inverse_gaps(self, eigenvalues: Any) -> Any:
        """Returns `1 / (values[j] - values[i])` as a matrix, and 0 where the two are equal: infinity would give NaN."""
        gaps = eigenvalues[..., None, :] - eigenvalues[..., :, None]
        is_same = self._same(gaps)
        zeros, ones = self._xp.zeros_like(gaps), self._xp.ones_like(gaps)
        return self._xp.where(is_same, zeros, 1 / self._xp.where(is_same, ones, gaps))

    def _phase_rates(self, columns: Any, tangent: Any) -> Any:
        """Returns, for each column, the rate times i at which its phase must change to keep its largest component real.

        Args:
            columns: the vectors, shape (..., n, k).
            tangent: their tangents before the rotation.
        """
        largest_index = self.row_of_largest(columns)
        largest_component = self._xp.real(self._xp.take_along_axis(columns, largest_index, -2))
        return -self.imaginary_part(self._xp.take_along_axis(tangent, largest_index, -2)) / largest_component

    def _pad_columns(self, columns: Any, full_columns: Any) -> Any:
        """Returns columns followed by zero columns, so that there are as many as `full_columns` has."""
        missing_count = full_columns.shape[-1] - columns.shape[-1]
        zero_columns = (
            self._xp.zeros((*full_columns.shape[:-1], missing_count), full_columns.dtype) if missing_count else None
        )
        return columns if zero_columns is None else self._xp.concatenate([columns, zero_columns], -1)
