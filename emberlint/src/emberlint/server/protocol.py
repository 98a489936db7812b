"""The Language Server Protocol: diagnostics, code actions and hovers, by pygls."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lsprotocol import types as lsp
from pygls.capabilities import get_capability
from pygls.lsp.server import LanguageServer

from emberlint import __version__
from emberlint.config.errors import UsageError
from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Safety
from emberlint.run.explanation import explanation_lines, rule_address
from emberlint.run.registry import all_rules
from emberlint.run.suppress import is_silenceable
from emberlint.server.documents import LANGUAGE, Document, document
from emberlint.server.positions import DocumentPlace, DocumentText, Edit
from emberlint.server.session import Checked, Session
from emberlint.source.notebooks.joined import NotebookError

DELAY = 0.2  # seconds without a change before a document is checked
RESOLVED = "text_document.code_action.resolve_support.properties"
FIX_ALL = "source.fixAll.emberlint"
FIX_NOTEBOOK = f"notebook.{FIX_ALL}"
NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    [lsp.NotebookDocumentFilterWithNotebook("jupyter-notebook", [lsp.NotebookCellLanguage(LANGUAGE)])], save=True
)
SEVERITIES = {
    Tier.A: lsp.DiagnosticSeverity.Warning,
    Tier.B: lsp.DiagnosticSeverity.Information,
    Tier.C: lsp.DiagnosticSeverity.Hint,
}


class Server(LanguageServer):
    """The language server, with the open documents of the editor and their findings."""

    def __init__(self) -> None:
        super().__init__("emberlint", __version__, notebook_document_sync=NOTEBOOKS)
        self.session = Session()
        self._checked: dict[str, tuple[int | None, Checked]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._lock = asyncio.Lock()  # one check of a whole project at a time
        self._last_message: str | None = None  # the last message about wrong settings

    def document(self, uri: str) -> Document:
        """Returns the document with an address, or the notebook that has it as a cell."""
        return document(self.workspace, uri)

    def text(self, source: str) -> DocumentText:
        """Returns a text as lines, with positions in the character encoding of the connection."""
        encoding = self.workspace.position_encoding
        return DocumentText(source, "utf-16" if encoding is None else str(getattr(encoding, "value", encoding)))

    def check(self, document: Document) -> Checked | None:
        """Returns a document with its findings, checked unless its version is.

        Returns None if the document is not open, and if the settings are wrong.
        """
        if not document.parts:
            return None
        last_check = self._checked.get(document.uri)
        if last_check is not None and last_check[0] == document.version:
            return last_check[1]
        try:
            check_result = self.session.check(document.file, document.text, whole=False)
        except UsageError as error:
            self._show_message(str(error))
            self._checked.pop(document.uri, None)
            return None
        self._last_message = None
        self._checked[document.uri] = document.version, check_result
        return check_result

    def publish(self, uri: str) -> None:
        """Checks a document and sends its diagnostics."""
        self._cancel_timer(uri)
        document = self.document(uri)
        checked_document = self.check(document)
        for part_uri, content in document.parts.items():
            document_text = self.text(content.source)
            findings = (
                [] if checked_document is None else document.findings_in_part(checked_document.findings, part_uri)
            )
            diagnostics = [_lsp_diagnostic(finding, document_text) for finding in findings]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(part_uri, diagnostics, content.version))

    async def publish_all(self, uri: str) -> None:
        """Publishes, and again when the rules that look at the whole project have run, in a thread."""
        self._checked.pop(uri, None)
        self.publish(uri)
        last_check = self._checked.get(uri)
        if last_check is None or not last_check[1].project.needs_whole_project:
            return
        version, checked_document = last_check
        async with self._lock:
            if self._is_current(uri, version):
                file = checked_document.project.settings.root / checked_document.path
                new_check_result = await asyncio.to_thread(self.session.check, file, checked_document.text)
                if self._is_current(uri, version):
                    self._checked[uri] = version, new_check_result
                    self.publish(uri)

    def _is_current(self, uri: str, version: int | None) -> bool:
        return uri in self._checked and self.document(uri).version == version

    @property
    def resolves_edits(self) -> bool:
        """Whether the editor asks for the edit of an action when the user chooses it."""
        return "edit" in (get_capability(self.client_capabilities, RESOLVED) or ())

    def resolve(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """Returns an action with its edit; without one if the document has changed or the repair is refused."""
        action_data: Any = action.data
        document = self.document(action_data["uri"])
        last_check = self._checked.get(document.uri)
        if last_check is not None and last_check[0] == action_data["version"] == document.version:
            edits_by_uri = {
                uri: [*map(_lsp_edit, edits)]
                for uri, edits in self._edits(document, last_check[1], action_data)
                if edits
            }
            action.edit = lsp.WorkspaceEdit(changes=edits_by_uri) if edits_by_uri else None
        return action

    def _edits(self, document: Document, checked_document: Checked, data: Any) -> Iterator[tuple[str, list[Edit]]]:
        """Yields the edits of each part of a document that an action makes."""
        with suppress(NotebookError):  # the repair would change lines that are not Python, so there is no edit
            for uri, new_text in document.text_by_address(_text_after_action(document, checked_document, data)).items():
                yield uri, [*self.text(document.parts[uri].source).edits(new_text)]

    def publish_soon(self, uri: str) -> None:
        """Checks a document and sends its diagnostics as soon as it has not changed for a moment."""
        self._cancel_timer(uri)
        self._timers[uri] = asyncio.get_running_loop().call_later(DELAY, self.publish, uri)

    def publish_others(self, uri: str) -> None:
        """Checks the other open documents again, which may import a file that was saved."""
        for other_uri in [*self._checked]:
            if other_uri != uri:
                self._checked.pop(other_uri)
                self.publish(other_uri)

    def close(self, uri: str) -> None:
        """Drops a closed document and its findings."""
        self._cancel_timer(uri)
        self._checked.pop(uri, None)
        self.session.forget(self.document(uri).file)

    def clear_diagnostics(self, parts: Iterable[lsp.TextDocumentIdentifier]) -> None:
        """Drops the diagnostics of documents or cells that were closed."""
        for part_uri in parts:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(part_uri.uri, []))

    def _cancel_timer(self, uri: str) -> None:
        publish_timer = self._timers.pop(uri, None)
        if publish_timer is not None:
            publish_timer.cancel()

    def _show_message(self, message: str) -> None:
        if message != self._last_message:
            self._last_message = message
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"emberlint: {message}"))


def create_server() -> Server:
    """Returns a language server with all its features registered."""
    server = Server()
    _add_document_events(server)
    _add_notebook_events(server)
    _add_code_actions(server)
    _add_hover(server)
    return server


def _add_document_events(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def on_open(params: lsp.DidOpenTextDocumentParams) -> None:
        await server.publish_all(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def on_change(params: lsp.DidChangeTextDocumentParams) -> None:
        server.publish_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def on_save(params: lsp.DidSaveTextDocumentParams) -> None:
        server.publish_others(params.text_document.uri)
        await server.publish_all(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def on_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.close(params.text_document.uri)
        server.clear_diagnostics([params.text_document])


def _add_notebook_events(server: Server) -> None:
    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def notebook_opened(params: lsp.DidOpenNotebookDocumentParams) -> None:
        await server.publish_all(params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def notebook_changed(params: lsp.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is not None and cells.structure is not None:
            server.clear_diagnostics(cells.structure.did_close or ())
        server.publish_soon(params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def notebook_saved(params: lsp.DidSaveNotebookDocumentParams) -> None:
        await server.publish_all(params.notebook_document.uri)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(params: lsp.DidCloseNotebookDocumentParams) -> None:
        server.close(params.notebook_document.uri)
        server.clear_diagnostics(params.cell_text_documents)


def _add_code_actions(server: Server) -> None:
    action_kinds = [lsp.CodeActionKind.QuickFix, FIX_ALL, FIX_NOTEBOOK]
    action_options = lsp.CodeActionOptions(code_action_kinds=action_kinds, resolve_provider=True)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, action_options)
    def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = server.document(uri)
        checked_document = server.check(document)
        if checked_document is None or uri not in document.parts:
            return []
        action_state = {"uri": uri, "version": document.version}
        document_text, fix_all = (
            server.text(document.parts[uri].source),
            FIX_ALL if uri == document.uri else FIX_NOTEBOOK,
        )
        actions = [
            *_lsp_actions(
                document.findings_in_part(checked_document.findings, uri), document_text, params, action_state, fix_all
            )
        ]
        return (
            actions
            if server.resolves_edits
            else [action for action in map(server.resolve, actions) if action.edit is not None]
        )

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return server.resolve(action)


def _add_hover(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        uri, position = params.text_document.uri, params.position
        document = server.document(uri)
        checked_document = server.check(document)
        if checked_document is None or uri not in document.parts:
            return None
        document_text = server.text(document.parts[uri].source)
        findings = [
            finding
            for finding in document.findings_in_part(checked_document.findings, uri)
            if _overlaps(_lsp_range(finding, document_text), lsp.Range(position, position))
        ]
        rule_pages = [*_rule_pages(findings), *_rule_pages_at(document_text, position)]
        hover_content = lsp.MarkupContent(lsp.MarkupKind.Markdown, "\n\n---\n\n".join(rule_pages))
        return (
            lsp.Hover(hover_content, _lsp_range(findings[0], document_text) if findings else None)
            if rule_pages
            else None
        )


def _lsp_range(finding: Finding, text: DocumentText) -> lsp.Range:
    start_place, end_place = text.place(finding.line, finding.column), text.place(finding.end_line, finding.end_column)
    return lsp.Range(lsp.Position(*start_place), lsp.Position(*end_place))


def _overlaps(first_range: lsp.Range, second_range: lsp.Range) -> bool:
    return not (first_range.end < second_range.start or second_range.end < first_range.start)


def _lsp_diagnostic(finding: Finding, text: DocumentText) -> lsp.Diagnostic:
    severity = lsp.DiagnosticSeverity.Error if finding.code == "EMB000" else SEVERITIES[finding.tier]
    reason_text = f" ({finding.reason})" if finding.reason else ""
    return lsp.Diagnostic(
        range=_lsp_range(finding, text),
        message=f"{finding.name}: {finding.message}{reason_text}",
        severity=severity,
        code=finding.code,
        code_description=lsp.CodeDescription(rule_address(all_rules()[finding.code])),
        source="emberlint",
    )


def _lsp_edit(edit: Edit) -> lsp.TextEdit:
    return lsp.TextEdit(lsp.Range(lsp.Position(*edit.start), lsp.Position(*edit.end)), edit.text)


def _lsp_actions(
    findings: Sequence[Finding],
    text: DocumentText,
    params: lsp.CodeActionParams,
    state: Mapping[str, object],
    fix_all: str,
) -> Iterator[lsp.CodeAction]:
    """Yields the repairs of the findings in a range, and the comments that silence them, without their edits.

    `state` names the document and its version; the action carries it until the edit is made.
    """
    wanted_kinds, action_kind = params.context.only, lsp.CodeActionKind.QuickFix
    if wanted_kinds is not None and _is_among(fix_all, wanted_kinds):
        yield lsp.CodeAction("emberlint: make the safe repairs", kind=fix_all, data={**state, "do": "all"})
    if wanted_kinds is not None and not _is_among(action_kind.value, wanted_kinds):
        return
    findings_in_range = [finding for finding in findings if _overlaps(_lsp_range(finding, text), params.range)]
    for finding_here in findings_in_range:
        if finding_here.fix is not None and finding_here.fix.safety is not Safety.GUIDED:
            is_safe, diagnostics = finding_here.fix.safety is Safety.SAFE, [_lsp_diagnostic(finding_here, text)]
            action_title = (
                f"emberlint: {finding_here.fix.title}{'' if is_safe else ' (may change a dtype or a device)'}"
            )
            yield lsp.CodeAction(
                action_title,
                action_kind,
                diagnostics,
                is_preferred=is_safe,
                data={**state, "do": "repair", "at": _finding_key(finding_here)},
            )
    for finding_here in findings_in_range:
        if is_silenceable(finding_here):
            action_title = f"emberlint: ignore {finding_here.code} {finding_here.name} on this line"
            yield lsp.CodeAction(
                action_title,
                action_kind,
                [_lsp_diagnostic(finding_here, text)],
                data={**state, "do": "ignore", "at": _finding_key(finding_here)},
            )


def _finding_key(finding: Finding) -> list[object]:
    """Returns a key that identifies a finding in a document."""
    return [finding.code, finding.line, finding.column]


def _text_after_action(document: Document, checked_document: Checked, data: Any) -> str:
    """Returns the text of a document after an action; the same text if the finding is gone."""
    if data["do"] == "all":
        return checked_document.text_after_safe_repairs()
    for finding in checked_document.findings:
        uri, cell_place = document.address_and_finding(finding)
        if (uri, _finding_key(cell_place)) == (data["uri"], data["at"]):
            return (
                checked_document.text_after_repair(finding)
                if data["do"] == "repair"
                else checked_document.text_after_ignore(finding)
            )
    return checked_document.text


def _is_among(kind: str, wanted_kinds: Iterable[str | lsp.CodeActionKind]) -> bool:
    """Returns whether an editor that asks for some kinds of actions, or for all below them, wants this kind."""
    kind_names = [
        wanted_kind.value if isinstance(wanted_kind, lsp.CodeActionKind) else wanted_kind
        for wanted_kind in wanted_kinds
    ]
    return any(not word or kind == word or kind.startswith(f"{word}.") for word in kind_names)


def _rule_pages(findings: Iterable[Finding]) -> Iterator[str]:
    """Yields the pages of the rules of findings, each with the evidence and the advice first."""
    for finding in findings:
        page_lines = [f"**{finding.code} {finding.name}**: {finding.message}", ""]
        if finding.reason:
            page_lines += [f"Because {finding.reason} (tier {finding.tier.name}).", ""]
        if finding.fix is not None:
            page_lines += [f"Repair ({finding.fix.safety.value}): {finding.fix.title}.", ""]
        yield "\n".join([*page_lines, *explanation_lines(all_rules()[finding.code])])


def _rule_pages_at(text: DocumentText, position: lsp.Position) -> Iterator[str]:
    """Yields the page of the rule whose code is at a position, as in `# noqa: EMB201`."""
    line, column = text.line_and_column(DocumentPlace(position.line, position.character))
    line_text = text.lines[line - 1] if line <= len(text.lines) else ""
    for match in re.finditer(r"EMB\d{3}", line_text):
        if match.start() < column <= match.end() + 1 and match[0] in all_rules():
            yield "\n".join(explanation_lines(all_rules()[match[0]]))
