"""The server as a process, with the client of pygls as the editor."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

lsp = pytest.importorskip("lsprotocol.types")
LanguageClient = pytest.importorskip("pygls.lsp.client").LanguageClient

pytestmark = [pytest.mark.fresh_process, pytest.mark.sampled(2)]
BAD = "from emberharmony import ops\n\nx = ops.ones(3)\nname = '𝕏'; y = x + 1\n"
LIMIT = 60  # seconds, for an answer on a loaded machine


class Editor:
    """A client that keeps the diagnostics and the messages that it receives."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.published: asyncio.Queue[Any] = asyncio.Queue()
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.client.feature("textDocument/publishDiagnostics")(lambda params: self.published.put_nowait(params))
        self.client.feature("window/showMessage")(lambda params: self.messages.put_nowait(params))
        self.version = 0

    async def start(self, encodings: list[str] | None = None, resolves_edits: bool = False) -> Any:
        await self.client.start_io(sys.executable, "-m", "emberlint", "server")
        general = lsp.GeneralClientCapabilities(position_encodings=encodings)
        resolved = lsp.ClientCodeActionResolveOptions(["edit"]) if resolves_edits else None
        actions = lsp.CodeActionClientCapabilities(resolve_support=resolved)
        documents = lsp.TextDocumentClientCapabilities(code_action=actions)
        notebooks = lsp.NotebookDocumentClientCapabilities(lsp.NotebookDocumentSyncClientCapabilities())
        abilities = lsp.ClientCapabilities(text_document=documents, notebook_document=notebooks, general=general)
        params = lsp.InitializeParams(abilities, root_uri=self.root.as_uri())
        result = await asyncio.wait_for(self.client.initialize_async(params), LIMIT)
        self.client.initialized(lsp.InitializedParams())
        return result.capabilities

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def address(self, name: str) -> str:
        """Returns the address of a file, or of a cell that is written as `n.ipynb#2`."""
        file, _, cell = name.partition("#")
        return self.cell(file, int(cell)) if cell else self.uri(file)

    async def open(self, name: str, text: str) -> list[Any]:
        self.version += 1
        item = lsp.TextDocumentItem(self.uri(name), "python", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    def change(self, name: str, text: str) -> None:
        self.version += 1
        document = lsp.VersionedTextDocumentIdentifier(self.version, self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    def cell(self, name: str, number: int) -> str:
        return f"vscode-notebook-cell:{self.uri(name).removeprefix('file:')}#{number}"

    def open_notebook(self, name: str, cells: list[str]) -> None:
        """Opens a notebook; cells that begin with `#` and a space are Markdown, which the client does not send."""
        self.version += 1
        kinds = lsp.NotebookCellKind
        found = [
            lsp.NotebookCell(kinds.Markup if one.startswith("# ") else kinds.Code, self.cell(name, number))
            for number, one in enumerate(cells)
        ]
        texts = [
            lsp.TextDocumentItem(self.cell(name, number), "python", 1, one)
            for number, one in enumerate(cells)
            if not one.startswith("# ")
        ]
        notebook = lsp.NotebookDocument(self.uri(name), "jupyter-notebook", self.version, found)
        self.client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, texts))

    def change_notebook(self, name: str, change: Any) -> None:
        self.version += 1
        document = lsp.VersionedNotebookDocumentIdentifier(self.version, self.uri(name))
        event = lsp.NotebookDocumentChangeEvent(cells=change)
        self.client.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(document, event))

    async def published_by_cell(self, count: int) -> dict[str, list[str]]:
        """Returns the lines and codes of the diagnostics of some cells, by the end of their address."""
        found = [await asyncio.wait_for(self.published.get(), LIMIT) for _ in range(count)]
        return {
            one.uri.rpartition("#")[2]: [f"{each.range.start.line}:{each.code}" for each in one.diagnostics]
            for one in found
        }

    def save(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(document))

    async def diagnostics(self) -> list[Any]:
        found = await asyncio.wait_for(self.published.get(), LIMIT)
        assert found.version in (None, self.version)
        return list(found.diagnostics)

    async def actions(self, name: str, line: int, character: int, only: list[str] | None = None) -> list[Any]:
        at = lsp.Position(line, character)
        document = lsp.TextDocumentIdentifier(self.address(name))
        params = lsp.CodeActionParams(document, lsp.Range(at, at), lsp.CodeActionContext([], only))
        return list(await asyncio.wait_for(self.client.text_document_code_action_async(params), LIMIT))

    async def hover(self, name: str, line: int, character: int) -> str:
        document = lsp.TextDocumentIdentifier(self.address(name))
        params = lsp.HoverParams(document, lsp.Position(line, character))
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), LIMIT)
        return "" if found is None else str(found.contents.value)

    async def end(self) -> None:
        await asyncio.wait_for(self.client.shutdown_async(None), LIMIT)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), LIMIT)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "core.py").write_text("def made():\n    return 3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(root: Path, scenario: Callable[[Editor], Awaitable[None]]) -> None:
    asyncio.run(scenario(Editor(root)))  # type: ignore[arg-type]


def edited(text: str, edits: list[Any]) -> str:
    """Applies edits of whole lines."""
    lines = text.splitlines(keepends=True)
    for one in sorted(edits, key=lambda one: -one.range.start.line):
        end = one.range.end
        lines[one.range.start.line : end.line + bool(end.character)] = [one.new_text]
    return "".join(lines)


def test_an_editor_gets_diagnostics_repairs_and_explanations(root: Path) -> None:
    async def scenario(editor: Editor) -> None:
        capabilities = await editor.start()
        assert capabilities.hover_provider
        assert [*capabilities.code_action_provider.code_action_kinds] == [
            "quickfix",
            "source.fixAll.emberlint",
            "notebook.source.fixAll.emberlint",
        ]
        (found,) = await editor.open("m.py", BAD)
        assert (found.code, found.source, found.severity) == ("EMB201", "emberlint", lsp.DiagnosticSeverity.Information)
        assert found.code_description.href.endswith("emberlint.html#emb201-tensor-operator")
        assert found.range == lsp.Range(lsp.Position(3, 17), lsp.Position(3, 22))  # in UTF-16
        repair, ignore = await editor.actions("m.py", 3, 18)
        assert (repair.title, repair.is_preferred) == ("emberlint: call `ops.add`", True)
        assert edited(BAD, repair.edit.changes[editor.uri("m.py")]) == BAD.replace("x + 1", "ops.add(x, 1)")
        assert ignore.title == "emberlint: ignore EMB201 tensor-operator on this line"
        assert edited(BAD, ignore.edit.changes[editor.uri("m.py")]) == BAD.replace("x + 1", "x + 1  # noqa: EMB201")
        assert await editor.actions("m.py", 1, 0) == []
        (all_,) = await editor.actions("m.py", 0, 0, ["source.fixAll"])
        assert edited(BAD, all_.edit.changes[editor.uri("m.py")]) == BAD.replace("x + 1", "ops.add(x, 1)")
        page = await editor.hover("m.py", 3, 18)
        assert page.startswith("**EMB201 tensor-operator**: operator `+` on a tensor")
        assert "## EMB201 tensor-operator" in page
        assert "Repair (safe): call `ops.add`." in page
        assert await editor.hover("m.py", 0, 3) == ""
        editor.change("m.py", "x = 1\n")  # one check of the last of several changes
        editor.change("m.py", "import numpy  # noqa: EMB101, EMB102\n")
        (found,) = await editor.diagnostics()
        assert found.code == "EMB901"
        assert "## EMB101 backend-import" in await editor.hover("m.py", 0, 25)
        assert editor.published.empty()
        await editor.end()

    run(root, scenario)


def test_files_that_are_saved_and_settings_count_at_once(root: Path) -> None:
    async def scenario(editor: Editor) -> None:
        await editor.start(["utf-32", "utf-16"], resolves_edits=True)
        text = "from core import made\n\ny = '𝕏', made() + 1\n"
        assert await editor.open("m.py", text) == []
        made = "from emberharmony import ops\n\ndef made():\n    return ops.ones(3)\n"
        assert await editor.open("core.py", made) == []
        (root / "core.py").write_text(made)
        editor.save("core.py")
        first, second = [await asyncio.wait_for(editor.published.get(), LIMIT) for _ in range(2)]
        (found,) = first.diagnostics
        assert (first.uri, found.code) == (editor.uri("m.py"), "EMB201")
        assert (second.uri, [*second.diagnostics]) == (editor.uri("core.py"), [])
        repair, ignore = await editor.actions("m.py", 2, 10)
        assert repair.edit is None  # until the user chooses it
        for action, after in ((repair, "ops.add(made(), 1)"), (ignore, "made() + 1  # noqa: EMB201")):
            found = await asyncio.wait_for(editor.client.code_action_resolve_async(action), LIMIT)
            assert after in edited(text, found.edit.changes[editor.uri("m.py")])
        (root / "pyproject.toml").write_text("[tool.emberlint]\nignored = []\n")
        editor.change("core.py", made + "\n")
        assert await editor.diagnostics() == []
        message = await asyncio.wait_for(editor.messages.get(), LIMIT)
        assert "has no key 'ignored'; did you mean 'ignore'?" in message.message
        assert await editor.actions("core.py", 0, 0) == []
        (root / "pyproject.toml").write_text("[tool.emberlint]\nignore = []\n")
        editor.change("core.py", "x = (\n")
        (found,) = await editor.diagnostics()
        assert (found.code, found.severity) == ("EMB000", lsp.DiagnosticSeverity.Error)
        document = lsp.TextDocumentIdentifier(editor.uri("core.py"))
        editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(document))
        assert await editor.diagnostics() == []
        await editor.end()

    run(root, scenario)


