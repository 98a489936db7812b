"""Applies fixes to files until nothing more can be repaired."""

import difflib
import os
import shutil
import tempfile
import tokenize
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.rule import ProjectRule
from emberlint.run.check import source_file
from emberlint.run.engine import check_texts, finding_in_cell
from emberlint.run.file_cache import FileCache
from emberlint.run.library import Library
from emberlint.run.registry import all_rules
from emberlint.source.modules import Modules
from emberlint.source.notebooks.joined import NotebookError
from emberlint.source.reading import read_notebook, read_text

ROUNDS = 8  # a repair may expose another finding; expressions are rarely nested deeper than this


class RepairSession:
    """The library and the cache that the repairs of one command share; the check after them reuses the cache."""

    def __init__(self, settings: Settings, codes: frozenset[str], cached: bool) -> None:
        self.library = Library(Modules(settings))
        self.cache = FileCache(settings, codes, cached)


class Repaired(NamedTuple):
    """A file before and after its repair, and the refused findings with the reasons."""

    before: str
    after: str
    refused: tuple[tuple[Finding, str], ...] = ()

    def diff(self, path: str) -> Iterator[str]:
        """Yields the lines of the unified diff of the repair."""
        old_lines, new_lines = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        yield from difflib.unified_diff(old_lines, new_lines, f"a/{path}", f"b/{path}")


def repair_text(
    path: str, text: str, settings: Settings, codes: frozenset[str], unsafe: bool, session: RepairSession | None = None
) -> Repaired:
    """Returns a text with its findings repaired; the repairs of one command share a session.

    Raises:
        UsageError: if libcst is not installed.
    """
    try:
        fix_findings = import_module("emberlint.fixes").fix  # not at the top: it needs libcst, which a check does not
    except ModuleNotFoundError as error:
        raise UsageError(f"a repair needs {error.name}: pip install emberlint") from error
    text_before = text
    # Findings of project rules have no automatic repair.
    file_codes = frozenset(code for code in codes if not isinstance(all_rules()[code], ProjectRule))
    refused_fixes: tuple[tuple[Finding, str], ...] = ()
    repair_session = session or RepairSession(settings, codes, cached=False)
    for _ in range(ROUNDS):
        report = check_texts(
            {path: text}, settings, file_codes, library=repair_session.library, cache=repair_session.cache
        )
        findings = [finding for finding in report.findings if finding.fix is not None]
        if not findings:
            break
        del report
        file = source_file(path, text, settings)
        fix_result = fix_findings(file, findings, unsafe=unsafe)
        file.release()
        refused_fixes = fix_result.refused
        if fix_result.text == text:
            break
        text = fix_result.text
    return Repaired(text_before, text, refused_fixes)


def repair_content(path: str, content: bytes, settings: Settings, codes: frozenset[str], unsafe: bool) -> Repaired:
    """Returns the bytes of a file with its findings repaired and its line ends kept.

    Raises:
        UsageError: if the bytes cannot be decoded.
    """
    try:
        return _repaired_text(path, content, settings, codes, unsafe)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def repair_file(
    path: str,
    file: Path,
    settings: Settings,
    codes: frozenset[str],
    unsafe: bool,
    write: bool,
    session: RepairSession | None = None,
) -> Repaired:
    """Repairs a file on disk, atomically, keeping its encoding, line ends and mode."""
    try:
        repaired = _repaired_text(path, file.read_bytes(), settings, codes, unsafe, session)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return Repaired("", "")  # a later check reports an unreadable file
    if write and repaired.after != repaired.before:
        replace_text(file, repaired.after)
    return repaired


def _repaired_text(
    path: str,
    content: bytes,
    settings: Settings,
    codes: frozenset[str],
    unsafe: bool,
    session: RepairSession | None = None,
) -> Repaired:
    """Returns the text of a file with its findings repaired, also that of a notebook.

    Raises:
        SyntaxError: if the declared encoding does not exist, or if the content is not a notebook.
        UnicodeDecodeError: if the bytes are invalid in the encoding.
    """
    notebook = read_notebook(path, content)
    if notebook is None:
        return repair_text(path, read_text(content, newline=""), settings, codes, unsafe, session)
    repaired = repair_text(path, notebook.text, settings, codes, unsafe, session)
    refused_fixes = tuple((finding_in_cell(finding, notebook), reason) for finding, reason in repaired.refused)
    try:
        return Repaired(notebook.content, notebook.json_with_text(repaired.after), refused_fixes)
    except NotebookError as error:
        findings = check_texts({path: notebook.text}, settings, codes).findings
        unrepaired_findings = tuple(
            (finding_in_cell(finding, notebook), str(error)) for finding in findings if finding.fix is not None
        )
        return Repaired(notebook.content, notebook.content, unrepaired_findings)


def replace_text(file: Path, text: str) -> None:
    """Replaces the text of a file in one step, keeping its encoding and mode."""
    with file.open("rb") as content:
        encoding, _ = tokenize.detect_encoding(content.readline)
    file_descriptor, temporary_path = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(file_descriptor, "w", encoding=encoding, newline="") as stream:
            stream.write(text)
        shutil.copymode(file, temporary_path)
        Path(temporary_path).replace(file)
    except BaseException:
        Path(temporary_path).unlink(missing_ok=True)
        raise
