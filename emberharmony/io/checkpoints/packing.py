"""Converts states, trees of dicts, lists, numbers and tensors, to JSON with the tensors apart, and back."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from emberharmony.backend.choice import owning_backend_of
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentTypeError, brief

_PLAIN = (str, bool, int, type(None))


def pack_state(state: Any, name: str, tensors: dict[str, Any]) -> Any:
    """Returns a state in a form that `json.dumps` accepts, and moves its tensors into a dict.

    What JSON lacks is an object with one name that begins with `$`: a tensor, a tuple, a dict with other keys than
    text, and a number that is not finite.

    Args:
        state: dicts, lists, tuples, numbers, text, None and tensors.
        name: where it is, for messages and as the beginning of the names of its tensors.
        tensors: gets the tensors by name.

    Raises:
        ArgumentTypeError: if it holds anything else.
    """
    if isinstance(state, np.generic):
        state = state.item()
    if type(state) in _PLAIN:
        return state
    if type(state) is float:
        return state if math.isfinite(state) else {"$float": repr(state)}
    if isinstance(state, Mapping):
        if all(type(key) is str and not key.startswith("$") for key in state):
            return {key: pack_state(x, _joined_name(name, key), tensors) for key, x in state.items()}
        if all(type(key) in (str, int) for key in state):
            return {"$dict": [[key, pack_state(x, _joined_name(name, key), tensors)] for key, x in state.items()]}
        raise ArgumentTypeError(f"the keys of {name} are {brief(list(state))}, expected text or integers")
    if isinstance(state, (list, tuple)):
        packed_entries = [pack_state(x, _joined_name(name, i), tensors) for i, x in enumerate(state)]
        return packed_entries if type(state) is list else {"$tuple": packed_entries}
    tensor = state.value if isinstance(state, Cell) else state
    if not hasattr(tensor, "dtype") or owning_backend_of(tensor) is None:
        raise ArgumentTypeError(
            f"{name} is {brief(state)} of type {type(state).__name__}, which a checkpoint cannot hold: expected "
            f"tensors, numbers, text, None, and dicts, lists and tuples of these"
        )
    while name in tensors:  # the keys 1 and "1" would get the same name
        name += "~"
    tensors[name] = tensor
    return {"$tensor": name}


def unpack_state(state: Any, tensors: Mapping[str, Any]) -> Any:
    """Returns the state from which `pack_state` made the given JSON and dict of tensors.

    Raises:
        KeyError: if a tensor is missing.
        ValueError: if an object with `$` is none of those that `pack_state` makes.
    """
    if isinstance(state, list):
        return [unpack_state(x, tensors) for x in state]
    if not isinstance(state, dict):
        return state
    type_mark = next(iter(state), "")
    if not type_mark.startswith("$"):
        return {key: unpack_state(x, tensors) for key, x in state.items()}
    (state_value,) = state.values()
    if type_mark == "$tensor":
        return tensors[state_value]
    if type_mark == "$tuple":
        return tuple(unpack_state(state_value, tensors))
    if type_mark == "$dict":
        return {key: unpack_state(x, tensors) for key, x in state_value}
    if type_mark == "$float":
        return float(state_value)
    raise ValueError(f"the mark {brief(type_mark)} is unknown")


def _joined_name(name: str, key: object) -> str:
    return f"{name}.{key}" if name else str(key)
