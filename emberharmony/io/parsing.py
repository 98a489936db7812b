"""JSON of files of tensors: in pieces, with bounds on its depth and its values, and with duplicate names visible."""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from emberharmony.core.errors import WeightFileError, brief

LARGEST_HEADER = 100_000_000
"""The largest header in bytes that the reference implementation reads."""

LARGEST_ENTRY = 1 << 20
"""The largest entry of a tensor in bytes; usual ones have about 100."""

MOST_MARKS = 1 << 17
"""The most brackets and commas in an entry, which bounds the memory that its JSON takes."""

MOST_NAMES = 1 << 20
"""The most brackets and commas in an index of shards, or in the names of tied tensors."""

PIECE = 1 << 16
"""About so many bytes of a header are read at once."""

DEEPEST = 64
"""The deepest nesting in a header; 3 levels are used, and unknown fields may have more."""

_OTHERS = bytes(set(range(256)) - set(b'[]{},"\\'))
_STEPS = np.zeros(256, np.int64)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1
_STRING = re.compile(rb'"[^"]*"')
_DIGITS = bytes(ord("0") if byte in b"0123456789" else byte for byte in range(256))


def pieces(raw: bytes, path: str) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Yields the pairs of the JSON object of a header, some hundred at a time; an object is a tuple of pairs.

    A piece ends at "},", where entries usually end. If those characters are in a string or in an object of an entry,
    the piece is no JSON, and another end is tried. Pieces that are JSON begin and end at the commas of the outer
    object, because brackets and quotes are balanced in them, so they are JSON together.

    Raises:
        WeightFileError: if the header is no JSON, or an entry is too long.
    """
    if raw[:1] != b"{":
        raise WeightFileError("header_json", path, f"its header begins with {raw[:1]!r}, expected b'{{'")
    start, size = 1, PIECE
    while len(raw) - start > size:
        cut, found, fault = start + size, None, None
        for _ in range(8 if size <= LARGEST_ENTRY else 2):
            cut = raw.rfind(b"},", start, cut + 1)
            if cut < 0:
                break
            try:
                found = parsed(b"{" + raw[start : cut + 1] + b"}", path)
                break
            except WeightFileError as error:
                fault = error
        if found is not None:
            yield found
            start, size = cut + 2, PIECE
            continue
        longest = LARGEST_HEADER if raw[start : start + 99].lstrip().startswith(b'"__metadata__"') else LARGEST_ENTRY
        if size >= longest:
            too_long = f"its header has an entry of more than {longest:,} bytes at byte {start}, or is no JSON there"
            raise fault or WeightFileError("header_json", path, too_long)
        size = min(8 * size, longest)
    last = parsed(b"{" + raw[start:], path)
    if not last and start > 1:
        raise WeightFileError("header_json", path, "its header is no JSON: no name after its last comma")
    yield last


def parsed(raw: bytes, path: str, kind: str = "header_json", most: int = MOST_MARKS) -> Any:
    """Returns the value of JSON, whose objects become tuples of pairs, so that duplicate names remain visible.

    Args:
        raw: the text in UTF-8.
        path: the file, for messages.
        kind: the kind of the error.
        most: the most brackets and commas, without those in strings.

    Raises:
        WeightFileError: if the text is no JSON, is nested too deeply, or has too many values.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        fault = f"its header is no UTF-8: {error.reason} at {error.start}"
        raise WeightFileError("header_utf8" if kind == "header_json" else kind, path, fault) from None
    _require_flat(raw, path, kind, most)
    # A name may contain such characters too, which only means that the slower function reads the numbers.
    decoder = _CAREFUL if b"-" in raw or b"0" * 20 in raw.translate(_DIGITS) else _DECODER
    try:
        found = decoder.decode(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise WeightFileError(kind, path, "its JSON has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError) as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error}") from None
    return found


def _require_flat(raw: bytes, path: str, kind: str, most: int) -> None:
    """Checks how deep JSON is nested, because `json` recurses, and how many values it has, which take memory.

    Raises:
        WeightFileError: if one of them is too large.
    """
    marks = raw.translate(None, _OTHERS)
    if b"\\" in marks:
        marks = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
    if b'"' in marks.replace(b'""', b""):
        marks = _STRING.sub(b"", marks)
    if len(marks) - marks.count(b'"') > most:
        raise WeightFileError(kind, path, f"its JSON has more than {most:,} brackets and commas")
    depth = 0
    for start in range(0, len(marks), 1 << 16):
        part = np.frombuffer(marks, np.uint8, min(1 << 16, len(marks) - start), start)
        levels = depth + np.cumsum(_STEPS[part])
        if levels.max() > DEEPEST:
            raise WeightFileError(kind, path, f"its JSON is nested more than {DEEPEST} deep, a header has 3 levels")
        depth = int(levels[-1])


def _real(text: str) -> float:
    """Returns a fraction in the place of any number with a point: no field takes one, so its digits are not read."""
    return -0.5


def _integer(text: str) -> int:
    """Returns an integer; -1 for one that is negative (-0 too) or beyond 64 bits, which no field takes either."""
    return int(text) if len(text) <= 20 and text[0] != "-" else -1


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_real, parse_constant=_no_number)
_CAREFUL = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_real, parse_constant=_no_number, parse_int=_integer)


def unique(pairs: Any, path: str, place: str, kind: str, tensor: str | None = None) -> dict[str, Any]:
    """Returns the pairs of a JSON object as a dict.

    Raises:
        WeightFileError: of the given kind, if it is no object; of the kind "duplicate", if a name occurs twice.
    """
    if pairs.__class__ is not tuple:
        raise WeightFileError(kind, path, f"{place} must be a JSON object, not {shown(pairs)}", tensor)
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise WeightFileError("duplicate", path, f"{place} has the name {brief(twice)} twice", tensor)
    return found


def strings(pairs: Any, path: str, place: str) -> dict[str, str]:
    """Returns a JSON object whose values are strings as a dict.

    Raises:
        WeightFileError: if it is another value.
    """
    found = unique(pairs, path, place, "metadata")
    for name, value in found.items():
        if value.__class__ is not str:
            raise WeightFileError("metadata", path, f"{place} must hold strings, {brief(name)} is {shown(value)}")
    return found


def shown(value: Any) -> str:
    """Returns a value of JSON for a message; a tuple is an object there."""
    if value.__class__ is list and len(value) > 8:
        return f"a list of {len(value)} values"
    return "an object" if value.__class__ is tuple else brief(value)
