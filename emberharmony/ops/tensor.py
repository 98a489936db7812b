"""Tensors themselves: conversion from and to other libraries, casts, copies, evaluation."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.options import refuse_sparse
from emberharmony.core.tracing import require_untraced
from emberharmony.core.types import CastTensorLike, DeviceLike, DTypeLike, HostArray, Tensor, TensorLike
from emberharmony.ops.device import to_device

if TYPE_CHECKING:
    from emberharmony.backend.shared import bodies as shared_bodies
    from emberharmony.backend.shared import tensor as shared_tensor
    from emberharmony.ops.arrays import shape as shape_ops
else:
    shared_bodies = Deferred("emberharmony.backend.shared.bodies")
    shared_tensor = Deferred("emberharmony.backend.shared.tensor")
    shape_ops = Deferred("emberharmony.ops.arrays.shape")  # which imports this module


@op(finite="yes")
def convert_to_tensor(
    x: CastTensorLike,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Returns `x` as a tensor of the active backend; a tensor that needs no change is returned itself.

    Dtype: NumPy arrays keep theirs. Python numbers and lists become `dtype`, or by default the default dtype of their
    kind. No value is narrowed silently.

    Args:
        x: a tensor, a NumPy array, a number, or nested lists of numbers and tensors.
        dtype: the dtype of the result; None keeps that of tensors and NumPy arrays, and gives numbers the default dtype
            of their kind.
        sparse: an option of Keras; only None and False are accepted.
        ragged: an option of Keras; only None and False are accepted.
        device: the device of the result; by default tensors stay on their device.
        copy: True always copies; None copies where it is necessary; False never copies, so it does not accept lists and
            numbers, nor NumPy arrays on MLX.

    Raises:
        DTypeError: if the backend does not have the dtype.
        BackendMismatchError: if `x` is a tensor of another backend.
        RangeError: if a Python integer is outside the range of the dtype.
        ArgumentError: (a ValueError) if `copy` is False and a copy is necessary, or if `sparse` or `ragged` is True.
        ArgumentTypeError: if `x` is a masked array.

    See also: `array`, always a copy; `cast`, of tensors alone.

    Example:
        >>> ops.convert_to_tensor([1, 2], dtype="float32").tolist()
        [1.0, 2.0]
    """
    if sparse or ragged:
        refuse_sparse("sparse", sparse)
        refuse_sparse("ragged", ragged)
    converted_x = x if dtype is None else cast(x, dtype)
    converted_x = converted_x if device is None else to_device(converted_x, device)
    if converted_x is not x:
        shared_tensor.refuse_copy(copy)
    return _copied(x) if copy and converted_x is x else converted_x


asarray = alias("asarray", convert_to_tensor)


@op(finite="yes")
def to_numpy(x: TensorLike) -> HostArray:
    """Returns the values as a NumPy array, detached from gradients, evaluated, and copied from the device if necessary.

    The array may share memory with the tensor. It is then read-only if the backend's tensors are immutable.

    Args:
        x: a tensor of the active backend, a number, or nested lists; any shape and dtype.

    See also: `convert_to_tensor`, the inverse; `from_dlpack`, for another backend.

    Example:
        >>> ops.to_numpy([1.0, 2.0]).shape
        (2,)
    """
    ...


convert_to_numpy = alias("convert_to_numpy", to_numpy)


@op(elementwise=True, finite="gradient")
def cast(x: CastTensorLike, dtype: DTypeLike) -> Tensor:
    """Returns `x` in another dtype, or `x` itself if it has that dtype already.

    A complex tensor cast to a real dtype gives its real part.

    Args:
        x: a tensor of any shape and dtype; numbers and lists are read in `dtype`.

    See also: `astype`, with a copy; `saturate_cast`, within limits; `view`, of the bits.

    Example:
        >>> ops.cast([1.7, -1.7], "int32").tolist()
        [1, -1]
    """
    ...


@op(finite="gradient")
def astype(x: CastTensorLike, dtype: DTypeLike, copy: bool = True, device: DeviceLike | None = None) -> Tensor:
    """Returns `x` in another dtype; otherwise like `cast`.

    Args:
        x: a tensor of any shape and dtype; numbers and lists are read in `dtype`.
        copy: whether the result always gets its own memory.
        device: the device of the result, such as "cpu" or "gpu:1"; None leaves it where `x` is.

    See also: `cast`, without a copy.

    Example:
        >>> ops.astype([1.5, 0.0], "bool").tolist()
        [True, False]
    """
    return convert_to_tensor(x, dtype, device=device, copy=True if copy else None)


