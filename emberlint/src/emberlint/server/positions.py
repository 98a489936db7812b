"""Places and changes of a text as the Language Server Protocol states them."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from emberlint.source.notebooks.magics import LINE

_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class DocumentPlace(NamedTuple):
    """A line and a character in it, both counted from 0; the encoding of the connection defines a character."""

    line: int
    character: int


class Edit(NamedTuple):
    """A range of a text, and the text that replaces it."""

    start: DocumentPlace
    end: DocumentPlace
    text: str


class DocumentText:
    """The lines of a document, with conversions between columns and the editor's positions.

    Args:
        source: The text.
        encoding: The encoding in whose units the protocol counts characters: utf-8, utf-16 or utf-32.
    """

    def __init__(self, source: str, encoding: str = "utf-16") -> None:
        self.lines: list[str] = LINE.findall(source)
        self._codec, self._size = _UNITS[encoding]

    def place(self, line: int, column: int) -> DocumentPlace:
        """Returns the place of a column of a line, both counted from 1, in characters."""
        return DocumentPlace(line - 1, self._unit_count(self._line_text(line)[: column - 1]))

    def line_and_column(self, place: DocumentPlace) -> tuple[int, int]:
        """Returns the line and the column of a place, both counted from 1, in characters."""
        line, unit_count = self._line_text(place.line + 1), 0
        for index, character in enumerate(line):
            if unit_count >= place.character:
                return place.line + 1, index + 1
            unit_count += self._unit_count(character)
        return place.line + 1, len(line) + 1

    def edits(self, after: str) -> Iterator[Edit]:
        """Yields the edits of whole lines that turn this text into another one."""
        old_lines, new_lines = self.lines, LINE.findall(after)
        shorter_length = min(len(old_lines), len(new_lines))
        equal_start_count = next(
            (index for index in range(shorter_length) if old_lines[index] != new_lines[index]), shorter_length
        )
        equal_end_count = next(
            (
                index
                for index in range(shorter_length - equal_start_count)
                if old_lines[-1 - index] != new_lines[-1 - index]
            ),
            shorter_length - equal_start_count,
        )
        line_matcher = SequenceMatcher(
            None,
            old_lines[equal_start_count : len(old_lines) - equal_end_count],
            new_lines[equal_start_count : len(new_lines) - equal_end_count],
            autojunk=False,
        )
        for edit_kind, old_start, old_end, new_start, new_end in line_matcher.get_opcodes():
            if edit_kind != "equal":
                new_text = "".join(new_lines[equal_start_count + new_start : equal_start_count + new_end])
                yield Edit(
                    DocumentPlace(equal_start_count + old_start, 0),
                    self._line_start(equal_start_count + old_end),
                    new_text,
                )

    def _line_start(self, index: int) -> DocumentPlace:
        """Returns the start of a line, or the end of a text whose last line has no line end."""
        if index == len(self.lines) and index and not self.lines[-1].endswith(("\r", "\n")):
            return DocumentPlace(index - 1, self._unit_count(self.lines[-1]))
        return DocumentPlace(index, 0)

    def _line_text(self, line: int) -> str:
        return self.lines[line - 1].rstrip("\r\n") if 0 < line <= len(self.lines) else ""

    def _unit_count(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode(self._codec, "surrogatepass")) // self._size
