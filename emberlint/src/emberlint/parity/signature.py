"""Signatures as written in the source, and whether a definition can be called as its declaration says."""

import ast
from typing import NamedTuple

POSITIONAL_ONLY, EITHER, VARIADIC, KEYWORD_ONLY, KEYWORDS = "positional-only", "plain", "*args", "keyword-only", "**kw"


class Parameter(NamedTuple):
    """One parameter: its name, how it is passed, and its default as source text, or None without a default."""

    name: str
    kind: str
    default: str | None = None


Signature = tuple[Parameter, ...]


def signature(arguments: ast.arguments, bound: bool = False) -> Signature:
    """Returns the signature of a function; `bound` omits the first parameter (self, cls)."""
    positional_arguments = [*arguments.posonlyargs, *arguments.args]
    required_count = len(positional_arguments) - len(arguments.defaults)
    parameters = [
        Parameter(
            argument.arg,
            POSITIONAL_ONLY if index < len(arguments.posonlyargs) else EITHER,
            _source_of_node(arguments.defaults[index - required_count]) if index >= required_count else None,
        )
        for index, argument in enumerate(positional_arguments)
    ]
    if bound:
        parameters = parameters[1:]
    if arguments.vararg:
        parameters.append(Parameter(arguments.vararg.arg, VARIADIC))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(Parameter(argument.arg, KEYWORD_ONLY, _source_of_node(default)))
    if arguments.kwarg:
        parameters.append(Parameter(arguments.kwarg.arg, KEYWORDS))
    return tuple(parameters)


def _source_of_node(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)


def signature_text(parameters: Signature) -> str:
    """Returns a signature as Python writes it, without annotations."""
    parameter_texts: list[str] = []
    for index, parameter in enumerate(parameters):
        previous_kind = parameters[index - 1].kind if index else ""
        if previous_kind == POSITIONAL_ONLY and parameter.kind != POSITIONAL_ONLY:
            parameter_texts.append("/")
        if parameter.kind == KEYWORD_ONLY and previous_kind not in (KEYWORD_ONLY, VARIADIC):
            parameter_texts.append("*")
        star_prefix = {VARIADIC: "*", KEYWORDS: "**"}.get(parameter.kind, "")
        parameter_texts.append(
            f"{star_prefix}{parameter.name}" + ("" if parameter.default is None else f"={parameter.default}")
        )
    if parameters and parameters[-1].kind == POSITIONAL_ONLY:
        parameter_texts.append("/")
    return f"({', '.join(parameter_texts)})"


def signature_difference(declared: Signature, defined: Signature) -> str | None:
    """Returns how `defined` differs from `declared`, or None if every declared call means the same to both.

    The names and order of positional parameters, the kinds and the defaults count. A definition may accept more than is
    declared: `*args` and `**kwargs` accept any argument, and a keyword-only parameter may be defined as a plain one.
    """
    if {parameter.kind for parameter in declared} == {VARIADIC, KEYWORDS}:
        return None  # passes all arguments on, so it declares nothing
    return (
        _difference_of_names(declared, defined)
        or _difference_of_kinds(declared, defined)
        or _difference_of_defaults(declared, defined)
    )


def _difference_of_names(declared: Signature, defined: Signature) -> str | None:
    declared_positional_names = [
        parameter.name for parameter in declared if parameter.kind in (POSITIONAL_ONLY, EITHER)
    ]
    positional_names = [parameter.name for parameter in defined if parameter.kind in (POSITIONAL_ONLY, EITHER)]
    parameter_kinds = {parameter.kind for parameter in defined}
    declared_names = {parameter.name for parameter in declared}
    accepted_names = {parameter.name for parameter in defined if parameter.kind not in (VARIADIC, KEYWORDS)}
    missing_names = [
        parameter.name
        for index, parameter in enumerate(declared)
        if parameter.name not in accepted_names
        and parameter.kind not in (VARIADIC, KEYWORDS)
        and not _is_taken(parameter, index, positional_names, parameter_kinds)
    ]
    extra_names = [
        parameter.name
        for parameter in defined
        if parameter.kind not in (VARIADIC, KEYWORDS) and parameter.name not in declared_names
    ]
    if missing_names and extra_names and len(missing_names) == len(extra_names):
        return "names differ: " + ", ".join(f"{b} for {a}" for a, b in zip(missing_names, extra_names, strict=True))
    if missing_names:
        return f"lacks {', '.join(missing_names)}"
    if extra_names:
        return f"adds {', '.join(extra_names)}"
    shared_names = [name for name in positional_names if name in declared_positional_names]
    if shared_names != [name for name in declared_positional_names if name in shared_names]:
        return "the order of the parameters differs"
    return None


def _is_taken(parameter: Parameter, index: int, own_names: list[str], kinds: set[str]) -> bool:
    """Returns whether a parameter that the definition does not name is accepted by its `*args` or `**kwargs`."""
    if parameter.kind == KEYWORD_ONLY:
        return KEYWORDS in kinds
    if parameter.kind == POSITIONAL_ONLY:
        return VARIADIC in kinds and index >= len(own_names)
    return VARIADIC in kinds and KEYWORDS in kinds and index >= len(own_names)


def _difference_of_kinds(declared: Signature, defined: Signature) -> str | None:
    kinds_by_name = {parameter.name: parameter.kind for parameter in defined}
    for declared_parameter in declared:
        parameter_kind = kinds_by_name.get(declared_parameter.name, declared_parameter.kind)
        if declared_parameter.kind == EITHER and parameter_kind in (POSITIONAL_ONLY, KEYWORD_ONLY):
            return f"{declared_parameter.name} is {parameter_kind}"
        if {declared_parameter.kind, parameter_kind} == {POSITIONAL_ONLY, KEYWORD_ONLY}:
            return f"{declared_parameter.name} is {parameter_kind}"
        if declared_parameter.kind in (VARIADIC, KEYWORDS) and declared_parameter.kind not in kinds_by_name.values():
            return f"lacks {declared_parameter.kind}"
    return None


def _difference_of_defaults(declared: Signature, defined: Signature) -> str | None:
    parameters_by_name = {parameter.name: parameter for parameter in defined}
    for declared_parameter in declared:
        defined_parameter = parameters_by_name.get(declared_parameter.name)
        if defined_parameter is None or defined_parameter.kind in (VARIADIC, KEYWORDS):
            continue
        if declared_parameter.default is None and defined_parameter.default is not None:
            return f"{declared_parameter.name} has a default, {defined_parameter.default}"
        if declared_parameter.default is not None and defined_parameter.default is None:
            return f"{declared_parameter.name} has no default"
        if (
            declared_parameter.default is not None
            and defined_parameter.default is not None
            and not _are_equal_defaults(declared_parameter.default, defined_parameter.default)
        ):
            return (
                f"{declared_parameter.name} is {defined_parameter.default} by default, not {declared_parameter.default}"
            )
    return None


def _are_equal_defaults(first: str, second: str) -> bool:
    """Returns whether two defaults are equal, as `0` and `0.0`, or have one name, as `float32` and `torch.float32`."""
    if first == second:
        return True
    try:
        return bool(ast.literal_eval(first) == ast.literal_eval(second))
    except ValueError:
        return first.rpartition(".")[2] == second.rpartition(".")[2]