def test_contracts_are_checked_when_a_document_is_opened_or_saved(root: Path) -> None:
    contract = "[[tool.emberlint.contracts]]\ntype = 'layers'\nlayers = ['library.nn', 'library.core']\n"

    async def scenario(editor: Editor) -> None:
        (root / "pyproject.toml").write_text(contract)
        (root / "library").mkdir()
        for name in ("__init__", "nn", "core"):
            (root / "library" / f"{name}.py").write_text("")
        await editor.start()
        text = "import math\nfrom library import nn\n"
        assert await editor.open("library/core.py", text) == []
        (found,) = await editor.diagnostics()
        assert (found.code, found.range.start.line) == ("EMB301", 1)
        editor.change("library/core.py", "\n" + text)
        (found,) = await editor.diagnostics()
        assert (found.code, found.range.start.line) == ("EMB301", 2)
        await editor.end()

    run(root, scenario)


CELLS = [
    "# A title",
    "from emberharmony import ops\n\nx = ops.ones(3)",
    "%matplotlib inline\ny = (\n    x + 1\n)\n",
    "%%bash\nls | wc -l\n",
    "z = y * 2",
]


def test_the_cells_of_a_notebook_are_checked_as_one_program(root: Path) -> None:
    async def scenario(editor: Editor) -> None:
        capabilities = await editor.start(resolves_edits=True)
        assert capabilities.notebook_document_sync.notebook_selector[0].notebook == "jupyter-notebook"
        editor.open_notebook("n.ipynb", CELLS)
        found = await editor.published_by_cell(4)
        assert found == {"1": [], "2": ["2:EMB201"], "3": [], "4": ["0:EMB201"]}
        assert (await editor.hover("n.ipynb#4", 0, 5)).startswith("**EMB201 tensor-operator**: operator `*`")
        assert "(cell 2, line 3)" in await editor.hover("n.ipynb#4", 0, 5)
        repair, ignore = await editor.actions("n.ipynb#4", 0, 5)
        assert await editor.actions("n.ipynb#0", 0, 0) == []
        for action, cell, after in ((repair, 4, "z = ops.multiply(y, 2)"), (ignore, 4, "z = y * 2  # noqa: EMB201")):
            action = await asyncio.wait_for(editor.client.code_action_resolve_async(action), LIMIT)
            (uri,) = action.edit.changes
            assert uri == editor.cell("n.ipynb", cell)
            assert edited(CELLS[cell], action.edit.changes[uri]) == after
        assert await editor.actions("n.ipynb#4", 0, 0, ["source.fixAll"]) == []
        (all_,) = await editor.actions("n.ipynb#2", 0, 0, ["notebook.source.fixAll"])
        all_ = await asyncio.wait_for(editor.client.code_action_resolve_async(all_), LIMIT)
        repaired = {uri: edited(CELLS[int(uri.rpartition("#")[2])], made) for uri, made in all_.edit.changes.items()}
        assert repaired == {
            editor.cell("n.ipynb", 2): "%matplotlib inline\ny = (\n    ops.add(x, 1)\n)\n",
            editor.cell("n.ipynb", 4): "z = ops.multiply(y, 2)",
        }
        await editor.end()

    run(root, scenario)


