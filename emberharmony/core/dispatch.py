"""Dispatch: `@op` turns a declaration into a plain function whose code is exchanged when the backend changes.

An op has one of two codes. *Looked up*, it asks which backend is active and calls the op compiled for it:

    def add(x1, x2):
        return active().add(x1, x2)

*Direct*, it is the code compiled for the backend of the whole process, and nothing is looked up:

    def add(x1, x2):
        if x1.__class__ is numpy_type and x2.__class__ is numpy_type and x1.dtype is x2.dtype:
            try:
                return numpy_add(x1, x2)
            except Exception as error:
                return rescue(numpy_backend, "add", error, (x1, x2))
        return slow(numpy_backend, "add", (x1, x2))

An op is looked up until its first call, which makes it direct; the first `use_backend` makes all ops looked up for good
(`selection` decides). All codes are exchanged in one step (`commits`), so that no interruption leaves some behind.
Compiling one source per op would cost 0.3 ms each; so one template per *shape of signature* is compiled,
and `CodeType.replace` puts the names, file and line of the declaration into it (10 µs).
"""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeVar

from emberharmony.core import op_globals
from emberharmony.core.code_flags import VARIADIC
from emberharmony.core.errors import ArgumentTypeError, EmberError
from emberharmony.core.registry import OPS, OpParameter, OpSpec, register, register_alias
from emberharmony.core.state.blame import is_callers
from emberharmony.core.state.commits import Step, assigned, commit, when
from emberharmony.core.state.handlers import passing
from emberharmony.core.tracing import TensorProxy

F = TypeVar("F", bound=Callable[..., Any])
_NUMBERS = (int, float, complex)
GLOBALS = ("backend", "type", "dtypes", "wrap", "tensors", "float32", "float64")


class Fast:
    """A native function that alone meets the op's docstring while `when` holds for native tensors.

    `when` and `weak` are expressions in which `{0}`, `{1}` stand for the op's parameters; `weak` is the condition
    under which the native function may also take a Python number as the last operand.
    """

    __slots__ = ("native", "weak", "when")

    def __init__(self, native: Callable[..., Any], when: str, weak: str = "") -> None:
        self.native, self.when, self.weak = native, when, weak


def fast(native: Callable[..., Any], when: str, weak: str = "") -> Callable[[F], F]:
    """Marks a backend's op as replaceable by `native` while the condition holds; dispatch inlines the test."""

    def mark(function: F) -> F:
        function.__fast__ = Fast(native, when, weak)  # type: ignore[attr-defined]
        return function

    return mark


def op(declared: F) -> F:
    """Registers a declaration and returns the function that dispatches it.

    A body of `...` declares a primitive, which every backend must define. Any other body makes a composite, which a
    backend may override. Dispatch converts arguments by annotation (see `core.types`). The annotations must be strings
    or the names of `core.types` themselves. `@op` must stand alone on the line above `def`.
    """
    assert isinstance(declared, FunctionType)
    spec = register(declared.__name__, declared)
    looked_up = _looked_up(spec)
    function = FunctionType(looked_up, op_globals.__dict__, declared.__name__, declared.__defaults__)
    function.__kwdefaults__ = declared.__kwdefaults__
    function.__annotations__ = declared.__annotations__
    function.__doc__, function.__module__ = declared.__doc__, declared.__module__
    function.__qualname__ = declared.__qualname__
    spec.function = function
    LOOKED_UP.append(assigned(function, "__code__", looked_up))
    return function  # type: ignore[return-value]


def alias(name: str, function: F) -> F:
    """Registers another name of an op and returns the op itself, as in `asin = alias("asin", arcsin)`."""
    register_alias(name, function)
    return function


class _Direct:
    """Says whose ops are direct: `bound` is the process's while nothing overrides it, else None."""

    bound: "Bound | None" = None


DIRECT = _Direct()
LOOKED_UP: list[Step] = [assigned(DIRECT, "bound", None)]
"""The steps that make every op of the process looked up."""


class Bound:
    """The ops compiled for one backend, each on first use: `bound.sin(x)` converts, calls and translates errors.

    `_made_direct` are the steps that make its ops direct, those compiled so far now, the others at their first call.
    """

    backend: Any

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._made_direct: list[Step] = [assigned(DIRECT, "bound", self)]

    def __getattr__(self, name: str) -> FunctionType:
        spec = OPS[name]
        code = compile_op(spec, self.backend)
        function = FunctionType(code, op_globals.__dict__, name, spec.declared.__defaults__)
        function.__kwdefaults__ = spec.declared.__kwdefaults__
        step = assigned(spec.function, "__code__", code)
        self._made_direct.append(step)
        setattr(self, name, function)
        commit(when(DIRECT, "bound", self, [step]))
        return function


