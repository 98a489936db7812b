"""Hints for errors that Python and the array libraries raise where a program uses what another library has.

The library does not see these calls, because it would have to look at each attribute and keyword. So the hint is found
when the error is shown.
"""

import dis
import inspect
import os
import re
import sys
from pickle import PickleError
from types import FrameType
from typing import Any

from emberharmony.core.display.raised import RAISED
from emberharmony.core.docstrings import completion
from emberharmony.core.errors import EmberError, suggest
from emberharmony.core.names import members, spellings
from emberharmony.core.registry import ALIASES, OPS

_NAME = __name__.partition(".")[0]
_CALL = re.compile(
    r"(?:(\w+)\.)?(\w+)\(\) (?:(got an unexpected keyword)|takes .* but|missing \d+ required|got multiple values)"
)
_WITHOUT_INIT = re.compile(r"(\w+)\(\) takes no arguments")
_OF_METHOD = re.compile(r"must be Tensor, not|invalid combination of arguments|takes at most|positional argument")
_KINDS = (TypeError, ValueError, RuntimeError, IndexError, KeyError, AssertionError, AttributeError, PickleError)
"""The classes of errors that Python and the libraries raise."""
_ATTRIBUTES = ("LOAD_METHOD", "LOAD_ATTR")
_UNCALLABLE = re.compile(r"'(\w+)' object is not callable")
_METHOD = re.compile(r"(\w+)\(\): incompatible function arguments")
_MOST = 24
"""How many members are listed at most."""
_NEAR = 0.6
"""How alike an attribute must be to be suggested; less alike ones are listed."""
_JOINED = {
    "axes": "several axes are one argument, as (0, 2, 1)",
    "shape": "several lengths are one argument, as (2, 3)",
    "xs": "several tensors are one argument, as [x1, x2]",
    "repeats": "several numbers are one argument, as (2, 1)",
    "batches": "arrays become batches first: nn.data.batches(x, y, batch_size=32)",
    "params": "the second argument is the model: ops.backward(lambda: loss_fn(model(x), y), model)",
}
"""By the last parameter that a function takes, what to do if there are more arguments."""
_WAY_OUT = re.compile(
    r"; |\n|: ops\.|\b(use|pass|expected|make|write|call|needs?|must be (a|an|one|at)|takes?|is given|see|set)\b"
    r"|\b(install|cast|give|pad (it|them))\b|did you mean"
)
"""What a message of ours has that says what to do."""
_HEAD = re.compile(r"(\w+)\(\)(?: on backend '\w+')?: ")
_PLACE = re.compile(r"\(in (?:.*, an? )?(\w+)\)$")
_SHAPE = re.compile(r"^Shape: (.*?)\.?$", re.MULTILINE)
_EXAMPLE = re.compile(r"^\s*>>> ((?!from|import).*\w\(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"'(\w+)'")
_IMPORT = re.compile(rf"cannot import name '(\w+)' from '{_NAME}\.?([\w.]*)'|No module named '{_NAME}\.([\w.]+)'")
_ATTRIBUTE = re.compile(r"'(?:[\w.]+\.)?(\w+)' object has no attribute '(\w+)'")


def hint_for(error: BaseException, frame: FrameType) -> str:
    """Returns a hint on how to mend what raised an error, or an empty string.

    Args:
        error: the error.
        frame: the innermost frame of the user's program; only if it has names of this library there are hints.
    """
    if isinstance(error, ImportError) and (match := _IMPORT.match(str(error))):
        namespace_name, _, module = f".{match[3]}".rpartition(".")
        return spellings.hint_for_name(match[1] or module, match[2] or namespace_name.lstrip(".")).removeprefix("; ")
    message = str(error)
    if isinstance(error, EmberError):
        return "" if _WAY_OUT.search(message) else _hint_from_docs(message)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return _hint_for_variable(error.name or "", frame)
    if not _uses_library(frame):
        return ""
    if hidden_module_hint := _hint_for_hidden_module(error, frame):
        return hidden_module_hint
    if isinstance(error, AttributeError):
        hint = _hint_for_attribute(error)
    elif isinstance(error, TypeError) and (match := _CALL.search(message)):
        hint = _hint_for_text(message, set()) or _hint_for_call(message, frame, match)
    elif isinstance(error, TypeError) and (match := _WITHOUT_INIT.fullmatch(message)):
        hint = f"{match[1]} makes its layers in a method def __init__(self, ...):, which takes its options"
    elif isinstance(error, TypeError) and (match := _UNCALLABLE.search(message)):
        is_tensor_class = match[1] in {kind.__name__ for kind in _tensor_types()}
        hint = "" if is_tensor_class else _hint_for_uncallable(_callable_named(frame, match[1]))
    elif isinstance(error, TypeError) and (match := _METHOD.match(message)) and not match[1].startswith("_"):
        hint = _hint_for_text(message, {match[1]}) or spellings.method_hint(match[1], "")
    else:
        hint = ""
    if not hint and _OF_METHOD.search(message):
        hint = _hint_for_method(frame)
    if hint or not isinstance(error, _KINDS):
        return hint
    return _hint_for_text(message, {*frame.f_code.co_names}) or _hint_for_method(frame)


def _hint_from_docs(text: str) -> str:
    """Returns the parameters, shapes and an example, from the docs, of the op or layer whose error has no advice."""
    op_match, layer_match = _HEAD.match(text), _PLACE.search(text)
    if layer_match is not None and layer_match[1] in spellings.public_names("nn"):
        namespace_name, name, callee = (
            "nn",
            layer_match[1],
            getattr(sys.modules[f"{_NAME}.nn"], layer_match[1]),
        )
    elif op_match is not None and op_match[1] in OPS:
        namespace_name, name, callee = "ops", op_match[1], OPS[op_match[1]]
    else:
        return ""
    parameter_names = [parameter.name for parameter in completion.parameters_of(callee)]
    documentation = (
        inspect.getdoc(callee if namespace_name == "nn" else getattr(sys.modules[f"{_NAME}.ops"], name)) or ""
    )
    shapes_match, example_match = _SHAPE.search(documentation), _EXAMPLE.search(documentation)
    mentioned_names = [name for name in parameter_names if re.search(rf"\b{name}\b", text)] or parameter_names[:2]
    sentences = [f"{namespace_name}.{name} takes {', '.join(parameter_names)}"] if parameter_names else []
    sentences += (
        [f"its shapes: {shapes_match[1]}"]
        if shapes_match
        else _parameter_meanings(callee, mentioned_names)
        if namespace_name == "ops"
        else []
    )
    return "; ".join([*sentences, *([f"for example {example_match[1]}"] if example_match else [])])


def _hint_for_hidden_module(error: BaseException, frame: FrameType) -> str:
    """Returns a hint if a variable or a file of the program hides a module of the same name, else an empty string."""
    for name in ("ops", "nn", "optim"):
        hiding_value = frame.f_locals.get(name, frame.f_globals.get(name))
        if (
            hiding_value is not None
            and name in frame.f_code.co_names
            and not (inspect.ismodule(hiding_value) or inspect.isclass(hiding_value))
        ):
            class_name = type(hiding_value).__name__
            return (
                f"{name} is the name of a {class_name} now: give that another one, and from {_NAME} import {name} again"
            )
    module_lacking_attribute = getattr(error, "obj", None) if isinstance(error, AttributeError) else None
    file = getattr(module_lacking_attribute, "__file__", None) if inspect.ismodule(module_lacking_attribute) else None
    if file and os.path.dirname(file) in (os.getcwd(), sys.path[0]):
        return f"{file} has the name of a library and hides it: rename the file"
    return ""


def _hint_for_variable(name: str, frame: FrameType) -> str:
    """Returns a hint for a name that a program has not defined: an attribute of self, or something to import."""
    owner = frame.f_locals.get("self")
    if owner is not None and hasattr(owner, name):
        return f"it is an attribute: self.{name}"
    uses_library = _uses_library(frame)
    if name in ("ops", "nn", "optim", "io", "Parameter", "Tensor") and (uses_library or _NAME in sys.modules):
        return f"from {_NAME} import {name}"
    if name == "F" and uses_library:
        return "functions are in ops, as ops.relu(x), and losses in nn.losses"
    if name == "np" and uses_library:
        return "import numpy as np"
    if name in ("model", "net", "optimizer", "criterion", "device") or not uses_library:
        return ""
    namespaces = [
        namespace_name
        for namespace_name in spellings.PUBLIC
        if namespace_name and name in spellings.public_names(namespace_name)
    ]
    return f"it is {namespaces[0]}.{name}" if namespaces else ""


def _hint_for_method(frame: FrameType) -> str:
    """Returns a hint with the op that replaces a failed method of a native tensor or function of another library."""
    instructions = [each for each in dis.get_instructions(frame.f_code) if each.offset <= frame.f_lasti]
    if not instructions[-1:] or not instructions[-1].opname.startswith("CALL"):
        return ""
    call_start = _start_position(instructions[-1])
    attribute_names = [
        str(each.argval) for each in instructions if each.opname in _ATTRIBUTES and _start_position(each) == call_start
    ]
    op = ALIASES.get(attribute_names[-1], attribute_names[-1]) if attribute_names else ""
    if op not in OPS:
        return spellings.method_hint(op, "") if op in spellings.NAMES or op in spellings.METHODS else ""
    parameters_text = ", ".join(parameter.name for parameter in OPS[op].parameters)
    return f"{attribute_names[-1]} of the libraries differs: use ops.{op}({parameters_text})"


def _start_position(instruction: Any) -> tuple[Any, Any]:
    """Returns the line and column at which the expression of a bytecode instruction begins."""
    return instruction.positions.lineno, instruction.positions.col_offset


def _hint_for_text(text: str, used: set[str]) -> str:
    """Returns the first hint of `RAISED` that fits the message of an error and the names that the program uses."""
    fitting_hints = (
        hint for pattern, names, hint in RAISED if re.search(pattern, text) and names_are_used(names, used)
    )
    return next(fitting_hints, "")


def names_are_used(names: str, used: set[str]) -> bool:
    """Returns whether a program uses one of the names in a space-separated text; True for an empty text."""
    return not names or not used.isdisjoint(names.split())


def _uses_library(frame: FrameType) -> bool:
    """Returns whether a program has a name of this library."""
    return any(_is_from_library(value) for value in [*frame.f_globals.values(), *frame.f_locals.values()])


def _is_from_library(value: Any) -> bool:
    module_name = getattr(value, "__name__", None) if inspect.ismodule(value) else getattr(value, "__module__", None)
    return isinstance(module_name, str) and module_name.partition(".")[0] == _NAME


def _hint_for_attribute(error: AttributeError) -> str:
    name, owner, class_names = error.name, error.obj, [cls.__name__ for cls in type(error.obj).__mro__]
    if name is None and (match := _ATTRIBUTE.fullmatch(str(error))):  # Python does not name it in an assignment
        name, owner, class_names = match[2], None, [match[1]]
    if not isinstance(name, str):
        return ""
    for class_name in class_names:
        if class_name in members.ATTRIBUTES and name in members.ATTRIBUTES[class_name]:
            return members.ATTRIBUTES[class_name][name]
    if _is_tensor(owner) or {*class_names} & {*(cls.__name__ for cls in _tensor_types()), "Parameter", "Buffer"}:
        if name == "backward":
            return f"{members.ATTRIBUTES['Module']['backward']}; the gradient by a tensor is ops.grad(fn)(x)"
        candidates = {*spellings.METHODS, *spellings.NAMES, *OPS, *ALIASES}
        if name in candidates or name.removesuffix("_") in candidates:
            return spellings.method_hint(name, "")
        if owner is None and class_names[0] in ("Parameter", "Buffer"):
            owner = getattr(sys.modules[_NAME], class_names[0])
        public_names = [] if owner is None else [attribute for attribute in dir(owner) if not attribute.startswith("_")]
        closest_hint = suggest(name, public_names, _NEAR).removeprefix("; ")
        return (
            closest_hint
            or spellings.counterpart_hint(name).removeprefix("; ")
            or "the functions of tensors are in ops, as ops.mean(x)"
        )
    if inspect.isroutine(owner) and not name.startswith("_"):
        owner_name = getattr(owner, "__name__", "it")
        return f"{owner_name} is a function: call it, as in {owner_name}()" + (
            f".{name}" if owner_name != "<lambda>" else ""
        )
    bases = [cls for cls in type(owner).__mro__ if _is_from_library(cls)]
    if not bases:
        return ""
    if name.startswith("_"):
        is_in_init = "__init__" in vars(type(owner)) and type(owner) is not bases[0] and bases[0].__name__ != "Module"
        return f"__init__ of a subclass of {bases[0].__name__} calls super().__init__(...) first" if is_in_init else ""
    return suggest_attribute(name, owner)


def suggest_attribute(name: str, owner: Any) -> str:
    """Returns the nearest attribute as a hint, or what there is if none is near.

    Args:
        name: the unknown attribute.
        owner: the object that lacks it.
    """
    closest_hint = suggest(name, [attribute for attribute in dir(owner) if not attribute.startswith("_")], _NEAR)
    return closest_hint.removeprefix("; ") or _members_text(owner)


def _hint_for_uncallable(kind: Any) -> str:
    """Returns a hint with what to call in place of an object, of a class of this library, that cannot be called."""
    class_names = [base.__name__ for base in getattr(kind, "__mro__", ())]
    advice_texts = [
        members.ATTRIBUTES[name]["__call__"] for name in class_names if "__call__" in members.ATTRIBUTES.get(name, {})
    ]
    return advice_texts[0] if advice_texts else _members_text(kind)


def _members_text(owner: Any) -> str:
    """Returns what an object of this library or a subclass has: its own attributes, or else its methods."""
    owner_class = owner if isinstance(owner, type) else type(owner)
    library_bases = [base for base in owner_class.__mro__ if _is_from_library(base)]
    if not library_bases or owner_class.__name__ in members.UNLISTED:
        return ""
    instance_names = (
        [attribute for attribute in getattr(owner, "__dict__", {}) if not attribute.startswith("_")]
        if owner is not owner_class
        else []
    )
    if owner_class is not library_bases[0]:  # a class of the user
        advice = (
            "assign them in __init__" if "__init__" in vars(owner_class) else "make them in a method named __init__"
        )
        return (
            f"{owner_class.__name__} has {', '.join(instance_names)}"
            if instance_names
            else f"{owner_class.__name__} has no parts: {advice}, as self.name"
        )
    public_names = [attribute for attribute in dir(owner_class) if not attribute.startswith("_")]
    listed_names = [*instance_names, *[attribute for attribute in public_names if attribute not in instance_names]][
        :_MOST
    ]
    return f"{owner_class.__name__} has {', '.join(listed_names)}"


def _tensor_types() -> tuple[type, ...]:
    """Returns the classes of tensors of the loaded backends."""
    module = sys.modules.get(f"{_NAME}.backend.discovery")
    return tuple(backend.tensor_type for backend in module.loaded_backends()) if module is not None else ()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _tensor_types())


