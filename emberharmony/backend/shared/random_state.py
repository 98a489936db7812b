"""The states of NumPy's random generators as dicts of text and integers, which JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

State = dict[str, Any]
VERSION = 1
"""The version of the layout; a state of a later version cannot be read."""

_WORDS = {"Philox": {"counter": 4, "key": 2, "buffer": 4}, "PCG64": {"state": 2, "inc": 2}}
"""By class of `numpy.random`, the number of words of 64 bits in each part of the state."""

_DIGITS = set("0123456789abcdef")


class StateReader:
    """Reads the entries of a state; an error says which one is missing or damaged, before anything has changed.

    Args:
        where: what the state is, for messages.
        state: the state.

    Raises:
        ArgumentTypeError: if it is not a dict.
    """

    def __init__(self, where: str, state: Any) -> None:
        if not isinstance(state, dict):
            raise ArgumentTypeError(f"{where} is a dict, not {brief(state)}")
        self.where, self.state = where, state

    def damage_error(self, name: str, expected: str) -> ArgumentError:
        """Returns the error for a missing or damaged entry of a state."""
        value_text = brief(self.state[name]) if name in self.state else "nothing"
        return ArgumentError(f"{self.where} is damaged: expected {expected} under {name!r}, got {value_text}")

    def check_version(self) -> None:
        """Checks that the state has a version that can be read.

        Raises:
            ArgumentError: if it has none, or a later one.
        """
        version = self.integer("version", 1)
        if version > VERSION:
            raise ArgumentError(
                f"{self.where} has version {version}, but this EmberHarmony reads versions up to {VERSION}; update it"
            )

    def integer(self, name: str, low: int = 0, high: int | None = None) -> int:
        """Returns an entry of a state, checked to be an integer of at least `low` and at most `high`."""
        entry = self.state.get(name)
        if type(entry) is not int or entry < low or (high is not None and entry > high):
            limits_text = f"of at least {low}" if high is None else f"from {low} to {high}"
            raise self.damage_error(name, f"an integer {limits_text}")
        return entry

    def optional_integer(self, name: str, high: int | None = None) -> int | None:
        """Returns an entry of a state, checked to be a natural number of at most `high`, or None."""
        return None if name in self.state and self.state[name] is None else self.integer(name, 0, high)

    def integers(self, name: str) -> tuple[int, ...]:
        """Returns an entry of a state, checked to be a list of natural numbers, as a tuple."""
        entries = self.state.get(name)
        if not isinstance(entries, (list, tuple)) or not all(type(entry) is int and entry >= 0 for entry in entries):
            raise self.damage_error(name, "a list of natural numbers")
        return tuple(entries)

    def words(self, name: str, count: int) -> list[int]:
        """Returns an entry of a state, words of 64 bits in hexadecimal digits, as a list of ints."""
        entry = self.state.get(name)
        if not isinstance(entry, str) or len(entry) != 16 * count or set(entry) - _DIGITS:
            raise self.damage_error(name, f"{16 * count} hexadecimal digits")
        return [int(entry[i : i + 16], 16) for i in range(0, len(entry), 16)]

    def hexadecimal(self, name: str) -> int:
        """Returns an entry of a state, a natural number in hexadecimal digits, as an int."""
        entry = self.state.get(name)
        if not isinstance(entry, str) or not entry or set(entry) - _DIGITS:
            raise self.damage_error(name, "hexadecimal digits")
        return int(entry, 16)

    def nested_reader(self, name: str) -> StateReader:
        """Returns a reader of the inner dict that a state has under a name."""
        if not isinstance(self.state.get(name), dict):
            raise self.damage_error(name, "a dict")
        return StateReader(f"{self.where}[{name!r}]", self.state[name])


def generator_state(source: np.random.Generator) -> State:
    """Returns the state of a generator of NumPy."""
    bit_generator: Any = source.bit_generator
    with bit_generator.lock:  # another thread may be drawing
        native_state = bit_generator.state
    generator_class = native_state["bit_generator"]
    state: State = {"kind": generator_class}
    for name, count in _WORDS[generator_class].items():
        value = native_state[name] if name == "buffer" else native_state["state"][name]
        state[name] = f"{value:0{16 * count}x}" if isinstance(value, int) else "".join(f"{int(v):016x}" for v in value)
    if generator_class == "Philox":
        state["position"] = int(native_state["buffer_pos"])
    state["spare"] = int(native_state["uinteger"]) if native_state["has_uint32"] else None
    return state


def restored_generator(reader: StateReader, kind: str) -> np.random.Generator:
    """Returns a generator of NumPy with a state that `generator_state` returned.

    Args:
        kind: the kind of generator that the state must be of.

    Raises:
        ArgumentError: if the state is damaged.
    """
    if reader.state.get("kind") != kind:
        raise reader.damage_error("kind", repr(kind))
    words_by_name = {name: reader.words(name, count) for name, count in _WORDS[kind].items()}
    spare_word = reader.optional_integer("spare", 2**32 - 1)
    native_state: State = {
        "bit_generator": kind,
        "has_uint32": int(spare_word is not None),
        "uinteger": spare_word or 0,
    }
    if kind == "Philox":
        array_by_name = {name: np.array(values, np.uint64) for name, values in words_by_name.items()}
        native_state |= {
            "buffer": array_by_name.pop("buffer"),
            "buffer_pos": reader.integer("position", 0, 4),
            "state": array_by_name,
        }
    else:
        native_state["state"] = {name: high << 64 | low for name, (high, low) in words_by_name.items()}
    bit_generator = getattr(np.random, kind)(0)
    bit_generator.state = native_state
    return np.random.Generator(bit_generator)
