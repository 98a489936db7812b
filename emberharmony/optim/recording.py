"""Records the ops that a rule calls, as a program that a backend runs over many tensors at once or in blocks.

A rule that works element by element calls the same ops for each parameter with the same options. So it runs once, with
registers in the place of tensors, and the backend repeats what it called. Numbers, such as the rate of this step, are
computed by the rule itself, so a program serves one step.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from emberharmony.backend.shared.programs import BINARY, COMMUTATIVE, UNARY, WEAK, Program, Step
from emberharmony.core.errors import EmberError
from emberharmony.core.tracing import Substitute
from emberharmony.optim import numbers
from emberharmony.optim.groups import State


class UnrecordableError(Exception):
    """Is raised in a rule that calls what a program cannot have, and says only that the rule runs without one."""


_REFUSED = (UnrecordableError, EmberError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a rule may raise because it got registers."""


class _Tape:
    """The ops of a program while they are recorded, after `inputs` registers with its inputs."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.steps: list[Step] = []

    def recorded(self, step: Step) -> "_Register":
        self.steps.append(step)
        return _Register(self, self.inputs + len(self.steps) - 1)


class _Register(Substitute):
    """Stands for a tensor while a rule is recorded."""

    __slots__ = ("place", "tape")

    def __init__(self, tape: _Tape, place: int) -> None:
        self.tape, self.place = tape, place

    def __bool__(self) -> NoReturn:
        raise UnrecordableError

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Records an op.

        Raises:
            UnrecordableError: if a program cannot have it.
        """
        if op in UNARY:
            return self.tape.recorded(Step(op, self.place))
        if op in BINARY:
            x, y = arguments
            if op in COMMUTATIVE and x.__class__ is not _Register:
                x, y = y, x
            if x.__class__ is _Register and y.__class__ is _Register:
                return self.tape.recorded(Step(op, x.place, y.place))
            if x.__class__ is _Register and op in WEAK and y.__class__ in (float, int):
                return self.tape.recorded(Step(op, x.place, number=float(y)))
        if op == "where" and arguments[0].__class__ is bool:
            return arguments[1 if arguments[0] else 2]
        raise UnrecordableError


class Recorded(NamedTuple):
    """What a rule computes for all parameters of a group that have equal numbers in their states.

    Attributes:
        program: computes the parameter, and the tensors of the state; its inputs are the gradient, the parameter, and
            the tensors of the state before.
        tensors: the names of the tensors in the state after the step, in the order of the program's outputs.
        numbers: the numbers in it.
    """

    program: Program
    tensors: list[str]
    numbers: State


def recorded(rule: Callable[..., Any], state: State, hyper: Mapping[str, Any]) -> Recorded | None:
    """Returns what a rule computes; None if it calls anything else than the ops that a program may have.

    Args:
        rule: the rule of an optimizer, which works element by element.
        state: a state of a parameter; its tensors are not read.
        hyper: the options for this step.
    """
    names = [name for name, x in state.items() if not numbers.is_python(x)]
    tape = _Tape(2 + len(names))
    registers = {name: _Register(tape, 2 + i) for i, name in enumerate(names)}
    try:
        after, new = rule(_Register(tape, 0), _Register(tape, 1), {**state, **registers}, hyper)
    except _REFUSED:  # if the rule is at fault, it raises the same again when it runs without a program
        return None
    found = {name: x for name, x in new.items() if not numbers.is_python(x)}
    outputs = [after, *found.values()]
    if any(x.__class__ is not _Register or x.tape is not tape for x in outputs):
        return None
    program = Program(tape.inputs, tuple(tape.steps), tuple(x.place for x in outputs))
    return Recorded(program, list(found), {name: x for name, x in new.items() if name not in found})