def _hint_for_call(message: str, frame: FrameType, match: re.Match[str]) -> str:
    """Returns a hint with the parameters of a function or class of this library that got the wrong arguments."""
    owner, function, is_unknown = match.groups()
    called_function = _callable_named(frame, owner or function)
    op = function.lstrip("_")
    if called_function is None and owner is None and is_unknown and op in OPS:  # the method of a native tensor
        keyword = _QUOTED.findall(message)[0]
        return f"use ops.{op}{str(spellings.unknown_keyword_error(op, keyword)).partition(repr(keyword))[2]}"
    if called_function is None:
        return _hint_for_own_class(frame, owner or "", function, message)
    if "missing" in message and "'self'" in message:
        return "a class stands where an object is wanted: make one first, with parentheses, as in optim.Adam(model)"
    quoted_names, callee = _QUOTED.findall(message), called_function
    if called_function in OPS.values() or (function in OPS and called_function.__module__.startswith(f"{_NAME}.ops")):
        if is_unknown:
            hint = str(spellings.unknown_keyword_error(function, quoted_names[0])).partition(repr(quoted_names[0]))[2]
            return hint.removeprefix("; ") if hint.startswith("; ") else hint.strip(" ()")
        callee = OPS[function]
    elif owner and function != "__init__":
        callee = called_function, function
    parameters = completion.parameters_of(callee)
    names = [
        parameter.name
        for parameter in parameters
        if is_unknown or not parameter.keyword_only or parameter.name in quoted_names
    ]
    keywords_text = ", ".join(f"{parameter.name}=..." for parameter in parameters)
    accepted_text = f"it takes {', '.join(names)}" if names else f"pass options by name: {function}({keywords_text})"
    if not parameters:
        accepted_text = "it takes nothing"
    if not is_unknown:  # the arguments that are missing, or those that are too many, which belong to the last one
        joined_hint = _JOINED.get(names[-1], "") if names and "takes" in message else ""
        return "; ".join(
            [accepted_text, *filter(None, [joined_hint]), *_parameter_meanings(callee, quoted_names or names[-1:])]
        )
    our_option = next((option for option in members.OPTIONS.get(quoted_names[0], "").split() if option in names), "")
    if our_option:
        return "; ".join([f"use {our_option}= ({accepted_text})", *_parameter_meanings(callee, [our_option])])
    advice = members.ABSENT_OPTIONS.get(quoted_names[0]) or suggest(quoted_names[0], names, _NEAR).removeprefix("; ")
    return f"{advice or f'leave {quoted_names[0]} out'} ({accepted_text})"


