"""Runs programs of elementwise ops on NumPy."""

import functools
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat, starmap
from operator import attrgetter, call
from typing import Any

import numpy as np

from emberharmony.backend.numpy.likeness import Likeness
from emberharmony.backend.shared.programs import BINARY, UNARY, Blocks, Program, Step, Written, in_blocks, run

BLOCK = 2**16
"""The elements of a block: the blocks of the operands of a few ops fit into the cache of a core."""

_NEW: dict[str, Callable[..., Any]] = {op: getattr(np, op) for op in (*UNARY, *BINARY)}
_NEW_WITHOUT_AXES: dict[str, Callable[..., Any]] = {
    op: functools.partial(native, out=...) for op, native in _NEW.items()
}
"""The functions that return arrays, also for arrays without axes, of which the others make scalars in less time."""

_NATIVES = {op: getattr(np, op) for op in (*UNARY, *BINARY)} | {
    "maximum": lambda x, y, out: np.maximum(x, y, out=out),
    "minimum": lambda x, y, out: np.minimum(x, y, out=out),
}
_SHAPE = attrgetter("shape")
_NAMED = ("maximum", "minimum")
"""The functions that write into the array that is their last argument, which NumPy 2.4 wants by name for two."""


def listed(program: Program, columns: Sequence[Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """Runs a program over lists of arrays; see `Backend.evaluated`."""
    number, natives = _number(columns), _makers(columns)

    def operands(step: Step, registers: Sequence[Any]) -> list[Any]:
        found = [registers[register] for register in step.operands]
        return found if step.number is None else [*found, repeat(number(step))]

    def new(step: Step, registers: Sequence[Any]) -> list[np.ndarray]:
        return list(map(natives[step.op], *operands(step, registers)))

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        list(map(_NATIVES[step.op], *operands(step, registers), registers[register]))
        return True

    return run(program, columns, new, reusing)


def blocked(program: Program, columns: Sequence[Sequence[np.ndarray]]) -> list[Sequence[np.ndarray]]:
    """Runs a program over large arrays in blocks; see `Backend.evaluated`."""
    blocks = in_blocks(program, _NATIVES, _number(columns))
    made = [[np.empty(x.shape, x.dtype) for x in columns[0]] for _ in blocks.written]
    deque(starmap(call, _calls(program, blocks, list(map(_in_blocks, columns)), list(map(_in_blocks, made)))), 0)
    return [columns[x] if x < program.inputs else made[blocks.written[x]] for x in program.outputs]


def overwriting(
    program: Program, columns: Sequence[Sequence[np.ndarray]], large: bool, alike: Likeness | None
) -> Written | None:
    """Returns what writes the outputs of a program over its inputs; see `Backend.overwriting`."""
    places = program.places()
    if places is None or any(step.op in _NAMED for step in program.steps):
        return None
    chained = alike is not None and program.is_chain()
    if large and not chained:
        blocks, parts = in_blocks(program, _NATIVES, _number(columns)), list(map(_in_blocks, columns))
        return Written([_calls(program, blocks, parts, [parts[places[x]] for x in blocks.written])])
    if alike is not None and chained and not large and alike.may_join:  # a chain has no state
        return _overwriting_joined(program, columns, alike)
    # A chain needs memory for one result between, so its blocks may be twice as long.
    columns = [_in_blocks(column, 2) for column in columns] if large else columns
    number, natives = _number(columns), _makers(columns)
    registers: list[Any] = list(columns)
    calls: list[Iterable[tuple[Any, ...]]] = []
    for i, step in enumerate(program.steps):
        operands = [registers[register] for register in step.operands]
        operands += [] if step.number is None else [repeat(number(step))]
        place = places.get(program.inputs + i)
        if place is None and alike is not None and chained:
            # The next step takes the result for one array before that for another is computed in the same memory.
            registers.append(map(_NATIVES[step.op], *operands, alike.memory(columns[1])))
            continue
        if place is None and not calls:
            registers.append(list(map(natives[step.op], *operands)))
            continue
        registers.append(list(map(np.empty_like, columns[1])) if place is None else columns[place])
        calls.append([(deque, map(_NATIVES[step.op], *operands, registers[-1]), 0)])
    return Written(calls)


def _overwriting_joined(program: Program, columns: Sequence[Sequence[np.ndarray]], alike: Likeness) -> Written:
    """Returns what writes the output of a chain over parameters that are parts of one vector."""
    gradients, parameters = columns
    number = _number(columns)
    flat, parts = alike.joined(parameters)
    np.concatenate(gradients, axis=None, out=flat.buffer)
    registers = [flat.buffer, flat.vector]
    calls: list[tuple[Any, ...]] = []
    for i, step in enumerate(program.steps):
        operands = [registers[register] for register in step.operands]
        operands += [] if step.number is None else [number(step)]
        if i == len(program.steps) - 1:
            target = flat.vector
        elif any(0 in later.operands for later in program.steps[i + 1 :]):
            target = np.empty_like(flat.buffer)
        else:
            target = flat.buffer
        calls.append((_NATIVES[step.op], *operands, target))
        registers.append(target)
    return Written([calls], parts)


def _in_blocks(arrays: Iterable[np.ndarray], length: int = 1) -> list[np.ndarray]:
    """Returns arrays, with blocks in the place of those that are longer; `length` is a multiple of `BLOCK`."""
    found: list[np.ndarray] = []
    length *= BLOCK
    for array in arrays:
        if array.size <= length:
            found.append(array)
        else:
            flat = array.reshape(-1)
            found += [flat[start : start + length] for start in range(0, flat.size, length)]
    return found


def _makers(columns: Sequence[Sequence[np.ndarray]]) -> dict[str, Callable[..., Any]]:
    """Returns the functions that make arrays from those of the columns."""
    return _NEW if all(map(attrgetter("ndim"), columns[0])) else _NEW_WITHOUT_AXES


def _number(columns: Sequence[Sequence[np.ndarray]]) -> Callable[[Step], np.ndarray]:
    """Returns the function that gives the number of a step the dtype of the arrays."""
    dtype = columns[0][0].dtype
    return lambda step: np.asarray(step.number, dtype)


def _calls(
    program: Program, blocks: Blocks, columns: Sequence[Sequence[np.ndarray]], outputs: Sequence[Sequence[np.ndarray]]
) -> Iterable[tuple[Any, ...]]:
    """Returns the calls that run a program over blocks, one after the other, and write into those of the outputs.

    Only C functions make these calls, so that nothing runs between them.
    """
    shapes = list(map(_SHAPE, columns[0]))
    registers: list[Any] = [*columns, *repeat(None, len(program.steps)), *map(repeat, blocks.numbers.values())]
    for register, place in blocks.written.items():
        registers[register] = outputs[place]
    memory = [np.empty(max(map(math.prod, shapes)), columns[0][0].dtype) for _ in {*blocks.scratch.values()}]
    shaped = [{shape: x[: math.prod(shape)].reshape(shape) for shape in {*shapes}} for x in memory]
    for register, place in blocks.scratch.items():
        registers[register] = list(map(shaped[place].__getitem__, shapes))
    steps = [zip(repeat(native), *[registers[x] for x in used], strict=False) for native, used in blocks.moves]
    return chain.from_iterable(zip(*steps, strict=True))
