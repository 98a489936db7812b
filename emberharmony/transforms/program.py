"""Programs: sequences of elementwise ops as plain data, which a backend runs over tensors, perhaps in blocks.

The ops of a program take tensors of one shape and one floating dtype, and numbers of Python as second operands. So a
backend needs no promotion and no checks, and may write a result into memory that no later op reads. The numbers are
computed on the host before: a program stays the same from step to step while its numbers change.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

UNARY = ("negative", "absolute", "square", "sqrt", "sign")
"""The ops of one tensor that a program may have."""

BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
"""The ops of two operands that a program may have."""

COMMUTATIVE = ("add", "multiply", "maximum", "minimum")
"""Those of them whose operands may change places."""

WEAK = ("add", "subtract", "multiply", "divide")
"""Those whose second operand may be a number."""

FUSED = ("add_multiple", "lerp", "addcmul", "addcdiv")
"""The ops that stand for several."""

CHOICE = "where"
"""The op that gives its first or its second operand, if its number is true or false."""


def _chosen(condition: bool, x: Any, y: Any) -> Any:
    return x if condition else y


HOST: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "power": math.pow,
    "sqrt": math.sqrt,
    "cos": math.cos,
    "exp": math.exp,
    "expm1": math.expm1,
    "log": math.log,
    "floor": math.floor,
    "minimum": min,
    "maximum": max,
    "less": operator.lt,
    "where": _chosen,
}
"""What ops compute from numbers of Python, in double precision."""


class Step(NamedTuple):
    """An op of a program; its result is the register after all that were there before it.

    Attributes:
        op: the name of the op.
        first: the register of the first operand.
        second: the register of the second operand, if that is a tensor.
        number: the place of the last operand among the numbers of a run, if that is a number.
        third: the register of the third operand of an op that stands for several.
    """

    op: str
    first: int
    second: int | None = None
    number: int | None = None
    third: int | None = None

    @property
    def operands(self) -> tuple[int, ...]:
        """The registers of the operands."""
        return tuple(register for register in (self.first, self.second, self.third) if register is not None)

    def renumbered(self, registers: Sequence[int]) -> "Step":
        """Returns the step with other registers in the place of its own."""
        second, third = (None if x is None else registers[x] for x in (self.second, self.third))
        return self._replace(first=registers[self.first], second=second, third=third)


@dataclass(frozen=True, eq=False)
class Program:
    """A sequence of elementwise ops.

    Attributes:
        inputs: how many registers hold the inputs.
        steps: the ops.
        outputs: the registers that hold the results.
        count: how many numbers the steps may have as operands.
    """

    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    count: int = 0

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers that are operands."""
        return [*dict.fromkeys(step.number for step in self.steps if step.number is not None)]

    @cached_property
    def moves(self) -> list[tuple[str, tuple[int, ...], int]]:
        """The name of each op, with the registers of its operands and of its result.

        The numbers that are operands have the registers behind the results, in the order of `numbers`.
        """
        places = {number: i for i, number in enumerate(self.numbers, self.inputs + len(self.steps))}
        found = []
        for i, step in enumerate(self.steps, self.inputs):
            number = [] if step.number is None else [places[step.number]]
            found.append((step.op, (*step.operands, *number), i))
        return found

    @cached_property
    def fused(self) -> "Program":
        """The program with one op for several, where a sum has a multiple as operand; it rounds less often.

        `add_multiple` is `x + c * y`, `lerp` is `x + c * (y - x)`, `addcmul` is `x + c * y * z`, and `addcdiv` is
        `x + c * y / z`. Behind the numbers come their negatives.
        """
        steps: list[Step | None] = list(self.steps)
        for i, step in enumerate(self.steps):
            found = self._fused(i, step)
            if found is not None:
                steps[i], gone = found
                for register in gone:
                    steps[register - self.inputs] = None
        registers = list(range(self.inputs))
        kept: list[Step] = []
        for each in steps:
            registers.append(self.inputs + len(kept))
            if each is not None:
                kept.append(each.renumbered(registers))
        return Program(self.inputs, tuple(kept), tuple(registers[output] for output in self.outputs), 2 * self.count)

    def _fused(self, i: int, step: Step) -> tuple[Step, list[int]] | None:
        """Returns the op that stands for a step and earlier ones, with the registers of those; None if none does."""
        if step.op not in ("add", "subtract") or step.second is None or step.first == step.second:
            return None
        for x, multiple in ((step.first, step.second), (step.second, step.first))[: 2 if step.op == "add" else 1]:
            product = self._only_for(multiple, i)
            if product is None or product.op != "multiply" or product.number is None:
                continue
            y, factor = product.first, product.number + (self.count if step.op == "subtract" else 0)
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

    @cached_property
    def places(self) -> dict[int, int] | None:
        """The inputs whose memory outputs may take, by register; None if the outputs cannot take it.

        The first output takes the second input, the next one the third, and so on.
        """
        found = {register: i for i, register in enumerate(self.outputs, 1)}
        if len(found) < len(self.outputs) or min(found) < self.inputs or len(found) >= self.inputs:
            return None
        for register, place in found.items():
            if any(place in step.operands for step in self.steps[register - self.inputs + 1 :]):
                return None
        return found

    @cached_property
    def dying(self) -> list[list[int]]:
        """For each step the results of earlier ones that nothing reads after it."""
        ends: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            ends.update(dict.fromkeys(step.operands, i))
        own = [register for register in ends if register >= self.inputs and register not in self.outputs]
        return [[register for register in own if ends[register] == i] for i in range(len(self.steps))]

    @cached_property
    def scratch(self) -> dict[int, int]:
        """The place of the memory for each result between, by register, with as little memory as possible."""
        found: dict[int, int] = {}
        free: list[int] = []
        for i, dying in enumerate(self.dying):
            free += [found[register] for register in dying]
            register = self.inputs + i
            if register not in self.outputs:
                found[register] = free.pop() if free else len({*found.values()})
        return found

    @cached_property
    def spaces(self) -> int:
        """How many places for results between there are."""
        return len({*self.scratch.values()})


class Update(NamedTuple):
    """A program with its numbers for one run.

    Attributes:
        program: the program.
        numbers: the numbers that its steps name, and others.
        kernel: the name of the function that it computes, which a library may have a kernel for; "" if it has no name.
        options: the options of that function.
        state: the numbers in its state before, by name.
    """

    program: Program
    numbers: list[Any]
    kernel: str = ""
    options: Mapping[str, Any] = {}
    state: Mapping[str, Any] = {}
