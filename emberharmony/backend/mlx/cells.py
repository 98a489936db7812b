"""Operators of MLX take a parameter or buffer for its tensor, also one with a single element."""

import functools
import sys
from collections.abc import Callable
from opcode import opmap
from typing import TypeVar

import mlx.core as mx

from emberharmony.core.cells.tensor_methods import TensorMethods

OPERATORS = {opmap["BINARY_OP"], opmap["COMPARE_OP"]}
REMAINDER = 6
"""The argument of BINARY_OP for `%`, which is also the operator of `"%f" % p`."""

T = TypeVar("T")


def _conversion_without_operators(read: Callable[[TensorMethods], T]) -> Callable[[TensorMethods], T]:
    """Returns a conversion to a number that raises a TypeError for an operator of MLX, such as `x * p`.

    An array of MLX 0.32 asks its right operand for a complex number before it asks for an array, and the result would
    be complex64. After the error, which nobody sees, it asks for the array. `docs/upstream.md` shows when this may go.
    """

    @functools.wraps(read)
    def convert_cell(cell: TensorMethods) -> T:
        if isinstance(cell.value, mx.array):
            caller = sys._getframe(1)
            bytecode, last_instruction = caller.f_code.co_code, caller.f_lasti
            if bytecode[last_instruction] in OPERATORS and bytecode[last_instruction + 1] != REMAINDER:
                raise TypeError("an operator takes the tensor of a parameter or buffer, and not its number")
        return read(cell)

    return convert_cell


TensorMethods.__float__ = _conversion_without_operators(TensorMethods.__float__)  # type: ignore[method-assign]
TensorMethods.__complex__ = _conversion_without_operators(TensorMethods.__complex__)  # type: ignore[method-assign]
