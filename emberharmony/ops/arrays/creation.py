"""Creating tensors: filled tensors, ranges, grids, windows.

Dtype: `dtype=None` is the default float; for integer arguments of `full` and `arange` it is the default integer.
Device: `device` names the device of the new tensor; None is the default device. A negative length raises `ShapeError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import DeviceLike, DTypeLike, Operand, Shape, Tensor, TensorLike
from emberharmony.ops.arrays.shape import (
    atleast_2d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concatenate,
    pad,
    ravel,
    reshape,
)
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of

if TYPE_CHECKING:
    from emberharmony.ops.arrays import host_made
else:
    host_made = Deferred("emberharmony.ops.arrays.host_made")  # which imports this module


@op
def zeros(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of zeros.

    See also: `zeros_like`, by another tensor; `empty`, without values; `ones`, of ones.

    Example:
        >>> ops.zeros((1, 2)).tolist()
        [[0.0, 0.0]]
    """
    return full(shape, 0, default_float() if dtype is None else dtype, device)


@op
def ones(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of ones.

    See also: `ones_like`, by another tensor; `zeros`, of zeros; `full`, of any number.

    Example:
        >>> ops.ones(2, dtype='int32').tolist()
        [1, 1]
    """
    return full(shape, 1, default_float() if dtype is None else dtype, device)


@op
def full(shape: Shape, fill_value: Operand, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor filled with a value; its dtype is that of the value unless `dtype` is given.

    Args:
        fill_value: a number, or a tensor that broadcasts to `shape`.
        dtype: the dtype of the result; None is that of a tensor, and for a number the default dtype of its kind.

    See also: `full_like`, by another tensor; `broadcast_to`, without a copy.

    Example:
        >>> ops.full((2,), 7).tolist()
        [7, 7]
    """
    return host_made.full(shape, fill_value, dtype, device)


@op
def empty(shape: Shape, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns an uninitialised tensor; on MLX it is filled with zeros.

    See also: `zeros`, with values.
    """
    return zeros(shape, dtype, device)


@op(gradient="zero")
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of zeros with the shape of `x`, and its dtype unless `dtype` is given.

    Args:
        x: a tensor that gives the shape and the dtype; its values are not read.
        dtype: the dtype of the result; None is that of `x`.
        device: the device of the result, such as "cpu" or "gpu:1"; None is that of `x`.

    See also: `zeros`, by a shape.
    """
    return zeros(x.shape, *_dtype_and_device(x, dtype, device))


@op(gradient="zero")
def ones_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns a tensor of ones with the shape of `x`, and its dtype unless `dtype` is given.

    Args:
        x: a tensor that gives the shape and the dtype; its values are not read.
        dtype: the dtype of the result; None is that of `x`.
        device: the device of the result, such as "cpu" or "gpu:1"; None is that of `x`.

    See also: `ones`, by a shape.
    """
    return ones(x.shape, *_dtype_and_device(x, dtype, device))


@op(gradient="zero")
def empty_like(x: TensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns an uninitialised tensor with the shape of `x`, and its dtype unless `dtype` is given.

    Args:
        x: a tensor that gives the shape and the dtype; its values are not read.
        dtype: the dtype of the result; None is that of `x`.
        device: the device of the result, such as "cpu" or "gpu:1"; None is that of `x`.

    See also: `empty`, by a shape.
    """
    return empty(x.shape, *_dtype_and_device(x, dtype, device))


@op
def full_like(
    x: TensorLike, fill_value: Operand, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns a tensor filled with a value, with the shape of `x`, and its dtype unless `dtype` is given.

    Args:
        x: a tensor that gives the shape and the dtype; its values are not read.
        fill_value: a number, or a tensor that broadcasts to the shape of `x`.
        dtype: the dtype of the result, to which the value is cast; None is that of `x`.
        device: the device of the result, such as "cpu" or "gpu:1"; None is that of `x`.

    See also: `full`, by a shape.
    """
    return full(x.shape, fill_value, *_dtype_and_device(x, dtype, device))


@op
def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns an (N, M) matrix with ones on its k-th diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; None is `N`.
        k: the diagonal of the ones: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    See also: `identity`, of one size; `diag`, with any diagonal.

    Example:
        >>> ops.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return host_made.MADE.eye(N, M, k, dtype, device)


@op
def identity(n: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the (n, n) identity matrix.

    Args:
        n: the number of rows, and of columns.

    See also: `eye`, of any shape.
    """
    return eye(n, dtype=dtype, device=device)


@op
def arange(
    start: float,
    stop: float | None = None,
    step: float | None = 1,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `start, start + step, …` up to but excluding `stop`; with one argument, from 0 up to it.

    Args:
        start: the first number; with `stop` left out, the end, and the first number is 0.
        stop: the end, which is left out; None makes `start` the end.
        step: the difference of neighbours, which may be negative; None is 1.
        dtype: the dtype of the result; None is int64 for integers, else the default float.

    Raises:
        ArgumentError: if `step` is 0.

    See also: `linspace`, by the number of steps.

    Example:
        >>> ops.arange(3).tolist(), ops.arange(1, 6, 2).tolist()
        ([0, 1, 2], [1, 3, 5])
    """
    tensor: Tensor = host_made.MADE.arange(start, stop, step, dtype, device)
    return tensor


@op
def linspace(
    start: float | Tensor,
    stop: float | Tensor,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Returns `num` evenly spaced numbers from `start` to `stop`.

    Shape: (num,). For tensors, their broadcast shape with an axis of length `num` inserted at `axis`. Dtype: the
    default float for numbers, the promoted dtype for tensors; with an integer `dtype`, values are rounded down.

    Args:
        start: the first number; or a tensor of first numbers, which broadcasts against `stop`.
        stop: the last number, or the end that is left out; or a tensor, which broadcasts against `start`.
        num: how many numbers, at least 0.
        endpoint: whether `stop` is the last number; otherwise the numbers end one step before it.
        retstep: whether to return the distance between two numbers as well.
        dtype: the dtype of the result; None is the default float for numbers, and the promoted dtype of tensors.
        axis: the place of the new axis, of length `num`, among the axes of tensors.

    Raises:
        ArgumentError: if `num` is negative.

    See also: `arange`, by the step; `logspace`, of a constant ratio; `geomspace`, by both ends.

    Example:
        >>> ops.linspace(0, 1, 3).tolist()
        [0.0, 0.5, 1.0]
    """
    tensor: Tensor | tuple[Tensor, Tensor] = host_made.MADE.linspace(
        start, stop, num, endpoint, retstep, dtype, axis, device
    )
    return tensor


@op(finite="no")
def logspace(
    start: float | Tensor,
    stop: float | Tensor,
    num: int = 50,
    endpoint: bool = True,
    base: float | Tensor = 10,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `base` raised to the powers `linspace(start, stop, num)`.

    Args:
        start: the exponent of the first number; or a tensor, which broadcasts against `stop`.
        stop: the exponent of the last number, or of the end that is left out; or a tensor.
        num: how many numbers, at least 0.
        endpoint: whether the power of `stop` is the last number; otherwise the exponents end one step before it.
        base: the number that is raised to the powers, or a tensor that broadcasts against both ends.
        dtype: the dtype of the result; None is the default float for numbers, and the promoted dtype of tensors.
        axis: the place of the new axis, of length `num`, among the axes of tensors.

    See also: `geomspace`, by both ends; `linspace`, the exponents.

    Example:
        >>> ops.logspace(0, 3, 4, base=2).tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    tensor: Tensor = host_made.MADE.logspace(start, stop, num, endpoint, base, dtype, axis, device)
    return tensor


@op(finite="no")
def geomspace(
    start: float | Tensor,
    stop: float | Tensor,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> Tensor:
    """Returns `num` numbers from `start` to `stop` with a constant ratio between neighbours.

    Shape: the numbers are along a new axis, at the place `axis`, of the shape to which both ends are broadcast.

    Args:
        start: the first number. The values of a tensor are not read: an end of 0, or ends of different signs, give NaN.
        stop: the last number, or the end that is left out; or a tensor, which broadcasts against `start`.
        num: how many numbers, at least 0.
        endpoint: whether `stop` is the last number; otherwise the numbers end one ratio before it.
        dtype: the dtype of the result; None is the default float for numbers, and the promoted dtype of tensors.
        axis: the place of the new axis, of length `num`, among the axes of tensors.

    Raises:
        AxisError: if `axis` is out of range.
        ArgumentError: if one end is the number 0.

    See also: `logspace`, by exponents; `linspace`, of a constant step.

    Example:
        >>> ops.geomspace(1, 8, 4).tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    tensor: Tensor = host_made.MADE.geomspace(start, stop, num, endpoint, dtype, axis, device)
    return tensor


@op
def meshgrid(*xi: TensorLike, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Returns coordinate grids of vectors.

    Dtype: each grid has the dtype of its vector. Grids may share memory between their elements, so do not write into
    them.

    Args:
        *xi: vectors of any dtype, one for each axis of the grids.
        indexing: with "ij" the i-th grid varies along axis i; with "xy" the first two axes are swapped.

    Raises:
        ArgumentError: if `indexing` is unknown.

    See also: `broadcast_arrays`, of any tensors.

    Example:
        >>> [grid.tolist() for grid in ops.meshgrid([1, 2], [3, 4, 5])]
        [[[1, 2], [1, 2], [1, 2]], [[3, 3], [4, 4], [5, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"expected indexing 'xy' or 'ij', got {indexing!r}")
    axis_order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axis_order[:2] = 1, 0
    vector_shapes = [[-1 if axis == own_axis else 1 for axis in range(len(xi))] for own_axis in axis_order]
    return broadcast_arrays(*(reshape(x, shape) for x, shape in zip(xi, vector_shapes, strict=True)))


@op
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """Returns an (N, M) matrix of ones on and below the k-th diagonal.

    Args:
        N: the number of rows.
        M: the number of columns; None is `N`.
        k: the last diagonal with ones: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    See also: `tril`, of a given matrix; `tril_indices`, the indices.

    Example:
        >>> ops.tri(2).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    return tril(ones((N, N if M is None else M), dtype, device), k)


@op
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """Returns matrices with the elements above the k-th diagonal set to zero.

    Shape: (..., M, N).

    Args:
        x: matrices (..., M, N) of any dtype.
        k: the last diagonal that stays: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    Raises:
        ShapeError: if `x` has fewer than two axes.

    See also: `triu`, the other half; `tril_indices`, the indices.

    Example:
        >>> ops.tril([[1, 2], [3, 4]]).tolist()
        [[1, 0], [3, 4]]
    """
    return host_made.triangle(x, k, True)


@op
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """Returns matrices with the elements below the k-th diagonal set to zero.

    Shape: (..., M, N).

    Args:
        x: matrices (..., M, N) of any dtype.
        k: the first diagonal that stays: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    Raises:
        ShapeError: if `x` has fewer than two axes.

    See also: `tril`, the other half; `triu_indices`, the indices.

    Example:
        >>> ops.triu([[1, 2], [3, 4]]).tolist()
        [[1, 2], [0, 4]]
    """
    return host_made.triangle(x, k, False)


@op
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """Returns the k-th diagonal of a matrix, or a matrix with a vector on its k-th diagonal.

    Args:
        x: a vector (n,), which gives a matrix, or a matrix (m, n), which gives a vector; any dtype.
        k: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    Raises:
        ShapeError: if `x` is neither a vector nor a matrix.

    See also: `diagonal`, of any two axes; `diagflat`, of a flattened tensor; `block_diag`, of matrices.

    Example:
        >>> ops.diag([1, 2]).tolist()
        [[1, 0], [0, 2]]
    """
    return host_made.diag(x, k)


@op
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """Returns a matrix with the flattened `x` on its k-th diagonal.

    Args:
        x: a tensor of n elements, of any shape and dtype; the result is (n + |k|, n + |k|).
        k: the diagonal: 0 is the main one, k > 0 the k-th above it, and k < 0 the one |k| below it.

    See also: `diag`, of a vector.

    Example:
        >>> ops.diagflat([[1, 2]]).tolist()
        [[1, 0], [0, 2]]
    """
    return diag(ravel(x), k)


@op
def block_diag(*arrays: TensorLike) -> Tensor:
    """Returns a matrix with the given matrices on its diagonal, and zeros elsewhere.

    Shape: (..., m, n) each, to (..., sum of m, sum of n); the axes before the last two are broadcast. A vector of n
    elements counts as (1, n), and a number as (1, 1). Dtype: promoted.

    Args:
        *arrays: at least one matrix, vector or number, of any dtype.

    Raises:
        ArgumentError: if there are no matrices.
        ShapeError: if the axes before the last two do not broadcast.

    See also: `diag`, of numbers.

    Example:
        >>> ops.block_diag([[1, 2]], 3).tolist()
        [[1, 2, 0], [0, 0, 3]]
    """
    if not arrays:
        raise ArgumentError("expected at least one matrix, got none")
    blocks = [atleast_2d(x) for x in arrays]
    batch_shape = broadcast_shapes(*(tuple(x.shape[:-2]) for x in blocks))
    total_width, left_width, padded_blocks = sum(x.shape[-1] for x in blocks), 0, []
    for x in blocks:
        paddings = [*[(0, 0)] * (len(batch_shape) + 1), (left_width, total_width - left_width - x.shape[-1])]
        padded_blocks.append(pad(broadcast_to(x, (*batch_shape, *x.shape[-2:])), paddings))
        left_width += x.shape[-1]
    return concatenate(padded_blocks, -2)


@op(finite="no")
def vander(x: TensorLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Returns the Vandermonde matrix of a vector, whose columns are its powers.

    Shape: (M,) to (M, N), by default (M, M). Dtype: that of `x`; int64 for integers.

    Args:
        x: a vector of M numbers.
        N: the number of columns; None is M.
        increasing: whether the powers go from 0 up to N - 1; by default they go from N - 1 down to 0.

    Raises:
        ShapeError: if `x` is not a vector.

    See also: `polyval`, to evaluate a polynomial.

    Example:
        >>> ops.vander([1, 2, 3]).tolist()
        [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    """
    tensor: Tensor = host_made.MADE.vander(x, N, increasing)
    return tensor


@op
def bartlett(x: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the symmetric triangular window of `x` points, which is zero at both ends.

    See also: `hanning`, smoother; `hamming`, with side lobes lower near the main one.

    Example:
        >>> ops.bartlett(5).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    tensor: Tensor = host_made.MADE.bartlett(x, dtype, device)
    return tensor


@op
def blackman(x: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the symmetric Blackman window of `x` points, a sum of three cosine terms.

    See also: `hanning`, narrower; `kaiser`, with a choice.
    """
    tensor: Tensor = host_made.MADE.blackman(x, dtype, device)
    return tensor


@op
def hamming(x: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the symmetric Hamming window of `x` points, a raised cosine that is 0.08 at both ends.

    See also: `hanning`, 0 at both ends; `kaiser`, with a choice.
    """
    tensor: Tensor = host_made.MADE.hamming(x, dtype, device)
    return tensor


@op
def hanning(x: int, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the symmetric Hann window of `x` points, a raised cosine that is 0 at both ends.

    See also: `hamming`, not 0 at both ends; `blackman`, wider; `stft`, which uses it.
    """
    tensor: Tensor = host_made.MADE.hanning(x, dtype, device)
    return tensor


@op(finite="no")
def kaiser(x: int, beta: float, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Returns the symmetric Kaiser window of `x` points.

    A larger `beta` lowers the side lobes but widens the main lobe.

    Args:
        beta: the shape of the window: 0 is rectangular, 5 is like Hamming's, 8.6 like Blackman's.

    See also: `hamming`, without a choice; `blackman`, without a choice.
    """
    tensor: Tensor = host_made.MADE.kaiser(x, beta, dtype, device)
    return tensor


def _dtype_and_device(x: Tensor, dtype: Any, device: Any) -> tuple[Any, Any]:
    """Returns a dtype and a device, by default those of a tensor."""
    return dtype_of(x) if dtype is None else dtype, get_device(x) if device is None else device
