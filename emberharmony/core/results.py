"""The results of ops that return several tensors."""

from typing import NamedTuple

from emberharmony.core.types import Tensor


class SVDResult(NamedTuple):
    """Holds `U (..., M, K)`, the singular values `S (..., K)` in descending order and `Vh (..., K, N)`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QRResult(NamedTuple):
    """Holds `Q (..., M, K)` with orthonormal columns and the upper triangular `R (..., K, N)`."""

    Q: Tensor
    R: Tensor


class EigResult(NamedTuple):
    """Holds eigenvalues `(..., M)` and, as columns, eigenvectors `(..., M, M)`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SlogdetResult(NamedTuple):
    """Holds the sign of a determinant and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor
