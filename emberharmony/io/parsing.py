"""Parses the JSON of files of tensors in pieces, with limits of depth and size, and reports duplicate names.

`json` with `object_pairs_hook=tuple` stays in C and keeps duplicate names visible. JSON in memory takes up to 30 times
its bytes, so a header is read in pieces of about 64 KB: NumPy marks which bytes are in strings and sums up the nesting,
so a piece can end exactly at a comma of the outer object. To guess the end took 17 s for a mutated header of 140 KB.
The same sums bound the nesting, because `json` recurses, and a program may raise the limit of recursion.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

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
"""The number of bytes of a header that are parsed at once, approximately."""

DEEPEST = 64
"""The deepest nesting in a header; 3 levels are used, and unknown fields may have more."""

_MARKS = np.zeros(256, np.bool_)
_MARKS[[ord(mark) for mark in '"[]{},']] = True
_STEPS = np.zeros(256, np.int64)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1
_TOO_MANY = "too many brackets and commas, which would take much memory"
_DIGITS = bytes(ord("0") if byte in b"0123456789" else byte for byte in range(256))


def pair_batches(json_bytes: bytes, path: str) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Yields the pairs of the JSON object of a header, some hundred at a time; an object is a tuple of pairs.

    A piece ends at a comma of the outer object.

    Raises:
        WeightFileError: if the header is no JSON, or an entry is too long.
    """
    if json_bytes[:1] != b"{":
        raise WeightFileError("header_json", path, f"its header begins with {json_bytes[:1]!r}, expected b'{{'")
    json_bytes = json_bytes.rstrip(b" \t\r\n")
    start, window_size = 1, PIECE
    while len(json_bytes) - start > window_size:
        window = json_bytes[start : start + window_size]
        outline = _outline(window, MOST_MARKS, in_object=True)
        if outline.comma >= 0:
            yield _parsed_value(b"{" + window[: outline.comma] + b"}", path, "header_json", outline)
            start, window_size = start + outline.comma + 1, PIECE
            continue
        if outline.many:
            raise WeightFileError("header_json", path, f"its JSON has {_TOO_MANY} in the entry at byte {start}")
        most_bytes = LARGEST_HEADER if window[:99].lstrip().startswith(b'"__metadata__"') else LARGEST_ENTRY
        if window_size >= most_bytes:
            reason = f"its header has an entry of more than {most_bytes:,} bytes at byte {start}, or is no JSON there"
            raise WeightFileError("header_json", path, reason)
        window_size = min(8 * window_size, most_bytes)
    last_pairs = parse(b"{" + json_bytes[start:], path)
    if not last_pairs and start > 1:
        raise WeightFileError("header_json", path, "its header is no JSON: no name after its last comma")
    yield last_pairs


class _Outline(NamedTuple):
    """The nesting and size of a JSON text, found by counting its brackets and commas.

    Attributes:
        depth: the deepest nesting.
        many: whether it has more brackets and commas than are allowed; the rest is not examined then.
        comma: the place of the last comma that is in no bracket, or -1.
    """

    depth: int
    many: bool
    comma: int


def _outline(json_bytes: bytes, most_marks: int, *, in_object: bool = False) -> _Outline:
    """Returns the outline of a JSON text, found without parsing; the outline of other text means nothing.

    Args:
        json_bytes: the text.
        most_marks: about how many brackets and commas are allowed, without those in strings.
        in_object: whether it is a part of an object, which may be cut at a comma.
    """
    if b"\\" in json_bytes:
        json_bytes = json_bytes.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    is_quoted, depth, deepest, mark_count, last_comma = 0, 0, 0, 0, -1
    for start in range(0, len(json_bytes), 1 << 16):
        block = np.frombuffer(json_bytes, np.uint8, min(1 << 16, len(json_bytes) - start), start)
        mark_positions = np.flatnonzero(_MARKS[block])
        if not mark_positions.size:
            continue
        marks = block[mark_positions]
        quote_counts = np.cumsum(marks == ord('"')) + is_quoted
        is_outside = (quote_counts & 1) == 0
        levels = np.cumsum(_STEPS[marks] * is_outside) + depth
        is_outside &= marks != ord('"')
        mark_count += int(np.count_nonzero(is_outside))
        deepest = max(deepest, int(levels.max()))
        outer_commas = np.flatnonzero(is_outside & (marks == ord(",")) & (levels == 0))
        if outer_commas.size:
            last_comma = start + int(mark_positions[outer_commas[-1]])
        is_quoted, depth = int(quote_counts[-1]) & 1, int(levels[-1])
        if mark_count > most_marks:
            break
    return _Outline(deepest, mark_count > most_marks and not (in_object and last_comma >= 0), last_comma)


