"""Records the calls that a function makes, as a program.

A `Recorder` is a tape: the function gets traced tensors, and the ops on them come to the recorder, also those of the
backward pass of an inner tape. The recorder runs each op on the values and notes it; that of a backend may note the
calls of its library instead. A composite without a definition of the backend runs through its body. What no traced
tensor leads to, such as a table of positions, is computed while the function is recorded and is a constant. Random
tensors are drawn again by each run of the program. A function that reads a value cannot be recorded: an `if` on a
tensor, a number of Python.

A rule that works element by element calls the same ops for all tensors, so `record_rule` calls it with substitutes
without values, for tensors and for numbers, and the program serves tensors of any shape and dtype.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, NoReturn

from emberharmony.core.cells.cell import replace_cells
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import EmberError, TracedTensorError
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.core.state.handlers import passing_error
from emberharmony.core.tracing import Substitute
from emberharmony.transforms.program import (
    BINARY,
    CHOICE,
    COMMUTATIVE,
    HOST,
    UNARY,
    WEAK,
    Number,
    Program,
    ProgramCall,
    Register,
    distinct_calls,
    live_calls,
)
from emberharmony.transforms.rule_registry import LEAVING
from emberharmony.transforms.source import FunctionSource
from emberharmony.transforms.tape import Tape, call_with_packed, prepare, run_body, traced_tensors_in
from emberharmony.transforms.traced_tensor import TracedTensor

MOST = 5000
"""A function that makes more calls is not recorded: it takes longer to compile than to run."""

_ALIKE = ("zeros_like", "ones_like", "empty_like")
"""Ops whose result depends on the shape and the dtype of the tensor alone."""

PLAIN: tuple[type, ...] = (int, float, complex, bool, str, bytes, type(None), type(...), type, range, DType)
"""The classes of options that may stand in a program."""

_PYTHON = (float, int)


class UnrecordableError(EmberError):
    """Raised while a function is recorded, if it does what a program cannot repeat."""


class Recorder(Tape):
    """The record of the calls on traced tensors, for one run of a function.

    Args:
        backend: the backend.
        inputs: the tensors that the function takes; no other object may refer to them.

    Attributes:
        values: the tensor of each register.
        calls: the calls in their order.
        obstacle: what the function did that cannot be repeated; "" if nothing.
        lost: whether it perhaps went another way than with native tensors, so that its result is wrong.
    """

    __slots__ = ("_places", "calls", "closed", "lost", "obstacle", "values")

    differentiates = False
    plain: ClassVar[tuple[type, ...]] = PLAIN
    """The classes of options that may stand in a program; those of dtypes of a library are others."""

    def __init__(self, backend: Any, inputs: Sequence[Any]) -> None:
        super().__init__(backend)
        if inputs:  # JAX's arrays have another class at run time than the public `jax.Array`
            self.tensor_type = inputs[0].__class__
        self.values: list[Any] = []
        self.calls: list[ProgramCall] = []
        self.obstacle, self.closed, self.lost = "", False, False
        self._places: dict[int, Register] = {}
        for value in inputs:
            self._new_register(value)

    def tensor(self, register: int) -> TracedTensor:
        """Returns the traced tensor of a register."""
        return TracedTensor(self.values[register], self, None, Register(register))

    def note_read(self, what: str) -> None:
        """Notes that the function reads a value, which may be another one at the next call."""
        self.obstacle = self.obstacle or f"it reads a value by {what}"

    def note_missing(self, name: str) -> None:
        """Notes that the function looks for an attribute that native tensors have and traced ones lack."""
        self.obstacle, self.lost = f"it looks for the attribute {name!r} of a tensor", True

    def run(self, backend: Any, op: str, arguments: Sequence[Any]) -> Any:
        """Runs an op, and adds its call to the record; a composite without own code adds the calls of its body.

        Raises:
            EmberError: the error of the op.
            UnrecordableError: if the call cannot be repeated.
        """
        if self.closed:
            raise UnrecordableError(f"{op}(): a tensor of a compiled function is used after its call; return it")
        if backend is not self.backend:
            if backend.home is self.backend.home:  # `ops.eval_shape` wraps the backend
                return call_with_packed(getattr(backend.bound, op), OPS[op], backend.adopt_all(arguments))
            raise UnrecordableError(f"{op}() on another backend")
        arguments = replace_cells(backend.bound, tuple(arguments))
        latest_tape = max({x.tape for x in traced_tensors_in(arguments)}, key=lambda tape: tape.level)
        if latest_tape is not self:
            return latest_tape.run(backend, op, arguments)
        spec = OPS[op]
        if op == "stop_gradient":
            return arguments[0]
        if op == "custom_vjp":
            return list(arguments[0](*arguments[2]))
        if op in LEAVING:
            raise UnrecordableError(f"{op}() reads a value")
        if spec.composite and (spec.takes_callable or not backend.defines(spec)):
            return self._run_through_body(backend, spec, arguments)
        has_lists = any(x.__class__ is not TracedTensor and traced_tensors_in([x]) for x in arguments)
        prepared_arguments = prepare(backend, spec, arguments) if has_lists else arguments
        native_values = self._strip_traced(prepared_arguments)
        try:
            result = self.call_op(spec, native_values)
        except UnrecordableError:
            raise
        except Exception as error:
            call_with_packed(
                getattr(backend.bound, op), spec, native_values
            )  # raises the typed error, or takes another path
            raise UnrecordableError(f"{op}() takes another path than its fast one") from error
        return result if op in _ALIKE else self._trace(result)

    def _run_through_body(self, backend: Any, spec: OpSpec, arguments: Sequence[Any]) -> Any:
        """Returns the result of a composite's body; errors get its name, as in `dispatch.call_with_conversion`."""
        try:
            return run_body(backend, spec, arguments)
        except Exception as error:
            if spec.takes_callable or isinstance(error, (UnrecordableError, TracedTensorError)) or passing_error(error):
                raise
            typed_error = backend.translate(spec.name, error, tuple(arguments))
            if typed_error is error:
                raise
            raise typed_error from error

    def call_op(self, spec: OpSpec, values: Sequence[Any]) -> Any:
        """Runs an op on values, and notes it, with its name; returns its result."""
        args, keywords = split_arguments(spec, values)
        return self.note_call(spec.name, args, keywords, getattr(self.backend.bound, spec.name)(*args, **keywords))

    def note_call(self, function: Any, args: Sequence[Any], keywords: dict[str, Any], raw: Any) -> Any:
        """Adds a call, its arguments and its result to the record, and returns the result.

        Raises:
            UnrecordableError: if the call cannot be repeated.
        """
        if len(self.calls) >= MOST:
            raise UnrecordableError(f"it makes more than {MOST} calls")
        operands = tuple(map(self._operand, args))
        options = tuple([(name, self._operand(value)) for name, value in keywords.items()])
        result = self.backend.wrap(raw)
        has_several_results = result.__class__ is not self.tensor_type and isinstance(result, (tuple, list))
        result_tensors = result if has_several_results else [result]
        if any(item.__class__ is not self.tensor_type for item in result_tensors):
            if has_several_results and not any(
                isinstance(item, (self.tensor_type, tuple, list)) for item in result_tensors
            ):
                return result  # a shape
            if isinstance(result, (tuple, list)):
                raise UnrecordableError(f"{function} returns {type(result).__name__} with something else than tensors")
            return result  # a dtype, a number of axes
        registers = [self._places.get(id(item)) for item in result_tensors]
        if not has_several_results and registers[0] is not None:
            return result  # the function returns an argument as it is
        if any(register is not None for register in registers):
            raise UnrecordableError(f"{function} returns an argument in a tuple")
        result_registers = tuple(map(self._new_register, result_tensors))
        self.calls.append(
            ProgramCall(function, operands, result_registers, options, has_several_results, result is not raw)
        )
        return result

    def draw(self, draw: Callable[[], Any]) -> TracedTensor:
        """Draws random numbers and notes the draw; returns the traced tensor of them.

        Raises:
            UnrecordableError: if the draw does not give a tensor.
        """
        drawn_tensor = draw()
        if self.closed or drawn_tensor.__class__ is not self.tensor_type:
            raise UnrecordableError("it draws random numbers")
        register = self._new_register(drawn_tensor)
        self.calls.append(ProgramCall(draw, (), (register,), draws=True))
        return self.tensor(register)

    def program(
        self, inputs: int, outputs: Sequence[Any], calls: Sequence[ProgramCall] | None = None
    ) -> tuple[Program, list[Register]]:
        """Returns the program of the calls that outputs need, and the register that has the value of each register.

        Args:
            inputs: the number of inputs.
            outputs: registers, or constants.
            calls: the calls; by default all that were noted.
        """
        calls, register_map = distinct_calls(self.calls if calls is None else calls, len(self.values))
        output_registers = tuple([register_map[x] if x.__class__ is Register else x for x in outputs])
        return Program(inputs, tuple(live_calls(calls, output_registers)), output_registers), register_map

    def _new_register(self, value: Any) -> Register:
        register = self._places[id(value)] = Register(len(self.values))
        self.values.append(value)
        return register

    def _trace(self, result: Any) -> Any:
        """Returns a result with traced tensors in the places of the tensors that calls have computed."""
        if result.__class__ is self.tensor_type:
            register = self._places.get(id(result))
            return result if register is None else self.tensor(register)
        if isinstance(result, (tuple, list)):
            traced_items = [self._trace(item) for item in result]
            cls = type(result)
            return traced_items if cls is list else tuple(traced_items) if cls is tuple else cls(*traced_items)
        return result

    def _strip_traced(self, argument: Any) -> Any:
        """Returns an argument with the values of the traced tensors in it.

        Raises:
            UnrecordableError: if a tensor of another tape is in it.
        """
        cls = argument.__class__
        if cls is TracedTensor:
            if argument.tape is not self:
                raise UnrecordableError("it uses a tensor that is being differentiated, as a constant")
            return argument.value
        if cls is list or cls is tuple:
            return cls(map(self._strip_traced, argument))
        return argument

    def _operand(self, argument: Any) -> Any:
        """Returns an argument with registers in the places of tensors that the inputs or calls gave.

        Raises:
            UnrecordableError: if it may be another one at the next call, although no tensor leads to it.
        """
        cls = argument.__class__
        if cls is self.tensor_type:
            return self._places.get(id(argument), argument)
        if cls is list or cls is tuple:
            return cls(map(self._operand, argument))
        if isinstance(argument, self.plain):
            return argument
        if cls is slice and all(isinstance(x, self.plain) for x in (argument.start, argument.stop, argument.step)):
            return argument
        raise UnrecordableError(f"an argument is a {cls.__name__}")


