"""The results of ops that return several tensors, or a function with an attribute."""

from typing import TYPE_CHECKING, Any

from emberharmony.core.named_tuple import Record
from emberharmony.core.types import Tensor

if TYPE_CHECKING:
    from typing import Protocol

    class CompiledFunction(Protocol):
        """A compiled function."""

        engine: str | None
        """The engine that runs the program that was recorded last; None if none does, or nothing was recorded yet."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Returns the result of the function."""

else:

    class CompiledFunction:  # to define a protocol takes longer than to define all results
        """A compiled function."""


class SVDResult(Record):
    """The matrices `U (..., M, K)` and `Vh (..., K, N)`, and the singular values `S (..., K)` in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class QRResult(Record):
    """`Q (..., M, K)` with orthonormal columns and the upper triangular `R (..., K, N)`."""

    Q: Tensor
    R: Tensor


class EigResult(Record):
    """The eigenvalues `(..., M)` and the eigenvectors `(..., M, M)`, which are the columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SlogdetResult(Record):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class LUResult(Record):
    """The factors L and U in one matrix `(..., M, N)`, and the pivots `(..., K)`.

    L is below the diagonal and U on and above it; the diagonal of L is 1 and not stored. Row i was exchanged with row
    `pivots[i]`, counted from 0, for i = 0, 1, … in this order.
    """

    LU: Tensor
    pivots: Tensor


class PLUResult(Record):
    """The permutation `P (..., M, M)`, the lower triangle `L (..., M, K)`, and the upper triangle `U (..., K, N)`."""

    P: Tensor
    L: Tensor
    U: Tensor


class UniqueAllResult(Record):
    """The unique elements, where each occurs first, the position of each input element among them, and their counts."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(Record):
    """The unique elements and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(Record):
    """The unique elements and the position of each input element among them."""

    values: Tensor
    inverse_indices: Tensor