def _hint_for_own_class(frame: FrameType, owner: str, function: str, message: str) -> str:
    """Returns a hint if a method of the user's own subclass of one of our classes got the wrong arguments."""
    frame_values = [*frame.f_locals.values(), *frame.f_globals.values()]
    classes = [cls for value in frame_values for cls in ([value] if isinstance(value, type) else type(value).__mro__)]
    owner_class = next(
        (cls for cls in classes if cls.__name__ == owner and any(map(_is_from_library, cls.__mro__))),
        None,
    )
    method = getattr(owner_class, function, None)
    if not inspect.isfunction(method):
        return ""
    parameters = list(inspect.signature(method).parameters)
    if not parameters:
        return f"the first parameter of a method is self: def {function}(self, x)"
    parameters_text = ", ".join(parameters[1:])
    if function == "__init__" and "takes" in message:
        call_text = f"{owner}({parameters_text})"
        return f"{call_text} makes the model, and only then it is called: model = {call_text}, then model(x)"
    if parameters[0] != "self":
        return f"the first parameter of a method is self: def {function}(self, {', '.join(parameters)})"
    return f"{owner}.{function} takes {parameters_text or 'nothing'}"


def _parameter_meanings(callee: Any, names: list[str]) -> list[str]:
    """Returns the first sentence of the description of each parameter."""
    description_by_name = completion.descriptions(callee)
    return [
        f"{name}: {description_by_name[name].partition('. ')[0].rstrip('.')}"
        for name in names
        if name in description_by_name
    ]


