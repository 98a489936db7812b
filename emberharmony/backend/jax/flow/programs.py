"""Runs programs of elementwise ops on JAX, which compiles each as one."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.dtypes import program
from emberharmony.transforms.program import BINARY, CHOICE, UNARY, Update

_TOGETHER = 16
"""How many tensors one program makes: JAX 0.10 takes 25 ms to compile each, and reuses the program for equal shapes."""
_NATIVES = {op: getattr(jnp, op) for op in (*UNARY, *BINARY)} | {
    CHOICE: lambda x, y, condition: jnp.where(condition != 0, x, y)
}


@program("moves", "outputs")
def _row(
    tensors: Sequence[jax.Array], numbers: Sequence[Any], moves: tuple[Any, ...], outputs: tuple[int, ...]
) -> list[jax.Array]:
    registers = [*tensors, *moves, *numbers]
    for op, args, result in moves:
        registers[result] = _NATIVES[op](*[registers[x] for x in args])
    return [registers[register] for register in outputs]


def computed(update: Update, columns: Sequence[Sequence[jax.Array]]) -> list[Sequence[jax.Array]]:
    """Runs a program over lists of tensors; see `Backend.computed`.

    Its numbers are arguments of what JAX compiles, so that a new rate compiles nothing. A compiled sum of a product
    rounds once where the ops round twice.
    """
    moves, outputs = update.program.moves, update.program.outputs
    numbers = [float(update.numbers[i]) for i in update.program.numbers]
    rows = [_row(tensors, numbers, moves, outputs) for tensors in zip(*columns, strict=True)]
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
