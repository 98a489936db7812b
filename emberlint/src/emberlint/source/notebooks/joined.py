"""The code cells of a notebook as one text of Python, and the way back to the cells.

A comment begins each cell, and stands for each line that is not Python. These comments survive repairs, so a repaired
text tells which of its lines belong to which cell.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from emberlint.source.notebooks.cells import Cell
from emberlint.source.notebooks.magics import LINE, PYTHON_CELLS, cell_magic, python_of_magics

MARK = "# emberlint-notebook"
_LINE = re.compile(r"\(line (\d+)\)")


class NotebookError(SyntaxError):
    """Raised for a file that is not a notebook, and for a text in which the marks of the cells are lost."""


class CellPlace(NamedTuple):
    """A place in a notebook: the number of the cell among all cells, the line in the cell, the line in the file.

    The line in the file is 0 if there is no file.
    """

    cell: int
    line: int
    file_line: int = 0


class Joined:
    """The code cells of a notebook joined to one text.

    Args:
        cells: The code cells; those in another language, as after `%%bash`, are left out.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = [cell for cell in cells if _is_python(cell)]
        self._mark = MARK
        while any(self._mark in cell.source for cell in self.cells):
            self._mark += "-"
        self._magics: list[str] = []
        self._starts: list[int] = []
        self.text = "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yields the lines of the joined text."""
        line_number = 1
        for cell in self.cells:
            self._starts.append(line_number)
            lines, plain_lines = LINE.findall(cell.source), python_of_magics(cell.source)
            yield f"{self._mark} cell {cell.number}\n"
            for index, line in enumerate(lines):
                if index in plain_lines:
                    separator = "  " if plain_lines[index] else ""
                    yield f"{plain_lines[index]}{separator}{self._mark} line {len(self._magics)}\n"
                    self._magics.append(line.rstrip("\r\n"))
                else:
                    yield line if line.endswith(("\r", "\n")) else f"{line}\n"
            line_number += 1 + len(lines)

    def place(self, line: int) -> CellPlace:
        """Returns the place of a line of the joined text."""
        cell_index = max(bisect_right(self._starts, line) - 1, 0)
        return CellPlace(self.cells[cell_index].number, max(line - self._starts[cell_index], 1))

    def joined_line(self, cell: int, line: int) -> int:
        """Returns the line of the joined text at a line of a cell.

        Raises:
            ValueError: if the cell has no Python code.
        """
        cell_numbers = [cell.number for cell in self.cells]
        if cell not in cell_numbers:
            raise ValueError(f"cell {cell} has no Python code; the cells {cell_numbers} have")
        return self._starts[cell_numbers.index(cell)] + line

    def reword_lines(self, text: str) -> str:
        """Returns a text with its `(line 7)`, a line of the joined text, as `(cell 2, line 3)`."""
        words_and_places = ((match[0], self.place(int(match[1]))) for match in _LINE.finditer(text))
        for line_text, cell_place in words_and_places:
            text = text.replace(line_text, f"(cell {cell_place.cell}, line {cell_place.line})")
        return text

    def cell_sources(self, text: str) -> list[str]:
        """Returns the source of each cell in another form of the joined text.

        Raises:
            NotebookError: if the text does not have the cells and the magics of this notebook.
        """
        lines_by_cell: list[list[str]] = []
        magic_numbers: list[int] = []
        cell_numbers: list[int] = []
        mark_pattern = re.compile(rf".*{re.escape(self._mark)} (cell|line) (\d+)[\r\n]*\Z")
        for line in LINE.findall(text):
            mark_match = mark_pattern.match(line)
            if mark_match and mark_match[1] == "cell":
                cell_numbers.append(int(mark_match[2]))
                lines_by_cell.append([])
            elif not lines_by_cell:
                lines_by_cell.append([line])  # a line before the first cell; it is refused below
            elif mark_match:
                magic_numbers.append(int(mark_match[2]))
                magic_line = self._magics[int(mark_match[2])]
                if magic_line.startswith("%%") and "".join(lines_by_cell[-1]).strip():
                    raise NotebookError(f"`{magic_line}` would no longer be the first line of its cell")
                lines_by_cell[-1].append(magic_line + line[len(line.rstrip("\r\n")) :])
            else:
                lines_by_cell[-1].append(line)
        if cell_numbers != [cell.number for cell in self.cells] or magic_numbers != [*range(len(self._magics))]:
            raise NotebookError("the marks of the cells are lost")
        if len(lines_by_cell) != len(cell_numbers):
            raise NotebookError("a line would stand before the first cell")
        cell_sources = ["".join(source) for source in lines_by_cell]
        # The joined text ends each cell with a line end, which the cell itself may lack.
        return [
            new_source.removesuffix("\n") if not cell.source.endswith(("\r", "\n")) else new_source
            for cell, new_source in zip(self.cells, cell_sources, strict=True)
        ]


def _is_python(cell: Cell) -> bool:
    return (cell_magic(cell.source) or "time") in PYTHON_CELLS
