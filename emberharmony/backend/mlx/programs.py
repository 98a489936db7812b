"""Runs programs of elementwise ops on MLX."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.math_ops import MLXMathOps
from emberharmony.backend.shared.programs import BINARY, Program, Step, run

_NATIVES: dict[str, Callable[..., mx.array]] = {
    **{op: getattr(mx, op) for op in (*BINARY, "negative", "square", "sqrt")},
    "absolute": mx.abs,
    "sign": MLXMathOps.sign,
}


def listed(program: Program, columns: Sequence[Sequence[mx.array]]) -> list[Sequence[mx.array]]:
    """Runs a program over lists of tensors, which MLX computes later; see `Backend.evaluated`.

    MLX finds for itself which memory it may reuse.
    """
    dtype = columns[0][0].dtype

    def new(step: Step, registers: Sequence[Any]) -> list[mx.array]:
        operands = [registers[register] for register in step.operands]
        operands += [] if step.number is None else [repeat(mx.array(step.number, dtype))]
        return list(map(_NATIVES[step.op], *operands))

    return run(program, columns, new, lambda step, registers, register: False)
