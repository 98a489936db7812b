"""The JSON of a notebook: its code cells, with the places of their source in the file."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Piece(NamedTuple):
    """A string of the source of a cell, with its place in the file."""

    start: int
    end: int
    text: str


class Cell(NamedTuple):
    """A cell of Python code; `start` and `end` are the place of its source in the file, if there is one."""

    number: int
    source: str
    start: int = 0
    end: int = 0
    pieces: tuple[Piece, ...] = ()


def read_notebook_and_cells(content: str) -> tuple[dict[str, Any], list[Cell]]:
    """Returns the notebook, and its code cells, which its `cells` hold too.

    Raises:
        ValueError: if the text is not JSON or lacks what each notebook has.
    """
    notebook_reader = _NotebookReader(content)
    notebook: dict[str, Any] = {}
    cells: list[Cell] = []
    for key in notebook_reader.member_keys():
        if key == "cells":
            notebook[key] = cells = [
                cell
                for number in notebook_reader.item_numbers()
                if (cell := notebook_reader.read_cell(number)) is not None
            ]
        else:
            notebook[key] = notebook_reader.read_value()
    if _SPACE.fullmatch(content, notebook_reader.at) is None:
        raise ValueError("it has text after its JSON")
    return notebook, cells


class _NotebookReader:
    """A reader of a notebook's JSON that notes the places of its strings."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.at = 0

    def _next_character(self) -> str:
        """Moves to the next character that is not white space, and returns it; an empty string at the end."""
        space_match = _SPACE.match(self.content, self.at)
        self.at = space_match.end() if space_match else self.at
        return self.content[self.at : self.at + 1]

    def _take_character(self, allowed_characters: str) -> str:
        """Moves past the next character, which must be one of some, and returns it."""
        character = self._next_character()
        if not character or character not in allowed_characters:
            raise json.JSONDecodeError(f"Expecting {' or '.join(map(repr, allowed_characters))}", self.content, self.at)
        self.at += 1
        return character

    def read_value(self) -> Any:
        """Returns the JSON value at the current place, and moves past it."""
        self._next_character()
        decoded, self.at = _DECODER.raw_decode(self.content, self.at)
        return decoded

    def member_keys(self) -> Iterator[str]:
        """Yields the keys of the JSON object at the current place; the caller reads each value."""
        self._take_character("{")
        if self._next_character() == "}":
            self.at += 1
            return
        while True:
            if self._next_character() != '"':
                raise json.JSONDecodeError("Expecting a key in double quotes", self.content, self.at)
            key: str = self.read_value()
            self._take_character(":")
            yield key
            if self._take_character(",}") == "}":
                return

    def item_numbers(self) -> Iterator[int]:
        """Yields the numbers, from 1, of the items of the JSON list at the place; the caller reads each item."""
        self._take_character("[")
        if self._next_character() == "]":
            self.at += 1
            return
        item_number = 0
        while True:
            item_number += 1
            yield item_number
            if self._take_character(",]") == "]":
                return

    def read_cell(self, number: int) -> Cell | None:
        """Returns the cell at the current place if it is a code cell, and moves past it."""
        cell_type: Any = None
        metadata: Any = None
        code_cell: Cell | None = None
        for key in self.member_keys():
            if key == "source":
                code_cell = self._read_source(number)
            else:
                value = self.read_value()
                cell_type = value if key == "cell_type" else cell_type
                metadata = value if key == "metadata" else metadata
        if cell_type not in ("code", "markdown", "raw"):
            raise ValueError(f"cell {number} has the type {cell_type!r}; expected 'code', 'markdown' or 'raw'")
        if code_cell is None:
            raise ValueError(f"cell {number} has no source")
        return code_cell if cell_type == "code" and _editor_language(metadata) == "python" else None

    def _read_source(self, number: int) -> Cell:
        is_string = self._next_character() == '"'
        start_offset = self.at
        source_pieces: list[Piece] = []
        if is_string:
            source_pieces.append(self._read_piece(number))
        else:
            source_pieces.extend(self._read_piece(number) for _ in self.item_numbers())
        return Cell(number, "".join(piece.text for piece in source_pieces), start_offset, self.at, tuple(source_pieces))

    def _read_piece(self, number: int) -> Piece:
        self._next_character()
        start_offset = self.at
        piece_text = self.read_value()
        if not isinstance(piece_text, str):
            raise ValueError(f"the source of cell {number} holds {type(piece_text).__name__}; expected strings")
        return Piece(start_offset, self.at, piece_text)


def _editor_language(metadata: Any) -> str:
    """Returns the language that an editor chose for one cell; Python if it chose none."""
    editor_settings = metadata.get("vscode") if isinstance(metadata, dict) else None
    language_name = editor_settings.get("languageId") if isinstance(editor_settings, dict) else None
    return language_name.lower() if isinstance(language_name, str) else "python"
