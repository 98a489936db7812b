"""Runs programs of elementwise ops on JAX, which compiles each as one."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.dtypes import program
from emberharmony.backend.shared.programs import BINARY, UNARY, Program

_TOGETHER = 16
"""How many tensors one program makes: JAX 0.10 takes 25 ms to compile each, and reuses the program for equal shapes."""
_NATIVES = {op: getattr(jnp, op) for op in (*UNARY, *BINARY)}


@program("steps")
def _row(tensors: Sequence[jax.Array], numbers: Sequence[Any], steps: Program) -> list[jax.Array]:
    registers, given = list(tensors), iter(numbers)
    for step in steps.steps:
        operands = [registers[register] for register in step.operands]
        if step.number is not None:
            operands.append(next(given))
        registers.append(_NATIVES[step.op](*operands))
    return [registers[register] for register in steps.outputs]


def one_by_one(steps: Program, columns: Sequence[Sequence[jax.Array]]) -> list[Sequence[jax.Array]]:
    """Runs a program over large tensors; see `Backend.evaluated`.

    Its numbers are arguments of what JAX compiles, so that a new rate compiles nothing. A compiled sum of a product
    rounds once where the ops round twice.
    """
    numbers = [step.number for step in steps.steps if step.number is not None]
    unnumbered = tuple(step if step.number is None else step._replace(number=0.0) for step in steps.steps)
    fixed = steps._replace(steps=unnumbered)
    rows = [_row(tensors, numbers, fixed) for tensors in zip(*columns, strict=True)]
    return list(zip(*rows, strict=True))


@program()
def joined(tensors: Sequence[jax.Array]) -> jax.Array:
    """Returns all elements of tensors as one vector."""
    return jnp.concatenate([tensor.reshape(-1) for tensor in tensors])


@program("shapes")
def _parts(vector: jax.Array, start: int, shapes: tuple[tuple[int, ...], ...]) -> list[jax.Array]:
    ends = [*accumulate(map(math.prod, shapes))]
    whole = lax.dynamic_slice(vector, (start,), (ends[-1],))
    return [whole[end - math.prod(shape) : end].reshape(shape) for shape, end in zip(shapes, ends, strict=True)]


def parted(vector: jax.Array, shapes: Sequence[tuple[int, ...]]) -> list[jax.Array]:
    """Returns the elements of a vector as tensors of these shapes."""
    found: list[jax.Array] = []
    start = 0
    for first in range(0, len(shapes), _TOGETHER):
        some = tuple(shapes[first : first + _TOGETHER])
        found += _parts(vector, start, some)
        start += sum(map(math.prod, some))
    return found