def split_arguments(spec: OpSpec, values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Returns the arguments by position and those by name, in the order in which dispatch packs them."""
    keyword_names = [parameter.name for parameter in spec.parameters if parameter.keyword_only]
    positional_count = len(values) - len(keyword_names)
    return values[:positional_count], dict(zip(keyword_names, values[positional_count:], strict=True))


_REFUSED = (EmberError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a function may raise because it got substitutes."""


class _RuleRecord:
    """The record of the ops and numbers that an optimizer's rule computes, from which its program is made.

    Args:
        inputs: how many tensors the function takes.
        given: how many numbers it takes.
    """

    def __init__(self, inputs: int, given: int) -> None:
        self.inputs, self.given = inputs, given
        self.calls: list[ProgramCall] = []
        self._scalars: list[ProgramCall] = []

    @property
    def count(self) -> int:
        """The count of the given and the computed numbers."""
        return self.given + len(self._scalars)

    def record_call(self, op: str, *args: int) -> "_Tensor":
        """Records the call of an op with registers and numbers."""
        result_register = Register(self.inputs + len(self.calls))
        self.calls.append(ProgramCall(op, args, (result_register,)))
        return _Tensor(self, result_register)

    def record_scalar(self, function: Callable[..., Any], operands: Sequence[Any]) -> "_Scalar":
        """Records the computation of a number.

        Raises:
            UnrecordableError: if an operand is not a number.
        """
        args = tuple([x.place if x.__class__ is _Scalar else x for x in operands])
        if not all(isinstance(x, _PYTHON) for x in args):
            raise UnrecordableError("it computes numbers of something else")
        self._scalars.append(ProgramCall(function, args, (Number(self.count),)))
        return _Scalar(self, Number(self.count - 1))

    def place_of(self, number: Any) -> Any:
        """Returns the place of a number that is the operand of an op."""
        return number.place if number.__class__ is _Scalar else self.record_scalar(float, (number,)).place

    def function(self) -> Callable[[list[Any]], list[Any]]:
        """Returns the function that returns all numbers of the record, computed from the given ones."""
        function_source = FunctionSource(Program(0, tuple(self._scalars), ()), {})
        return partial(function_source.function([f"n{i}" for i in range(self.count)], range(self.given)), ())


class _Placeholder(Substitute):
    """The base class of the placeholders for tensors and numbers with which a rule is called."""

    __slots__ = ("place", "record")

    def __init__(self, record: _RuleRecord, place: Any) -> None:
        self.record, self.place = record, place

    def __bool__(self) -> NoReturn:
        raise UnrecordableError("its program would depend on values")

    def __eq__(self, other: object) -> NoReturn:
        raise UnrecordableError("its program would depend on values")

    __hash__ = None  # type: ignore[assignment]

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Records an op that has this placeholder among its arguments.

        Raises:
            UnrecordableError: if a program cannot have it.
        """
        record = self.record
        if not any(x.__class__ is _Tensor for x in arguments):
            if op in HOST:
                return record.record_scalar(HOST[op], arguments)
            raise UnrecordableError(f"{op}() of numbers")
        if op in UNARY:
            return record.record_call(op, self.place)
        if op in BINARY:
            x, y = arguments
            if op in COMMUTATIVE and x.__class__ is not _Tensor:
                x, y = y, x
            if x.__class__ is _Tensor and y.__class__ is _Tensor:
                return record.record_call(op, x.place, y.place)
            if x.__class__ is _Tensor and op in WEAK and y.__class__ in (*_PYTHON, _Scalar):
                return record.record_call(op, x.place, record.place_of(y))
        if op == CHOICE:
            condition, x, y = arguments
            if condition.__class__ is bool:
                return x if condition else y
            if condition.__class__ is _Scalar and x.__class__ is y.__class__ is _Tensor:
                return record.record_call(op, x.place, y.place, condition.place)
        raise UnrecordableError(f"{op}() in a program of elementwise ops")


class _Tensor(_Placeholder):
    """A placeholder for a tensor in the recorded call of a rule."""

    __slots__ = ()


class _Scalar(_Placeholder):
    """A placeholder for a number in the recorded call of a rule."""

    __slots__ = ()


class RuleProgram(NamedTuple):
    """The program of an optimizer's rule, and how its numbers follow from those of the state and the rate.

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


def record_rule(rule: Callable[..., Any], state: Mapping[str, Any], options: Mapping[str, Any]) -> RuleProgram | None:
    """Returns the program of an optimizer's rule; None if the rule calls anything that a program cannot hold.

    If the rule reads numbers, as in an `if`, those of the state and the rate are constants of the program.

    Args:
        rule: takes two tensors, a state and options, and returns a tensor and a state. It works element by element.
        state: a state; its tensors are not read.
        options: the options, among them "lr".
    """
    number_names = [name for name, x in state.items() if isinstance(x, _PYTHON)]
    for numbers in ([*number_names, "lr"], []):
        try:
            rule_program = _record_formula(rule, state, options, numbers)
        except _REFUSED:  # if the rule is at fault, it raises the same again when it runs without a program
            continue
        if rule_program is not None:
            return rule_program
    return None


def _record_formula(
    rule: Callable[..., Any], state: Mapping[str, Any], options: Mapping[str, Any], hyperparameters: list[str]
) -> RuleProgram | None:
    tensor_names = [name for name, x in state.items() if not isinstance(x, _PYTHON)]
    record = _RuleRecord(2 + len(tensor_names), len(hyperparameters))
    value_by_name = {**state, **{name: _Tensor(record, Register(2 + i)) for i, name in enumerate(tensor_names)}}
    for i, name in enumerate(hyperparameters[:-1]):
        value_by_name[name] = _Scalar(record, Number(i))
    if hyperparameters:
        options = {**options, "lr": _Scalar(record, Number(len(hyperparameters) - 1))}
    updated_tensor, new_state = rule(_Tensor(record, Register(0)), _Tensor(record, Register(1)), value_by_name, options)
    entry_by_name: dict[str, Any] = {}
    outputs = [updated_tensor]
    for name, x in new_state.items():
        if x.__class__ is _Tensor:
            outputs.append(x)
            entry_by_name[name] = None
        else:
            entry_by_name[name] = x.place if x.__class__ is _Scalar else x
            if x.__class__ is not _Scalar and not isinstance(x, _PYTHON):
                return None
    if any(x.__class__ is not _Tensor or x.record is not record for x in outputs):
        return None
    program = Program(record.inputs, tuple(record.calls), tuple(x.place for x in outputs), record.count)
    return RuleProgram(program, record.function(), entry_by_name, hyperparameters)
