"""Notebooks (`.ipynb`): the Python source of their code cells, and the way back to cells and to the file.

The cells are joined to one text, in which a comment begins each cell and each line that is not Python. These comments
survive repairs, so a repaired text tells which of its lines belong to which cell. In the file, only the strings of
changed cells are replaced: all else keeps its bytes.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from emberlint.source.notebooks.cells import Cell, read
from emberlint.source.notebooks.magics import LINE, PYTHON_CELLS, cell_magic, magics

MARK = "# emberlint-notebook"
_LINE = re.compile(r"\(line (\d+)\)")


class NotebookError(SyntaxError):
    """Raised for a file that is not a notebook, and for a text in which the marks of the cells are lost."""


class Place(NamedTuple):
    """A place in a notebook: the number of the cell among all cells, the line in the cell, the line in the file."""

    cell: int
    line: int
    file_line: int


class Notebook:
    """A notebook in format 4 or later.

    Args:
        content: The JSON text of the file.

    Raises:
        NotebookError: if the text is not such a notebook.
    """

    def __init__(self, content: str) -> None:
        self.content = content
        self.cells: list[Cell] = []
        try:
            notebook, found = read(content)
        except (ValueError, IndexError, RecursionError) as error:
            raise NotebookError(f"not a notebook: {error}") from error
        version = notebook.get("nbformat")
        if not isinstance(version, int):
            raise NotebookError("not a notebook: its JSON has no number `nbformat`")
        if version < 4:
            raise NotebookError(
                f"a notebook of format {version}; `jupyter nbconvert --to notebook --inplace` writes it in format 4"
            )
        if "cells" not in notebook:
            raise NotebookError("not a notebook: its JSON has no list `cells`")
        if _language(notebook.get("metadata")) == "python":
            self.cells = [one for one in found if _is_python(one)]
        self._mark = MARK
        while any(self._mark in one.source for one in self.cells):
            self._mark += "-"
        self._magics: list[str] = []
        self._starts: list[int] = []
        self.text = "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yields the lines of the joined text."""
        number = 1
        for cell in self.cells:
            self._starts.append(number)
            lines, replaced = LINE.findall(cell.source), magics(cell.source)
            yield f"{self._mark} cell {cell.number}\n"
            for index, line in enumerate(lines):
                if index in replaced:
                    gap = "  " if replaced[index] else ""
                    yield f"{replaced[index]}{gap}{self._mark} line {len(self._magics)}\n"
                    self._magics.append(line.rstrip("\r\n"))
                else:
                    yield line if line.endswith(("\r", "\n")) else f"{line}\n"
            number += 1 + len(lines)

    def words(self) -> frozenset[str]:
        """Returns the words of the lines that are not Python, such as `%timeit f(x)`; names may be among them."""
        return frozenset(re.findall(r"\w+", " ".join(self._magics)))

    def place(self, line: int) -> Place:
        """Returns the place of a line of the joined text."""
        if not self.cells:
            return Place(0, line, line)
        index = max(bisect_right(self._starts, line) - 1, 0)
        cell, inside = self.cells[index], max(line - self._starts[index], 1)
        # A string of the file usually holds one line of the cell.
        piece = cell.pieces[min(inside, len(cell.pieces)) - 1] if len(cell.pieces) > 1 else None
        return Place(cell.number, inside, self._file_line(cell.start if piece is None else piece.start))

    def line(self, cell: int, line: int) -> int:
        """Returns the line of the joined text at a line of a cell.

        Raises:
            ValueError: if the cell has no Python code.
        """
        numbers = [one.number for one in self.cells]
        if cell not in numbers:
            raise ValueError(f"cell {cell} has no Python code; the cells {numbers} have")
        return self._starts[numbers.index(cell)] + line

    def worded(self, text: str) -> str:
        """Returns a text with its `(line 7)`, a line of the joined text, as `(cell 2, line 3)`."""
        places = ((match[0], self.place(int(match[1]))) for match in _LINE.finditer(text))
        for word, place in places:
            text = text.replace(word, f"(cell {place.cell}, line {place.line})")
        return text

    @cached_property
    def _file_lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.content)]

    def _file_line(self, at: int) -> int:
        return 1 + bisect_right(self._file_lines, at - 1)

    def replaced(self, text: str) -> str:
        """Returns the JSON text of the notebook with the joined text replaced; unchanged cells keep their bytes.

        Raises:
            NotebookError: if the text does not have the cells and the magics of this notebook.
        """
        content = self.content
        sources = self._sources(text)
        for cell, source in reversed([*zip(self.cells, sources, strict=True)]):
            if source != cell.source:
                content = content[: cell.start] + self._encoded(cell, source) + content[cell.end :]
        return content

    def _sources(self, text: str) -> list[str]:
        sources: list[list[str]] = []
        found: list[int] = []
        seen: list[int] = []
        mark = re.compile(rf".*{re.escape(self._mark)} (cell|line) (\d+)[\r\n]*\Z")
        for line in LINE.findall(text):
            match = mark.match(line)
            if match and match[1] == "cell":
                seen.append(int(match[2]))
                sources.append([])
            elif not sources:
                sources.append([line])  # a line before the first cell; it is refused below
            elif match:
                found.append(int(match[2]))
                original = self._magics[int(match[2])]
                if original.startswith("%%") and "".join(sources[-1]).strip():
                    raise NotebookError(f"`{original}` would no longer be the first line of its cell")
                sources[-1].append(original + line[len(line.rstrip("\r\n")) :])
            else:
                sources[-1].append(line)
        if seen != [one.number for one in self.cells] or found != [*range(len(self._magics))]:
            raise NotebookError("the marks of the cells are lost")
        if len(sources) != len(seen):
            raise NotebookError("a line would stand before the first cell")
        joined = ["".join(one) for one in sources]
        # The joined text ends each cell with a line end, which the cell itself may lack.
        return [
            new.removesuffix("\n") if not cell.source.endswith(("\r", "\n")) else new
            for cell, new in zip(self.cells, joined, strict=True)
        ]

    def _encoded(self, cell: Cell, source: str) -> str:
        """Returns the source of a cell as JSON in the style of the file."""
        ascii_only = self.content.isascii()
        if self.content[cell.start] == '"':
            return json.dumps(source, ensure_ascii=ascii_only)
        known = {one.text: self.content[one.start : one.end] for one in cell.pieces}
        lines = [known.get(one) or json.dumps(one, ensure_ascii=ascii_only) for one in source.splitlines(keepends=True)]
        if not lines or not cell.pieces:
            return json.dumps(source.splitlines(keepends=True), ensure_ascii=ascii_only)
        first, last = cell.pieces[0], cell.pieces[-1]
        head, tail = self.content[cell.start : first.start], self.content[last.end : cell.end]
        if len(cell.pieces) > 1:
            gap = self.content[first.end : cell.pieces[1].start]
        else:
            gap = "," + (head[1:] or " ")
        return head + gap.join(lines) + tail


def _language(metadata: Any) -> str:
    """Returns the language of a notebook, in lower case; Python if it names none."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        table = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(table, dict) and isinstance(table.get(name), str):
            return str(table[name]).lower()
    return "python"


def _is_python(cell: Cell) -> bool:
    return (cell_magic(cell.source) or "time") in PYTHON_CELLS
