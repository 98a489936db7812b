"""Writes the source of the operators of an array class: tests of the classes, and the native function, inlined.

A call of an operator through a shared function would cost as much again as the operator. So the operators are made from
texts, for each backend. `x + y` on NumPy:

    def __add__(self, other):
        if other.__class__ is numpy_xp_Array:
            a, b = self._v, other._v
            if a.__class__ is numpy_xp_type and b.__class__ is numpy_xp_exact and a.dtype is b.dtype:
                try: v = numpy_add(a, b)
                except Exception: v = numpy_xp__add(a, b)
                if v.__class__ is not numpy_xp_exact: v = numpy_wrap(v)
            else: v = numpy_xp__add(a, b)
            r = numpy_xp_Array(); r._v = v; r._links = None; return r
        ...

The condition is that of the fast path of the op (`core.op_code.op_source`), and the names are globals that all ops
share (`core.op_globals`). `numpy_xp__add` is the op; it takes what the condition leaves out, and raises the typed
error. While ops are observed `numpy_xp_type` is None and `numpy_xp__add` tells the watchers, so nothing is tested at
other times. The class has no constructor, since one in Python would take as long as a small op.
"""

import os
import re
import textwrap
from collections.abc import Callable
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.op_code.op_source import NEVER_SCALARS, fast_of
from emberharmony.core.registry import OpSpec

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
"""A dict from the names of Python's binary operators to the ops that compute them."""
_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_UNARY = {"neg": "negative", "abs": "absolute", "invert": "bitwise_not"}

_FILE = os.path.join(os.path.dirname(__file__), "<arrays of {}>")
"""The name of the generated code in tracebacks: inside of the package, whose frames are not the user's lines."""
_RESULT = "r = @Array(); r._v = v; r._links = None; return r"
_OPERATOR = f"""
def __(name)__(self, other):
    (guard)
    if other.__class__ is @Array:
        a = self._v; b = other._v
        (arrays)
        {_RESULT}
    if other.__class__ in @NUMBERS:
        a = self._v; b = other
        (number)
        {_RESULT}
    return @odd(@_(op), self, other, False)
"""
_REFLECTED = f"""
def __r(name)__(self, other):
    (guard)
    if other.__class__ in @NUMBERS:
        v = @_(op)(other, self._v)
        (kept)
        {_RESULT}
    return @odd(@_(op), self, other, True)
"""
_IN_PLACE = """
def __i(name)__(self, other):
    (guard)
    @acquire()
    try:
        a = self._v
        if other.__class__ is @Array:
            b = other._v
            (arrays)
        elif other.__class__ in @NUMBERS:
            b = other
            (number)
        else:
            r = @odd(@_(op), self, other, False)
            if r is NotImplemented: return r
            v = r._v
        @overwrite(self, v)
        return self
    finally: @release()
"""
_ONE = f"""
def __(name)__(self):
    (guard)
    a = self._v
    (one)
    {_RESULT}
"""
_GET = """
def __getitem__(self, key):
    (guard)
    c = key.__class__
    if c is int or (
        c is slice
        and ((n := key.start).__class__ is int or n is None)
        and ((n := key.stop).__class__ is int or n is None)
        and ((n := key.step) is None or n.__class__ is int)
    ):
        a = self._v
        (read)
        r = @Array(); r._v = v
        (element)
        links = self._links
        if n and links.__class__ is @Links and links.parent is None:
            r._links = self, key
            links.views.append(@ref(r))
            if len(links.views) > links.most_views: @forget(links)
            if self._v is not a: @outdate(r)
        else: @link(r, self, key, a)
        return r
    return @picked(self, key)
"""
_SET = """
def __setitem__(self, key, given):
    (guard)
    @acquire()
    try:
        a = self._v
        c = key.__class__
        if self._links is None and a.__class__ is @type and (c is int or c is slice):
            b = given._v if given.__class__ is @Array else given
            if (
                b.__class__ is @exact and b.dtype is a.dtype and @may_write(a, b)
                or b.__class__ is float and @kinds[a.dtype] == "float" and @may_write(a)
            ):
                try: a[key] = b; return
                except Exception: pass
        @write(self, key, given)
    finally: @release()
"""
"""The template of `__setitem__`: writes into unshared memory fast, and leaves all else to `Memory.write`."""
_SET_ANEW = """
def __setitem__(self, key, given):
    (guard)
    @acquire()
    try:
        a = self._v
        c = key.__class__
        if (
            self._links is None and a.__class__ is @type and (c is int or c is slice or c is tuple)
            and @is_basic_key(key, a.shape) and (c is not tuple or None not in key)
        ):
            b = given._v if given.__class__ is @Array else given
            if (
                b.__class__ is @exact and b.dtype == a.dtype and @may_write(a, b)
                or b.__class__ is float and @kinds[a.dtype] == "float" and @may_write(a)
            ):
                try: self._v = @write_into(a, key, b); return
                except Exception: pass
        @write(self, key, given)
    finally: @release()
"""
"""The template of `__setitem__` for libraries whose write returns a new tensor with the old one's memory."""
_READ = """
try:
    n = a.__class__ is @type and ({})
    v = a[key] if n else @_get_item(a, key)
except Exception: v = @_get_item(a, key); n = False
"""
"""The template that reads a key by the library's own indexing; the op handles keys that the library refuses."""

