"""Runs programs of elementwise ops on MLX."""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.math_ops import sign
from emberharmony.backend.shared.programs import BINARY, Program, Step, in_chunks, run

CHUNK = 2**19
"""The most elements in the tensors of a list that are computed before the next ones."""

_NATIVES: dict[str, Callable[..., mx.array]] = {
    **{op: getattr(mx, op) for op in (*BINARY, "negative", "square", "sqrt")},
    "absolute": mx.abs,
    "sign": sign,
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


def chunked(
    program: Program, columns: Sequence[Sequence[mx.array]], evaluate: Callable[[Any], None]
) -> list[Sequence[mx.array]]:
    """Runs a program over lists of large tensors, a few of which MLX computes before the next; see `Backend.evaluated`.

    So the cache still has a result when the next op reads it.
    """
    made = listed(program, columns)
    chunks = list(in_chunks(list(range(len(columns[0]))), [x.size for x in columns[0]], CHUNK))
    if len(chunks) > 1:
        evaluate(columns[0])  # the gradients first: they end the backward pass, whose memory the step can use
        for chunk in chunks:
            evaluate([column[chunk[0] : chunk[-1] + 1] for column in made])
    return made
