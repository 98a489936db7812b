"""Runs programs of elementwise ops on NumPy, in blocks that stay in the cache.

Small arrays are computed by one function of Python that is written for the program, large ones in blocks of 65,536
elements, whose results between stay in the cache. `SGD` of large arrays is limited by its two calls: no public function
of NumPy computes `p - lr * g` in one pass, since the ufuncs have no multiply-add, and `einsum`, `matmul` and `dot` set
their results to zero first. Blocks of 2**14 to 2**18 elements, aligned memory and large pages of memory changed little.
"""

import functools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from emberharmony.transforms.program import BINARY, CHOICE, UNARY, Program, Register, Update
from emberharmony.transforms.source import FunctionSource, write_function

BLOCK = 2**16
"""The elements of a block: the blocks of the operands of a few ops fit into the cache of a core."""


def _choose_into(x: np.ndarray, y: np.ndarray, condition: Any, out: np.ndarray | None = None) -> np.ndarray:
    if out is None:
        return np.array(x if condition else y)
    np.copyto(out, x if condition else y)
    return out


_NATIVES: dict[str, Callable[..., Any]] = {op: getattr(np, op) for op in (*UNARY, *BINARY)} | {
    "maximum": lambda x, y, out=None: np.maximum(x, y, out=out),
    "minimum": lambda x, y, out=None: np.minimum(x, y, out=out),
    CHOICE: _choose_into,
}
_SHAPE, _SIZE, _NDIM = map(attrgetter, ("shape", "size", "ndim"))
_PYTHONS = ("maximum", "minimum", CHOICE)
"""The functions that are no functions of C: NumPy 2.4 wants the array to write into by name for two."""


