"""Records the calls of native functions that a function of tensors makes, so that a backend can repeat them.

The recorder is a tape: the function gets traced tensors, and the ops on them come to the recorder, also those of the
backward pass of an inner tape. The recorder runs each op on the values and notes the native function that ran, which
`direct` finds as dispatch does. A composite without a definition of the backend runs through its body. What no traced
tensor leads to, such as a table of positions, is computed while the function is recorded and is a constant.

Random tensors are drawn again by each replay. A function that reads a value cannot be recorded: an `if` on a tensor, a
number of Python.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emberharmony.core.cells.cell import opened
from emberharmony.core.dispatch import converted
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import EmberError, TracedTensorError
from emberharmony.core.op_code.op_source import compiled_source, parameter_names, variant_of
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.core.state.handlers import passing
from emberharmony.transforms.program import Call, Register
from emberharmony.transforms.rules import LEAVING
from emberharmony.transforms.tape import Tape, call, prepared, run_body, traced_in
from emberharmony.transforms.traced_tensor import TracedTensor

MOST = 5000
"""A function that makes more calls is not recorded: it takes longer to compile than to run."""

_ALIKE = ("zeros_like", "ones_like", "empty_like")
"""Ops whose result depends on the shape and the dtype of the tensor alone."""

_PLAIN: tuple[type, ...] = (int, float, complex, bool, str, bytes, type(None), type(...), type, range, DType)


class UnrecordableError(EmberError):
    """Raised while a function is recorded, if it does what the recorded calls cannot repeat."""


def direct(backend: Any, spec: OpSpec, values: Sequence[Any]) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    """Returns the native function that runs an op on native tensors, and its arguments.

    Raises:
        EmberError: if an argument cannot be converted.
    """
    probes: dict[str, Callable[..., Any]] = backend.__dict__.setdefault("_probes", {})
    probe = probes.get(spec.name)
    if probe is None:
        probe = probes[spec.name] = _probe(backend, spec)
    names = parameter_names(spec)
    count = sum(parameter.keyword_only for parameter in spec.parameters)
    cut = len(values) - count
    found = probe(*values[:cut], **{f"p{len(names) - count + i}": value for i, value in enumerate(values[cut:])})
    if found is not None:
        native, args, keywords = found
        named = {names[int(name[1:])] if name[1:].isdigit() else name: value for name, value in keywords.items()}
        return native, args, named
    positional, keywords = converted(backend, spec.parameters, tuple(values))
    return backend.implementation(spec), positional, keywords


def _probe(backend: Any, spec: OpSpec) -> Callable[..., Any]:
    """Returns a function with the source of a compiled op, which returns what it would call; None for the slow path."""
    native = getattr(getattr(backend.implementation(spec), "__fast__", None), "native", backend.implementation(spec))
    scope: dict[str, Any] = {
        "native": lambda *args, **keywords: (native, args, keywords),
        "native_type": backend.tensor_type,
        "native_backend": backend,
        "native_dtypes": backend.dtypes,
        "native_float32": backend.dtypes["float32"],
        "native_float64": backend.dtypes.get("float64"),
        "native_tensors": backend.as_tensors,
        "native_wrap": lambda found: found,
        "parameter": None,  # a recorded function gets the tensors of parameters
        **dict.fromkeys(("slow", "rescue", "judge"), lambda *_: None),
    }
    exec(compiled_source(*variant_of(spec, backend)), scope)
    probe: Callable[..., Any] = scope["template"]
    return probe


class Recorder(Tape):
    """The record of the calls on traced tensors, for one run of a function.

    Args:
        backend: the backend.
        inputs: the tensors that the function takes; no other object may refer to them.
        plain: the library's classes of immutable options, such as that of dtypes.
        lowered: by native function, a rule that makes simpler calls in its place: it takes the function that makes a
            call, and the arguments, and returns the result; None if the call has to stay.

    Attributes:
        values: the tensor of each register.
        calls: the calls in their order.
        obstacle: what the function did that cannot be repeated; "" if nothing.
        lost: whether it perhaps went another way than with native tensors, so that its result is wrong.
    """

    __slots__ = ("_lowered", "_places", "_plain", "calls", "closed", "lost", "obstacle", "values")

    differentiates = False

    def __init__(
        self, backend: Any, inputs: Sequence[Any], plain: tuple[type, ...], lowered: Mapping[Any, Callable[..., Any]]
    ) -> None:
        super().__init__(backend)
        self._plain, self._lowered = (*_PLAIN, *plain), lowered
        self.values: list[Any] = []
        self.calls: list[Call] = []
        self.obstacle, self.closed, self.lost = "", False, False
        self._places: dict[int, Register] = {}
        for value in inputs:
            self._placed(value)

    def tensor(self, register: int) -> TracedTensor:
        """Returns the traced tensor of a register."""
        return TracedTensor(self.values[register], self, None, Register(register))

    def read(self, what: str) -> None:
        """Notes that the function reads a value, which may be another one at the next call."""
        self.obstacle = self.obstacle or f"it reads a value by {what}"

    def lack(self, name: str) -> None:
        """Notes that the function looks for an attribute that native tensors have and traced ones lack."""
        self.obstacle, self.lost = f"it looks for the attribute {name!r} of a tensor", True

    def run(self, backend: Any, op: str, arguments: Sequence[Any]) -> Any:
        """Runs an op, and notes the call of the native function.

        Raises:
            EmberError: the error of the op.
            UnrecordableError: if the call cannot be repeated.
        """
        if self.closed:
            raise UnrecordableError(f"{op}(): a tensor of a compiled function is used after its call; return it")
        if backend is not self.backend:
            if backend.home is self.backend.home:  # `ops.eval_shape` wraps the backend
                return call(getattr(backend.bound, op), OPS[op], backend.adopting(arguments))
            raise UnrecordableError(f"{op}() on another backend")
        arguments = opened(backend.bound, tuple(arguments))
        latest = max({x.tape for x in traced_in(arguments)}, key=lambda tape: tape.level)
        if latest is not self:
            return latest.run(backend, op, arguments)
        spec = OPS[op]
        if op == "stop_gradient":
            return arguments[0]
        if op == "custom_vjp":
            return list(arguments[0](*arguments[2]))
        if op in LEAVING:
            raise UnrecordableError(f"{op}() reads a value")
        if spec.composite and (spec.takes_callable or not backend.defines(spec)):
            return self._through_body(backend, spec, arguments)
        listed = any(x.__class__ is not TracedTensor and traced_in([x]) for x in arguments)
        given = prepared(backend, spec, arguments) if listed else arguments
        values = self._stripped(given)
        try:
            function, args, keywords = direct(backend, spec, values)
            if not {int(x.key) for x in traced_in(given)} <= self._registers([*args, *keywords.values()]):
                raise UnrecordableError(f"{op}() converts a tensor")
            found = self.called(function, args, keywords)
        except UnrecordableError:
            raise
        except Exception as error:
            call(getattr(backend.bound, op), spec, values)  # raises the typed error, or takes another path
            raise UnrecordableError(f"{op}() takes another path than its fast one") from error
        return found if op in _ALIKE else self._traced(found)

    def _through_body(self, backend: Any, spec: OpSpec, arguments: Sequence[Any]) -> Any:
        """Returns the result of a composite's body, whose errors get the composite's name, as in `dispatch.slow`."""
        try:
            return run_body(backend, spec, arguments)
        except Exception as error:
            if spec.takes_callable or isinstance(error, (UnrecordableError, TracedTensorError)) or passing(error):
                raise
            typed = backend.translate(spec.name, error, tuple(arguments))
            if typed is error:
                raise
            raise typed from error

    def called(self, function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Calls a native function on values and notes it; returns the values.

        Raises:
            UnrecordableError: if the call cannot be repeated.
        """
        if len(self.calls) >= MOST:
            raise UnrecordableError(f"it makes more than {MOST} calls")
        rule = self._lowered.get(getattr(function, "__func__", function))
        if rule is not None:
            found = rule(self.called, *args, **keywords)
            if found is not None:
                return found
        noted = tuple(map(self._noted, args))
        named = tuple([(name, self._noted(value)) for name, value in keywords.items()])
        raw = function(*args, **keywords)
        result = self.backend.wrap(raw)
        several = result.__class__ is not self.tensor_type and isinstance(result, (tuple, list))
        items = result if several else [result]
        if any(item.__class__ is not self.tensor_type for item in items):
            if several and not any(isinstance(item, (self.tensor_type, tuple, list)) for item in items):
                return result  # a shape
            if isinstance(result, (tuple, list)):
                raise UnrecordableError(f"{function} returns {type(result).__name__} with something else than tensors")
            return result  # a dtype, a number of axes
        known = [self._places.get(id(item)) for item in items]
        if not several and known[0] is not None:
            return result  # the function returns an argument as it is
        if any(place is not None for place in known):
            raise UnrecordableError(f"{function} returns an argument in a tuple")
        places = tuple(map(self._placed, items))
        self.calls.append(Call(function, noted, places, named, several, result is not raw))
        return result

    def drawn(self, draw: Callable[[], Any]) -> TracedTensor:
        """Draws random numbers and notes the draw; returns the traced tensor of them.

        Raises:
            UnrecordableError: if the draw does not give a tensor.
        """
        value = draw()
        if self.closed or value.__class__ is not self.tensor_type:
            raise UnrecordableError("it draws random numbers")
        place = self._placed(value)
        self.calls.append(Call(draw, (), (place,), draws=True))
        return self.tensor(place)

    def _placed(self, value: Any) -> Register:
        place = self._places[id(value)] = Register(len(self.values))
        self.values.append(value)
        return place

    def _registers(self, values: Sequence[Any]) -> set[int]:
        """Returns the registers of the values in lists and tuples."""
        found = set()
        for value in values:
            if value.__class__ is self.tensor_type and id(value) in self._places:
                found.add(int(self._places[id(value)]))
            elif value.__class__ is list or value.__class__ is tuple:
                found |= self._registers(value)
        return found

    def _traced(self, result: Any) -> Any:
        """Returns a result with traced tensors in the places of the tensors that calls have computed."""
        if result.__class__ is self.tensor_type:
            place = self._places.get(id(result))
            return result if place is None else self.tensor(place)
        if isinstance(result, (tuple, list)):
            items = [self._traced(item) for item in result]
            kind = type(result)
            return items if kind is list else tuple(items) if kind is tuple else kind(*items)
        return result

    def _stripped(self, argument: Any) -> Any:
        """Returns an argument with the values of the traced tensors in it.

        Raises:
            UnrecordableError: if a tensor of another tape is in it.
        """
        kind = argument.__class__
        if kind is TracedTensor:
            if argument.tape is not self:
                raise UnrecordableError("it uses a tensor that is being differentiated, as a constant")
            return argument.value
        if kind is list or kind is tuple:
            return kind(map(self._stripped, argument))
        return argument

    def _noted(self, argument: Any) -> Any:
        """Returns an argument with registers in the places of tensors that the inputs or calls gave.

        Raises:
            UnrecordableError: if it may be another one at the next call, although no tensor leads to it.
        """
        kind = argument.__class__
        if kind is self.tensor_type:
            return self._places.get(id(argument), argument)
        if kind is list or kind is tuple:
            return kind(map(self._noted, argument))
        if isinstance(argument, self._plain):
            return argument
        if kind is slice and all(isinstance(x, self._plain) for x in (argument.start, argument.stop, argument.step)):
            return argument
        raise UnrecordableError(f"an argument is a {kind.__name__}")