@op(finite="yes", reads="data", view=True)
def view(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Returns the bits of `x` reinterpreted as another dtype.

    Shape: the last axis grows or shrinks with the width of the dtypes.

    Args:
        x: a tensor of any dtype, whose bits are read; without axes only if both dtypes have the same width.
        dtype: the dtype that the bits are read as.

    Raises:
        ShapeError: if the last axis does not divide into elements of the new width.

    See also: `cast`, of the values.

    Example:
        >>> ops.view(ops.cast([1.0], "float32"), "int32").tolist()
        [1065353216]
    """
    target_dtype = as_dtype(dtype)
    return shared_bodies.tensor_from_host(shared_tensor.view_bits(to_numpy(x), target_dtype), target_dtype)


@op(elementwise=True, finite="yes")
def copy(x: TensorLike) -> Tensor:
    """Returns a tensor of the same values that does not share memory with `x`.

    Args:
        x: a tensor of any shape and dtype, a number, or nested lists.

    See also: `array`, of any input; `stop_gradient`, without derivatives.
    """
    # `concatenate` with an empty tensor makes a new one, which shares no memory.
    flat_x = shape_ops.ravel(x)
    return shape_ops.reshape(shape_ops.concatenate([flat_x, flat_x[:0]]), x.shape)


_copied = copy


@op(finite="yes")
def array(x: CastTensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a new tensor of the values of `x` that does not share memory with it.

    Args:
        x: a tensor, a NumPy array, a number, or nested lists of numbers and tensors.
        dtype: the dtype of the result; None keeps that of tensors and NumPy arrays, and gives numbers the default dtype
            of their kind.

    See also: `convert_to_tensor`, without a copy.

    Example:
        >>> ops.array([1, 2]).tolist()
        [1, 2]
    """
    return convert_to_tensor(x, dtype, copy=True)


@op(finite="yes")
def from_dlpack(x: Any, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """Returns a tensor of another library as one of the active backend, by the DLPack protocol.

    This is how to move a tensor from one backend to another. Memory is shared if both libraries can share it; MLX
    copies every tensor it imports. Dtype: unchanged.

    Args:
        x: an array of any library that has the methods `__dlpack__` and `__dlpack_device__`.
        device: the device of the result, such as "cpu" or "gpu:1"; None leaves it where `x` is.
        copy: True always copies; None copies where it is necessary; False never copies.

    Raises:
        ArgumentTypeError: if `x` does not support DLPack, or is a masked array.
        DTypeError: if the backend, or its implementation of the protocol, does not have the dtype.
        ArgumentError: if `copy` is False and a copy is necessary.

    See also: `to_numpy`, by the host.

    Example:
        >>> ops.from_dlpack(ops.zeros(2)).tolist()
        [0.0, 0.0]
    """
    require_untraced(x)
    if is_tensor(x):
        return convert_to_tensor(x, device=device, copy=copy)
    return convert_to_tensor(shared_tensor.import_tensor(x, copy), device=device)


@op(gradient="zero")
def is_tensor(x: Any) -> bool:
    """Returns whether `x` is a tensor of the active backend; `x` is never converted.

    Args:
        x: any object, which is looked at as it is.

    See also: `is_traced`, while it is differentiated.

    Example:
        >>> ops.is_tensor([1, 2]), ops.is_tensor(ops.zeros(2))
        (False, True)
    """
    ...


@op(gradient="zero")
def is_traced(x: Any) -> bool:
    """Returns whether a running transform differentiates by the tensor `x`, or by one that `x` was computed from.

    Tensors over which `vmap` maps, and those of a function that `compile` compiles, are not traced in this sense. On
    PyTorch neither is a tensor that only a graph of the program itself records, such as a `torch.nn.Parameter`. On MLX
    the answer takes 1 µs for each op from which the tensor was computed, because MLX's graph is searched.

    Args:
        x: any object; all but tensors give False.

    See also: `is_tensor`, of the backend.

    Example:
        >>> ops.is_traced(ops.zeros(2))
        False
        >>> ops.grad(lambda x: ops.multiply(x, 2.0 if ops.is_traced(x) else 3.0))(1.0).tolist()
        2.0
    """
    ...


@op(gradient="zero")
def shape(x: TensorLike) -> tuple[int, ...]:
    """Returns the shape as a tuple of integers.

    Args:
        x: a tensor of any shape, a number, which has the shape (), or nested lists.

    See also: `ndim`, how many axes; `size`, how many elements.

    Example:
        >>> ops.shape([[1, 2, 3]])
        (1, 3)
    """
    return tuple(x.shape)


@op(gradient="zero")
def ndim(x: TensorLike) -> int:
    """Returns the number of axes.

    Args:
        x: a tensor of any shape, a number, which has no axes, or nested lists.

    See also: `shape`, their lengths.

    Example:
        >>> ops.ndim([[1, 2, 3]])
        2
    """
    return len(x.shape)


@op(gradient="zero")
def size(x: TensorLike) -> int:
    """Returns the number of elements.

    Args:
        x: a tensor of any shape, a number, which counts as one element, or nested lists.

    See also: `shape`, the lengths of the axes.

    Example:
        >>> ops.size([[1, 2, 3]])
        3
    """
    return prod(x.shape)


@op(gradient="zero", finite="yes")
def eval(*trees: Any) -> None:
    """Evaluates all tensors in trees now; needed only for MLX, which is lazy.

    Raises any error that occurs during the evaluation.

    Args:
        *trees: tensors, and nested dicts, lists, tuples and modules that hold some.

    See also: `synchronize`, for a device.
    """
    ...


def on_host(value: Any) -> Any:
    """Returns a tensor as an array on the host; other values unchanged."""
    return to_numpy(value) if is_tensor(value) else value
