"""The server as a process, with the client of pygls as the editor."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

lsp = pytest.importorskip("lsprotocol.types")
LanguageClient = pytest.importorskip("pygls.lsp.client").LanguageClient

pytestmark = pytest.mark.fresh_process
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

    async def start(self, encodings: list[str] | None = None, resolves: bool = False) -> Any:
        await self.client.start_io(sys.executable, "-m", "emberlint", "server")
        general = lsp.GeneralClientCapabilities(position_encodings=encodings)
        resolved = lsp.ClientCodeActionResolveOptions(["edit"]) if resolves else None
        actions = lsp.CodeActionClientCapabilities(resolve_support=resolved)
        documents = lsp.TextDocumentClientCapabilities(code_action=actions)
        abilities = lsp.ClientCapabilities(text_document=documents, general=general)
        params = lsp.InitializeParams(abilities, root_uri=self.root.as_uri())
        result = await asyncio.wait_for(self.client.initialize_async(params), LIMIT)
        self.client.initialized(lsp.InitializedParams())
        return result.capabilities

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

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

    def save(self, name: str) -> None:
        document = lsp.TextDocumentIdentifier(self.uri(name))
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(document))

    async def diagnostics(self) -> list[Any]:
        found = await asyncio.wait_for(self.published.get(), LIMIT)
        assert found.version in (None, self.version)
        return list(found.diagnostics)

    async def actions(self, name: str, line: int, character: int, only: list[str] | None = None) -> list[Any]:
        at = lsp.Position(line, character)
        document = lsp.TextDocumentIdentifier(self.uri(name))
        params = lsp.CodeActionParams(document, lsp.Range(at, at), lsp.CodeActionContext([], only))
        return list(await asyncio.wait_for(self.client.text_document_code_action_async(params), LIMIT))

    async def hover(self, name: str, line: int, character: int) -> str:
        document = lsp.TextDocumentIdentifier(self.uri(name))
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
        lines[one.range.start.line : one.range.end.line] = [one.new_text]
    return "".join(lines)


def test_an_editor_gets_diagnostics_repairs_and_explanations(root: Path) -> None:
    async def scenario(editor: Editor) -> None:
        capabilities = await editor.start()
        assert capabilities.hover_provider
        assert [*capabilities.code_action_provider.code_action_kinds] == ["quickfix", "source.fixAll.emberlint"]
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
        await editor.start(["utf-32", "utf-16"], resolves=True)
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
