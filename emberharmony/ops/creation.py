"""Making tensors: filled ones, ranges, grids.

Dtype: `dtype=None` is the default float, for integer arguments of `full`, `arange` the default integer. Device:
`device` names where the tensor is made; None is the default device. A negative length raises `ShapeError`.
"""

from __future__ import annotations

from typing import Literal

from emberharmony.core.dispatch import op
from emberharmony.core.types import DeviceLike, DTypeLike, Shape, Tensor, TensorLike
from emberharmony.ops.math import power


@op
def zeros(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of zeros.

    Example:
        >>> ops.zeros((1, 2)).tolist()
        [[0.0, 0.0]]
    """
    ...


@op
def ones(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of ones.

    Example:
        >>> ops.ones(2, dtype='int32').tolist()
        [1, 1]
    """
    ...


@op
def full(
    shape: Shape, fill_value: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns a tensor filled with a value, of its dtype unless `dtype` says otherwise.

    Example:
        >>> ops.full((2,), 7).tolist()
        [7, 7]
    """
    ...


@op
def empty(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor whose values mean nothing yet; on MLX they are zeros."""
    ...


@op
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of zeros in the shape and, unless `dtype` says otherwise, the dtype of `x`."""
    ...


@op
def ones_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of ones in the shape and, unless `dtype` says otherwise, the dtype of `x`."""
    ...


@op
def empty_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor whose values mean nothing yet, in the shape and (unless `dtype` is given) dtype of `x`."""
    ...


@op
def full_like(
    x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns a tensor filled with a value, in the shape and, unless `dtype` says otherwise, the dtype of `x`."""
    ...


@op
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns an (N, M) matrix with ones on its k-th diagonal and zeros elsewhere.

    Example:
        >>> ops.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    ...


@op
def identity(n: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the (n, n) unit matrix."""
    return eye(n, dtype=dtype, device=device)


@op
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `start, start + step, …` up to and without `stop`; with one argument from 0 up to it.

    Raises: ArgumentError if `step` is 0.

    Example:
        >>> ops.arange(3).tolist(), ops.arange(1, 6, 2).tolist()
        ([0, 1, 2], [1, 3, 5])
    """
    ...


@op
def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `num` evenly spaced numbers from `start` to `stop`, which is the last one unless `endpoint` is False.

    Example:
        >>> ops.linspace(0, 1, 3).tolist()
        [0.0, 0.5, 1.0]
    """
    ...


@op
def logspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `base` to the powers `linspace(start, stop, num)`."""
    return power(base, linspace(start, stop, num, endpoint, dtype, device))


@op
def meshgrid(*xi: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """Returns coordinate grids of vectors: with "ij" the i-th varies along axis i, with "xy" the first two are swapped.

    Raises: ArgumentError for another `indexing`.
    """
    ...


@op
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns an (N, M) matrix of ones on and below the k-th diagonal.

    Example:
        >>> ops.tri(2).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    return tril(ones((N, N if M is None else M), dtype, device), k)


@op
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """Returns matrices with what is above the k-th diagonal set to zero.

    Shape: (..., M, N). Raises: ShapeError below two axes.

    Example:
        >>> ops.tril([[1, 2], [3, 4]]).tolist()
        [[1, 0], [3, 4]]
    """
    ...


@op
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """Returns matrices with what is below the k-th diagonal set to zero.

    Shape: (..., M, N). Raises: ShapeError below two axes.

    Example:
        >>> ops.triu([[1, 2], [3, 4]]).tolist()
        [[1, 2], [0, 4]]
    """
    ...


@op
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Returns the k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal.

    Raises: ShapeError for other shapes.

    Example:
        >>> ops.diag([1, 2]).tolist()
        [[1, 0], [0, 2]]
    """
    ...
