"""Dispatch: `@op` turns a declaration into a plain function that calls the active backend.

A *looked-up* op asks which backend is active and calls the op compiled for it (`op_source` shows the sources). On the
interpreters that `code_swap` names, the first call of an op makes it *direct*: the op gets the code compiled for the
backend of the whole process and looks nothing up. All codes are exchanged in one step (`commits`), so an interruption
leaves either all old codes or all new ones. A `use_backend` that names another backend makes these ops *guarded*, until
a `set_backend` finds no override alive (`selection` decides). On other interpreters ops are looked up (`portable`).
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NoReturn, TypeVar, overload
from weakref import WeakValueDictionary

from emberharmony.core import op_globals
from emberharmony.core.axes import python_integers
from emberharmony.core.deferred import import_what_ops_reach
from emberharmony.core.docstrings.docstring import docstring
from emberharmony.core.errors import ArgumentTypeError, EmberError, TracedTensorError
from emberharmony.core.op_code.code_swap import SWAP as SWAP
from emberharmony.core.op_code.code_swap import choose_dispatch
from emberharmony.core.op_code.op_source import GLOBALS as GLOBALS
from emberharmony.core.op_code.op_source import Fast as Fast
from emberharmony.core.op_code.op_source import fast as fast
from emberharmony.core.op_code.op_source import fast_of, parameter_names
from emberharmony.core.registry import OPS, OpParameter, OpSpec, facts_of, register, register_alias
from emberharmony.core.state.blame import passed_through_caller
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged
from emberharmony.core.state.handlers import passing_error
from emberharmony.core.tracing import Substitute

DISPATCH, REASON = choose_dispatch()
"""Which dispatch runs in this process, and why."""

if DISPATCH == SWAP:
    from emberharmony.core.op_code.code_swap import compile_op, guarded_code, looked_up_op
    from emberharmony.core.op_code.code_swap import op_before_first_call as _declared
else:
    from emberharmony.core.op_code.portable import compile_op, looked_up_op

    _declared = looked_up_op

F = TypeVar("F", bound=Callable[..., Any])
_NUMBERS = (int, float, complex)
_PLAIN = frozenset((int, bool, type(None)))
"""The classes of options that are no tensors, and hold none."""
_BOUNDS: "WeakValueDictionary[int, Bound]" = WeakValueDictionary()
_LOOKED_UP: dict[str, Step] = {}
"""For each op the step that makes it looked up; to make them all takes ten times as long as to run them."""


@overload
def op(declared: F, /) -> F: ...
@overload
def op(**facts: object) -> Callable[[F], F]: ...
def op(declared: Any = None, /, **facts: object) -> Any:
    """Registers a declaration and returns the function that dispatches it; `@op(elementwise=True)` says facts of it.

    A body of `...` declares a primitive, which every backend must define. Any other body makes a composite, which a
    backend may override. Dispatch converts each argument as its annotation says (see `core.types`); annotations are
    strings or names of `core.types`. `@op`, with the facts (see `core.registry.Facts`), stands on the one line above
    `def`, because tracebacks point one line below the decorator.

    Raises:
        ValueError: if a fact is unknown.
    """
    return partial(_declare, facts) if declared is None else _declare(facts, declared)


def _declare(facts: dict[str, object], declared: F) -> F:
    assert isinstance(declared, FunctionType)
    spec = register(declared.__name__, declared, facts_of(declared.__name__, facts))
    _LOOKED_UP.pop(spec.name, None)
    if len(_BOUNDS):  # `import emberharmony.ops` declares all ops before there is one
        for bound in list(_BOUNDS.values()):
            bound.forget(spec.name)
    dispatching_op = _declared(spec)
    dispatching_op.__annotations__ = declared.__annotations__
    dispatching_op.__doc__, dispatching_op.__module__ = docstring(declared.__doc__, spec), declared.__module__
    dispatching_op.__qualname__ = declared.__qualname__
    spec.function = dispatching_op
    if DISPATCH == SWAP:
        UNCALLED.append(assignment(dispatching_op, "__code__", dispatching_op.__code__))
    return dispatching_op  # type: ignore[return-value]


def alias(name: str, function: F) -> F:
    """Registers another name of an op and returns the op itself, as in `asin = alias("asin", arcsin)`."""
    register_alias(name, function)
    return function


class _Codes:
    """Which code the ops have: the direct one for the backend in `direct`, or the guarded one for that in `guarded`."""

    direct: "Bound | None" = None
    guarded: "Bound | None" = None


CODES = _Codes()
_NO_BACKEND: list[Step] = [assignment(CODES, "direct", None), assignment(CODES, "guarded", None)]
UNCALLED: list[Step] = list(_NO_BACKEND)
"""The steps that give every op of the process the code that it had before its first call."""


def looked_up_steps() -> list[Step]:
    """Returns the steps that give every op the code that asks at each call which backend is active."""
    if DISPATCH != SWAP:
        return list(_NO_BACKEND)
    for op_name, spec in list(OPS.items()):
        if op_name not in _LOOKED_UP:
            _LOOKED_UP[op_name] = assignment(spec.function, "__code__", looked_up_op(spec).__code__)
    return [*_NO_BACKEND, *_LOOKED_UP.values()]


class _Uncalled:
    """The first calls of ops: `uncalled.add(args, kwargs)` calls `add`, or reports an unknown keyword.

    Python itself checks the keywords of a call of a function and gives no hint, and catching them in `**kwargs` would
    cost each call 50 ns. So only the code that an op has before its first call catches them.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(_call_first_time, name)


