"""Writes the source of the operators and functions of a namespace: tests of the class and the call of the op, inlined.

A call of an operator through a shared function would cost as much again as the operator. So the operators of an array
class, and each function when it is first asked for, are made from texts.

There is a class for each backend: `x + y` tests the class of both operands, calls the op compiled for the backend and
puts the result into a new object without its constructor. A method that all classes share would look the op up.
"""

import inspect
from collections.abc import Callable
from typing import Any

from emberharmony.core import selection
from emberharmony.core.dtypes import DType
from emberharmony.core.registry import EMPTY, OpParameter, OpSpec
from emberharmony.xp.dtypes import Dtype
from emberharmony.xp.standard import Passed, signature_of

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
"""By the name of an operator, its op."""
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "bitwise_not"}

_OPERATOR = """
def __{name}__(self, other):
{guard}    if other.__class__ is _Array:
        r = _new(_Array); r._v = _op(self._v, other._v); r._links = None; return r
    if other.__class__ in _NUMBERS:
        r = _new(_Array); r._v = _op(self._v, other); r._links = None; return r
    return _odd(_op, self, other, False)
"""
_REFLECTED = """
def __r{name}__(self, other):
{guard}    if other.__class__ in _NUMBERS:
        r = _new(_Array); r._v = _op(other, self._v); r._links = None; return r
    return _odd(_op, self, other, True)
"""
_IN_PLACE = """
def __i{name}__(self, other):
{guard}    with _LOCK:
        if other.__class__ in _NUMBERS:
            v = _op(self._v, other)
            if self._links is None and v.dtype == self._v.dtype:
                self._v = v
                return self
        else:
            r = self.__{name}__(other)
            if r is NotImplemented: return r
            v = r._v
            if self._links is None and v.dtype == self._v.dtype and v.shape == self._v.shape:
                self._v = v
                return self
        _overwrite(self, v)
        return self
"""
_ONE = """
def __{name}__(self):
{guard}    r = _new(_Array); r._v = _op(self._v); r._links = None; return r
"""
_GET = """
def __getitem__(self, key):
{guard}    c = key.__class__
    if c is int or (
        c is slice
        and key.start.__class__ in _BOUNDS
        and key.stop.__class__ in _BOUNDS
        and key.step.__class__ in _BOUNDS
    ):
        r = _new(_Array)
{read}        r._v = v
        if c is slice or v.ndim: _link(r, self, key)
        else: {scalar}
        return r
    return _picked(self, key)
"""
_READ = """        if {native}:
            try: v = self._v[key]
            except Exception: v = _get(self._v, key)
        else: v = _get(self._v, key)
"""
"""How a library reads an index itself; the op takes what it refuses, and raises the typed error."""
_RESULTS = {
    "Tensor": "r = _new(_Array); r._v = v; r._links = None; return r",
    "DType": "return _dtype(v)",
    "FloatInfo": "return v._replace(dtype=_dtype(v.dtype))",
    "IntegerInfo": "return v._replace(dtype=_dtype(v.dtype))",
}
_PLAIN_RESULTS = ("bool", "int", "None", "str", "tuple[int, ...]", "HostArray", "list[str]", "dict[str, int]")
_PLAIN_PARAMETERS = ("bool", "bool | None", "str", "str | None", "DeviceLike", "DeviceLike | None")


def operators(kit: Any) -> dict[str, Callable[..., Any]]:
    """Returns the methods of the operators of the array class of a backend."""
    made: dict[str, Callable[..., Any]] = {}
    for name, op in BINARY.items():
        for text in (_OPERATOR, _REFLECTED, _IN_PLACE):
            made |= _method(kit, text, name, op)
    for name, op in _COMPARISONS.items():
        made |= _method(kit, _OPERATOR, name, op)
    for name, op in _UNARY.items():
        made |= _method(kit, _ONE, name, op)
    return made | _method(kit, _GET, "getitem", "get_item")


def _method(kit: Any, text: str, name: str, op: str) -> dict[str, Callable[..., Any]]:
    scalar = "_snapshot(r, self)" if kit.snapshots else "r._links = None"
    scope = dict(kit.scope, _op=getattr(kit.bound, op))
    before = set(scope)
    native = kit.backend.native_index
    read = _READ.format(native=native) if native else "        v = _get(self._v, key)\n"
    exec(text.format(name=name, guard=_join_line(kit, "    "), scalar=scalar, read=read), scope)
    methods = {method: scope[method] for method in scope.keys() - before - {"__builtins__"}}
    for method, function in methods.items():
        function.__qualname__, function.__module__ = f"Array.{method}", kit.module
    return methods


def _join_line(kit: Any, indent: str) -> str:
    """Returns the line by which a thread joins the work of the others, on backends that ask for it."""
    return f"{indent}if _thread() != _MAIN: _join()\n" if kit.backend.join_thread else ""


def function(kit: Any, spec: OpSpec, part: str = "", name: str = "", strict: bool = True) -> Callable[..., Any]:
    """Returns the function of an op for the arrays of a backend.

    Args:
        part: the namespace that it belongs to, such as "linalg".
        name: its name there; by default that of the op.
        strict: whether parameters are passed as the standard says; else as the op declares them.
    """
    name = name or spec.name
    passed = signature_of(part, name) if strict else None
    parameters = _in_standard_order(spec, passed) if passed else [(p, p.name, _kind(p)) for p in spec.parameters]
    scope = dict(kit.scope, _call=kit.function(spec), _dtype=Dtype)
    scope |= {f"_default_{p.name}": p.default for p in spec.parameters if p.default is not EMPTY}
    text = _text(kit, spec, parameters, strict).format(name=name)
    exec(text, scope)
    made: Callable[..., Any] = scope[name]
    made.__doc__, made.__module__ = spec.declared.__doc__, f"{kit.module}.{part}" if part else kit.module
    return made


