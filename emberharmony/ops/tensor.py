"""Tensors as such: conversion in and out, copies, casts, evaluation."""

from __future__ import annotations

from numpy import ndarray

from emberharmony.core.dispatch import op
from emberharmony.core.types import DTypeLike, Tensor, TensorLike


@op
def convert_to_tensor(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Returns `x` as a tensor of the active backend; its own tensors of that dtype are returned as they are.

    Dtype: NumPy arrays keep theirs; Python numbers and lists take the default of their kind. Never narrowed silently.

    Raises: DTypeError if the backend lacks the dtype; BackendMismatchError for a tensor of another backend.

    Example:
        >>> ops.convert_to_tensor([1, 2], dtype="float32").tolist()
        [1.0, 2.0]
    """
    ...


@op
def to_numpy(x: TensorLike) -> ndarray:
    """Returns the values as a NumPy array; detached, evaluated and copied from the device where there is need.

    The array may share memory with the tensor and is then read-only where the backend's tensors are immutable.

    Example:
        >>> ops.to_numpy([1.0, 2.0]).shape
        (2,)
    """
    ...


@op
def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Returns `x` in another dtype; `x` itself if it has it. A complex tensor cast to a real dtype gives its real part.

    Example:
        >>> ops.cast([1.7, -1.7], "int32").tolist()
        [1, -1]
    """
    ...
