"""The functions of the ops where an op's code object is exchanged: all that depends on CPython's code objects.

Compiling the source of each op would cost 0.3 ms. So one template for each shape of signature is compiled, and
`CodeType.replace` puts the names, file and line of the declaration into it, which costs 10 µs.

CPython changes what a code object holds from one version to the next, and without the global interpreter lock another
thread may run an op whose code is just being exchanged. `choose_dispatch` therefore answers "portable" wherever the
exchange is not tested, and the module `portable` makes the functions.

Ops become direct one by one, at their first call, because compiling all of them at import cost 25 ms. On PyTorch all
become direct before `torch.compile` may meet one, because it cannot trace a first call. A new version of CPython needs
`EMBERHARMONY_DISPATCH=swap` and the tests to pass, and then a higher `NEWEST`.
"""

import os
import sys
from types import CodeType, FunctionType
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.code_flags import VARIADIC
from emberharmony.core.errors import ArgumentError
from emberharmony.core.op_code.op_source import (
    OP_NAME,
    UNCALLED_SOURCE,
    compiled_source,
    guarded_source,
    looked_up_source,
    native_names,
    parameter_names,
    role_free_shape,
    source_arguments,
)
from emberharmony.core.registry import OpSpec

ENVIRONMENT = "EMBERHARMONY_DISPATCH"
SWAP, PORTABLE = "swap", "portable"
OLDEST, NEWEST = (3, 11), (3, 13)
"""The versions of CPython on which the tests run with exchanged codes."""


def choose_dispatch() -> tuple[str, str]:
    """Returns which dispatch runs in this process, "swap" or "portable", and the reason in words.

    The environment variable EMBERHARMONY_DISPATCH forces one of the two.

    Raises:
        ArgumentError: if the variable has another value.
    """
    environment_choice = os.environ.get(ENVIRONMENT)
    if environment_choice:
        if environment_choice not in (SWAP, PORTABLE):
            raise ArgumentError(
                f"{ENVIRONMENT} is {environment_choice!r}; expected {SWAP!r} or {PORTABLE!r}, or leave it unset"
            )
        return environment_choice, f"{ENVIRONMENT} is set"
    implementation_name, version = sys.implementation.name, sys.version_info[:2]
    versions_text = f"CPython {_version_text(OLDEST)} to {_version_text(NEWEST)}"
    if implementation_name != "cpython":
        return PORTABLE, f"the interpreter is {implementation_name}, and exchanged codes are tested on {versions_text}"
    # Python's guide to free threading names this text of sys.version. sysconfig says the same, at some ms of import.
    if "free-threading" in sys.version or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return PORTABLE, "Python is built without the global interpreter lock, which the exchange of codes needs"
    if not OLDEST <= version <= NEWEST:
        return PORTABLE, f"Python is {_version_text(version)}, and exchanged codes are tested on {versions_text}"
    return SWAP, f"Python is {_version_text(version)}, and exchanged codes are tested on {versions_text}"


def _version_text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def op_before_first_call(spec: OpSpec) -> FunctionType:
    """Returns an op as it is before its first call: it reports unknown keywords; its code may be exchanged."""
    if UNCALLED_SOURCE not in _TEMPLATES:
        _TEMPLATES[UNCALLED_SOURCE] = _compile(UNCALLED_SOURCE)
    declared_code = spec.declared.__code__
    code = _TEMPLATES[UNCALLED_SOURCE].replace(
        co_name=declared_code.co_name,
        co_qualname=declared_code.co_qualname,
        co_filename=declared_code.co_filename,
        co_firstlineno=declared_code.co_firstlineno,
        co_names=("uncalled", spec.name),
    )
    uncalled_op = _function_of_code(code, spec)
    uncalled_op.__wrapped__ = spec.declared  # type: ignore[attr-defined]  # `inspect.signature` reads the signature there
    return uncalled_op


