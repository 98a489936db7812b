"""Changes one key of a TOML document and nothing else; the standard library can read TOML but not write it."""

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
    """Raised when a key cannot be changed without a change to the rest of the document."""


class _Statement(NamedTuple):
    """One `key = value` in a document: the key as written, and the offsets of the statement's lines and its value."""

    key: str
    start: int
    value: int
    value_end: int
    end: int


def edit_key(text: str, key: str, value: str | None) -> str:
    """Returns a TOML document with one key of its root table set to a string, or removed if `value` is None.

    Raises:
        tomllib.TOMLDecodeError: if the document is not TOML.
        CannotEditError: if the document defines the key as a table.
        RecursionError: if the document is nested too deeply.
    """
    expected_values = _document_values(text)
    expected_values.pop(key, None)
    if value is not None:
        expected_values[key] = value
    statement = next(
        (text_statement for text_statement in _root_statements(text) if _is_key(text_statement.key, key)), None
    )
    if statement is None:
        newline = "\r\n" if "\r\n" in text else "\n"
        new_text = text if value is None else f"{key} = {_quote(value)}{newline}{text}"
    elif value is None:
        new_text = text[: statement.start] + text[statement.end :]
    else:
        new_text = text[: statement.value] + _quote(value) + text[statement.value_end :]
    # `_root_statements` only splits the text into tokens, so check the result with the parser of the standard library.
    try:
        is_valid = _document_values(new_text) == expected_values
    except tomllib.TOMLDecodeError:
        is_valid = False
    if not is_valid:
        raise CannotEditError(f"{key} is a table in it")
    return new_text


def _document_values(text: str) -> dict[str, Any]:
    """Returns the content of a document, with floats as they are written, because NaN does not equal itself."""
    return tomllib.loads(text, parse_float=str)


def _is_key(key_text: str, key: str) -> bool:
    # The parser resolves quoted keys, such as "backend".
    return tomllib.loads(f"{key_text} = 0") == {key: 0}


def _quote(value: str) -> str:
    """Returns a string in TOML. JSON escapes the same characters as TOML, except for U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _root_statements(text: str) -> list[_Statement]:
    """Returns the statements in the root table of a valid document; this table ends at the first table header."""
    statements: list[_Statement] = []
    statement_start = bracket_depth = 0
    equals_index = value_start = value_end = -1
    for token in _TOKEN.finditer(text):
        token_kind = token.lastgroup
        if token_kind == "newline" and not bracket_depth:
            if equals_index >= 0:
                statements.append(
                    _Statement(text[statement_start:equals_index], statement_start, value_start, value_end, token.end())
                )
            statement_start, equals_index, value_start = token.end(), -1, -1
        elif token_kind == "equals" and equals_index < 0:
            equals_index = token.start()
        elif equals_index < 0:
            if token_kind == "open":
                return statements
        elif token_kind not in ("space", "comment", "newline"):
            bracket_depth += (token_kind == "open") - (token_kind == "close")
            value_start = token.start() if value_start < 0 else value_start
            value_end = token.end()
    if equals_index >= 0:
        statements.append(
            _Statement(text[statement_start:equals_index], statement_start, value_start, value_end, len(text))
        )
    return statements
