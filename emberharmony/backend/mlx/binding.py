"""Ways to bind MLX's binary ops that are right for some dtypes only."""

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.promote import Native
from emberharmony.core import op_globals
from emberharmony.core.dispatch import fast

op_globals.publish(mlx_complex64=mx.complex64)
# Asking for the size first spares most arrays the comparison of dtypes, which costs as much as the rest of a call.
REAL = "({{{0}}}.itemsize != 8 or {{{0}}}.dtype != mlx_complex64)"
"""A condition that an operand, whose number is to be filled in, is not complex."""


def unequal(x1: mx.array, x2: mx.array) -> mx.array:
    """Returns where two tensors differ: MLX 0.32 maps its own `not_equal` wrongly over the second one alone."""
    return mx.logical_not(mx.equal(x1, x2))


def bitwise(native: Native) -> Native:
    """Returns a binary op over `native` whose first operand varies with the second, for `unequal`'s reason."""

    def together(x1: mx.array, x2: mx.array) -> mx.array:
        if x2.dtype == mx.bool_:
            return native(mx.logical_or(x1, mx.logical_and(x2, mx.logical_not(x2))), x2)
        return native(x1 + (x2 - x2), x2)

    return promotion.binary(together, kinds=("float", "complex"), direct=False)


def ordered(native: Native, derived: Native | None = None) -> Native:
    """Returns a binary op over `native` that refuses complex operands with a `DTypeError`.

    Args:
        derived: the same with derivatives of its own, which stands in while a transform is under way.
    """
    promoted = promotion.binary(derived or native, kinds=("complex",), direct=False)
    alone = "untransformed and " if derived else ""
    first, second = REAL.format(0), REAL.format(1)
    when = f"{alone}{promotion.same} and {first} and {second}"
    return fast(native, when, f"{alone}({promotion.weak}) and {first}")(promoted)


def float32_first(native: Native, full: Native, kinds: tuple[str, ...]) -> Native:
    """Returns a binary op over `full`, for which `native` stands in for float32 where nothing is transformed."""
    promoted = promotion.binary(full, kinds=kinds, direct=False)
    first, second = "untransformed and {0}.dtype == native_float32", "{1}.dtype == native_float32"
    return fast(native, f"{first} and {second}", f"({promotion.weak}) and {first}")(promoted)
