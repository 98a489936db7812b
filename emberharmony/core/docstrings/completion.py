"""The description of each parameter: what the docstring says, else what a base class or a shared text says.

A declaration describes what is particular to it. What a parameter means wherever it occurs, as `keepdims`, is written
once (`texts`), and what an operand may be follows from the facts of the op. The default is added where no text says it.
"""

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from emberharmony.core.docstrings.texts import ALONE, BESIDE, GIVES, METHODS, NONE, SHARED, TAKES
from emberharmony.core.registry import EMPTY, OpParameter, OpSpec

_BLOCKS = {head: re.compile(rf"^{head}:\n((?:(?: .*)?(?:\n|\Z))*)", re.MULTILINE) for head in ("Args", "Attributes")}
_ENTRY = re.compile(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]+\))?: +(\S.*)")
_AFTER = re.compile(r"^(Returns|Yields|Raises|Examples?|See also|Source):", re.MULTILINE)
"""The blocks of a docstring that follow its `Args`."""

_SEE = re.compile(r"(?:see|those of) `([\w.]+)`\.")
_WIDTH = 120


def complete_docstring(owner: Any) -> str:
    """Returns the docstring of an op, function, class or method with a description of each parameter in `Args`."""
    text = inspect.cleandoc(raw_docstring(owner))
    attribute_names = argument_descriptions(text, "Attributes").keys() - {
        name for text in _docstrings(owner) for name in argument_descriptions(text)
    }
    description_by_name = {
        name: description for name, description in descriptions(owner).items() if name not in attribute_names
    }
    if not description_by_name:
        return text
    args_match = _BLOCKS["Args"].search(text)
    entries_text = "".join(f"{line}\n" for entry in description_by_name.items() for line in _entry_lines(*entry))
    if args_match is not None:
        tail = "\n" if args_match[1].endswith("\n\n") else ""
        return f"{text[: args_match.start()]}Args:\n{entries_text}{tail}{text[args_match.end() :]}".rstrip()
    next_section_match = _AFTER.search(text)
    args_position = len(text) if next_section_match is None else next_section_match.start()
    return f"{text[:args_position].rstrip()}\n\nArgs:\n{entries_text}\n{text[args_position:]}".rstrip()


def descriptions(owner: Any) -> dict[str, str]:
    """Returns the description of each parameter that has one, in the order of the signature."""
    dicts_of_descriptions = [argument_descriptions(text) for text in _docstrings(owner)]
    if isinstance(owner, type):
        dicts_of_descriptions.append(argument_descriptions(raw_docstring(owner), "Attributes"))
    descriptions_by_name = {}
    for parameter in parameters_of(owner):
        text = next((text[parameter.name] for text in dicts_of_descriptions if parameter.name in text), None)
        if text is None:
            text = (
                shared_description(owner, parameter)
                if isinstance(owner, OpSpec)
                else _description_for_methods(owner, parameter.name)
            )
        if text is not None:
            text = _referred_description(owner, parameter.name, text)
            descriptions_by_name[parameter.name] = f"{text}{_default_sentence(parameter, text)}"
    return descriptions_by_name


def shared_description(spec: OpSpec, parameter: OpParameter) -> str | None:
    """Returns the text on a parameter that several ops share, or one made of the op's facts; None without either."""
    for key in shared_keys(spec, parameter):
        if key in SHARED:
            return SHARED[key]
    operand_kinds = TAKES.get(spec.facts.takes)
    if operand_kinds is None or not spec.facts.elementwise or not parameter.is_tensor:
        return None
    names_text = " and ".join(f"`{p.name}`" for p in spec.parameters if p.is_tensor and p is not parameter)
    return f"{BESIDE.format(others=names_text) if names_text else ALONE} {operand_kinds}{GIVES[spec.facts.gives]}."


def _referred_description(owner: Any, parameter: str, text: str) -> str:
    """Returns the description that a text such as "see `Accuracy`" refers to; another text as it is."""
    reference_match = _SEE.fullmatch(text)
    if reference_match is None or isinstance(owner, OpSpec):
        return text
    first_name, *attribute_names = reference_match[1].split(".")
    owner_object = owner[0] if isinstance(owner, tuple) else owner
    referred_object = vars(sys.modules[owner_object.__module__]).get(first_name)
    for name in attribute_names:
        referred_object = getattr(referred_object, name, None)
    return descriptions(referred_object).get(parameter, text) if callable(referred_object) else text


def _description_for_methods(owner: Any, parameter: str) -> str | None:
    owner_names = (owner[1], owner[0].__name__) if isinstance(owner, tuple) else (owner.__name__,)
    method_keys = (*(f"{name}.{parameter}" for name in owner_names), parameter)
    return next((METHODS[key] for key in method_keys if key in METHODS), None)