_ELEMENT = "if c is int and (scalar)not v.ndim: r._v = (wrapped); r._links = None; return r"
"""The template that returns an element, for libraries whose elements have memory of their own."""


def operators(kit: Any) -> dict[str, Callable[..., Any]]:
    """Returns the methods of the operators of the array class of a backend."""
    method_by_name: dict[str, Callable[..., Any]] = {}
    for name, op in BINARY.items():
        for template in (_OPERATOR, _REFLECTED, _IN_PLACE):
            method_by_name |= _operator_methods(kit, template, name, op)
    for name, op in _COMPARISONS.items():
        method_by_name |= _operator_methods(kit, _OPERATOR, name, op)
    for name, op in _UNARY.items():
        method_by_name |= _operator_methods(kit, _ONE, name, op)
    if kit.can_write:
        method_by_name |= _operator_methods(
            kit, _SET if kit.backend.shares_memory else _SET_ANEW, "setitem", "set_item"
        )
    return method_by_name | _operator_methods(kit, _GET, "getitem", "get_item")


def _operator_methods(kit: Any, template: str, name: str, op: str) -> dict[str, Callable[..., Any]]:
    spec, index_condition, returns_scalars = kit.publish(op), kit.backend.native_index, kit.backend.wraps
    text_by_placeholder = {
        "guard": join_line(kit),
        "kept": "".join(keep_lines(kit, ["self"])),
        "name": name,
        "op": op,
        "read": _READ.format(index_condition)
        if index_condition
        else "v = @_get_item(a, key); n = a.__class__ is @exact",
        "element": "" if kit.backend.scalars_share_memory else _ELEMENT,
        "scalar": "v.__class__ is not @exact and " if returns_scalars else "",
        "wrapped": "$wrap(v)" if returns_scalars else "v",
    }
    if template not in (_GET, _SET, _SET_ANEW):
        text_by_placeholder["one"] = native_call(kit, spec, ["a"])
        for operand_kind, is_number in (("arrays", False), ("number", True)):
            memory_lines = _own_memory_lines(kit, spec, is_number) if template is _IN_PLACE else []
            store_line = _store_line(kit, spec, is_number) if template is _IN_PLACE else ""
            text_by_placeholder[operand_kind] = native_call(kit, spec, ["a", "b"], is_number, memory_lines, store_line)
    return define_functions(kit, fill_text(template, text_by_placeholder))


def _store_line(kit: Any, spec: OpSpec, is_number: bool) -> str:
    """Returns the line of `x += y` that gives an array the native result, if nobody else has the memory of the array.

    Args:
        is_number: whether the other operand is a number of Python.
    """
    equality_operator = "is" if kit.ops.zeros(1).dtype is kit.ops.zeros(1).dtype else "=="
    conditions = ["self._links is None"]
    if is_number or spec.facts.gives or "dtype is {1}." not in fast_of(spec, kit.backend).when:
        conditions.append(f"v.dtype {equality_operator} a.dtype")
    conditions += [] if is_number else ["v.shape == a.shape"]
    return f"if {' and '.join(conditions)}: self._v = v; return self"


def _own_memory_lines(kit: Any, spec: OpSpec, is_number: bool) -> list[str]:
    """Returns the lines of `x += y` that write into memory of the array alone, if the library has a function for it.

    What that refuses, such as another shape, the lines after these compute; it raises before it writes.

    Args:
        is_number: whether the other operand is a number of Python.
    """
    in_place_function = kit.backend.in_place_form(fast_of(spec, kit.backend).native)
    if in_place_function is None:
        return []
    op_globals.publish(**{kit.global_name_of(f"into_{spec.name}"): in_place_function})
    conditions = [f"not {kit.backend.recorded_test.format(name)}" for name in "ab"[: 2 - is_number]]
    return [
        f"if self._links is None and {' and '.join(conditions)}:",
        f"    try: @into_{spec.name}(a, b); return self",
        "    except Exception: pass",
    ]


