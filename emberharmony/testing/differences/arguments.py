"""Arguments that are no tensors, such as options and Python numbers: those that differ between two sides."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from emberharmony.core.registry import OPS
from emberharmony.testing.differences.records import PLAIN, Record

RESULT = "(result)"
"""The op name in the record of a program's results, which are the only argument of that record."""

_ABSENT = {"o": "no argument"}


class Unequal(NamedTuple):
    """An argument that differs between two sides.

    Attributes:
        name: its name, and the place in it.
        values: it on both sides: a number or text as it is, and anything else as it is shown.
        shown: it on both sides as text.
        share: the difference of two floating numbers as a share of the larger one; infinite for anything else.
    """

    name: str
    values: tuple[Any, Any]
    shown: tuple[str, str]
    share: float

    def text(self, sides: Sequence[str]) -> str:
        """Returns a text with the argument's name and its value on both sides.

        Args:
            sides: the names of the sides.
        """
        return f"{self.name}={self.shown[0]} on {sides[0]} and {self.shown[1]} on {sides[1]}"


def unequal_arguments(one: Record, other: Record) -> list[Unequal]:
    """Returns the arguments of a call that differ between two sides, without tensors and devices.

    Random ops have the state of the streams that they draw from as a further one.

    Args:
        one: the call on the first side.
        other: the call on the second side.
    """
    first_by_name, second_by_name = _arguments_by_name(one), _arguments_by_name(other)
    names = dict.fromkeys([*first_by_name, *second_by_name])
    names.pop("device", None)
    unequal_values = [
        difference
        for name in names
        for difference in _unequal_values(
            name, first_by_name.get(name, _ABSENT), second_by_name.get(name, _ABSENT), (one, other)
        )
    ]
    if not unequal_values and one.streams != other.streams:
        first_stream_states = [{"g": (record.streams or [{}])[0]} for record in (one, other)]
        unequal_values.append(
            _unequal_entry("the random state", first_stream_states[0], first_stream_states[1], math.inf)
        )
    return unequal_values


def _arguments_by_name(record: Record) -> dict[str, Any]:
    """Returns all arguments of a recorded call by parameter name, as JSON; arguments not given have their defaults."""
    parameters = () if record.op == RESULT else OPS[record.op].parameters
    positional_names = [parameter.name for parameter in parameters if not parameter.keyword_only] or ["result"]
    (positional_values,) = record.args.values()
    variadic_by_name = {
        f"{positional_names[-1]}[{i}]": value for i, value in enumerate(positional_values[len(positional_names) :], 1)
    }
    return {
        **dict(zip(positional_names, positional_values, strict=False)),
        **variadic_by_name,
        **dict(record.kwargs["d"]),
    }


def _unequal_values(name: str, a: Any, b: Any, records: tuple[Record, Record]) -> Iterator[Unequal]:
    """Yields the places at which two encoded arguments differ; tensors are not compared."""
    first, second = _comparable_value(a, b, records[0]), _comparable_value(b, a, records[1])
    kind_tags = [next(iter(value)) if isinstance(value, dict) else "" for value in (first, second)]
    if kind_tags == ["", ""]:
        relative_difference = _relative_difference(first, second)
        if relative_difference:
            yield _unequal_entry(name, first, second, relative_difference)
        return
    tagged_contents = [value[tag] if tag else value for value, tag in zip((first, second), kind_tags, strict=True)]
    if {"t", "h"} >= set(kind_tags):
        return
    if {"l", "u"} >= set(kind_tags) and len(tagged_contents[0]) == len(tagged_contents[1]):
        for i, (x, y) in enumerate(zip(*tagged_contents, strict=True)):
            yield from _unequal_values(f"{name}[{i}]", x, y, records)
    elif kind_tags == ["d", "d"] and [key for key, _ in tagged_contents[0]] == [key for key, _ in tagged_contents[1]]:
        for (key, x), (_, y) in zip(*tagged_contents, strict=True):
            yield from _unequal_values(f"{name}[{_value_text(key)}]", x, y, records)
    elif kind_tags == ["s", "s"] and not any(
        difference for x, y in zip(*tagged_contents, strict=True) for difference in _unequal_values("", x, y, records)
    ):
        return
    elif kind_tags != ["o", "o"] and first != second:
        yield _unequal_entry(name, first, second, math.inf)


def _unequal_entry(name: str, first: Any, second: Any, share: float) -> Unequal:
    value_texts = _value_text(first), _value_text(second)
    printable_values = [
        text if isinstance(value, dict) else value for value, text in zip((first, second), value_texts, strict=True)
    ]
    return Unequal(name, (printable_values[0], printable_values[1]), value_texts, share)


def _comparable_value(value: Any, other: Any, record: Record) -> Any:
    """Returns a dtype as its name, a complex number as itself, and a tensor of one element as a number beside one."""
    if not isinstance(value, dict):
        return value
    ((kind_tag, content),) = value.items()
    if kind_tag in ("t", "h") and other.__class__ in PLAIN and record.tensors[content].size == 1:
        return record.tensors[content].values().item()
    return content if kind_tag == "k" else complex(*content) if kind_tag == "c" else value


def _relative_difference(a: Any, b: Any) -> float:
    """Returns how far two plain values differ: as a share for floating numbers, and otherwise 0 or infinity."""
    if a == b or (a != a and b != b):
        return 0.0
    are_numbers = all(isinstance(value, (int, float, complex)) for value in (a, b))
    if are_numbers and any(isinstance(value, (float, complex)) for value in (a, b)):
        share = abs(a - b) / max(abs(a), abs(b))
        return share if math.isfinite(share) else math.inf
    return math.inf


def _value_text(value: Any) -> str:
    """Returns the text of an encoded argument for a message."""
    if not isinstance(value, dict):
        return repr(value)
    ((kind_tag, content),) = value.items()
    if kind_tag in ("t", "h"):
        return "a tensor"
    if kind_tag in ("l", "u"):
        return f"({', '.join(map(_value_text, content))}{',' if len(content) == 1 else ''})"
    if kind_tag == "d":
        return "{" + ", ".join(f"{_value_text(k)}: {_value_text(v)}" for k, v in content) + "}"
    if kind_tag == "s":
        return f"slice({', '.join(map(_value_text, content))})"
    if kind_tag == "g":
        return f"a generator of seed {content.get('entropy')} at {content.get('counter')}:{content.get('position')}"
    return "..." if kind_tag == "e" else str(complex(*content) if kind_tag == "c" else content)