def _callable_named(frame: FrameType, name: str) -> Any:
    """Returns the function or class of this library that a program calls by a name, or by an attribute of a module.

    Args:
        frame: the frame of the program.
        name: the name in the message of Python: that of the function, or of the class that defines the method.
    """
    name_value_pairs = [*frame.f_locals.items(), *frame.f_globals.items()]
    used_names = {*frame.f_code.co_names}
    for _, value in sorted(
        name_value_pairs, key=lambda item: item[0] not in used_names
    ):  # first those that the program uses there
        if _is_from_library(value):
            modules = [value, *_public_modules(value)] if inspect.ismodule(value) else []
            members = [member for module in modules for member in vars(module).values()]
            for member in [value, *members] if modules or callable(value) else ():
                for candidate in member.__mro__ if isinstance(member, type) else [member]:
                    if (
                        getattr(candidate, "__name__", None) == name
                        and callable(candidate)
                        and _is_from_library(candidate)
                    ):
                        return candidate
    return None


def _public_modules(module: Any) -> list[Any]:
    """Returns the public packages that a module has as attributes, such as `losses` of `nn`."""
    module_names = [f"{_NAME}.{namespace_name}" for namespace_name in spellings.PUBLIC if namespace_name]
    return [member for member in vars(module).values() if inspect.ismodule(member) and member.__name__ in module_names]