def source_of(spec: OpSpec, backend: Any) -> str:
    """Returns the source of the code that `compile_op` makes, under the names that it gives: for people to read."""
    quick = _quick(spec, backend)
    text = _source(_shape(spec), quick.when, quick.weak, backend.exact_type, backend.wraps, spec.takes_callable)
    text = text.replace("def template", f"def {spec.name}").replace(_OP_NAME, spec.name)
    for i in reversed(range(len(spec.parameters))):
        text = text.replace(f"p{i}", spec.parameters[i].name)
    for part in GLOBALS:
        text = text.replace(f"native_{part}", f"{backend.prefix}_{part}")
    text = text.replace("native(", f"{backend.prefix}_{spec.name}(")
    return "\n".join(" " * 3 * (len(line) - len(line.lstrip())) + line for line in text.splitlines()) + "\n"


def _quick(spec: OpSpec, backend: Any) -> Fast:
    """Returns what a backend runs for an op: the native function and the condition under which it may run alone."""
    native = backend.implementation(spec)
    return getattr(native, "__fast__", None) or Fast(native, "")


def compile_op(spec: OpSpec, backend: Any) -> CodeType:
    """Returns the code of an op for one backend."""
    quick = _quick(spec, backend)
    prefix = backend.prefix
    published = {"backend": backend, "type": backend.tensor_type, "dtypes": backend.dtypes, "wrap": backend.wrap}
    published |= {"tensors": backend.as_tensors, spec.name: quick.native}
    published |= {"float32": backend.dtypes["float32"], "float64": backend.dtypes.get("float64")}
    op_globals.publish(**{f"{prefix}_{name}": value for name, value in published.items()})
    names = {"native": f"{prefix}_{spec.name}"}
    names |= {f"native_{part}": f"{prefix}_{part}" for part in GLOBALS}
    shape = _shape(spec)
    template = _template(shape, quick.when, quick.weak, backend.exact_type, backend.wraps, spec.takes_callable)
    return _dress(template, spec, names)


def _looked_up(spec: OpSpec) -> CodeType:
    if spec.looked_up is None:
        code = spec.declared.__code__
        starred = bool(code.co_flags & VARIADIC)
        template = _lookup_template(code.co_argcount, starred, code.co_kwonlyargcount)
        if code.co_kwonlyargcount:
            spec.looked_up = _dress(template, spec, {"native_op": spec.name})
        else:  # what `_dress` would do, at a fifth of its cost, which the import pays for every op
            spec.looked_up = template.replace(
                co_name=code.co_name,
                co_qualname=code.co_qualname,
                co_filename=code.co_filename,
                co_firstlineno=code.co_firstlineno,
                co_names=("active", spec.name),
                co_varnames=code.co_varnames[: code.co_argcount + starred],
            )
    return spec.looked_up


_Slot = tuple[str, bool, bool, bool]
"""What a template depends on of one parameter: its role, and whether it is optional, keyword-only, variadic."""

_Shape = tuple[_Slot, ...]
_OP_NAME = "<op>"


def _shape(spec: OpSpec) -> _Shape:
    return tuple((p.role, p.optional, p.keyword_only, p.variadic) for p in spec.parameters)


def _signature(shape: _Shape) -> str:
    """Returns `p0, p1, *, p2`."""
    parts: list[str] = []
    star = False
    for i, (_, _, keyword_only, variadic) in enumerate(shape):
        if keyword_only and not star:
            parts.append("*")
        star = star or keyword_only or variadic
        parts.append(f"*p{i}" if variadic else f"p{i}")
    return ", ".join(parts)


def _call(shape: _Shape, keyword: bool) -> str:
    """Returns the arguments handed on; keyword-only ones under names that `_dress` replaces."""
    return ", ".join(
        f"*p{i}" if variadic else f"p{i}=p{i}" if keyword_only and keyword else f"p{i}"
        for i, (_, _, keyword_only, variadic) in enumerate(shape)
    )


def _packed(shape: _Shape) -> str:
    return "(" + "".join(f"{'*' if variadic else ''}p{i}, " for i, (_, _, _, variadic) in enumerate(shape)) + ")"


_TEMPLATES: dict[Any, CodeType] = {}


def _lookup_template(positional: int, variadic: bool, keyword_only: int) -> CodeType:
    key = positional, variadic, keyword_only
    if key not in _TEMPLATES:
        shape: _Shape = (("", False, False, False),) * positional + (("", False, False, True),) * variadic
        shape += (("", False, True, False),) * keyword_only
        source = f"def template({_signature(shape)}):\n return active().native_op({_call(shape, True)})\n"
        _TEMPLATES[key] = _compile(source)
    return _TEMPLATES[key]


