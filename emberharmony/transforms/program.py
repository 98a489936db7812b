"""Programs: sequences of calls as plain data, with what passes find out about them; a backend runs them.

A call names an op, or is that of a function of a library. Its arguments are registers, which stand for tensors,
numbers that are computed on the host before each run, and constants. So a program stays the same while its numbers
change. The passes neither know what a function computes nor which library it belongs to: what they have to know of
memory they ask of a `ProgramMemory`.

A program whose ops work element by element takes tensors of one shape and one floating dtype. A backend needs no
promotion and no checks for it, and may run it in blocks.

MLX, JAX and PyTorch trace a function for `ops.compile` themselves and differentiate it by their own rules, so they get
the function and no program, which would have the derivatives of the tape. A rule of an optimizer is recorded without
values: with values the rate and the count of steps would be constants, and JAX would compile each op of the rule.
"""

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

CHOICE = "where"
"""The op that gives its first or its second operand, if its number is true or false."""


class _Use(NamedTuple):
    """How a program may use an op.

    Attributes:
        of_numbers: what it computes from numbers of Python, in double precision; None if a program has no such call.
        tensors: how many operands it takes if they are tensors; 0 if a program has no such call.
        commutative: whether the operands may change places.
        weak: whether the second operand may be a number.
        apart: whether the result does not take the memory of the operand: NumPy 2.4 would take ten times as long.
    """

    of_numbers: Callable[..., Any] | None
    tensors: int = 0
    commutative: bool = False
    weak: bool = False
    apart: bool = False


def _choose(condition: bool, x: Any, y: Any) -> Any:
    return x if condition else y


_USES = {
    "add": _Use(operator.add, 2, commutative=True, weak=True),
    "subtract": _Use(operator.sub, 2, weak=True),
    "multiply": _Use(operator.mul, 2, commutative=True, weak=True),
    "divide": _Use(operator.truediv, 2, weak=True),
    "maximum": _Use(max, 2, commutative=True),
    "minimum": _Use(min, 2, commutative=True),
    "negative": _Use(operator.neg, 1),
    "absolute": _Use(None, 1),
    "square": _Use(None, 1),
    "sqrt": _Use(math.sqrt, 1),
    "sign": _Use(None, 1, apart=True),
    "power": _Use(math.pow),
    "cos": _Use(math.cos),
    "exp": _Use(math.exp),
    "expm1": _Use(math.expm1),
    "log": _Use(math.log),
    "floor": _Use(math.floor),
    "less": _Use(operator.lt),
    CHOICE: _Use(_choose),
}
UNARY = tuple(op for op, use in _USES.items() if use.tensors == 1)
"""The ops of one tensor that a program may have."""

BINARY = tuple(op for op, use in _USES.items() if use.tensors == 2)
"""The ops of two operands that a program may have."""

COMMUTATIVE = tuple(op for op, use in _USES.items() if use.commutative)
"""Those of them whose operands may change places."""

WEAK = tuple(op for op, use in _USES.items() if use.weak)
"""Those whose second operand may be a number."""

APART = tuple(op for op, use in _USES.items() if use.apart)
"""The ops whose result does not take the memory of the operand."""

HOST = {op: use.of_numbers for op, use in _USES.items() if use.of_numbers is not None}
"""What ops compute from numbers of Python, in double precision."""


class Register(int):
    """The number of a value: those of the inputs come first, then those of the results of the calls."""


class Number(int):
    """The index of a number in the list of numbers that a run of a program gets."""


_TOLD = (int, float, complex, bool, str, bytes, type(None), type(...), range, slice, Number)
"""The classes of arguments whose text tells them apart."""