def test_a_notebook_is_checked_again_when_its_cells_change(root: Path) -> None:
    async def scenario(editor: Editor) -> None:
        await editor.start()
        editor.open_notebook("n.ipynb", CELLS)
        await editor.published_by_cell(4)
        cell = lsp.VersionedTextDocumentIdentifier(2, editor.cell("n.ipynb", 1))
        change = lsp.TextDocumentContentChangeWholeDocument("x = 3")
        content = lsp.NotebookDocumentCellContentChanges(cell, [change])
        editor.change_notebook("n.ipynb", lsp.NotebookDocumentCellChanges(text_content=[content]))
        assert await editor.published_by_cell(4) == {"1": [], "2": [], "3": [], "4": []}
        closed = [lsp.TextDocumentIdentifier(editor.cell("n.ipynb", number)) for number in (1, 2)]
        added = lsp.TextDocumentItem(editor.cell("n.ipynb", 9), "python", 1, "import torch")
        array = lsp.NotebookCellArrayChange(1, 2, [lsp.NotebookCell(lsp.NotebookCellKind.Code, added.uri)])
        structure = lsp.NotebookDocumentCellChangeStructure(array, [added], closed)
        editor.change_notebook("n.ipynb", lsp.NotebookDocumentCellChanges(structure=structure))
        assert await editor.published_by_cell(5) == {"1": [], "2": [], "9": ["0:EMB101"], "3": [], "4": []}
        notebook = lsp.NotebookDocumentIdentifier(editor.uri("n.ipynb"))
        rest = [lsp.TextDocumentIdentifier(editor.cell("n.ipynb", number)) for number in (9, 3, 4)]
        editor.client.notebook_document_did_save(lsp.DidSaveNotebookDocumentParams(notebook))
        assert (await editor.published_by_cell(3))["9"] == ["0:EMB101"]
        editor.client.notebook_document_did_close(lsp.DidCloseNotebookDocumentParams(notebook, rest))
        assert await editor.published_by_cell(3) == {"9": [], "3": [], "4": []}
        await editor.end()

    run(root, scenario)
