"""Steps of optimizers on JAX: programs of elementwise ops, each of which it compiles as one."""

import math
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from emberharmony.backend.jax.dtypes import compile_by_jit
from emberharmony.backend.steps import Steps
from emberharmony.transforms.program import BINARY, CHOICE, UNARY, Update

_TOGETHER = 16
"""How many tensors one program makes: JAX 0.10 takes 25 ms to compile each, and reuses the program for equal shapes."""
_NATIVES = {op: getattr(jnp, op) for op in (*UNARY, *BINARY)} | {
    CHOICE: lambda x, y, condition: jnp.where(condition != 0, x, y)
}


@compile_by_jit("moves", "outputs")
def _run_on_row(
    tensors: Sequence[jax.Array], numbers: Sequence[Any], moves: tuple[Any, ...], outputs: tuple[int, ...]
) -> list[jax.Array]:
    registers = [*tensors, *moves, *numbers]
    for op, operand_registers, result_register in moves:
        registers[result_register] = _NATIVES[op](*[registers[x] for x in operand_registers])
    return [registers[register] for register in outputs]


@compile_by_jit()
def _flat_vector(tensors: Sequence[jax.Array]) -> jax.Array:
    """Returns all elements of tensors as one vector."""
    return jnp.concatenate([tensor.reshape(-1) for tensor in tensors])


@compile_by_jit("shapes")
def _tensors_of_vector(vector: jax.Array, start: int, shapes: tuple[tuple[int, ...], ...]) -> list[jax.Array]:
    end_offsets = [*accumulate(map(math.prod, shapes))]
    group_vector = lax.dynamic_slice(vector, (start,), (end_offsets[-1],))
    return [
        group_vector[end_offset - math.prod(shape) : end_offset].reshape(shape)
        for shape, end_offset in zip(shapes, end_offsets, strict=True)
    ]


class JAXSteps(Steps):
    """The steps of optimizers on JAX."""

    def as_vector(self, tensors: Sequence[jax.Array]) -> jax.Array:
        """Returns all elements of tensors of one dtype as one vector."""
        vector: jax.Array = _flat_vector(list(tensors))
        return vector

    def split_vector(self, vector: jax.Array, likes: Sequence[jax.Array]) -> list[jax.Array]:
        """Returns the elements of a vector as tensors of the shapes of others, each with memory of its own."""
        tensors_of_shapes: list[jax.Array] = []
        start = 0
        for first_index in range(0, len(likes), _TOGETHER):
            shapes = tuple([like.shape for like in likes[first_index : first_index + _TOGETHER]])
            tensors_of_shapes += _tensors_of_vector(vector, start, shapes)
            start += sum(map(math.prod, shapes))
        return tensors_of_shapes

    def run_update(self, update: Update, columns: Sequence[Sequence[jax.Array]]) -> list[Sequence[jax.Array]] | None:
        """Returns the lists of tensors that a program computes from lists of tensors; None for traced tensors.

        Its numbers are arguments of what JAX compiles, so that a new rate compiles nothing. A compiled sum of a product
        rounds once where the ops round twice.
        """
        if not all(map(self.may_outlive_transforms, chain.from_iterable(columns))):
            return None
        moves, outputs = update.program.instructions, update.program.outputs
        numbers = [float(update.numbers[i]) for i in update.program.numbers]
        result_rows = [_run_on_row(tensors, numbers, moves, outputs) for tensors in zip(*columns, strict=True)]
        return list(zip(*result_rows, strict=True))