def _call_first_time(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls an op, or raises the error for keywords that it does not have.

    Raises:
        ArgumentTypeError: if a keyword is unknown; the message names the parameter that it probably means.
    """
    if kwargs:
        unknown_names = kwargs.keys() - parameter_names(OPS[name])
        if unknown_names:
            # Imported here, because only unknown names need it.
            from emberharmony.core.names.spellings import unknown_keyword_error

            raise unknown_keyword_error(name, next(keyword for keyword in kwargs if keyword in unknown_names))
    return getattr(op_globals.active(), name)(*args, **kwargs)


class Bound:
    """The ops of one backend as functions: `bound.sin(x)` converts arguments, calls the backend, translates errors.

    Each function is compiled on first use. `_made_direct` holds the steps that make the ops compiled so far direct; an
    op that is compiled later becomes direct, or guarded, at once.
    """

    backend: Any
    variant: str = ""
    """What distinguishes these ops from others of the backend; a compiled function belongs to one of them."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._made_direct: list[Step] = [assignment(CODES, "direct", self)]
        self._guarded: dict[str, Step] = {}
        _BOUNDS[id(self)] = self

    @property
    def bound(self) -> "Bound":
        """These ops themselves, so that `bound.bound` works as `backend.bound` does."""
        return self

    def wrap_ops(self, inner: "Bound") -> "Bound":
        """Returns `inner`, because ops without rules of their own add nothing to other ops of the backend."""
        return inner

    def forget(self, name: str) -> None:
        """Drops the compiled code of an op that is declared again, for example by a notebook cell that runs twice."""
        self._guarded.pop(name, None)
        vars(self).pop(name, None)

    def __getattr__(self, name: str) -> FunctionType:
        spec = OPS.get(name)
        if spec is None:
            raise AttributeError(f"no op is named {name!r}")
        _publish(spec, self.backend)
        compiled_op = compile_op(spec, self.backend)
        # The compiled op calls itself again, by this global, if an argument is a parameter. An attribute of this class
        # would cost 500 instructions more. No op has a name that begins with an underscore.
        op_globals.publish(**{f"{self.backend.prefix}__{name}": compiled_op})
        steps: list[Step] = []
        if DISPATCH == SWAP:
            steps = [assignment(spec.function, "__code__", compiled_op.__code__)]
        self._made_direct.extend(steps)
        setattr(self, name, compiled_op)
        commit(steps_if_unchanged(CODES, "direct", self, steps))
        if CODES.guarded is self:
            commit(steps_if_unchanged(CODES, "guarded", self, [self._guard(name)]))
        return compiled_op

    def compile_all(self) -> None:
        """Compiles the ops that were not called yet, for a compiler that cannot trace a first call."""
        for op_name in list(OPS):
            getattr(self, op_name)
        import_what_ops_reach()  # afterwards, because the modules of the backend's ops defer imports too

    def _override_lookup_steps(self) -> list[Step]:
        """Returns the steps that make the ops compiled so far look for an override at each call."""
        if DISPATCH != SWAP:
            return []
        return [assignment(CODES, "guarded", self), *(self._guard(name) for name in list(OPS) if name in vars(self))]

    def _guard(self, name: str) -> Step:
        if name not in self._guarded:
            spec = OPS[name]
            self._guarded[name] = assignment(spec.function, "__code__", guarded_code(spec, self.backend))
        return self._guarded[name]


def _publish(spec: OpSpec, backend: Any) -> None:
    """Publishes what a compiled op reads, under names such as `numpy_sin` and `numpy_type`."""
    value_by_global = {"backend": backend, "type": backend.tensor_type, "dtypes": backend.dtypes, "wrap": backend.wrap}
    value_by_global |= {"float32": backend.dtypes["float32"], "float64": backend.dtypes.get("float64")}
    fast_form = fast_of(spec, backend)
    value_by_global |= {"bound": backend.bound, "tensors": backend.as_tensors, spec.name: fast_form.native}
    if fast_form.whole:
        value_by_global[f"whole_{spec.name}"] = backend.implementation(spec)
    op_globals.publish(**{f"{backend.prefix}_{name}": value for name, value in value_by_global.items()})


def call_with_conversion(backend: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """Calls the backend's op with converted arguments and translates its errors.

    A traced tensor hands the call to its tape, and a cell calls the op again with its tensor.
    """
    for argument in arguments:
        if isinstance(argument, Substitute):
            return argument.run(backend, name, arguments)
    spec = OPS[name]
    try:
        positional_arguments, value_by_keyword = convert_arguments(backend, spec.parameters, arguments)
        arguments = (*positional_arguments, *value_by_keyword.values())
        return backend.wrap(backend.implementation(spec)(*positional_arguments, **value_by_keyword))
    except Exception as error:
        traced_tensor = getattr(error, "traced", None)
        if traced_tensor is not None:  # it was inside a list
            return traced_tensor.run(backend, name, arguments)
        if spec.takes_callable:
            reraise(backend, name, arguments)
        passed_error = passing_error(error)
        if passed_error is error:
            raise
        if passed_error is not None:
            raise passed_error from passed_error.__cause__
        typed_error = backend.translate(name, error, arguments)
        if typed_error is error:
            raise
        raise typed_error from error


def _current_error() -> Exception:
    """Returns the exception whose `except` block the caller runs in; compiled ops do not bind it to a name."""
    error = sys.exception()
    assert isinstance(error, Exception)
    return error


def reraise(backend: Any, name: str, arguments: tuple[Any, ...]) -> NoReturn:
    """Raises the error of an op that takes a function: an error of that function unchanged, other errors translated."""
    error = _current_error()
    if isinstance(error, EmberError) or passed_through_caller(error, backend) or passing_error(error) is error:
        raise error
    typed_error = backend.translate(name, error, arguments)
    raise typed_error from (None if typed_error is error else error)


def rescue(backend: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """Handles the error of a native call: runs the full implementation if there is one, else raises the typed error.

    `call_with_conversion` also converts options, so a call runs again through it if a flag is no Python boolean, or if
    a tensor stands in place of an integer.

    Raises:
        EmberError: the typed error, if the call cannot run in another way.
    """
    error = _current_error()
    passed_error = passing_error(error)
    if passed_error is not None:
        raise passed_error
    given_values = (getattr(error, "traced", None), *arguments)
    substitute_operand = next((x for x in given_values if isinstance(x, Substitute)), None)
    if substitute_operand is not None:  # the fast path does not test every parameter, and does not look into lists
        return substitute_operand.run(backend, name, arguments)
    spec = OPS[name]
    parameter_value_pairs = list(zip(spec.parameters, arguments, strict=False))
    # The native function may have read an option that is traced, which the full implementation differentiates.
    if any(p.whole and hasattr(x, "dtype") for p, x in parameter_value_pairs) or (
        (not isinstance(error, EmberError) or isinstance(error, TracedTensorError))
        and (
            hasattr(backend.implementation(spec), "__fast__")
            or any(backend.python_option(x) is not x for x in arguments)
            or any(_needs_conversion(p, x) for p, x in parameter_value_pairs)
        )
    ):
        return call_with_conversion(backend, name, arguments)
    typed_error = backend.translate(name, error, arguments)
    raise typed_error from (None if typed_error is error else error)


def convert_arguments(
    backend: Any, parameters: Sequence[OpParameter], arguments: tuple[Any, ...]
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the positional arguments and the keywords with which the implementation of an op is called.

    Raises:
        EmberError: if an argument cannot be converted.
    """
    variadic_count = len(arguments) - len(parameters) + 1
    if variadic_count != 1:
        parameters = [p for p in parameters for _ in range(variadic_count if p.variadic else 1)]
    positional_arguments: list[Any] = []
    value_by_keyword: dict[str, Any] = {}
    operand_positions: list[int] = []
    for parameter, value in zip(parameters, arguments, strict=False):
        if parameter.role == "Operand":
            operand_positions.append(len(positional_arguments))
        converted_value = value
        if value is not None or not parameter.optional:
            if parameter.cast:
                parameter_names = [parameter.name for parameter in parameters]
                dtype = dict(zip(parameter_names, arguments, strict=False)).get("dtype")
                converted_value = backend.convert(value) if dtype is None else backend.convert(value, dtype)
            else:
                converted_value = _convert_argument(backend, parameter, value)
            if value is False and parameter.name == "copy" and parameter.optional:
                backend.convert_without_copy(arguments[0])  # raises if a copy is necessary; copy=None would allow one
        if parameter.keyword_only:
            value_by_keyword[parameter.name] = converted_value
        else:
            positional_arguments.append(converted_value)
    has_only_numbers = operand_positions[:1] == [0] and all(
        isinstance(positional_arguments[i], _NUMBERS) for i in operand_positions
    )
    if has_only_numbers and not any(parameter.role in ("TensorLike", "Tensors") for parameter in parameters):
        positional_arguments[0] = backend.convert(positional_arguments[0])
    return positional_arguments, value_by_keyword


def _convert_argument(backend: Any, parameter: OpParameter, value: Any) -> Any:
    role = parameter.role
    if role == "TensorLike":
        if parameter.unpaired and value.__class__ in (list, tuple):
            _refuse_pair_of_tensors(parameter, value)
        return backend.convert(value)
    if role == "Operand":
        return value if type(value) in _NUMBERS or type(value) is bool else backend.convert(value)
    if role == "Tensors":
        return backend.as_tensors(value)
    if role == "DTypeLike":
        return backend.dtypes[value]
    value = backend.python_option(value)
    if not _needs_conversion(parameter, value):
        return value
    return python_integers(parameter.name, value) if parameter.whole else _flag_of_value(parameter, value)


def _refuse_pair_of_tensors(parameter: OpParameter, value: Sequence[Any]) -> None:
    """Checks that an argument is not the real and the imaginary part of a tensor, which would be stacked silently.

    Raises:
        ArgumentTypeError: if it is a pair of real tensors.
    """
    if len(value) == 2 and all(getattr(x, "shape", ()) and "complex" not in str(x.dtype) for x in value):
        raise ArgumentTypeError(
            f"{parameter.name} is one tensor, not a pair of a real and an imaginary part; give "
            f"ops.view_as_complex(ops.stack([re, im], -1)), or ops.stack([x, y]) for two tensors"
        )


def _needs_conversion(parameter: OpParameter, value: Any) -> bool:
    """Returns whether an option is a flag that is no Python boolean, or an integer that may be a tensor."""
    if parameter.whole:
        return value.__class__ not in _PLAIN
    return parameter.annotation == "bool" and value.__class__ is not bool


def _flag_of_value(parameter: OpParameter, value: Any) -> bool:
    """Returns an integer or a tensor without axes as a Python boolean.

    Raises:
        ArgumentTypeError: if the value is anything else.
    """
    if isinstance(value, int) or getattr(value, "shape", None) == ():
        return bool(value)
    raise ArgumentTypeError(f"{parameter.name} must be True or False, got {value!r:.60}")


op_globals.publish(slow=call_with_conversion, rescue=rescue, reraise=reraise, uncalled=_Uncalled(), traced_tensor=None)
