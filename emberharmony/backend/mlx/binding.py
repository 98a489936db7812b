"""Definitions by those binary functions of MLX that are right for some dtypes or transforms only."""

from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.promote import Native, direct
from emberharmony.core import op_globals

op_globals.publish(mlx_complex64=mx.complex64)
# Testing the size first avoids, for most arrays, the comparison of dtypes, which costs as much as the call.
REAL = "({{{0}}}.itemsize != 8 or {{{0}}}.dtype != mlx_complex64)"
"""The condition that an operand is not complex; `format` fills in the number of the operand."""


def unequal_mask(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns where two tensors differ.

    `mx.not_equal` (MLX 0.32) is wrong under vmap if only the second operand is mapped over.
    """
    return mx.logical_not(mx.equal(x1, x2))


def bitwise_op(native: Native) -> Any:
    """Returns a bitwise op over `native`, a function of MLX.

    Like `mx.not_equal`, it would be wrong under vmap if only the second operand is mapped over. So the first operand is
    made to depend on the second, without a change of its values.
    """

    def call_promoted(x1: mx.array, x2: mx.array) -> mx.array:
        if x2.dtype == mx.bool_:
            return native(mx.logical_or(x1, mx.logical_and(x2, mx.logical_not(x2))), x2)
        return native(x1 + (x2 - x2), x2)

    return staticmethod(call_promoted)


def ordering_op(native: Native, derived: Native | None = None) -> Any:
    """Returns an op over a native comparison that refuses complex operands, which MLX would order.

    Args:
        native: an op of MLX that needs the order of its operands.
        derived: the same op with derivatives of its own, which replaces `native` while a transform is running.
    """
    transform_condition = "untransformed and " if derived else ""
    first_condition, second_condition = REAL.format(0), REAL.format(1)
    full_condition = f"{transform_condition}{promotion.same} and {first_condition} and {second_condition}"
    return direct(
        native, derived, when=full_condition, weak=f"{transform_condition}({promotion.weak}) and {first_condition}"
    )


def float32_first_op(native: Native, full: Native) -> Any:
    """Returns the op `full`, for which dispatch calls `native` with float32 while no transform is running.

    Args:
        native: the fast op, right for float32 and without derivatives.
        full: the op that is right for all dtypes, and has derivatives.
    """
    first_condition, second_condition = "untransformed and {0}.dtype == native_float32", "{1}.dtype == native_float32"
    return direct(
        native, full, when=f"{first_condition} and {second_condition}", weak=f"({promotion.weak}) and {first_condition}"
    )
