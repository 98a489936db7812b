"""Ways out of errors that Python and the array libraries raise where they meet what another library has.

The library does not see these calls, because it would have to look at each attribute and keyword. So the hint is found
when the error is shown.
"""

import inspect
import re
import sys
from types import FrameType
from typing import Any

from emberharmony.core.errors import suggest
from emberharmony.core.names import elsewhere, spellings
from emberharmony.core.registry import ALIASES, OPS

_NAME = __name__.partition(".")[0]
_KEYWORD = re.compile(r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_NO_GRAPH = "does not require grad and does not have a grad_fn"


def hint_for(error: BaseException, frame: FrameType) -> str:
    """Returns the way out of an error, or an empty string.

    Args:
        error: the error.
        frame: the innermost frame of the user's program; only if it has names of this library there are hints.
    """
    if not _uses_library(frame):
        return ""
    if isinstance(error, AttributeError):
        return _hint_for_attribute(error)
    if isinstance(error, TypeError) and (match := _KEYWORD.match(str(error))):
        return _hint_for_keyword(frame, match[1] or "", match[2], match[3])
    if isinstance(error, TypeError) and "'function' object does not support the context manager" in str(error):
        return "call it, as in: with ops.checked():"
    if isinstance(error, TypeError) and "'list' object is not an iterator" in str(error):
        return "parameters(), buffers() and children() return lists: use next(iter(model.parameters()))"
    if isinstance(error, RuntimeError) and _NO_GRAPH in str(error):
        return elsewhere.ATTRIBUTES["Module"]["backward"]
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
    closest = suggest(name, [each for each in dir(owner) if not each.startswith("_")])
    return closest.removeprefix("; ")


def _is_tensor(value: Any) -> bool:
    module = sys.modules.get(f"{_NAME}.backend.discovery")
    backends = module.loaded_backends() if module is not None else ()
    return any(isinstance(value, backend.tensor_type) for backend in backends)


def _hint_for_keyword(frame: FrameType, owner: str, function: str, keyword: str) -> str:
    """Returns what a keyword is called here, if a function or class of this library was called."""
    called = _named(frame, owner or function)
    if called is None:
        return ""
    if called in OPS.values() or (function in OPS and called.__module__.startswith(f"{_NAME}.ops")):
        return str(spellings.unknown_keyword(function, keyword)).partition("; ")[2]
    names = [name for name in inspect.signature(called).parameters if name != "self"]
    ours = elsewhere.OPTIONS.get(keyword)
    hint = f"use {ours}=" if ours in names else suggest(keyword, names).removeprefix("; ")
    return f"{hint} (it takes {', '.join(names)})".strip()


def _named(frame: FrameType, name: str) -> Any:
    """Returns the function or class of this library that a program calls by a name, or by an attribute of a module."""
    for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
        if _is_ours(value):
            if getattr(value, "__name__", None) == name and callable(value):
                return value
            if inspect.ismodule(value) and callable(member := vars(value).get(name)) and _is_ours(member):
                return member
    return None
