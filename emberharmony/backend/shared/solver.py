"""Dtypes and argument checks of the linear algebra of all backends."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.backend.promote import FLOAT, SAME, Promotion, nonnegative_axes
from emberharmony.core.dispatch import fast
from emberharmony.core.errors import ArgumentError, LinAlgError, ShapeError

Function = Callable[..., Any]

DIRECT = {1: FLOAT, 2: f"{SAME} and ({FLOAT})"}
"""The condition under which one or two operands need no cast, for libraries that have one object for each dtype."""


def cast_to_inexact(
    promotion: Promotion, operands: int = 1, direct: Function | None = None
) -> Callable[[Function], Function]:
    """Returns a decorator that casts the first `operands` arguments of a function to their common floating dtype.

    Integers take the default float. LAPACK has no half precision, so the function gets such operands in float32, and
    its float32 results are cast back.

    Args:
        promotion: the promotion rule of the backend.
        operands: how many of the arguments are operands.
        direct: what dispatch calls where no operand needs a cast, if it is not the function itself; it has to raise an
            error for all arguments for which the function raises one.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def cast_and_call(*args: Any, **options: Any) -> Any:
            tensors = promotion.common(*args[:operands], inexact=True)
            if tensors[0].itemsize > 2:
                return function(*tensors, *args[operands:], **options)
            input_dtype, float32_dtype = tensors[0].dtype, promotion.dtypes["float32"]
            result = function(*(promotion.cast(x, float32_dtype) for x in tensors), *args[operands:], **options)
            if not isinstance(result, tuple):
                return promotion.cast(result, input_dtype)
            return type(result)(*(promotion.cast(x, input_dtype) if x.dtype == float32_dtype else x for x in result))

        return fast(direct or function, DIRECT[operands])(cast_and_call) if promotion.same == SAME else cast_and_call

    return decorate


def require_square(x: Any) -> Any:
    """Returns a tensor, checked to have square matrices on its last two axes.

    Raises:
        ShapeError: if it does not.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"expected square matrices on the last two axes, got shape {tuple(x.shape)}")
    return x


def check_sides(a: Any, b: Any) -> None:
    """Checks that `a` holds square matrices and `b` right-hand sides with as many rows, as vectors or matrices.

    Raises:
        ShapeError: if they do not.
    """
    row_count = b.shape[0 if b.ndim == 1 else -2] if b.ndim else None
    if require_square(a).shape[-1] != row_count:
        raise ShapeError(f"matrices of shape {tuple(a.shape)} do not fit right-hand sides of shape {tuple(b.shape)}")


def check_equal_lengths(x1: Any, x2: Any, axis: int) -> None:
    """Checks that an axis has the same length in two tensors; it is not broadcast.

    Raises:
        AxisError: if the axis is out of range.
        ShapeError: if the lengths differ.
    """
    lengths = [x.shape[nonnegative_axes(axis, x.ndim)[0]] for x in (x1, x2)]
    if lengths[0] != lengths[1]:
        raise ShapeError(f"axis {axis} must have the same length in both tensors, got {lengths[0]} and {lengths[1]}")


def not_finite_error(shape: Sequence[int]) -> LinAlgError:
    """Returns the error for matrices that have no singular values or eigenvalues, since they hold infinities or NaN."""
    return LinAlgError(
        f"expected finite matrices, got infinities or NaN in shape {tuple(shape)}; find them with ops.isfinite, or "
        f"replace them with ops.nan_to_num"
    )


def check_qr_mode(mode: str) -> None:
    """Checks that the mode of a QR decomposition is a known one.

    Raises:
        ArgumentError: if it is unknown.
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode is 'reduced' or 'complete', not {mode!r}")