def _kind(parameter: OpParameter) -> int:
    kinds = inspect.Parameter
    if parameter.variadic:
        return kinds.VAR_POSITIONAL
    return kinds.KEYWORD_ONLY if parameter.keyword_only else kinds.POSITIONAL_OR_KEYWORD


def _in_standard_order(spec: OpSpec, passed: tuple[Passed, ...]) -> list[tuple[OpParameter, str, int]]:
    """Returns the parameters of an op in the order of the standard, with their names there and how they are passed."""
    named = {p.name: p for p in spec.parameters}
    ordered = [(named.get(each.name, spec.parameters[i]), each.name, each.kind) for i, each in enumerate(passed)]
    taken = {p.name for p, _, _ in ordered}
    rest = [p for p in spec.parameters if p.name not in taken]
    return ordered + [(p, p.name, inspect.Parameter.KEYWORD_ONLY) for p in rest]


def _signature(parameters: list[tuple[OpParameter, str, int]]) -> str:
    kinds = inspect.Parameter
    parts: list[str] = []
    before: int | None = None
    for parameter, name, kind in parameters:
        if before == kinds.POSITIONAL_ONLY and kind != before:
            parts.append("/")
        if kind == kinds.KEYWORD_ONLY and before not in (kind, kinds.VAR_POSITIONAL):
            parts.append("*")
        default = "" if parameter.default is EMPTY else f"=_default_{parameter.name}"
        parts.append(f"*{name}" if kind == kinds.VAR_POSITIONAL else f"{name}{default}")
        before = kind
    return ", ".join([*parts, "/"] if before == kinds.POSITIONAL_ONLY else parts)


def _text(kit: Any, spec: OpSpec, parameters: list[tuple[OpParameter, str, int]], strict: bool) -> str:
    views = spec.facts.view
    names = {p.name: name for p, name, _ in parameters}
    first = next((p for p in spec.parameters if p.is_tensor), None)
    lines, given = [], []
    for p in spec.parameters:
        lowered = _argument_expression(p, names[p.name])
        if p is first or (views and not p.variadic):
            local = "_a" if p is first else f"_a_{p.name}"
            lines.append(f"{local} = {lowered}")
            lowered = local
        given.append(f"*{lowered}" if p.variadic else f"{p.name}={lowered}" if p.keyword_only else lowered)
    call = f"_call({', '.join(given)})"
    if kit.backend.defines(spec) and not spec.takes_callable:
        lines.append(f"v = {call}")
    else:
        lines += [f"if _active(_bound): v = {call}", "else:", f" with _Override(_backend): v = {call}"]
    if not views:
        lines += _kept_apart(kit, spec, first is not None)
    if views and first is not None:
        rest = ", ".join(["_p", *given[1:]])
        lines.append(f"if {names[first.name]}.__class__ is _Array:")
        lines.append(f" return _linked(v, {names[first.name]}, lambda _p: _call({rest}))")
    # An op that a program calls by itself may also import memory, as from_dlpack does.
    lines.append("return _lift_shared(v)" if views or not strict else _result(spec))
    body = "".join(f" {line}\n" for line in lines)
    return f"def {{name}}({_signature(parameters)}):\n{_join_line(kit, ' ')}{body}"


def _kept_apart(kit: Any, spec: OpSpec, given: bool) -> list[str]:
    """Returns the lines for a result which is an argument itself, or may lie in the memory of one.

    Args:
        given: whether there is a tensor among the arguments.
    """
    if spec.returns != "Tensor" or not kit.writes:
        return []
    lines = ["if v is _a: v = _copy(v)"] if given else []
    if kit.backend.shares_memory:
        lines.append(f"if v.__class__ is _native and {kit.backend.view_test.format('v')}: return _lift_shared(v)")
    return lines


def _argument_expression(parameter: OpParameter, name: str) -> str:
    """Returns the expression of an argument for the op."""
    if parameter.variadic:
        return f"_low({name})"
    if parameter.is_tensor:
        return f"{name}._v if {name}.__class__ is _Array and {name}._v.__class__ is not _Stale else _low({name})"
    if parameter.annotation in _PLAIN_PARAMETERS:
        return name
    return f"{name} if {name}.__class__ in _OPTIONS else _low({name})"


def _result(spec: OpSpec) -> str:
    if spec.returns in _PLAIN_RESULTS:
        return "return v"
    return _RESULTS.get(spec.returns, "return _lift(v)")


def with_backend_active(kit: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs with the backend active."""
    bound, backend = kit.bound, kit.backend

    def run(*args: Any, **kwargs: Any) -> Any:
        if selection.is_active(bound):
            return call(*args, **kwargs)
        with selection.Override(backend):
            return call(*args, **kwargs)

    return run


def is_dtype(value: Any) -> bool:
    """Returns whether a public object of `ops` is a dtype."""
    return isinstance(value, DType)
