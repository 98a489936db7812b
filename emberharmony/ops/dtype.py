"""Dtypes and their limits.

Dtypes are neutral: each equals its name and every native dtype of the same meaning.
"""

from __future__ import annotations

from typing import Any

from emberharmony.backend.host import dtype_or_number
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import ALL, DType, as_dtype
from emberharmony.core.errors import ArgumentError, DTypeError
from emberharmony.core.numeric import promotion
from emberharmony.core.numeric.finfo import KINDS, FloatInfo, IntegerInfo
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import is_number
from emberharmony.core.types import DTypeLike, Tensor, TensorLike, TensorOrDType
from emberharmony.ops.tensor import cast, convert_to_tensor, is_tensor


@op(gradient="zero")
def dtype(x: TensorLike) -> DType:
    """Returns the neutral dtype of a tensor, or the dtype that a number or list would get.

    Args:
        x: a tensor, a number, or nested lists of numbers.

    See also: `native_dtype`, of the library; `result_type`, of several.

    Example:
        >>> ops.dtype([1.0]) == ops.float32
        True
    """
    ...


@op
def native_dtype(dtype: DTypeLike) -> Any:
    """Returns the dtype of the active backend's library: a `numpy.dtype`, a `torch.dtype` or an `mlx.core.Dtype`.

    It is for calls of functions of that library; ops take dtypes of every kind.

    Args:
        dtype: a dtype of any library, or a name such as "float32".

    Raises:
        DTypeError: if the dtype is unknown, or if the backend does not have it.

    See also: `dtype`, of a tensor.

    Example:
        >>> ops.native_dtype("float32") == ops.zeros(2, "float32").dtype
        True
    """
    return dtype


@op(gradient="zero")
def result_type(*operands: Tensor | DType | complex) -> DType:
    """Returns the dtype that tensors, dtypes and Python numbers promote to; Python numbers are weak.

    Args:
        *operands: tensors, dtypes, and Python numbers; at least one.

    See also: `can_cast`, to a given dtype; `dtype`, of one tensor.

    Example:
        >>> ops.result_type(ops.int32, ops.float32, 2.5) == ops.float32
        True
    """
    return promotion.result_type(*[dtype(x) if is_tensor(x) else dtype_or_number(x) for x in operands])


@op
def can_cast(from_: Tensor | DType, to: DType) -> bool:
    """Returns whether promotion can turn one dtype into the other.

    Args:
        from_: the dtype to cast from, or a tensor that has it.
        to: the dtype to cast to, which is what it and `from_` must promote to.

    See also: `result_type`, the common dtype.

    Example:
        >>> ops.can_cast(ops.int8, ops.int32), ops.can_cast(ops.float32, ops.int32)
        (True, False)
    """
    return result_type(from_, to) == as_dtype(to)


@op
def isdtype(dtype: DType, kind: object) -> bool:
    """Returns whether a dtype is of a kind.

    Args:
        dtype: a dtype of any library, or a name such as "float32".
        kind: a dtype, a tuple of kinds, or one of "bool", "signed integer", "unsigned integer", "integral", "real
            floating", "complex floating" and "numeric".

    Raises:
        ArgumentError: if the name of the kind is unknown.

    See also: `finfo`, the limits of floats; `iinfo`, the limits of integers.

    Example:
        >>> ops.isdtype(ops.int8, "integral")
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, single_kind) for single_kind in kind)
    tested_dtype = as_dtype(dtype)
    if isinstance(kind, str) and not isinstance(kind, DType) and kind not in ALL:
        if kind not in KINDS:
            raise ArgumentError(f"expected kind to be a dtype or one of {', '.join(KINDS)}, got {kind!r}")
        return tested_dtype.kind in KINDS[kind]
    return (tested_dtype.kind == "bool") if kind == "bool" else tested_dtype == as_dtype(kind)


@op
def finfo(type: TensorOrDType) -> FloatInfo:
    """Returns the limits of a floating dtype, or of a tensor's; for a complex dtype those of its parts.

    Args:
        type: a floating or complex dtype, its name, or a tensor that has it.

    Raises:
        DTypeError: if the dtype is neither floating nor complex.

    See also: `iinfo`, of integers.

    Example:
        >>> ops.finfo(ops.float32).bits
        32
    """
    return FloatInfo.of_dtype(dtype(type) if is_tensor(type) else as_dtype(type))


@op
def iinfo(type: TensorOrDType) -> IntegerInfo:
    """Returns the limits of an integer dtype, or of a tensor's.

    Args:
        type: an integer dtype, its name, or a tensor that has it.

    Raises:
        DTypeError: if the dtype is not an integer.

    See also: `finfo`, of floats.

    Example:
        >>> ops.iinfo(ops.int8).max
        127
    """
    return IntegerInfo.of_dtype(dtype(type) if is_tensor(type) else as_dtype(type))


def cast_option(name: str, value: Any, x: Tensor) -> Any:
    """Returns a real option of an op on `x`: a number as a float, anything else as a tensor.

    The tensor gets the dtype of `x`, or the default float if `x` holds integers, so that an option never changes the
    dtype of a result.

    Raises:
        DTypeError: if the option is complex.
    """
    if value.__class__ is float:
        return value
    if is_number(value):
        return float(value)
    tensor = convert_to_tensor(value)
    tensor_dtype = dtype(tensor)
    if tensor_dtype.is_complex:
        raise DTypeError(f"{name} is real, not {tensor_dtype.name}")
    return cast(tensor, as_inexact(dtype(x)))


def to_inexact(x: Tensor) -> Tensor:
    """Returns integers in the default float, because their sums and products would wrap; other dtypes are unchanged."""
    x_dtype = dtype(x)
    return x if x_dtype.is_floating or x_dtype.is_complex else cast(x, as_inexact(x_dtype))


def widen(x: Tensor) -> Tensor:
    """Returns half precision as float32, because its squares overflow, and integers in the default float."""
    x_dtype = dtype(x)
    if x_dtype.is_floating:
        return cast(x, "float32") if x_dtype.bits == 16 else x
    return x if x_dtype.is_complex else cast(x, as_inexact(x_dtype))


def narrow_like(result: Tensor, x: Tensor) -> Tensor:
    """Returns a result cast to the dtype of `x` if that is half precision; otherwise unchanged."""
    x_dtype = dtype(x)
    return cast(result, x_dtype) if x_dtype.is_floating and x_dtype.bits == 16 else result


def refuse_complex(x: Tensor) -> None:
    """Raises an error for a complex tensor, because complex numbers have no order.

    Raises:
        DTypeError: if it is complex.
    """
    x_dtype = dtype(x)
    if x_dtype.is_complex:
        raise DTypeError(f"the op is not defined for dtype {x_dtype.name}; cast the tensor first (ops.cast)")
