"""Promotes or refuses the operands of a composite before its body, by ops, so that gradients pass."""

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import DTypeError
from emberharmony.core.numeric.promotion import as_inexact, check_fits, promote, promote_weak
from emberharmony.core.registry import Facts

_INEXACT = ("float", "complex")


def with_promoted_operands(declared: FunctionType, facts: Facts) -> Callable[..., Any]:
    """Returns a body whose operands, tensors and numbers, become tensors of one dtype that the op takes.

    It does over ops what `Promotion.complete_op` does over the functions of a library.
    """
    refused_kinds, is_inexact = facts.refuses, facts.gives == "float"
    operand_names = declared.__code__.co_varnames[: declared.__code__.co_argcount]

    @functools.wraps(declared)
    def promote_and_call(*args: Any, **named: Any) -> Any:
        operands: Sequence[Any] = args
        if named:
            operands = [*args, *[named.pop(name) for name in operand_names[len(args) :] if name in named]]
        if named or len(operands) != len(operand_names):
            return declared(*operands, **named)  # raises the error of Python
        return declared(*cast_to_common(*operands, inexact=is_inexact, refused=refused_kinds))

    return promote_and_call


def cast_to_common(*operands: Any, inexact: bool = False, refused: Sequence[str] = ()) -> Sequence[Any]:
    """Returns tensors and weak numbers as tensors of their common dtype, for a body that has options beside them.

    Args:
        operands: the tensors and numbers, at least one tensor.
        inexact: whether integers and booleans become the default float.
        refused: the kinds of dtypes that the op does not take.

    Raises:
        DTypeError: if the common dtype is of such a kind.
        RangeError: if a Python integer does not fit it.
    """
    active_ops = op_globals.active()
    native_dtype = getattr(operands[0], "dtype", None)
    if native_dtype is None or not all(hasattr(x, "dtype") and x.dtype == native_dtype for x in operands):
        operands = _promote_operands(active_ops, operands, inexact)
        native_dtype = operands[0].dtype
    dtype_kind = active_ops.backend.kinds[native_dtype]
    if dtype_kind in refused:
        dtype_name = active_ops.backend.dtypes.neutral[native_dtype].name
        raise DTypeError(f"the op is not defined for dtype {dtype_name}; cast the tensor first (ops.cast)")
    return _promote_operands(active_ops, operands, True) if inexact and dtype_kind not in _INEXACT else operands


def _promote_operands(bound: Any, operands: Sequence[Any], inexact: bool) -> tuple[Any, ...]:
    """Returns tensors and weak numbers as tensors of their common dtype."""
    neutral_dtypes = bound.backend.dtypes.neutral
    dtype = promote(*[neutral_dtypes[x.dtype] for x in operands if hasattr(x, "dtype")])
    for x in operands:
        if not hasattr(x, "dtype"):
            dtype = promote_weak(dtype, type(x))
    dtype = as_inexact(dtype) if inexact else dtype
    return tuple([_cast_operand(bound, x, dtype) for x in operands])


def _cast_operand(bound: Any, x: Any, dtype: DType) -> Any:
    """Returns a tensor or a number as a tensor of a dtype."""
    if hasattr(x, "dtype"):
        return x if bound.backend.dtypes.neutral[x.dtype] == dtype else bound.cast(x, dtype)
    check_fits(x, dtype)
    # The libraries cannot convert integers beyond 64 bits to float, so do it here.
    return bound.convert_to_tensor(float(x) if type(x) is int and not dtype.is_integer else x, dtype)
