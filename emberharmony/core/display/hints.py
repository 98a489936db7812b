"""Ways out of errors that Python and the array libraries raise where they meet what another library has.

The library does not see these calls, because it would have to look at each attribute and keyword. So the hint is found
when the error is shown.
"""

import inspect
import re
import sys
from types import FrameType
from typing import Any

from emberharmony.core.docstrings import completion
from emberharmony.core.errors import EmberError, suggest
from emberharmony.core.names import elsewhere, spellings
from emberharmony.core.registry import ALIASES, OPS

_NAME = __name__.partition(".")[0]
_CALL = re.compile(r"(?:(\w+)\.)?(\w+)\(\) (?:(got an unexpected keyword)|takes .* but|missing \d+ required)")
_QUOTED = re.compile(r"'(\w+)'")
_IMPORT = re.compile(rf"cannot import name '(\w+)' from '{_NAME}\.?([\w.]*)'|No module named '{_NAME}\.(\w+)")
_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_RAISED: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str, str], ...] = (
    (TypeError, "'function' object does not support the context manager", "", "call it, as in: with ops.checked():"),
    (
        TypeError,
        "'list' object is not an iterator",
        "",
        "parameters(), buffers() and children() return lists: use next(iter(model.parameters()))",
    ),
    (
        TypeError,
        "'dict' object is not callable",
        "",
        "a file and state_dict() give a dict of tensors: make the model first, then io.load_model(model, path)",
    ),
    (
        TypeError,
        "'History' object is not callable",
        "",
        "fit() trains the model that it is given, and returns the history: keep the model under a name of its own",
    ),
    (
        TypeError,
        "unsupported operand type.*'NoneType'",
        "grad",
        "grad is None until ops.backward(lambda: loss_fn(x, y), parameters) is called, and after optimizer.step()",
    ),
    (
        (NotImplementedError, TypeError, ValueError),
        r"sub-type of ndarray|Cannot interpret '-?\d+' as a data type|view\(\): incompatible|array\.view\(\) is not",
        "view",
        "view() of this backend takes a dtype: use ops.reshape(x, shape), such as ops.reshape(x, (x.shape[0], -1))",
    ),
    (TypeError, "'int' object is not callable", "size", "size is a number: use x.shape[axis], or ops.size(x)"),
    (
        TypeError,
        r"'(numpy\.\w+|Tensor|array|ArrayImpl|float)' object is not callable",
        "",
        "the name of a function is now that of a tensor or number: give the value another name, and define the "
        "function again",
    ),
    (
        ValueError,
        r"values to unpack \(expected 2",
        "max min",
        "max and min give the values alone: use ops.max_and_argmax(x, axis) or ops.min_and_argmin(x, axis)",
    ),
    (
        ValueError,
        r"values to unpack \(expected 2",
        "sort",
        "sort gives the values alone: ops.argsort(x, axis) gives the indices",
    ),
    (
        (TypeError, RuntimeError),
        "Cannot cast ufunc|can't be cast to the desired output type",
        "",
        "an assignment such as x += 0.5 keeps the dtype of x: use x = x + 0.5, or make x of floats",
    ),
    (
        (AssertionError, RuntimeError),
        "not compiled with CUDA enabled|Found no NVIDIA driver",
        "",
        "ops.get_available_devices() names the devices; tensors are made on the default device, so leave the move out",
    ),
    (RuntimeError, "does not require grad and does not have a grad_fn", "", elsewhere.ATTRIBUTES["Module"]["backward"]),
    (
        RuntimeError,
        r"Can't call numpy\(\) on Tensor that requires grad",
        "",
        "use the functions of ops, such as ops.exp",
    ),
    (RuntimeError, "dtype must be either a floating point", "", "use ops.mean(x), or ops.cast(x, 'float32') before it"),
)
"""By the class of an error that Python or an array library raises, a pattern in its message, and names of which the
program must use one (without any, all programs), the way out."""


def hint_for(error: BaseException, frame: FrameType) -> str:
    """Returns the way out of an error, or an empty string.

    Args:
        error: the error.
        frame: the innermost frame of the user's program; only if it has names of this library there are hints.
    """
    if isinstance(error, ImportError) and (match := _IMPORT.match(str(error))):
        return spellings.nearest(match[1] or match[3], match[2] or "").removeprefix("; ")
    if isinstance(error, EmberError) or not _uses_library(frame):
        return ""
    if isinstance(error, AttributeError):
        return _hint_for_attribute(error)
    if isinstance(error, TypeError) and (match := _CALL.match(str(error))):
        return _hint_for_call(str(error), frame, match)
    used_names = frame.f_code.co_names
    for kind, pattern, names, hint in _RAISED:
        if (
            isinstance(error, kind)
            and re.search(pattern, str(error))
            and (not names or {*names.split()} & {*used_names})
        ):
            return hint
    return ""