class ProgramCall(NamedTuple):
    """A call of an op, or of a function of a library.

    Attributes:
        function: the name of the op, or the function.
        args: its arguments, in which registers stand for tensors, also inside of lists and tuples.
        results: the register of the result, or of each tensor in the tuple or list that it returns; or a number.
        keywords: its arguments by name, in pairs.
        several: whether it returns a tuple or list.
        wrapped: whether the backend has to make tensors of the scalars that it returns.
        draws: whether it draws random numbers, so that it is made even if nothing uses them.
    """

    function: Any
    args: tuple[Any, ...]
    results: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    several: bool = False
    wrapped: bool = False
    draws: bool = False

    @property
    def operands(self) -> list[Register]:
        """The registers among the arguments, each once."""
        return [*dict.fromkeys(_registers(self.args) + _registers(self.keywords))]

    def with_registers(self, places: Any) -> "ProgramCall":
        """Returns the call with other registers in the place of those among its arguments, which index `places`."""
        return self._replace(args=_with_registers(self.args, places), keywords=_with_registers(self.keywords, places))

    @property
    def key(self) -> Any:
        """A hashable key, equal for calls that give the same result."""
        return self.function, _argument_key(self.args), _argument_key(self.keywords)


def _registers(value: Any) -> list[Register]:
    """Returns the registers in tuples and lists; no generator, because all passes ask for them."""
    registers = []
    for item in value:
        cls = item.__class__
        if cls is Register:
            registers.append(item)
        elif cls is tuple or cls is list:
            registers += _registers(item)
    return registers


def _with_registers(value: Any, places: Any) -> Any:
    """Returns tuples and lists with other registers."""
    if value.__class__ is Register:
        return places[value]
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__([_with_registers(item, places) for item in value])
    return value


def _argument_key(value: Any) -> Any:
    """Returns what tells an argument apart from others: its text, if that is the same for all that are equal."""
    cls = value.__class__
    if cls is tuple or cls is list:
        return cls, tuple(map(_argument_key, value))
    return cls, int(value) if cls is Register else repr(value) if cls in _TOLD else id(value)


def distinct_calls(calls: Sequence[ProgramCall], count: int) -> tuple[list[ProgramCall], list[Register]]:
    """Returns the calls without repetitions, and the register that has the value of each register.

    Args:
        calls: the calls.
        count: the number of registers.
    """
    register_map = [Register(i) for i in range(count)]
    call_by_key: dict[Any, ProgramCall] = {}
    kept_calls: list[ProgramCall] = []
    for i, earlier_call in enumerate(calls):
        call = earlier_call if len(kept_calls) == i else earlier_call.with_registers(register_map)
        first_call = call_by_key.setdefault(call.key, call)
        if first_call is call:
            kept_calls.append(call)
        for result, first_result in zip(call.results, first_call.results, strict=True):
            register_map[result] = first_result
    return kept_calls, register_map


def live_calls(calls: Sequence[ProgramCall], outputs: Collection[Any]) -> list[ProgramCall]:
    """Returns the calls on which outputs depend, and all draws, which move a stream on."""
    needed_registers = {x for x in outputs if x.__class__ is Register}
    kept_calls = []
    for call in reversed(calls):
        if call.draws or needed_registers.intersection(call.results):
            needed_registers.update(call.operands)
            kept_calls.append(call)
    return kept_calls[::-1]


class ProgramMemory:
    """What `memory_targets` asks of memory; here each call makes a tensor of its own, and all have one layout.

    Args:
        placed: the results that have memory already.
    """

    def __init__(self, placed: Collection[Register] = ()) -> None:
        self._placed = placed

    def roots(self, register: Register) -> Collection[int]:
        """Returns the registers that own the memory of a value."""
        return (register,)

    def layout(self, register: int) -> Any:
        """Returns what the memory for a result must have in common with the memory of a register."""
        return None

    def takes_target(self, call: ProgramCall) -> bool:
        """Returns whether a call can write its result into other memory."""
        return call.results[0] not in self._placed

    def overwrites(self, call: ProgramCall) -> bool:
        """Returns whether a call can write its result over one of its operands."""
        return call.function not in APART