def shared_keys(spec: OpSpec, parameter: OpParameter) -> Iterator[str]:
    """Yields the keys of `SHARED` that fit a parameter, the most particular one first."""
    typed_name = f"{parameter.name}: {parameter.annotation}"
    full_signature = typed_name if parameter.default is EMPTY else f"{typed_name} = {parameter.default!r}"
    for prefix in (f"{spec.category}.", ""):
        if any(p.name == "keepdims" for p in spec.parameters):
            yield f"{prefix}{full_signature}, keepdims"
        yield f"{prefix}{full_signature}"
        yield f"{prefix}{typed_name}"
        yield f"{prefix}{parameter.name}"


def parameters_of(owner: Any) -> tuple[OpParameter, ...]:
    """Returns the parameters of an op, function, class or method; those of a method without `self`."""
    if isinstance(owner, OpSpec):
        return owner.parameters
    is_method = isinstance(owner, tuple)
    definition = inspect.getattr_static(*owner) if is_method else owner
    function = getattr(definition, "__func__", definition)
    try:
        signature_parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a class whose constructor is not written in Python
        return ()
    if is_method and not isinstance(definition, staticmethod):
        del signature_parameters[:1]
    op_parameters = []
    for p in signature_parameters:
        is_variadic = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        default = EMPTY if p.default is p.empty else p.default
        is_keyword = p.kind is p.KEYWORD_ONLY
        op_parameters.append(OpParameter(p.name, p.annotation, default, keyword_only=is_keyword, variadic=is_variadic))
    return tuple(p for p in op_parameters if p.name[0] != "_")


def argument_descriptions(text: str, head: str = "Args") -> dict[str, str]:
    """Returns the descriptions below a heading of a docstring in Google style, such as `Args:`, by parameter name."""
    block_match = _BLOCKS[head].search(inspect.cleandoc(text))
    text_by_name: dict[str, str] = {}
    parameter_names: list[str] = []
    for line in block_match[1].splitlines() if block_match else ():
        entry_match = _ENTRY.fullmatch(line)
        if entry_match is not None:
            parameter_names = [name.strip("*") for name in entry_match[1].split(", ")]
            text_by_name |= dict.fromkeys(parameter_names, entry_match[2])
        elif line.strip() and parameter_names:
            text_by_name |= {name: f"{text_by_name[name]} {line.strip()}" for name in parameter_names}
    return text_by_name


def _docstrings(owner: Any) -> Iterator[str]:
    """Yields the docstrings that may describe the parameters, the nearest first."""
    yield raw_docstring(owner)
    if isinstance(owner, tuple):
        owner_class, method_name = owner
        yield from (
            _plain_text(vars(base)[method_name].__doc__)
            for base in owner_class.__mro__[1:]
            if method_name in vars(base)
        )
        if isinstance(vars(owner_class)[method_name], classmethod):  # another constructor
            yield from _docstrings(owner_class)
    elif isinstance(owner, type):
        yield _plain_text(vars(owner).get("__init__", owner).__doc__)
        function = getattr(owner, "function", None)  # a loss has the options of a function
        if inspect.isfunction(function):
            yield _plain_text(function.__doc__)
        yield from (_plain_text(base.__doc__) for base in owner.__mro__[1:-1])


def raw_docstring(owner: Any) -> str:
    """Returns the docstring of an op, function, class or method as it was written, without completion."""
    if isinstance(owner, OpSpec):
        return _plain_text(owner.declared.__doc__)
    return _plain_text(inspect.getattr_static(*owner).__doc__ if isinstance(owner, tuple) else owner.__doc__)


def _plain_text(text: str | None) -> str:
    return "" if text is None else str.__str__(text)


def _default_sentence(parameter: OpParameter, text: str) -> str:
    """Returns the sentence that states the default of a parameter; an empty string if its text says so already."""
    default = parameter.default
    if default is EMPTY or "default" in text or (default is None and "None" in text) or not _has_literal(default):
        return ""
    if default is None and parameter.name in NONE:
        return f" {NONE[parameter.name]}"
    return f" Default: {default!r}."


def _has_literal(value: Any) -> bool:
    """Returns whether a value is written as a literal: a number, a string, None, or a list or tuple of these."""
    if isinstance(value, (tuple, list)):
        return all(map(_has_literal, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def _entry_lines(name: str, text: str) -> Iterator[str]:
    """Yields the wrapped lines of an entry of `Args`: the name of a parameter, and its description."""
    line = f"    {name}:"
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH - 8:
            yield line
            line = f"        {word}"
        else:
            line += f" {word}"
    yield line