def _template(shape: _Shape, when: str, weak: str, exact: bool, wraps: bool, callback: bool) -> CodeType:
    key = (shape, when, weak, exact, wraps, callback)
    if key not in _TEMPLATES:
        _TEMPLATES[key] = _compile(_source(*key))
    return _TEMPLATES[key]


def _source(shape: _Shape, when: str, weak: str, exact: bool, wraps: bool, callback: bool) -> str:
    names = [f"p{i}" for i in range(len(shape))]

    def is_exactly(i: int) -> str:
        return f"p{i}.__class__ is native_type"

    def is_native(i: int) -> str:
        test = is_exactly(i) if exact else f"({is_exactly(i)} or isinstance(p{i}, native_type))"
        return f"(p{i} is None or {test})" if shape[i][1] else test

    tensors = [i for i, (role, _, _, starred) in enumerate(shape) if role in ("TensorLike", "Operand") and not starred]
    when = when.format(*names) or "True"
    if weak:
        # Test the common case first; never run isinstance(number, torch.Tensor), it is slow.
        *firsts, last = tensors
        likely = f"{is_exactly(last)} and {when} or {weak.format(*names)}"
        rest = "" if exact else f" or isinstance(p{last}, native_type) and {when}"
        tests = [*(is_native(i) for i in firsts), f"({likely}{rest})"]
    else:
        tests = [is_native(i) for i in tensors] + ([f"({when})"] if when != "True" else [])
    call = f"native({_call(shape, True)})"
    body = ["result = " + call, "return result if result.__class__ is native_type else native_wrap(result)"]
    if not wraps:
        body = ["return " + call]
    convert = []
    for i, (role, optional, _, variadic) in enumerate(shape):
        if role == "DTypeLike":
            given = f"if p{i} is not None: " if optional else ""
            convert.append(f"{given}p{i} = native_dtypes[p{i}]")
        elif role == "Tensors" or (variadic and role in ("TensorLike", "Operand")):
            convert.append(f"p{i} = native_tensors(p{i})")
    handler = f"return {'judge' if callback else 'rescue'}(native_backend, {_OP_NAME!r}, error, {_packed(shape)})"
    steps = ["try:", *(f" {step}" for step in (*convert, *body)), "except Exception as error:", f" {handler}"]
    lines = [f"if {' and '.join(tests)}:", *(f" {step}" for step in steps)] if tests else steps
    if tests:
        lines.append(f"return slow(native_backend, {_OP_NAME!r}, {_packed(shape)})")
    return f"def template({_signature(shape)}):\n" + "".join(f" {line}\n" for line in lines)


