"""Records the ops that a function calls, as a program; the function gets substitutes for tensors and for numbers.

A function that works element by element calls the same ops for each list of tensors. So it runs once, with registers
in the place of tensors and indices in the place of numbers, and a backend repeats what it called.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from emberharmony.core.errors import EmberError
from emberharmony.core.tracing import Substitute
from emberharmony.transforms.program import (
    BINARY,
    CHOICE,
    COMMUTATIVE,
    HOST,
    UNARY,
    WEAK,
    Call,
    Number,
    Program,
    Register,
)

_PYTHON = (float, int)


class UnrecordableError(Exception):
    """Is raised in a function that calls what a program cannot have, and says only that it runs without one."""


_REFUSED = (UnrecordableError, EmberError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a function may raise because it got substitutes."""


class _Tape:
    """The program while it is recorded.

    Args:
        inputs: how many tensors the function takes.
        given: how many numbers it takes.
    """

    def __init__(self, inputs: int, given: int) -> None:
        self.inputs, self.given = inputs, given
        self.calls: list[Call] = []
        self._lines: list[str] = []
        self._scope: dict[str, Any] = dict(HOST)

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.given + len(self._lines)

    def call(self, op: str, *args: int) -> "_Tensor":
        """Records the call of an op with registers and numbers."""
        result = Register(self.inputs + len(self.calls))
        self.calls.append(Call(op, args, (result,)))
        return _Tensor(self, result)

    def scalar(self, op: str, operands: Sequence[Any]) -> "_Scalar":
        """Records the computation of a number.

        Raises:
            UnrecordableError: if an operand is not a number.
        """
        names = []
        for i, x in enumerate(operands):
            if x.__class__ is _Scalar:
                names.append(f"n{x.place}")
                continue
            if not isinstance(x, _PYTHON):
                raise UnrecordableError
            names.append(f"c{self.count}_{i}")
            self._scope[names[-1]] = x
        self._lines.append(f"n{self.count} = {op}({', '.join(names)})")
        return _Scalar(self, Number(self.count - 1))

    def placed(self, number: Any) -> Any:
        """Returns the place of a number that is the operand of an op."""
        return number.place if number.__class__ is _Scalar else self.scalar("", (float(number),)).place

    def compiled(self) -> Callable[[list[Any]], list[Any]]:
        """Returns the function of the given numbers that returns all."""
        names = ", ".join(f"n{i}" for i in range(self.count))
        given = [f"{''.join(f'n{i}, ' for i in range(self.given))} = given"] if self.given else []
        body = "\n ".join([*given, *self._lines, f"return [{names}]"])
        exec(compile(f"def numbers(given):\n {body}\n", "<numbers of a program>", "exec"), self._scope)
        found: Callable[[list[Any]], list[Any]] = self._scope["numbers"]
        return found


class _Recorded(Substitute):
    """The base of what stands for a tensor or a number."""

    __slots__ = ("place", "tape")

    def __init__(self, tape: _Tape, place: Any) -> None:
        self.tape, self.place = tape, place

    def __bool__(self) -> NoReturn:
        raise UnrecordableError

    def __eq__(self, other: object) -> NoReturn:
        raise UnrecordableError

    __hash__ = None  # type: ignore[assignment]

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Records an op.

        Raises:
            UnrecordableError: if a program cannot have it.
        """
        tape = self.tape
        if not any(x.__class__ is _Tensor for x in arguments):
            if op in HOST:
                return tape.scalar(op, arguments)
            raise UnrecordableError
        if op in UNARY:
            return tape.call(op, self.place)
        if op in BINARY:
            x, y = arguments
            if op in COMMUTATIVE and x.__class__ is not _Tensor:
                x, y = y, x
            if x.__class__ is _Tensor and y.__class__ is _Tensor:
                return tape.call(op, x.place, y.place)
            if x.__class__ is _Tensor and op in WEAK and y.__class__ in (*_PYTHON, _Scalar):
                return tape.call(op, x.place, tape.placed(y))
        if op == CHOICE:
            condition, x, y = arguments
            if condition.__class__ is bool:
                return x if condition else y
            if condition.__class__ is _Scalar and x.__class__ is y.__class__ is _Tensor:
                return tape.call(op, x.place, y.place, condition.place)
        raise UnrecordableError


class _Tensor(_Recorded):
    """Stands for a tensor."""

    __slots__ = ()


class _Scalar(_Recorded):
    """Stands for a number."""

    __slots__ = ()


class Recording(NamedTuple):
    """What a function of tensors and of a mapping of tensors and numbers computes.

    Attributes:
        program: computes the first result, and the tensors in the mapping that is the second one.
        numbers: returns the numbers of the program for those that are given: those of the mapping, and the rate.
        made: the names in that mapping, with None for a tensor, an index of a number of the program, or a constant.
        given: the names of the numbers that the program takes.
    """

    program: Program
    numbers: Callable[[list[Any]], list[Any]]
    made: dict[str, Any]
    given: list[str]


def recorded(rule: Callable[..., Any], state: Mapping[str, Any], options: Mapping[str, Any]) -> Recording | None:
    """Returns what a rule computes; None if it calls anything else than the ops that a program may have.

    If the rule reads numbers, as in an `if`, those of the state and the rate are constants of the program.

    Args:
        rule: takes two tensors, a state and options, and returns a tensor and a state. It works element by element.
        state: a state; its tensors are not read.
        options: the options, among them "lr".
    """
    given = [name for name, x in state.items() if isinstance(x, _PYTHON)]
    for numbers in ([*given, "lr"], []):
        try:
            found = _recorded(rule, state, options, numbers)
        except _REFUSED:  # if the rule is at fault, it raises the same again when it runs without a program
            continue
        if found is not None:
            return found
    return None


def _recorded(
    rule: Callable[..., Any], state: Mapping[str, Any], options: Mapping[str, Any], given: list[str]
) -> Recording | None:
    names = [name for name, x in state.items() if not isinstance(x, _PYTHON)]
    tape = _Tape(2 + len(names), len(given))
    found = {**state, **{name: _Tensor(tape, Register(2 + i)) for i, name in enumerate(names)}}
    for i, name in enumerate(given[:-1]):
        found[name] = _Scalar(tape, Number(i))
    if given:
        options = {**options, "lr": _Scalar(tape, Number(len(given) - 1))}
    after, new = rule(_Tensor(tape, Register(0)), _Tensor(tape, Register(1)), found, options)
    made: dict[str, Any] = {}
    outputs = [after]
    for name, x in new.items():
        if x.__class__ is _Tensor:
            outputs.append(x)
            made[name] = None
        else:
            made[name] = x.place if x.__class__ is _Scalar else x
            if x.__class__ is not _Scalar and not isinstance(x, _PYTHON):
                return None
    if any(x.__class__ is not _Tensor or x.tape is not tape for x in outputs):
        return None
    program = Program(tape.inputs, tuple(tape.calls), tuple(x.place for x in outputs), tape.count)
    return Recording(program, tape.compiled(), made, given)
