"""Tensors as such: conversion in and out, casts, copies, evaluation."""

from __future__ import annotations

from typing import Any

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import CastTensorLike, DeviceLike, DTypeLike, HostArray, Tensor, TensorLike


@op
def convert_to_tensor(
    x: CastTensorLike, dtype: DTypeLike | None = None, device: DeviceLike | None = None, copy: bool | None = None
) -> Tensor:
    """Returns `x` as a tensor of the active backend; its own tensors of that dtype are returned as they are.

    Dtype: NumPy arrays keep theirs; Python numbers and lists take `dtype`, else the default of their kind. Never
    narrowed silently.

    Args:
        device: where the tensor is wanted; by default tensors stay where they are.
        copy: True gives memory of its own; None copies where it must; False refuses that, and so takes no list or
            number, nor on MLX a NumPy array.

    Raises: DTypeError if the backend lacks the dtype; BackendMismatchError for a tensor of another backend;
    RangeError for Python integers that do not fit; ArgumentError (a ValueError) if a copy was refused and is needed;
    ArgumentTypeError for a masked array.

    Example:
        >>> ops.convert_to_tensor([1, 2], dtype="float32").tolist()
        [1.0, 2.0]
    """
    ...


asarray = alias("asarray", convert_to_tensor)


@op
def to_numpy(x: TensorLike) -> HostArray:
    """Returns the values as a NumPy array; detached, evaluated and copied from the device where there is need.

    The array may share memory with the tensor and is then read-only where the backend's tensors are immutable.

    Example:
        >>> ops.to_numpy([1.0, 2.0]).shape
        (2,)
    """
    ...


convert_to_numpy = alias("convert_to_numpy", to_numpy)


@op
def cast(x: CastTensorLike, dtype: DTypeLike) -> Tensor:
    """Returns `x` in another dtype; `x` itself if it has it. A complex tensor cast to a real dtype gives its real part.

    Example:
        >>> ops.cast([1.7, -1.7], "int32").tolist()
        [1, -1]
    """
    ...


@op
def astype(x: CastTensorLike, dtype: DTypeLike, copy: bool = True, device: DeviceLike | None = None) -> Tensor:
    """Returns `x` in another dtype, in memory of its own unless `copy` is False; else like `cast`.

    Example:
        >>> ops.astype([1.5, 0.0], "bool").tolist()
        [True, False]
    """
    return convert_to_tensor(x, dtype, device, True if copy else None)


@op
def view(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Returns the bits of `x` read as another dtype.

    Shape: the last axis grows or shrinks with the width of the dtypes.

    Raises: ShapeError if the last axis does not divide into numbers of the new width.

    Example:
        >>> ops.view(ops.cast([1.0], "float32"), "int32").tolist()
        [1065353216]
    """
    ...


@op
def copy(x: TensorLike) -> Tensor:
    """Returns a tensor of the same values that shares no memory with `x`."""
    ...


@op
def array(x: CastTensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a new tensor of the values of `x`, which shares no memory with it.

    Example:
        >>> ops.array([1, 2]).tolist()
        [1, 2]
    """
    return convert_to_tensor(x, dtype, copy=True)


@op
def from_dlpack(x: Any, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Returns a tensor of another library, given by the DLPack protocol; the way from one backend to another.

    Memory is shared where both sides can; MLX copies what comes to it. Dtype: kept.

    Args:
        copy: True gives memory of its own; None copies where it must; False refuses that.

    Raises: ArgumentTypeError for what does not speak DLPack, and a masked array; DTypeError for a dtype that the
    backend or the protocol's implementation lacks; ArgumentError if a copy was refused and is needed.

    Example:
        >>> ops.from_dlpack(ops.zeros(2)).tolist()
        [0.0, 0.0]
    """
    ...


@op
def is_tensor(x: Any) -> bool:
    """Returns whether `x` is a tensor of the active backend; never converts it.

    Example:
        >>> ops.is_tensor([1, 2]), ops.is_tensor(ops.zeros(2))
        (False, True)
    """
    ...


@op
def shape(x: TensorLike) -> tuple[int, ...]:
    """Returns the shape.

    Example:
        >>> ops.shape([[1, 2, 3]])
        (1, 3)
    """
    ...


@op
def ndim(x: TensorLike) -> int:
    """Returns the number of axes.

    Example:
        >>> ops.ndim([[1, 2, 3]])
        2
    """
    ...


@op
def size(x: TensorLike) -> int:
    """Returns the number of elements.

    Example:
        >>> ops.size([[1, 2, 3]])
        3
    """
    ...


@op
def eval(*trees: Any) -> None:
    """Computes all tensors in trees now: forces MLX, which is lazy, and is free elsewhere.

    Raises: what computing them raises.
    """
    ...