def native_call(
    kit: Any,
    spec: OpSpec,
    names: list[str],
    is_number: bool = False,
    first_lines: list[str] | tuple[()] = (),
    last_line: str = "",
) -> str:
    """Returns the lines that assign the result of an op to `v`, by the native function where that does the same.

    Args:
        names: the variables that hold the native tensors.
        is_number: whether the last of them holds a number of Python.
        first_lines: lines before the call of the native function.
        last_line: a line that follows it.
    """
    fallback_call = f"@_{spec.name}({', '.join(names)})"
    fast_condition = fast_condition_of(kit, spec, names, is_number)
    array_names = ["self", "other"][: len(names) - is_number]
    slow_lines = [f"v = {fallback_call}", *keep_lines(kit, array_names)]
    if fast_condition is None:
        return "\n".join(slow_lines)
    fast_lines = [*first_lines, f"try: v = {fast_call(kit, spec, names)}", f"except Exception: v = {fallback_call}"]
    fast_lines += [*wrap_lines(kit, spec), *native_keep_lines(kit, spec, array_names), last_line]
    return "\n".join(
        [
            f"if {fast_condition}:",
            *(f"    {line}" for line in fast_lines),
            "else:",
            *(f"    {line}" for line in slow_lines),
        ]
    )


def fast_call(kit: Any, spec: OpSpec, names: list[str]) -> str:
    """Returns the call of the native function of an op."""
    arguments_template = fast_of(spec, kit.backend).arguments
    return f"${spec.name}({arguments_template.format(*names) or ', '.join(names)})"


def wrap_lines(kit: Any, spec: OpSpec) -> list[str]:
    """Returns the lines that make a tensor of a native scalar, on a backend whose functions return such."""
    can_be_scalar = kit.backend.wraps and not fast_of(spec, kit.backend).arguments and spec.returns not in NEVER_SCALARS
    return ["if v.__class__ is not @exact: v = $wrap(v)"] if can_be_scalar else []


def fast_condition_of(kit: Any, spec: OpSpec, names: list[str], is_number: bool = False) -> str | None:
    """Returns the condition under which the native function does what an op does, for one or two operands.

    Args:
        names: the variables that hold native tensors, or what stands for one.
        is_number: whether the last of them holds a number of Python.

    Returns:
        None if the native function never does.
    """
    fast_form = fast_of(spec, kit.backend)
    if len(spec.parameters) != len(names) or (is_number and not fast_form.weak):
        return None
    condition = re.sub(r"\bnative_(\w+)", r"$\1", (fast_form.weak if is_number else fast_form.when).format(*names))
    condition = re.sub(r"\bfloat32_default\b", "(float32_default and @unset)", condition)
    conditions = [f"{name}.__class__ is {'@type' if name is names[0] else '@exact'}" for name in names]
    if is_number:
        conditions[-1] = f"({condition})"
    elif fast_form.plain:
        conditions[-1] = f"{names[-1]}.__class__ is {kit.name_of_plain_type(fast_form.plain)}"
    elif condition:
        conditions.append(f"({condition})")
    return " and ".join(conditions)


def keep_lines(kit: Any, arguments: list[str]) -> list[str]:
    """Returns the lines by which arrays note that a transform, which traces a result, may keep their memory.

    Args:
        arguments: the arrays, or what may hold some.
    """
    conditions = ["v.__class__ is not @exact"]
    conditions += [kit.backend.recorded_test.format("v")] if kit.backend.recorded_test else []
    return [f"if {' or '.join(conditions)}: @keep({', '.join(arguments)})"] if kit.backend.shares_memory else []


def native_keep_lines(kit: Any, spec: OpSpec, arguments: list[str]) -> list[str]:
    """Returns the lines of `keep_lines` for a native result; none for booleans, which no library differentiates."""
    recorded_condition = kit.backend.recorded_test if spec.facts.gives != "bool" else ""
    return [f"if {recorded_condition.format('v')}: @keep({', '.join(arguments)})"] if recorded_condition else []


def join_line(kit: Any) -> str:
    """Returns the line that waits for the work of other threads, or an empty text if the backend needs none."""
    return "if @thread() != @MAIN: @join()" if kit.backend.join_thread else ""


def fill_text(text: str, text_by_placeholder: dict[str, str]) -> str:
    """Returns a template in which each `(name)` is replaced by its text, whose lines are indented alike."""
    for name, replacement in text_by_placeholder.items():
        for placeholder_line, indent in re.findall(rf"^(( *)\({name}\)\n)", text, re.MULTILINE):
            text = text.replace(placeholder_line, textwrap.indent(f"{replacement.strip()}\n", indent))
        text = text.replace(f"({name})", replacement)
    return text


def define_functions(kit: Any, text: str, **values: Any) -> dict[str, Callable[..., Any]]:
    """Returns the functions that a source text defines, in which `@name` and `$name` stand for prefixed globals.

    Args:
        values: what expressions of default values refer to.
    """
    prefix = kit.backend.prefix
    text = re.sub(r"\$(\w)", rf"{prefix}_\1", re.sub(r"@(\w)", rf"{prefix}_xp_\1", text))
    value_by_name: dict[str, Any] = dict(values)
    exec(compile(text, _FILE.format(kit.name), "exec"), vars(op_globals), value_by_name)
    return {name: function for name, function in value_by_name.items() if name not in values}
