"""Runs programs of elementwise ops on NumPy."""

import functools
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from emberharmony.backend.shared.programs import BINARY, UNARY, Program, Step, in_blocks, run

BLOCK = 2**15
"""The elements of a block: the blocks of the operands of a few ops fit into the cache of a core."""

_NEW = {op: functools.partial(getattr(np, op), out=...) for op in (*UNARY, *BINARY)}
"""The functions that return arrays, also for arrays without axes."""

_NATIVES = {op: getattr(np, op) for op in (*UNARY, *BINARY)} | {
    "maximum": lambda x, y, out: np.maximum(x, y, out=out),
    "minimum": lambda x, y, out: np.minimum(x, y, out=out),
}
"""The functions that write into the array that is their last argument, which NumPy 2.4 wants by name for two."""


def listed(program: Program, columns: Sequence[Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """Runs a program over lists of arrays; see `Backend.evaluated`."""
    dtype = columns[0][0].dtype

    def operands(step: Step, registers: Sequence[Any]) -> list[Any]:
        found = [registers[register] for register in step.operands]
        return found if step.number is None else [*found, repeat(np.asarray(step.number, dtype))]

    def new(step: Step, registers: Sequence[Any]) -> list[np.ndarray]:
        return list(map(_NEW[step.op], *operands(step, registers)))

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        list(map(_NATIVES[step.op], *operands(step, registers), registers[register]))
        return True

    return run(program, columns, new, reusing)


def blocked(program: Program, columns: Sequence[Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """Runs a program over large arrays in blocks; see `Backend.evaluated`."""
    dtype = columns[0][0].dtype
    blocks = in_blocks(program, _NATIVES, lambda step: np.asarray(step.number, dtype))
    memory = [np.empty(BLOCK, dtype) for _ in {*blocks.scratch.values()}]
    registers: list[Any] = [None] * (program.inputs + len(program.steps))
    registers += blocks.numbers.values()
    found: list[list[np.ndarray]] = [[] for _ in blocks.written]
    for arrays in zip(*columns, strict=True):
        made = [np.empty(arrays[0].shape, dtype) for _ in found]
        for column, array in zip(found, made, strict=True):
            column.append(array)
        sources = [array.reshape(-1) for array in arrays]
        targets = [array.reshape(-1) for array in made]
        length = sources[0].size
        for start in range(0, length, BLOCK):
            block = slice(start, start + BLOCK)
            registers[: program.inputs] = [source[block] for source in sources]
            for register, place in blocks.written.items():
                registers[register] = targets[place][block]
            if start == 0 or start + BLOCK > length:
                for register, place in blocks.scratch.items():
                    registers[register] = memory[place][: length - start]
            for native, used in blocks.moves:
                if len(used) == 3:
                    native(registers[used[0]], registers[used[1]], registers[used[2]])
                else:
                    native(registers[used[0]], registers[used[1]])
    return [columns[x] if x < program.inputs else found[blocks.written[x]] for x in program.outputs]
