"""The results of ops that return several tensors."""

from emberharmony.core.named_tuple import Record
from emberharmony.core.types import Tensor


class SVDResult(Record):
    """Holds `U (..., M, K)`, the singular values `S (..., K)` in descending order and `Vh (..., K, N)`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QRResult(Record):
    """Holds `Q (..., M, K)` with orthonormal columns and the upper triangular `R (..., K, N)`."""

    Q: Tensor
    R: Tensor


class EigResult(Record):
    """Holds eigenvalues `(..., M)` and, as columns, eigenvectors `(..., M, M)`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SlogdetResult(Record):
    """Holds the sign of a determinant and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class LUResult(Record):
    """Holds L below and U on and above the diagonal `(..., M, N)`, and the row each row changed places with `(..., K)`.

    The diagonal of L is 1 and not held; pivots count from 0 and are applied from the first to the last.
    """

    LU: Tensor
    pivots: Tensor


class UniqueAllResult(Record):
    """Holds unique elements, where each occurs first, which of them each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(Record):
    """Holds unique elements and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(Record):
    """Holds unique elements and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor
