"""Writes the source of the functions of a namespace, each when it is first asked for: see `xp.operators`.

A function puts tensors in the places of the arrays among its arguments, calls the op compiled for the backend, and puts
the result into a new array. Functions of one or two arrays alone, element by element, begin with the native function.
"""

import inspect
from collections.abc import Callable
from typing import Any

from emberharmony.core import selection
from emberharmony.core.registry import EMPTY, OpParameter, OpSpec
from emberharmony.xp.operators import (
    define_functions,
    fast_call,
    fast_condition_of,
    join_line,
    keep_lines,
    native_keep_lines,
    wrap_lines,
)
from emberharmony.xp.standard import Passed, signature_of

_RESULTS = {
    "Tensor": "r = @Array(); r._v = v; r._links = None; return r",
    "DType": "return @dtype(v)",
    "FloatInfo": "return v._replace(dtype=@dtype(v.dtype))",
    "IntegerInfo": "return v._replace(dtype=@dtype(v.dtype))",
}
_PLAIN_RESULTS = ("bool", "int", "None", "str", "tuple[int, ...]", "HostArray", "list[str]", "dict[str, int]")
_PLAIN_PARAMETERS = ("bool", "bool | None", "str", "str | None", "DeviceLike", "DeviceLike | None")


def array_function(kit: Any, spec: OpSpec, part: str = "", name: str = "", strict: bool = True) -> Callable[..., Any]:
    """Returns the function of an op for the arrays of a backend.

    Args:
        part: the namespace that it belongs to, such as "linalg".
        name: its name there; by default that of the op.
        strict: whether parameters are passed as the standard says; else as the op declares them.
    """
    name = name or spec.name
    standard_signature = signature_of(part, name) if strict else None
    parameters = (
        _in_standard_order(spec, standard_signature)
        if standard_signature
        else [(p, p.name, _parameter_kind(p)) for p in spec.parameters]
    )
    kit.publish(spec.name)
    default_by_name = {f"_default_{p.name}": p.default for p in spec.parameters if p.default is not EMPTY}
    defined_function: Callable[..., Any] = define_functions(
        kit, _function_source(kit, spec, parameters, strict, name), **default_by_name
    )[name]
    defined_function.__doc__, defined_function.__module__ = (
        spec.function.__doc__,
        f"{kit.module}.{part}" if part else kit.module,
    )
    return defined_function


def _parameter_kind(parameter: OpParameter) -> int:
    parameter_class = inspect.Parameter
    if parameter.variadic:
        return parameter_class.VAR_POSITIONAL
    return parameter_class.KEYWORD_ONLY if parameter.keyword_only else parameter_class.POSITIONAL_OR_KEYWORD


def _in_standard_order(spec: OpSpec, signature: tuple[Passed, ...]) -> list[tuple[OpParameter, str, int]]:
    """Returns the parameters of an op in the standard's order, each with its name there and its kind of passing."""
    parameter_by_name = {p.name: p for p in spec.parameters}
    standard_parameters = [
        (parameter_by_name.get(each.name, spec.parameters[i]), each.name, each.kind) for i, each in enumerate(signature)
    ]
    taken_names = {p.name for p, _, _ in standard_parameters}
    remaining_parameters = [p for p in spec.parameters if p.name not in taken_names]
    return standard_parameters + [(p, p.name, inspect.Parameter.KEYWORD_ONLY) for p in remaining_parameters]


def _signature_source(parameters: list[tuple[OpParameter, str, int]]) -> str:
    parameter_class = inspect.Parameter
    declarations: list[str] = []
    previous_kind: int | None = None
    for parameter, name, parameter_kind in parameters:
        if previous_kind == parameter_class.POSITIONAL_ONLY and parameter_kind != previous_kind:
            declarations.append("/")
        if parameter_kind == parameter_class.KEYWORD_ONLY and previous_kind not in (
            parameter_kind,
            parameter_class.VAR_POSITIONAL,
        ):
            declarations.append("*")
        default_text = "" if parameter.default is EMPTY else f"=_default_{parameter.name}"
        declarations.append(f"*{name}" if parameter_kind == parameter_class.VAR_POSITIONAL else f"{name}{default_text}")
        previous_kind = parameter_kind
    return ", ".join([*declarations, "/"] if previous_kind == parameter_class.POSITIONAL_ONLY else declarations)


def _function_source(
    kit: Any, spec: OpSpec, parameters: list[tuple[OpParameter, str, int]], strict: bool, name: str
) -> str:
    may_be_view = spec.facts.view
    name_by_parameter = {p.name: name for p, name, _ in parameters}
    first_parameter = next((p for p in spec.parameters if p.is_tensor), None)
    lines, argument_expressions = _fast_path_lines(kit, spec, [name_by_parameter[p.name] for p in spec.parameters]), []
    for p in spec.parameters:
        lowered_expression = _argument_expression(p, name_by_parameter[p.name])
        if p is first_parameter or (may_be_view and not p.variadic):
            local_name = "_a" if p is first_parameter else f"_a_{p.name}"
            lines.append(f"{local_name} = {lowered_expression}")
            lowered_expression = local_name
        argument_expressions.append(
            f"*{lowered_expression}"
            if p.variadic
            else f"{p.name}={lowered_expression}"
            if p.keyword_only
            else lowered_expression
        )
    op_call = f"@_{spec.name}({', '.join(argument_expressions)})"
    if kit.backend.defines(spec) and not spec.takes_callable:
        lines.append(f"v = {op_call}")
    else:
        lines += [f"if @active($bound): v = {op_call}", "else:", f" with @Override($backend): v = {op_call}"]
    if spec.returns not in _PLAIN_RESULTS and "DType" not in spec.returns:
        lines += keep_lines(
            kit, [f"*{name_by_parameter[p.name]}" if p.variadic else name_by_parameter[p.name] for p in spec.parameters]
        )
    if not may_be_view:
        lines += _separation_lines(kit, spec, first_parameter is not None)
    if may_be_view and first_parameter is not None:
        arguments_text = ", ".join(["_p", *argument_expressions[1:]])
        first_name = name_by_parameter[first_parameter.name]
        lines.append(f"if {first_name}.__class__ is @Array:")
        lines.append(f" return @linked(v, {first_name}, _a, lambda _p: @_{spec.name}({arguments_text}))")
    # An op that user code calls directly may also import memory of others, as from_dlpack does.
    lines.append("return @lift_shared(v)" if may_be_view or not strict else _result_line(spec))
    body_source = "".join(f" {line}\n" for line in [join_line(kit), *lines])
    return f"def {name}({_signature_source(parameters)}):\n{body_source}"


def _fast_path_lines(kit: Any, spec: OpSpec, names: list[str]) -> list[str]:
    """Returns the lines that call the native function at once if all arguments are arrays; none for other ops.

    What computes a float or a boolean makes new memory. The others may return their argument, or a part of it.
    """
    tensor_flags = [p.is_tensor and not p.variadic and not p.optional for p in spec.parameters]
    if not spec.facts.elementwise or spec.facts.view or len(names) > 2 or not all(tensor_flags):
        return []
    tensor_names = ["_t", "_u"][: len(names)]
    fast_condition = fast_condition_of(kit, spec, tensor_names)
    if fast_condition is None or not kit.backend.defines(spec):
        return []
    is_always_new = spec.facts.gives in ("float", "bool")
    return_lines = [_RESULTS["Tensor"]]
    if not is_always_new:
        is_new_condition = " and ".join(f"v is not {value}" for value in tensor_names)
        view_condition = f" and not {kit.backend.view_test.format('v')}" if kit.backend.shares_memory else ""
        return_lines = [f"if {is_new_condition}{view_condition}: {_RESULTS['Tensor']}"]
    lines = [
        f"if {' and '.join(f'{name}.__class__ is @Array' for name in names)}:",
        " " + "; ".join(f"{value} = {name}._v" for value, name in zip(tensor_names, names, strict=True)),
        f" if {fast_condition}:",
        f"  try: v = {fast_call(kit, spec, tensor_names)}",
        "  except Exception: pass",
        "  else:",
    ]
    return lines + [
        f"   {line}" for line in [*wrap_lines(kit, spec), *native_keep_lines(kit, spec, names), *return_lines]
    ]


def _separation_lines(kit: Any, spec: OpSpec, has_tensor_parameter: bool) -> list[str]:
    """Returns the lines that copy or mark a result that is an argument itself, or shares memory with one.

    Args:
        has_tensor_parameter: whether there is a tensor among the arguments.
    """
    if spec.returns != "Tensor" or not kit.can_write:
        return []
    lines = ["if v is _a: v = @copy(v)"] if has_tensor_parameter else []
    if kit.backend.shares_memory:
        lines.append(f"if v.__class__ is @exact and {kit.backend.view_test.format('v')}: return @lift_shared(v)")
    return lines


def _argument_expression(parameter: OpParameter, name: str) -> str:
    """Returns the source of the expression that converts an argument of a function for the op."""
    if parameter.variadic:
        return f"@low({name})"
    if parameter.is_tensor:
        return f"{name}._v if {name}.__class__ is @Array and {name}._v.__class__ is not @Stale else @low({name})"
    if parameter.annotation in _PLAIN_PARAMETERS:
        return name
    return f"{name} if {name}.__class__ in @OPTIONS else @low({name})"


def _result_line(spec: OpSpec) -> str:
    if spec.returns in _PLAIN_RESULTS:
        return "return v"
    return _RESULTS.get(spec.returns, "return @lift(v)")


def with_backend_active(kit: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs with the backend active."""
    bound, backend = kit.bound, kit.backend

    def run_with_backend(*args: Any, **kwargs: Any) -> Any:
        if selection.is_active(bound):
            return call(*args, **kwargs)
        with selection.Override(backend):
            return call(*args, **kwargs)

    return run_with_backend
