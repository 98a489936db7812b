"""What an editor has open: text documents, and notebooks, whose cells are documents of their own."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument, Workspace

from emberlint.findings import Finding
from emberlint.run.engine import finding_in_cell
from emberlint.source.notebooks.cells import Cell
from emberlint.source.notebooks.joined import Joined

LANGUAGE = "python"


class Document:
    """A text document.

    Attributes:
        uri: The address.
        version: The number of its state.
        parts: The documents of the editor in which findings are shown, by address; none if it is not open.
    """

    def __init__(self, uri: str, version: int | None, parts: Mapping[str, TextDocument]) -> None:
        self.uri, self.version, self.parts = uri, version, parts

    @property
    def file(self) -> Path:
        """The absolute path of the document's file."""
        return Path(to_fs_path(self.uri) or "untitled.py").absolute()

    @cached_property
    def text(self) -> str:
        """The text of the document to check."""
        return self.parts[self.uri].source

    def address_and_finding(self, finding: Finding) -> tuple[str, Finding]:
        """Returns the address of the part that a finding is in, and the finding with the lines of this part."""
        return self.uri, finding

    def text_by_address(self, after: str) -> dict[str, str]:
        """Returns the text of each part when the text to check has become `after`."""
        return {self.uri: after}

    def findings_in_part(self, findings: Iterable[Finding], uri: str) -> list[Finding]:
        """Returns the findings in a part, with its lines."""
        return [finding for document_uri, finding in map(self.address_and_finding, findings) if document_uri == uri]


class NotebookDocument(Document):
    """A notebook; its cells of Python are checked as one text."""

    def __init__(self, notebook: lsp.NotebookDocument, parts: Mapping[str, TextDocument]) -> None:
        super().__init__(notebook.uri, notebook.version, parts)
        self._numbers = {cell.document: number for number, cell in enumerate(notebook.cells, 1)}
        self._uris = {number: uri for uri, number in self._numbers.items()}

    @cached_property
    def _joined_cells(self) -> Joined:
        return Joined(Cell(self._numbers[uri], cell_document.source) for uri, cell_document in self.parts.items())

    @cached_property
    def text(self) -> str:
        """The cells as one text."""
        return self._joined_cells.text

    def address_and_finding(self, finding: Finding) -> tuple[str, Finding]:
        """Returns the address of the cell that a finding is in, and the finding with the lines of this cell."""
        cell_finding = finding_in_cell(finding, self._joined_cells)
        return self._uris[cell_finding.cell], cell_finding

    def text_by_address(self, after: str) -> dict[str, str]:
        """Returns the text of each cell of Python when the joined text has become `after`.

        Raises:
            NotebookError: if `after` does not show its cells.
        """
        cell_sources = self._joined_cells.cell_sources(after)
        return {
            self._uris[cell.number]: source for cell, source in zip(self._joined_cells.cells, cell_sources, strict=True)
        }


def document(workspace: Workspace, uri: str) -> Document:
    """Returns the document with an address, or the notebook that has it as a cell."""
    notebook = workspace.get_notebook_document(notebook_uri=uri) or workspace.get_notebook_document(cell_uri=uri)
    if notebook is None:
        text_document = workspace.get_text_document(uri)
        return Document(
            uri, text_document.version, {uri: text_document} if unquote(uri) in workspace.text_documents else {}
        )
    code_cells = (cell.document for cell in notebook.cells if cell.kind == lsp.NotebookCellKind.Code)
    cells_and_documents = ((cell, workspace.get_text_document(cell)) for cell in code_cells)
    return NotebookDocument(
        notebook,
        {
            document: text_document
            for document, text_document in cells_and_documents
            if text_document.language_id == LANGUAGE
        },
    )
