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
    """The lines of a document.

    Args:
        source: The text.
        encoding: The encoding in whose units the protocol counts characters: utf-8, utf-16 or utf-32.
    """

    def __init__(self, source: str, encoding: str = "utf-16") -> None:
        self.lines: list[str] = LINE.findall(source)
        self._codec, self._size = _UNITS[encoding]

    def place(self, line: int, column: int) -> DocumentPlace:
        """Returns the place of a column of a line, both counted from 1, in characters."""
        return DocumentPlace(line - 1, self._units(self._line(line)[: column - 1]))

    def column(self, place: DocumentPlace) -> tuple[int, int]:
        """Returns the line and the column of a place, both counted from 1, in characters."""
        line, units = self._line(place.line + 1), 0
        for index, character in enumerate(line):
            if units >= place.character:
                return place.line + 1, index + 1
            units += self._units(character)
        return place.line + 1, len(line) + 1

    def edits(self, after: str) -> Iterator[Edit]:
        """Yields the edits that turn this text into another one, in units of lines."""
        old_lines, new_lines = self.lines, LINE.findall(after)
        shorter = min(len(old_lines), len(new_lines))
        equal_at_start = next((index for index in range(shorter) if old_lines[index] != new_lines[index]), shorter)
        equal_at_end = next(
            (index for index in range(shorter - equal_at_start) if old_lines[-1 - index] != new_lines[-1 - index]),
            shorter - equal_at_start,
        )
        matcher = SequenceMatcher(
            None,
            old_lines[equal_at_start : len(old_lines) - equal_at_end],
            new_lines[equal_at_start : len(new_lines) - equal_at_end],
            autojunk=False,
        )
        for edit_kind, start, end, first, last in matcher.get_opcodes():
            if edit_kind != "equal":
                text = "".join(new_lines[equal_at_start + first : equal_at_start + last])
                yield Edit(DocumentPlace(equal_at_start + start, 0), self._start_of(equal_at_start + end), text)

    def _start_of(self, index: int) -> DocumentPlace:
        """Returns the start of a line, or the end of a text whose last line has no line end."""
        if index == len(self.lines) and index and not self.lines[-1].endswith(("\r", "\n")):
            return DocumentPlace(index - 1, self._units(self.lines[-1]))
        return DocumentPlace(index, 0)

    def _line(self, line: int) -> str:
        return self.lines[line - 1].rstrip("\r\n") if 0 < line <= len(self.lines) else ""

    def _units(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode(self._codec, "surrogatepass")) // self._size
