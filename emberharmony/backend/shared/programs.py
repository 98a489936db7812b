"""Programs: sequences of elementwise ops that a backend runs over lists of tensors, or over large tensors in blocks.

The ops of a program take tensors of one shape and one floating dtype, and numbers of Python as second operands. So a
backend needs no promotion and no checks, and may write a result into memory that no later op reads.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

UNARY = ("negative", "absolute", "square", "sqrt", "sign")
"""The ops of one tensor that a program may have."""

BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
"""The ops of two operands that a program may have."""

COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
"""Those of them whose operands may change places."""

WEAK = ("add", "subtract", "multiply", "divide")
"""Those whose second operand may be a number of Python."""


FUSED = ("add_multiple", "lerp", "addcmul", "addcdiv")
"""The ops that stand for several."""


cached = functools.lru_cache(64)
"""Keeps what a program has that most steps of an optimizer ask for; the caller changes nothing of it."""


class Step(NamedTuple):
    """An op of a program; its result is the register after all that were there before it.

    Attributes:
        op: the name of the op.
        first: the register of the first operand.
        second: the register of the second operand, if that is a tensor.
        number: the last operand, if that is a number.
        third: the register of the third operand of an op that stands for several.
    """

    op: str
    first: int
    second: int | None = None
    number: float | None = None
    third: int | None = None

    @property
    def operands(self) -> tuple[int, ...]:
        """The registers of the operands."""
        return tuple(register for register in (self.first, self.second, self.third) if register is not None)

    def renumbered(self, registers: Sequence[int]) -> "Step":
        """Returns the step with other registers in the place of its own."""
        second, third = (None if x is None else registers[x] for x in (self.second, self.third))
        return self._replace(first=registers[self.first], second=second, third=third)


class Program(NamedTuple):
    """A sequence of elementwise ops.

    Attributes:
        inputs: how many registers hold the inputs.
        steps: the ops.
        outputs: the registers that hold the results.
    """

    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def added(self) -> "Program":
        """Returns the program with the product by `-c` added wherever one by `c` is subtracted, with the same bits.

        The sum can be written into the memory of the product by libraries that write into the first operand alone.
        """
        steps = list(self.steps)
        for i, (op, first, second, *_) in enumerate(steps):
            if op != "subtract" or second is None or second < self.inputs or self.last(second) != i or first == second:
                continue
            product = steps[second - self.inputs]
            if product.op == "multiply" and product.number is not None:
                steps[second - self.inputs] = product._replace(number=-product.number)
                steps[i] = Step("add", second, first)
        return self._replace(steps=tuple(steps))

    def shifted(self) -> "Program":
        """Returns the program with one op, `add_multiple`, wherever a multiple is subtracted; it rounds less often."""
        return self._with_fused(lambda step: step.op == "subtract", ("add_multiple",))

    def fused(self) -> "Program":
        """Returns the program with one op for several, where a sum has a multiple as operand; it rounds less often.

        `add_multiple` is `x + c * y`, `lerp` is `x + c * (y - x)`, `addcmul` is `x + c * y * z`, and `addcdiv` is
        `x + c * y / z`.
        """
        return self._with_fused(lambda step: True)

    def _with_fused(self, chosen: Callable[[Step], bool], names: Sequence[str] = FUSED) -> "Program":
        """Returns the program with ops of these names for the chosen steps and earlier ones, where they fit."""
        steps: list[Step | None] = list(self.steps)
        for i, step in enumerate(self.steps):
            found = self._fused(i, step) if chosen(step) else None
            if found is not None and found[0].op in names:
                steps[i], gone = found
                for register in gone:
                    steps[register - self.inputs] = None
        registers = list(range(self.inputs))
        kept: list[Step] = []
        for each in steps:
            registers.append(self.inputs + len(kept))
            if each is not None:
                kept.append(each.renumbered(registers))
        return Program(self.inputs, tuple(kept), tuple(registers[output] for output in self.outputs))

    def _fused(self, i: int, step: Step) -> tuple[Step, list[int]] | None:
        """Returns the op that stands for a step and earlier ones, with the registers of those; None if none does."""
        if step.op not in ("add", "subtract") or step.second is None or step.first == step.second:
            return None
        for x, multiple in ((step.first, step.second), (step.second, step.first))[: 2 if step.op == "add" else 1]:
            product = self._only_for(multiple, i)
            if product is None or product.op != "multiply" or product.number is None:
                continue
            factor = product.number if step.op == "add" else -product.number
            y = product.first
            inner = self._only_for(y, multiple - self.inputs)
            if inner is not None and inner.op == "subtract" and inner.second == x:
                return Step("lerp", x, inner.first, factor), [multiple, y]
            if inner is not None and inner.op == "square":
                return Step("addcmul", x, inner.first, factor, inner.first), [multiple, y]
            if inner is not None and inner.op == "divide" and inner.second is not None:
                return Step("addcdiv", x, inner.first, factor, inner.second), [multiple, y]
            return Step("add_multiple", x, y, factor), [multiple]
        return None

    def _only_for(self, register: int, i: int) -> Step | None:
        """Returns the step that computes a register, if step `i` alone reads it."""
        return self.steps[register - self.inputs] if register >= self.inputs and self.last(register) == i else None

    def last(self, register: int) -> int:
        """Returns the place of the only step that reads a register that is no output; -1 if there is none such."""
        found = [i for i, step in enumerate(self.steps) if register in step.operands]
        return found[0] if len(found) == 1 and register not in self.outputs else -1

    def feeds_next(self, i: int) -> bool:
        """Returns whether nothing but the next step reads the result of step `i`, and reads it once."""
        register = self.inputs + i
        return self.last(register) == i + 1 and self.steps[i + 1].operands.count(register) == 1

    @cached
    def is_chain(self) -> bool:
        """Returns whether each result is read once, by the next step, up to the last one."""
        return all(map(self.feeds_next, range(len(self.steps) - 1)))

    @cached
    def places(self) -> dict[int, int] | None:
        """Returns the inputs whose memory results may take, by register; None if the outputs cannot take it.

        The first output takes the second input, the next one the third, and so on. A result that the next step turns
        into an output takes the memory of that too.
        """
        found = {register: i for i, register in enumerate(self.outputs, 1)}
        if len(found) < len(self.outputs) or min(found) < self.inputs or len(found) >= self.inputs:
            return None
        for i in range(len(self.steps) - 1, -1, -1):
            place = found.get(self.inputs + i)
            if place is None:
                continue
            if any(place in step.operands for step in self.steps[i + 1 :]):
                return None
            for register in self.steps[i].operands[: 2 if self.steps[i].op in COMMUTATIVE else 1]:
                between = self.steps[max(register - self.inputs, -1) + 1 : i + 1]
                free = register not in found and register >= self.inputs and self.last(register) == i
                if free and not any(place in step.operands for step in between):
                    found[register] = place
                    break
        return found

    def dying(self) -> list[list[int]]:
        """Returns for each step the results of earlier ones that nothing reads after it."""
        ends: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            ends.update(dict.fromkeys(step.operands, i))
        own = [register for register in ends if register >= self.inputs and register not in self.outputs]
        return [[register for register in own if ends[register] == i] for i in range(len(self.steps))]


class Written(NamedTuple):
    """What writes the outputs of a program over its inputs.

    Attributes:
        calls: calls of C functions, which `commit` makes.
        tensors: what cells hold in the place of the parameters after these calls; None if they hold the same.
    """

    calls: Sequence[Iterable[tuple[Any, ...]]]
    tensors: Sequence[Any] | None = None


def run(
    program: Program,
    inputs: Sequence[Any],
    new: Callable[[Step, Sequence[Any]], Any],
    reusing: Callable[[Step, Sequence[Any], int], bool],
) -> list[Any]:
    """Runs a program and returns its outputs; a register holds a tensor, or a list of tensors.

    Args:
        program: the program.
        inputs: the first registers.
        new: returns the result of a step in new memory, given all registers so far.
        reusing: writes the result of a step into the memory of a register, unless it cannot; returns whether it did.
    """
    registers = list(inputs)
    for step, dying in zip(program.steps, program.dying(), strict=True):
        for register in dying:
            if reusing(step, registers, register):
                registers.append(registers[register])
                break
        else:
            registers.append(new(step, registers))
        for register in dying:
            registers[register] = None
    return [registers[register] for register in program.outputs]


def in_chunks(places: list[int], sizes: Sequence[int], longest: float) -> Iterable[list[int]]:
    """Yields places, in several lists if their tensors have too many elements together."""
    chunk: list[int] = []
    length = 0
    for place in places:
        if chunk and length + sizes[place] > longest:
            yield chunk
            chunk, length = [], 0
        chunk.append(place)
        length += sizes[place]
    yield chunk


class Blocks(NamedTuple):
    """How a program runs over the blocks of large tensors.

    Attributes:
        moves: the native function of each step, with the registers of its operands, and of its result at the end.
        numbers: the numbers by register.
        written: the outputs that steps compute, by register, with their place among these.
        scratch: the place of the memory for each other result, by register.
    """

    moves: list[tuple[Any, tuple[int, ...]]]
    numbers: dict[int, Any]
    written: dict[int, int]
    scratch: dict[int, int]


def in_blocks(program: Program, natives: Mapping[str, Any], number: Callable[[Step], Any]) -> Blocks:
    """Returns how a program runs over blocks, with as little memory for results between as possible.

    Args:
        program: the program.
        natives: the functions by the name of the op, which write into memory that may be that of an operand.
        number: returns the number of a step in the form in which the functions take it.
    """
    first = program.inputs
    size = first + len(program.steps)
    numbers: dict[int, Any] = {}
    moves: list[tuple[Any, tuple[int, ...]]] = []
    written: dict[int, int] = {}
    scratch: dict[int, int] = {}
    free: list[int] = []
    used = 0
    for i, (step, dying) in enumerate(zip(program.steps, program.dying(), strict=True)):
        operands = step.operands
        if step.number is not None:
            numbers[size + len(numbers)] = number(step)
            operands = (*operands, size + len(numbers) - 1)
        free += [scratch[register] for register in dying]
        register = first + i
        moves.append((natives[step.op], (*operands, register)))
        if register in program.outputs:
            written[register] = len(written)
        elif free:
            scratch[register] = free.pop()
        else:
            scratch[register], used = used, used + 1
    return Blocks(moves, numbers, written, scratch)