def _compile(source: str) -> CodeType:
    module = compile(source, "<dispatch>", "exec")
    code = next(const for const in module.co_consts if isinstance(const, CodeType))
    return code.replace(co_linetable=_one_line(len(code.co_code) // 2))


_NEW_ENTRY, _NO_COLUMNS = 0x80, 13
"""The bit that begins an entry of a location table, and the kind of an entry that gives a line and no columns."""


def _one_line(units: int) -> bytes:
    """Returns a location table by which every instruction stands on the line of `def`, one below `@op`.

    Source: CPython, Objects/locations.md: entries of kind 13 (no column) cover up to 8 code units each, after which
    comes the difference to the line before.
    """
    table = bytearray()
    line = 2  # the difference 1 as a signed varint
    while units > 0:
        length = min(units, 8)
        table += bytes((_NEW_ENTRY | _NO_COLUMNS << 3 | length - 1, line))
        units, line = units - length, 0
    return bytes(table)


def _dress(template: CodeType, spec: OpSpec, names: dict[str, str]) -> CodeType:
    """Returns the template under the declaration's names, file and line."""
    declared = spec.declared.__code__
    names_of = declared.co_varnames
    first, last = declared.co_argcount, declared.co_argcount + declared.co_kwonlyargcount
    starred = names_of[last : last + 1] if declared.co_flags & VARIADIC else ()
    local = {f"p{i}": name for i, name in enumerate((*names_of[:first], *starred, *names_of[first:last]))}
    return template.replace(
        co_name=declared.co_name,
        co_qualname=declared.co_qualname,
        co_filename=declared.co_filename,
        co_firstlineno=declared.co_firstlineno,
        co_names=tuple(names.get(name, name) for name in template.co_names),
        co_varnames=tuple(local.get(name, name) for name in template.co_varnames),
        co_consts=tuple(_constant(const, spec, local) for const in template.co_consts),
    )


def _constant(const: Any, spec: OpSpec, local: dict[str, str]) -> Any:
    if const == _OP_NAME:
        return spec.name
    # Keyword names are in co_consts: as one tuple, or as single strings after *args.
    if isinstance(const, str):
        return local.get(const, const)
    if isinstance(const, tuple):
        return tuple(local.get(item, item) for item in const)
    return const


def slow(backend: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """Converts what is not native yet, calls the backend's op and translates its errors."""
    for argument in arguments:
        if isinstance(argument, TensorProxy):
            return argument.run(backend, name, arguments)
    spec = OPS[name]
    try:
        positional, keywords = _converted(backend, spec.parameters, arguments)
        arguments = (*positional, *keywords.values())
        return backend.wrap(backend.implementation(spec)(*positional, **keywords))
    except Exception as error:
        traced = getattr(error, "traced", None)
        if traced is not None:  # inside a list
            return traced.run(backend, name, arguments)
        if spec.takes_callable:
            judge(backend, name, error, arguments)
        through = passing(error)
        if through is error:
            raise
        if through is not None:
            raise through from through.__cause__
        typed = backend.translate(name, error, arguments)
        if typed is error:
            raise
        raise typed from error


def judge(backend: Any, name: str, error: Exception, arguments: tuple[Any, ...]) -> NoReturn:
    """Raises what an op that calls the caller's functions raised: what is theirs as it is, its own translated."""
    if isinstance(error, EmberError) or is_callers(error, backend) or passing(error) is error:
        raise error
    typed = backend.translate(name, error, arguments)
    raise typed from (None if typed is error else error)


def rescue(backend: Any, name: str, error: Exception, arguments: tuple[Any, ...]) -> Any:
    """Answers a failed native call: with the backend's full implementation if that one was a shortcut, else typed.

    A call whose flags are not Python's own booleans is tried again too, for `slow` makes them so.
    """
    through = passing(error)
    if through is not None:
        raise through
    met = (getattr(error, "traced", None), *arguments)
    traced = next((x for x in met if isinstance(x, TensorProxy)), None)
    if traced is not None:  # where a tensor may stand but is not looked for, or in a list
        return traced.run(backend, name, arguments)
    spec = OPS[name]
    if not isinstance(error, EmberError) and (
        hasattr(backend.implementation(spec), "__fast__")
        or any(backend.option(x) is not x for x in arguments)
        or any(_is_odd_flag(p, x) for p, x in zip(spec.parameters, arguments, strict=False))
    ):
        return slow(backend, name, arguments)
    typed = backend.translate(name, error, arguments)
    raise typed from (None if typed is error else error)


def _converted(
    backend: Any, parameters: Sequence[OpParameter], arguments: tuple[Any, ...]
) -> tuple[list[Any], dict[str, Any]]:
    rest = len(arguments) - len(parameters) + 1
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    operands: list[int] = []
    taken = 0
    named = {p.name: x for p, x in zip(parameters, arguments, strict=False)}
    dtype = named.get("dtype")
    if named.get("copy") is False and any(p.name == "copy" and p.optional for p in parameters):
        backend.shared(arguments[0])  # None would let it copy, so False refuses
    for parameter in parameters:
        width = rest if parameter.variadic else 1
        for value in arguments[taken : taken + width]:
            if parameter.role == "Operand":
                operands.append(len(positional))
            converted = _convert(backend, parameter, value, dtype)
            if parameter.keyword_only:
                keywords[parameter.name] = converted
            else:
                positional.append(converted)
        taken += width
    alone = operands[:1] == [0] and not any(parameter.role in ("TensorLike", "Tensors") for parameter in parameters)
    if alone and all(isinstance(positional[i], _NUMBERS) for i in operands):
        positional[operands[0]] = backend.convert(positional[operands[0]])
    return positional, keywords


def _convert(backend: Any, parameter: OpParameter, value: Any, dtype: Any) -> Any:
    role = parameter.role
    if value is None and parameter.optional:
        return None
    if role == "TensorLike":
        return backend.convert(value, dtype) if parameter.cast and dtype is not None else backend.convert(value)
    if role == "Operand":
        return value if type(value) in _NUMBERS or type(value) is bool else backend.convert(value)
    if role == "Tensors":
        return backend.as_tensors(value)
    if role == "DTypeLike":
        return backend.dtypes[value]
    value = backend.option(value)
    return _flag(parameter, value) if _is_odd_flag(parameter, value) else value


def _is_odd_flag(parameter: OpParameter, value: Any) -> bool:
    return parameter.annotation == "bool" and value.__class__ is not bool


def _flag(parameter: OpParameter, value: Any) -> bool:
    """Returns an integer, or a boolean tensor without axes, as a Python boolean.

    Raises:
        ArgumentTypeError: if it is anything else.
    """
    if isinstance(value, int) or getattr(value, "shape", None) == ():
        return bool(value)
    raise ArgumentTypeError(f"{parameter.name} is True or False, not {value!r:.60}")


op_globals.publish(slow=slow, rescue=rescue, judge=judge)