def looked_up_op(spec: OpSpec) -> FunctionType:
    """Returns an op that asks at each call which backend is active; its code may be exchanged."""
    signature_shape = role_free_shape(spec)
    if signature_shape not in _TEMPLATES:
        _TEMPLATES[signature_shape] = _compile(looked_up_source(signature_shape))
    template, declared_code = _TEMPLATES[signature_shape], spec.declared.__code__
    if declared_code.co_kwonlyargcount:
        code = _with_declared_names(template, spec, {"native_op": spec.name})
    else:  # what `_with_declared_names` would do, at a fifth of its cost, which the import pays for every op
        code = template.replace(
            co_name=declared_code.co_name,
            co_qualname=declared_code.co_qualname,
            co_filename=declared_code.co_filename,
            co_firstlineno=declared_code.co_firstlineno,
            co_names=("active", spec.name),
            co_varnames=declared_code.co_varnames[
                : declared_code.co_argcount + bool(declared_code.co_flags & VARIADIC)
            ],
        )
    return _function_of_code(code, spec)


def compile_op(spec: OpSpec, backend: Any) -> FunctionType:
    """Returns a function compiled from an op for one backend; its code object may replace that of the op."""
    variant = source_arguments(spec, backend)
    if variant not in _TEMPLATES:
        _TEMPLATES[variant] = _compile(compiled_source(*variant))
    return _function_of_code(_with_declared_names(_TEMPLATES[variant], spec, native_names(spec, backend)), spec)


def guarded_code(spec: OpSpec, backend: Any) -> CodeType:
    """Returns the code of an op that is compiled for a backend and looks up an override first, if there is one."""
    signature_shape, *_ = variant = source_arguments(spec, backend)
    template_key = "guarded", variant
    if template_key not in _TEMPLATES:
        _TEMPLATES[template_key] = _compile(guarded_source(signature_shape, compiled_source(*variant)))
    return _with_declared_names(_TEMPLATES[template_key], spec, native_names(spec, backend))


def _function_of_code(code: CodeType, spec: OpSpec) -> FunctionType:
    new_function = FunctionType(code, op_globals.__dict__, spec.name, spec.declared.__defaults__)
    new_function.__kwdefaults__ = spec.declared.__kwdefaults__
    return new_function


_TEMPLATES: dict[Any, CodeType] = {}


def _compile(source: str) -> CodeType:
    namespace: dict[str, Any] = {}
    exec(
        source, namespace
    )  # `compile` would make the classes of syntax trees first, which takes 9 million instructions
    template_code: CodeType = namespace["template"].__code__
    return template_code.replace(
        co_filename="<dispatch>", co_linetable=_one_line_table(len(template_code.co_code) // 2)
    )


_NEW_ENTRY, _NO_COLUMNS = 0x80, 13
"""The bit that begins an entry of a location table, and the kind of an entry that gives a line and no columns."""


def _one_line_table(units: int) -> bytes:
    """Returns a location table that puts every instruction on the line of `def`, one below `@op`.

    Source: CPython, Objects/locations.md: entries of kind 13 (no column) cover up to 8 code units each, after which
    comes the difference to the line before.
    """
    location_table = bytearray()
    line_delta = 2  # the difference 1 as a signed varint
    while units > 0:
        unit_count = min(units, 8)
        location_table += bytes((_NEW_ENTRY | _NO_COLUMNS << 3 | unit_count - 1, line_delta))
        units, line_delta = units - unit_count, 0
    return bytes(location_table)


def _with_declared_names(template: CodeType, spec: OpSpec, names: dict[str, str]) -> CodeType:
    """Returns the template with the names, file and line of the declaration."""
    declared_code = spec.declared.__code__
    name_by_placeholder = {f"p{i}": name for i, name in enumerate(parameter_names(spec))}
    return template.replace(
        co_name=declared_code.co_name,
        co_qualname=declared_code.co_qualname,
        co_filename=declared_code.co_filename,
        co_firstlineno=declared_code.co_firstlineno,
        co_names=tuple(names.get(name, name) for name in template.co_names),
        co_varnames=tuple(name_by_placeholder.get(name, name) for name in template.co_varnames),
        co_consts=tuple(_filled_constant(const, spec, name_by_placeholder) for const in template.co_consts),
    )


def _filled_constant(const: Any, spec: OpSpec, local: dict[str, str]) -> Any:
    if const == OP_NAME:
        return spec.name
    # Keyword names are in co_consts: as one tuple, or as single strings after *args.
    if isinstance(const, str):
        return local.get(const, const)
    if isinstance(const, tuple):
        return tuple(local.get(item, item) for item in const)
    return const
