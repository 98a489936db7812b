"""Copies of programs: each run gets models, optimizers and generators of its own, so the user's stay as they are."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType
from typing import Any

from emberharmony.backend.shared.random import Generator
from emberharmony.core.cells.cell import Cell

_DEEPEST = 4


class Copies:
    """Copies a program and its arguments; what they share is copied once."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._originals: list[Any] = []
        self._globals: dict[int, dict[str, Any]] = {}
        self._functions: dict[int, Any] = {}

    def copy_of(self, value: Any, depth: int = 0) -> Any:
        """Returns a copy of a value with a state, such as a model or an optimizer; any other value unchanged."""
        if isinstance(value, FunctionType):
            return self._copy_function(value)
        if isinstance(value, (MethodType, BuiltinMethodType)) and _has_state(value.__self__):
            return getattr(self.copy_of(value.__self__), value.__name__)
        if isinstance(value, partial):
            keywords = {name: self.copy_of(item) for name, item in value.keywords.items()}
            return partial(self.copy_of(value.func), *map(self.copy_of, value.args), **keywords)
        if type(value) in (list, tuple) and depth < _DEEPEST:
            return type(value)(self.copy_of(item, depth + 1) for item in value)
        if type(value) is dict and depth < _DEEPEST:
            return {name: self.copy_of(item, depth + 1) for name, item in value.items()}
        if not _has_state(value):
            return value
        if id(value) in self._memo:
            return self._memo[id(value)]
        if isinstance(value, (Cell, Generator)) or callable(getattr(type(value), "state_dict", None)):
            copy_of_value = self._memo[id(value)] = copy.deepcopy(value, self._memo)
            return copy_of_value
        copy_of_value = self._memo[id(value)] = copy.copy(value)  # `deepcopy` fails for objects that hold files
        self._originals.append(value)
        for name, item in vars(value).items():
            vars(copy_of_value)[name] = self.copy_of(item)
        return copy_of_value

    def _copy_function(self, fn: FunctionType) -> Any:
        """Returns a function whose closure and global names refer to copies."""
        earlier_copy = self._functions.get(id(fn))
        if earlier_copy is not None:
            return earlier_copy
        used_global_names = [name for name in _names_in_code(fn.__code__) if name in fn.__globals__]
        reaches_state = _reaches_state(fn, set())
        if not reaches_state:
            return fn
        copied_globals = self._globals.get(id(fn.__globals__))
        if copied_globals is None:
            copied_globals = self._globals[id(fn.__globals__)] = dict(fn.__globals__)
        closure_cells = tuple(CellType() for _ in fn.__closure__ or ())
        new_function = FunctionType(fn.__code__, copied_globals, fn.__name__, None, closure_cells)
        self._functions[id(fn)] = new_function
        new_function.__dict__.update(fn.__dict__)
        new_function.__qualname__, new_function.__module__ = fn.__qualname__, fn.__module__
        new_function.__defaults__ = None if fn.__defaults__ is None else tuple(map(self.copy_of, fn.__defaults__))
        new_function.__kwdefaults__ = None if fn.__kwdefaults__ is None else self.copy_of(fn.__kwdefaults__)
        for cell, old_cell in zip(closure_cells, fn.__closure__ or (), strict=True):
            if _is_set(old_cell):
                cell.cell_contents = self.copy_of(old_cell.cell_contents)
        for name in used_global_names:
            value = fn.__globals__[name]
            if not isinstance(value, FunctionType) or value.__globals__ is fn.__globals__:
                copied_globals[name] = self.copy_of(value)
        return new_function


def _reaches_state(value: Any, seen_ids: set[int], depth: int = 0) -> bool:
    """Returns whether a value is, holds or refers to something with a state."""
    if id(value) in seen_ids or depth > 2 * _DEEPEST:
        return False
    seen_ids.add(id(value))
    if isinstance(value, FunctionType):
        reachable_objects = [
            value.__globals__[name] for name in _names_in_code(value.__code__) if name in value.__globals__
        ]
        reachable_objects = [
            x for x in reachable_objects if not isinstance(x, FunctionType) or x.__globals__ is value.__globals__
        ]
        reachable_objects += [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        reachable_objects += list(value.__defaults__ or ())
        return any(_reaches_state(item, seen_ids, depth + 1) for item in reachable_objects)
    if isinstance(value, partial):
        return any(_reaches_state(x, seen_ids, depth + 1) for x in (value.func, *value.args, *value.keywords.values()))
    if isinstance(value, (MethodType, BuiltinMethodType)):
        return _has_state(value.__self__)
    if type(value) in (list, tuple):
        return any(_reaches_state(item, seen_ids, depth + 1) for item in value)
    if type(value) is dict:
        return any(_reaches_state(item, seen_ids, depth + 1) for item in value.values())
    return _has_state(value)


def _has_state(value: Any, depth: int = 0) -> bool:
    """Returns whether a value is a cell, a generator, an object with a `state_dict`, or an object that holds one."""
    if isinstance(value, (Cell, Generator)):
        return True
    value_class = type(value)
    if isinstance(value, type) or value_class.__module__ in ("builtins", "numpy", "types"):
        return False
    if callable(getattr(value_class, "state_dict", None)):
        return True
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or depth >= _DEEPEST or value_class.__name__ == "module":
        return False
    return any(_has_state(item, depth + 1) or _holds_state(item, depth + 1) for item in list(attributes.values()))


def _holds_state(value: Any, depth: int) -> bool:
    held_items = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
    return depth < _DEEPEST and any(_has_state(item, depth + 1) or _holds_state(item, depth + 1) for item in held_items)


def _names_in_code(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in_code(constant)


def _is_set(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def stateful_objects(fn: Any) -> list[Any]:
    """Returns the objects with a state that a program is, is a method of, or refers to by its closure or globals."""
    if isinstance(fn, FunctionType):
        reachable_objects = [fn.__globals__[name] for name in _names_in_code(fn.__code__) if name in fn.__globals__]
        reachable_objects += [cell.cell_contents for cell in fn.__closure__ or () if _is_set(cell)]
    elif isinstance(fn, MethodType):
        reachable_objects = [fn.__self__]
    else:
        reachable_objects = [fn]
    return [value for value in reachable_objects if _has_state(value)]


def copy_program(fn: Callable[..., Any], inputs: Any) -> tuple[Callable[..., Any], Any]:
    """Returns a program and its arguments, of which no run can change the originals."""
    copies = Copies()
    return copies.copy_of(fn), copies.copy_of(inputs)
