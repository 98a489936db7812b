"""Changing one key of a TOML file and nothing else: the standard library reads TOML, but does not write it."""

import json
import re
import tomllib
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r'''
    (?P<string> """ (?: \\. | [^\\] )*? """ "{0,2}
              | \'\'\' .*? \'\'\' '{0,2}
              | " (?: \\. | [^"\\\n] )* "
              | ' [^'\n]* ' )
    | (?P<comment> \# [^\n]* )
    | (?P<open> [\[{] )
    | (?P<close> [\]}] )
    | (?P<equals> = )
    | (?P<newline> \n )
    | (?P<space> [^\S\n]+ )
    | (?P<bare> [^\s"'\#\[\]{}=]+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


class CannotEditError(ValueError):
    """Tells that a key cannot be changed without a change to the rest of the file."""


class _Statement(NamedTuple):
    """Where `key = value` stands: its lines, and its value in them."""

    key: str
    start: int
    value: int
    value_end: int
    end: int


def edited(text: str, key: str, value: str | None) -> str:
    """Returns a TOML document with a key of its root table set to a string, or removed; all else stays as it is.

    Raises: tomllib.TOMLDecodeError if the document is not TOML; CannotEditError if it sets the key as a table; and
    RecursionError if it is nested too deeply.
    """
    wanted = _values(text)
    wanted.pop(key, None)
    if value is not None:
        wanted[key] = value
    found = next((each for each in _statements(text) if _names(each.key, key)), None)
    if found is None:
        newline = "\r\n" if "\r\n" in text else "\n"
        changed = text if value is None else f"{key} = {_quoted(value)}{newline}{text}"
    elif value is None:
        changed = text[: found.start] + text[found.end :]
    else:
        changed = text[: found.value] + _quoted(value) + text[found.value_end :]
    try:
        kept = _values(changed) == wanted
    except tomllib.TOMLDecodeError:
        kept = False
    if not kept:
        raise CannotEditError(f"{key} is a table in it")
    return changed


def _values(text: str) -> dict[str, Any]:
    """Returns what a document says; floating numbers as they are written, for NaN does not equal itself."""
    return tomllib.loads(text, parse_float=str)


def _names(written: str, key: str) -> bool:
    return tomllib.loads(f"{written} = 0") == {key: 0}


def _quoted(value: str) -> str:
    """Returns a TOML string; JSON escapes all that TOML does, but one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _statements(text: str) -> list[_Statement]:
    """Returns the statements of the root table of a valid document, which ends at the first header of a table."""
    found: list[_Statement] = []
    start = depth = 0
    equals = value = value_end = -1
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "newline" and not depth:
            if equals >= 0:
                found.append(_Statement(text[start:equals], start, value, value_end, token.end()))
            start, equals, value = token.end(), -1, -1
        elif kind == "equals" and equals < 0:
            equals = token.start()
        elif equals < 0:
            if kind == "open":
                return found
        elif kind not in ("space", "comment", "newline"):
            depth += (kind == "open") - (kind == "close")
            value = token.start() if value < 0 else value
            value_end = token.end()
    if equals >= 0:
        found.append(_Statement(text[start:equals], start, value, value_end, len(text)))
    return found