def parse(json_bytes: bytes, path: str, kind: str = "header_json", most_marks: int = MOST_MARKS) -> Any:
    """Returns the value of JSON, whose objects become tuples of pairs, so that duplicate names remain visible.

    Args:
        json_bytes: the text in UTF-8.
        path: the file, for messages.
        kind: the kind of the error.
        most_marks: the most brackets and commas, without those in strings.

    Raises:
        WeightFileError: if the text is no JSON, is nested too deeply, or has too many values.
    """
    return _parsed_value(json_bytes, path, kind, _outline(json_bytes, most_marks))


def _parsed_value(json_bytes: bytes, path: str, kind: str, outline: _Outline) -> Any:
    """Parses a JSON text whose outline is known, and returns its value.

    The outline is checked first, because `json` recurses, and because many values take much memory.
    """
    try:
        json_text = json_bytes.decode("utf-8")
    except UnicodeDecodeError as error:
        fault_text = f"its header is no UTF-8: {error.reason} at {error.start}"
        raise WeightFileError("header_utf8" if kind == "header_json" else kind, path, fault_text) from None
    if outline.depth > DEEPEST:
        raise WeightFileError(kind, path, f"its JSON is nested more than {DEEPEST} deep, a header has 3 levels")
    if outline.many:
        raise WeightFileError(kind, path, f"its JSON has {_TOO_MANY}")
    # A minus or many digits in a name choose the slower decoder without need, which is harmless.
    decoder = _CAREFUL if b"-" in json_bytes or b"0" * 20 in json_bytes.translate(_DIGITS) else _DECODER
    try:
        decoded_value = decoder.decode(json_text)
        if "\\u" in json_text:
            json.dumps(decoded_value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise WeightFileError(kind, path, "its JSON has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError) as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error}") from None
    return decoded_value


def _fraction_placeholder(text: str) -> float:
    """Returns the same fraction for every number with a decimal point, because no field accepts such a number."""
    return -0.5


def _field_integer(text: str) -> int:
    """Returns the integer in a text, or -1 if it is negative or beyond 64 bits, because no field accepts those."""
    return int(text) if len(text) <= 20 and text[0] != "-" else -1


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_fraction_placeholder, parse_constant=_refuse_number)
_CAREFUL = json.JSONDecoder(
    object_pairs_hook=tuple, parse_float=_fraction_placeholder, parse_constant=_refuse_number, parse_int=_field_integer
)


def dict_of_unique_names(pairs: Any, path: str, place: str, kind: str, tensor: str | None = None) -> dict[str, Any]:
    """Returns the pairs of a JSON object as a dict after a check that no name occurs twice.

    Raises:
        WeightFileError: of the given kind, if it is no object; of the kind "duplicate", if a name occurs twice.
    """
    if pairs.__class__ is not tuple:
        raise WeightFileError(kind, path, f"{place} must be a JSON object, not {text_of(pairs)}", tensor)
    value_by_name = dict(pairs)
    if len(value_by_name) != len(pairs):
        seen_names: set[str] = set()
        duplicate_name = next(name for name, _ in pairs if name in seen_names or seen_names.add(name))  # type: ignore[func-returns-value]
        raise WeightFileError("duplicate", path, f"{place} has the name {brief(duplicate_name)} twice", tensor)
    return value_by_name


def dict_of_strings(pairs: Any, path: str, place: str) -> dict[str, str]:
    """Returns the pairs of a JSON object as a dict after a check that all values are strings.

    Raises:
        WeightFileError: if it is another value.
    """
    text_by_name = dict_of_unique_names(pairs, path, place, "metadata")
    for name, value in text_by_name.items():
        if value.__class__ is not str:
            raise WeightFileError("metadata", path, f"{place} must hold strings, {brief(name)} is {text_of(value)}")
    return text_by_name


def text_of(value: Any) -> str:
    """Returns the text of a parsed JSON value for a message; tuples are written as objects."""
    if value.__class__ is list and len(value) > 8:
        return f"a list of {len(value)} values"
    return "an object" if value.__class__ is tuple else brief(value)
