"""Notebooks (`.ipynb`): the Python source of their code cells, and the way back to the file.

Only the strings of changed cells are replaced: all else keeps its bytes.
"""

import json
import re
from bisect import bisect_right
from functools import cached_property
from typing import Any

from emberlint.source.notebooks.cells import Cell, read_notebook_and_cells
from emberlint.source.notebooks.joined import CellPlace, Joined, NotebookError


class Notebook(Joined):
    """A notebook in format 4 or later.

    Args:
        content: The JSON text of the file.

    Raises:
        NotebookError: if the text is not such a notebook.
    """

    def __init__(self, content: str) -> None:
        self.content = content
        try:
            notebook, cells = read_notebook_and_cells(content)
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
        super().__init__(cells if _notebook_language(notebook.get("metadata")) == "python" else ())

    def magic_words(self) -> frozenset[str]:
        """Returns the words of the lines that are not Python, such as `%timeit f(x)`; names may be among them."""
        return frozenset(re.findall(r"\w+", " ".join(self._magics)))

    def place(self, line: int) -> CellPlace:
        """Returns the place of a line of the joined text."""
        if not self.cells:
            return CellPlace(0, line, line)
        joined_place = super().place(line)
        cell = next(cell for cell in self.cells if cell.number == joined_place.cell)
        # A string of the file usually holds one line of the cell.
        piece = cell.pieces[min(joined_place.line, len(cell.pieces)) - 1] if len(cell.pieces) > 1 else None
        return joined_place._replace(file_line=self._file_line(cell.start if piece is None else piece.start))

    @cached_property
    def _file_lines(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.content)]

    def _file_line(self, offset: int) -> int:
        return 1 + bisect_right(self._file_lines, offset - 1)

    def json_with_text(self, text: str) -> str:
        """Returns the JSON text of the notebook with the joined text replaced; unchanged cells keep their bytes.

        Raises:
            NotebookError: if the text does not have the cells and the magics of this notebook.
        """
        content = self.content
        cell_sources = self.cell_sources(text)
        for cell, source in reversed([*zip(self.cells, cell_sources, strict=True)]):
            if source != cell.source:
                content = content[: cell.start] + self._encode_source(cell, source) + content[cell.end :]
        return content

    def _encode_source(self, cell: Cell, source: str) -> str:
        """Returns the source of a cell as JSON in the style of the file."""
        is_ascii = self.content.isascii()
        if self.content[cell.start] == '"':
            return json.dumps(source, ensure_ascii=is_ascii)
        encoded_by_text = {piece.text: self.content[piece.start : piece.end] for piece in cell.pieces}
        encoded_lines = [
            encoded_by_text.get(line) or json.dumps(line, ensure_ascii=is_ascii)
            for line in source.splitlines(keepends=True)
        ]
        if not encoded_lines or not cell.pieces:
            return json.dumps(source.splitlines(keepends=True), ensure_ascii=is_ascii)
        first_piece, last_piece = cell.pieces[0], cell.pieces[-1]
        text_before_pieces, text_after_pieces = (
            self.content[cell.start : first_piece.start],
            self.content[last_piece.end : cell.end],
        )
        if len(cell.pieces) > 1:
            separator = self.content[first_piece.end : cell.pieces[1].start]
        else:
            separator = "," + (text_before_pieces[1:] or " ")
        return text_before_pieces + separator.join(encoded_lines) + text_after_pieces


def _notebook_language(metadata: Any) -> str:
    """Returns the language of a notebook, in lower case; Python if it names none."""
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        language_table = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(language_table, dict) and isinstance(language_table.get(name), str):
            return str(language_table[name]).lower()
    return "python"