def run_update(update: Update, columns: Sequence[Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """Runs a program over lists of arrays; see `Backend.run_update`."""
    program, dtype = update.program, columns[0][0].dtype
    # AdamW for 102,400 elements takes 350 µs whole and 450 in blocks, for 250,000 it takes 1,030 and 960 (NumPy 2.4).
    if max(map(_SIZE, columns[0])) <= 2 * BLOCK and min(map(_NDIM, columns[0])):
        numbers = list(map(np.asarray, map(update.numbers.__getitem__, program.numbers), repeat(dtype)))
        rows = map(_program_function(program), zip(*columns, strict=True), repeat(numbers))
        return list(zip(*rows, strict=True))
    new_arrays_by_register = {
        x: [np.empty(like.shape, dtype) for like in columns[0]] for x in program.outputs if x >= program.inputs
    }
    deque(_blockwise_runs(update, columns, new_arrays_by_register, _scratch_memory(program, columns[0])), 0)
    return [columns[x] if x < program.inputs else new_arrays_by_register[x] for x in program.outputs]


class NumpySource(FunctionSource):
    """The source of a function that makes calls of NumPy."""

    by_name = frozenset((np.maximum, np.minimum))  # NumPy 2.4


@functools.lru_cache(64)
def _program_function(program: Program) -> Callable[..., Any]:
    """Returns the function of arrays of one block and numbers that runs a program.

    It takes 20 µs less for a small network than `_blockwise_runs`, which prepares for many blocks.
    """
    return write_function(program, _NATIVES.__getitem__, program.memory_targets, NumpySource)


def can_overwrite_inputs(program: Program) -> bool:
    """Returns whether calls of C functions can write the results of a program over its inputs."""
    return program.output_slots is not None and not any(call.function in _PYTHONS for call in program.calls)


def overwriting_calls(
    update: Update, columns: Sequence[Sequence[np.ndarray]], scratch_by_program: dict[Any, Any]
) -> list[Iterable[tuple[Any, ...]]]:
    """Returns the calls that write the results of a program over its inputs; see `Backend.overwriting_calls`."""
    program = update.program
    # Another thread that makes a step of the same optimizer finds no scratch memory and makes its own.
    scratch = scratch_by_program.pop(program, None) or _scratch_memory(program, columns[0])
    column_by_register = {x: columns[column] for x, column in (program.output_slots or {}).items()}
    runs = _blockwise_runs(update, columns, column_by_register, scratch)
    return [[(deque, runs, 0), (scratch_by_program.clear,), (scratch_by_program.__setitem__, program, scratch)]]


class _Scratch(NamedTuple):
    """The memory for the intermediate results of a program, for arrays of certain shapes.

    To make it takes 20 µs for 100 arrays, a tenth of a step of `SGD`.

    Attributes:
        in_blocks: whether some arrays are longer than a block.
        columns: an array for each array or block, by register.
    """

    in_blocks: bool
    columns: dict[int, list[np.ndarray]]


def _scratch_memory(program: Program, arrays: Sequence[np.ndarray]) -> _Scratch:
    """Returns the memory for intermediate results, which each array or block uses again."""
    shapes = list(map(_SHAPE, _split_into_blocks(arrays)))
    distinct_shapes = {*shapes}
    columns: dict[int, list[np.ndarray]] = {}
    largest_size = max(map(math.prod, distinct_shapes))
    for registers in program.registers_by_slot:
        memory = np.empty(largest_size, arrays[0].dtype)
        array_by_shape = {shape: memory[: math.prod(shape)].reshape(shape) for shape in distinct_shapes}
        column = list(map(array_by_shape.__getitem__, shapes))
        columns.update(zip(registers, repeat(column)))
    return _Scratch(len(shapes) > len(arrays), columns)


def _split_into_blocks(arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Returns arrays, of which those longer than a block are replaced by their blocks."""
    blocks: list[np.ndarray] = []
    for array in arrays:
        if array.size <= BLOCK:
            blocks.append(array)
        else:
            flat_array = array.reshape(-1)
            blocks += [flat_array[start : start + BLOCK] for start in range(0, flat_array.size, BLOCK)]
    return blocks


def _blockwise_runs(
    update: Update,
    columns: Sequence[Sequence[np.ndarray]],
    outputs: Mapping[int, Sequence[np.ndarray]],
    scratch: _Scratch,
) -> Iterable[Any]:
    """Returns an iterable that runs a program over blocks of arrays, one at each turn, and writes into the outputs.

    Nothing but functions of C run in a turn. The ops are iterables themselves, which takes 82 µs for `p - lr * g` of
    100 arrays of 1,024 elements; a list of 200 calls takes 113 (NumPy 2.4).
    """
    program, dtype = update.program, columns[0][0].dtype
    registers: list[Any] = [*columns, *program.calls]
    for register, arrays in chain(outputs.items(), scratch.columns.items()):
        registers[register] = arrays
    if scratch.in_blocks:
        for register in (*range(program.inputs), *outputs):
            registers[register] = _split_into_blocks(registers[register])
    registers += [repeat(np.asarray(update.numbers[i], dtype)) for i in program.numbers]
    # `zip` takes from the iterables in their order, so an op runs when those before it have run for the same block.
    native_moves = [
        (_native_function(op), [registers[x] for x in (*operands, output)])
        for op, operands, output in program.instructions
    ]
    return zip(*[map(native_function, *operands) for native_function, operands in native_moves], strict=False)


def _native_function(op: Any) -> Callable[..., Any]:
    """Returns the function of an op, or of a function of NumPy, that takes the array to write into as its last one."""
    native_function: Callable[..., Any] = _NATIVES.get(getattr(op, "__name__", op), op)
    return native_function


class Blocks:
    """The function of arrays of one shape, and of scalars, that runs a program of functions of NumPy block by block.

    Args:
        program: the program.
        numbers: its numbers; a register stands for a scalar that the function takes.
    """

    least: ClassVar[int] = 2**21
    """Arrays of this many bytes leave the cache before the next call reads them, so they are made in blocks.

    At 1.2 MB both take the same time, and at 4 MB blocks take 0.5 to 0.7 times as long (10 to 30 calls, cache of 2 MB).
    """

    def __init__(self, program: Program, numbers: Sequence[Any]) -> None:
        self._program, self._numbers = program, numbers

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """Returns the new arrays that the program computes."""
        program, scalars = self._program, iter(arrays[self._program.inputs :])
        numbers = [next(scalars) if x.__class__ is Register else x for x in self._numbers]
        update = Update(program=program, numbers=numbers)
        output_arrays = [np.empty(arrays[0].shape, arrays[0].dtype) for _ in program.outputs]
        results_by_register = {
            register: [array] for register, array in zip(program.outputs, output_arrays, strict=True)
        }
        columns = [[array] for array in arrays[: program.inputs]]
        deque(_blockwise_runs(update, columns, results_by_register, _scratch_memory(program, arrays[:1])), 0)
        return output_arrays