def _uses_library(frame: FrameType) -> bool:
    """Returns whether a program has a name of this library."""
    return any(_is_ours(value) for value in [*frame.f_globals.values(), *frame.f_locals.values()])


def _is_ours(value: Any) -> bool:
    name = getattr(value, "__name__", None) if inspect.ismodule(value) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == _NAME


def _hint_for_attribute(error: AttributeError) -> str:
    name, kinds = error.name, [kind.__name__ for kind in type(error.obj).__mro__]
    if name is None and (match := _ATTRIBUTE.fullmatch(str(error))):  # Python does not name it in an assignment
        name, kinds = match[2], [match[1]]
    if not isinstance(name, str) or name.startswith("_"):
        return ""
    for kind in kinds:
        if kind in elsewhere.ATTRIBUTES and name in elsewhere.ATTRIBUTES[kind]:
            return elsewhere.ATTRIBUTES[kind][name]
    if _is_tensor(error.obj):
        if name == "backward":
            return elsewhere.ATTRIBUTES["Module"]["backward"]
        candidates = {*spellings.METHODS, *spellings.NAMES, *OPS, *ALIASES}
        if name in candidates or name.removesuffix("_") in candidates:
            return spellings.method_hint(name, "")
    return suggest_attribute(name, error.obj) if _is_ours(type(error.obj)) else ""


def suggest_attribute(name: str, owner: Any) -> str:
    """Returns the nearest attribute as a hint; an empty string if Python itself shows one, or there is none."""
    closest = suggest(name, [name for name in dir(owner) if not name.startswith("_")])
    return closest.removeprefix("; ")


def _is_tensor(value: Any) -> bool:
    module = sys.modules.get(f"{_NAME}.backend.discovery")
    backends = module.loaded_backends() if module is not None else ()
    return any(isinstance(value, backend.tensor_type) for backend in backends)


def _hint_for_call(message: str, frame: FrameType, match: re.Match[str]) -> str:
    """Returns what a function or class of this library takes that was called with other arguments."""
    owner, function, is_unknown = match.groups()
    called_function = _callable_named(frame, owner or function)
    if called_function is None:
        return ""
    quoted, described_name = _QUOTED.findall(message), called_function
    if called_function in OPS.values() or (function in OPS and called_function.__module__.startswith(f"{_NAME}.ops")):
        if is_unknown:
            return str(spellings.unknown_keyword(function, quoted[0])).partition("; ")[2]
        described_name = OPS[function]
    elif owner and function != "__init__":
        described_name = called_function, function
    parameters = completion.parameters(described_name)
    names = [
        parameter.name
        for parameter in parameters
        if is_unknown or not parameter.keyword_only or parameter.name in quoted
    ]
    accepted_text = (
        f"it takes {', '.join(names)}" if names else f"by keyword it takes {', '.join(p.name for p in parameters)}"
    )
    if not is_unknown:  # the arguments that are missing, or those that are too many, which belong to the last one
        return "; ".join([accepted_text, *_meanings(described_name, quoted or names[-1:])])
    option_text = elsewhere.OPTIONS.get(quoted[0], "")
    if option_text in names:
        return "; ".join([f"use {option_text}= ({accepted_text})", *_meanings(described_name, [option_text])])
    advice = option_text if " " in option_text else suggest(quoted[0], names).removeprefix("; ")
    return f"{advice} ({accepted_text})".strip()


def _meanings(described_name: Any, names: list[str]) -> list[str]:
    """Returns the first sentence of the description of each parameter."""
    texts = completion.descriptions(described_name)
    return [f"{name}: {texts[name].partition('. ')[0].rstrip('.')}" for name in names if name in texts]


def _callable_named(frame: FrameType, name: str) -> Any:
    """Returns the function or class of this library that a program calls by a name, or by an attribute of a module.

    Args:
        frame: the frame of the program.
        name: the name in the message of Python: that of the function, or of the class that defines the method.
    """
    for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
        if _is_ours(value):
            modules = [value, *_public_modules(value)] if inspect.ismodule(value) else []
            members = [member for module in modules for member in vars(module).values()]
            for member in [value, *members] if modules or callable(value) else ():
                for owner_class in member.__mro__ if isinstance(member, type) else [member]:
                    if (
                        getattr(owner_class, "__name__", None) == name
                        and callable(owner_class)
                        and _is_ours(owner_class)
                    ):
                        return owner_class
    return None


def _public_modules(module: Any) -> list[Any]:
    """Returns the public packages that a module has as attributes, such as `losses` of `nn`."""
    names = [f"{_NAME}.{space}" for space in spellings.PUBLIC if space]
    return [value for value in vars(module).values() if inspect.ismodule(value) and value.__name__ in names]