def memory_targets(program: "Program", memory: ProgramMemory) -> dict[int, int]:
    """Returns by the place of a call the register whose memory its result can take, because no later call reads it.

    Inputs and outputs stay as they are.

    Args:
        program: the program.
        memory: tells who owns which memory.
    """
    calls, input_count = program.calls, program.inputs
    output_roots = {root for x in program.outputs if x.__class__ is Register for root in memory.roots(x)}
    end_by_register: dict[int, int] = {}
    for i, call in enumerate(calls):
        for register in (*call.operands, *call.results):
            end_by_register.update(dict.fromkeys(memory.roots(register), i))
    target_by_register: dict[int, int] = {}
    free_by_layout: dict[Any, list[int]] = {}
    for i, call in enumerate(calls):
        operands = call.operands
        ending_roots = {
            root for x in (*operands, *call.results) for root in memory.roots(x) if end_by_register[root] == i
        }
        freed_roots = [x for x in sorted(ending_roots) if x >= input_count and x not in output_roots]
        if memory.takes_target(call):
            memory_layout = memory.layout(call.results[0])
            fitting_registers = [
                x
                for x in freed_roots
                if x in operands and memory.overwrites(call) and memory.layout(x) == memory_layout
            ]
            # The library would copy an operand that is another view of the memory into which it writes.
            fitting_registers = [
                x for x in fitting_registers if all(y == x or x not in memory.roots(y) for y in operands)
            ]
            if fitting_registers:
                target_by_register[i] = fitting_registers[0]
            elif free_by_layout.get(memory_layout):
                target_by_register[i] = free_by_layout[memory_layout].pop()
        for root in freed_roots:
            if root != target_by_register.get(i):
                free_by_layout.setdefault(memory.layout(root), []).append(root)
    return target_by_register


