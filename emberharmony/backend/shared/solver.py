"""What linear algebra has in common on every backend: dtypes, and checks of the arguments."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.backend.promote import Promotion, normalized
from emberharmony.core.errors import ArgumentError, LinAlgError, ShapeError

Function = Callable[..., Any]


def inexact(promotion: Promotion, operands: int = 1) -> Callable[[Function], Function]:
    """Returns a decorator that hands a function its operands in the one dtype they have in common.

    Integers take the default float. Half precision, which LAPACK does not have, is computed in float32: what comes
    back in float32 is narrowed again.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def op(*args: Any, **options: Any) -> Any:
            tensors = promotion.common(*args[:operands], inexact=True)
            if tensors[0].itemsize > 2:
                return function(*tensors, *args[operands:], **options)
            given, single = tensors[0].dtype, promotion.dtypes["float32"]
            result = function(*(promotion.cast(x, single) for x in tensors), *args[operands:], **options)
            if not isinstance(result, tuple):
                return promotion.cast(result, given)
            return type(result)(*(promotion.cast(x, given) if x.dtype == single else x for x in result))

        return op

    return decorate


def square(x: Any) -> Any:
    """Returns a tensor of square matrices.

    Raises: ShapeError.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"square matrices are wanted on the last two axes, this tensor has shape {tuple(x.shape)}")
    return x


def check_sides(a: Any, b: Any) -> None:
    """Checks that `a` holds square matrices and that right-hand sides suit them.

    Raises: ShapeError.
    """
    rows = b.shape[0 if b.ndim == 1 else -2] if b.ndim else None
    if square(a).shape[-1] != rows:
        raise ShapeError(f"matrices and right-hand sides do not fit, of shapes {tuple(a.shape)} and {tuple(b.shape)}")


def check_paired(x1: Any, x2: Any, axis: int) -> None:
    """Checks that two tensors have an axis of one length, which is not broadcast.

    Raises: AxisError, ShapeError.
    """
    lengths = [x.shape[normalized(axis, x.ndim)[0]] for x in (x1, x2)]
    if lengths[0] != lengths[1]:
        raise ShapeError(f"axis {axis} has lengths {lengths[0]} and {lengths[1]}, not one")


def not_finite(shape: Sequence[int]) -> LinAlgError:
    """Returns the error for matrices whose infinities or NaN leave them without singular values or eigenvalues."""
    return LinAlgError(
        f"expected finite matrices, got infinities or NaN in shape {tuple(shape)}; find them with ops.isfinite, or "
        f"replace them with ops.nan_to_num"
    )


def check_qr_mode(mode: str) -> None:
    """Checks the mode of a QR decomposition.

    Raises: ArgumentError.
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode is 'reduced' or 'complete', not {mode!r}")