@dataclass(frozen=True, eq=False)
class Program:
    """A sequence of calls.

    Attributes:
        inputs: how many registers hold the inputs.
        calls: the calls.
        outputs: the registers that hold the results, or constants.
        count: how many numbers the calls may have as arguments.

    The properties below are those of programs whose calls return one tensor each, and work element by element.
    """

    inputs: int
    calls: tuple[ProgramCall, ...]
    outputs: tuple[Any, ...]
    count: int = 0

    @cached_property
    def numbers(self) -> list[int]:
        """The indices of the run's numbers that are arguments of calls, each once."""
        return [*dict.fromkeys(int(x) for call in self.calls for x in call.args if x.__class__ is Number)]

    @cached_property
    def instructions(self) -> tuple[tuple[Any, tuple[int, ...], int], ...]:
        """The function of each call, with the registers of its arguments and of its result.

        The numbers that are arguments have the registers behind the results, in the order of `numbers`.
        """
        register_of_number = {number: i for i, number in enumerate(self.numbers, self.inputs + len(self.calls))}
        argument_registers = [
            tuple(register_of_number[x] if x.__class__ is Number else int(x) for x in call.args) for call in self.calls
        ]
        return tuple(
            (call.function, operands, call.results[0])
            for call, operands in zip(self.calls, argument_registers, strict=True)
        )

    @cached_property
    def with_fewer_calls(self) -> "Program":
        """The program with one op for several, where a sum has a multiple as operand; it rounds less often.

        `add_multiple` is `x + c * y`, `lerp` is `x + c * (y - x)`, `addcmul` is `x + c * y * z`, and `addcdiv` is
        `x + c * y / z`. Behind the numbers come their negatives.
        """
        call_by_register: dict[int, ProgramCall] = dict(enumerate(self.calls, self.inputs))
        for call in self.calls:
            fused_call_and_dropped = self._fusion_at(call)
            if fused_call_and_dropped is not None:
                call_by_register[call.results[0]], dropped_registers = fused_call_and_dropped
                for register in dropped_registers:
                    del call_by_register[register]
        register_map = {register: Register(i) for i, register in enumerate([*range(self.inputs), *call_by_register])}
        return Program(
            self.inputs,
            tuple(
                call.with_registers(register_map)._replace(results=(register_map[call.results[0]],))
                for call in call_by_register.values()
            ),
            tuple(register_map[output] for output in self.outputs),
            2 * self.count,
        )

    def _fusion_at(self, call: ProgramCall) -> tuple[ProgramCall, list[Register]] | None:
        """Returns the call that stands for one and earlier ones, with the results of those; None if none does."""
        if call.function not in ("add", "subtract") or len(call.operands) < 2:
            return None
        first_operand, second_operand = call.args
        for x, multiple in ((first_operand, second_operand), (second_operand, first_operand))[
            : 2 if call.function == "add" else 1
        ]:
            multiplication = self._exclusive_producer(multiple, call)
            if (
                multiplication is None
                or multiplication.function != "multiply"
                or multiplication.args[1].__class__ is not Number
            ):
                continue
            y, factor_number = (
                multiplication.args[0],
                Number(multiplication.args[1] + (self.count if call.function == "subtract" else 0)),
            )
            inner_call = self._exclusive_producer(y, multiplication)
            fused_op, operands = "add_multiple", (y,)
            if inner_call is not None and inner_call.function == "subtract" and inner_call.operands[1:] == [x]:
                fused_op, operands = "lerp", inner_call.args[:1]
            elif inner_call is not None and inner_call.function == "square":
                fused_op, operands = "addcmul", inner_call.args * 2
            elif (
                inner_call is not None and inner_call.function == "divide" and inner_call.args[1].__class__ is Register
            ):
                fused_op, operands = "addcdiv", inner_call.args
            dropped_registers = [multiple] if fused_op == "add_multiple" else [multiple, y]
            return ProgramCall(fused_op, (x, *operands, factor_number), call.results), dropped_registers
        return None

    def _exclusive_producer(self, register: Register, reader: ProgramCall) -> ProgramCall | None:
        """Returns the call that computes a register, if one other call alone reads it."""
        readers = [call for call in self.calls if register in call.operands]
        has_one_reader = (
            register >= self.inputs and register not in self.outputs and len(readers) == 1 and readers[0] is reader
        )
        return self.calls[register - self.inputs] if has_one_reader else None

    @cached_property
    def output_slots(self) -> dict[int, int] | None:
        """The inputs whose memory outputs may take, by register; None if the outputs cannot take it.

        The first output takes the second input, the next one the third, and so on.
        """
        slot_by_register = {register: i for i, register in enumerate(self.outputs, 1)}
        if (
            len(slot_by_register) < len(self.outputs)
            or min(slot_by_register) < self.inputs
            or len(slot_by_register) >= self.inputs
        ):
            return None
        for register, slot in slot_by_register.items():
            if any(slot in call.operands for call in self.calls[register - self.inputs + 1 :]):
                return None
        return slot_by_register

    @cached_property
    def memory_targets(self) -> dict[int, int]:
        """The earlier results into whose memory calls can write, by the places of the calls."""
        return memory_targets(self, ProgramMemory())

    @cached_property
    def scratch_slots(self) -> dict[int, int]:
        """The place of the memory for each result that is no output, by register, with as little memory as possible."""
        targets = memory_targets(self, ProgramMemory(self.outputs))
        slot_by_register: dict[int, int] = {}
        for i, call in enumerate(self.calls):
            if call.results[0] not in self.outputs:
                slot_by_register[call.results[0]] = (
                    slot_by_register[targets[i]] if i in targets else len({*slot_by_register.values()})
                )
        return slot_by_register

    @cached_property
    def registers_by_slot(self) -> list[list[int]]:
        """For each slot of `scratch_slots`, the registers whose results use its memory one after the other."""
        registers: list[list[int]] = [[] for _ in {*self.scratch_slots.values()}]
        for register, slot in self.scratch_slots.items():
            registers[slot].append(register)
        return registers


class Update(SimpleNamespace):
    """A program with its numbers for one run; each step of an optimizer makes one, so that C makes it.

    Attributes:
        program: the program.
        numbers: the numbers that its calls name, and others.
        kernel: the name of the function that it computes, which a library may have a kernel for; "" if it has no name.
        options: the options of that function.
        state: its state before; anything but a number stands for tensors.
        after: the numbers in its state after it by name, and None for the tensors.
        tensors: the names of the tensors in its state after it.
    """

    program: Program
    numbers: list[Any]
    kernel: str = ""
    options: Mapping[str, Any] = MappingProxyType({})
    state: Mapping[str, Any] = MappingProxyType({})
    after: Mapping[str, Any] = MappingProxyType({})
    tensors: Sequence[str] = ()
