"""Checks one file: decodes it, parses it, runs the rules for single files on it."""

import sys
from collections.abc import Iterator
from hashlib import blake2b

from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.inference import infer, summary
from emberlint.run.library import Shelf
from emberlint.run.registry import all_rules
from emberlint.run.results import FileResult
from emberlint.run.selection import file_rules, is_sure
from emberlint.run.suppress import directives
from emberlint.source.later_syntax import later_python_hint
from emberlint.source.parsing import parse, raise_recursion_limit
from emberlint.source.reading import read_text
from emberlint.source.source_file import SourceFile


def check_bytes(
    path: str, content: bytes | str, settings: Settings, codes: frozenset[str], shelf: Shelf | None = None
) -> FileResult:
    """Returns the result of a file with this content; EMB000 is the only finding if it cannot be decoded."""
    try:
        text = content if isinstance(content, str) else read_text(content)
    except (SyntaxError, UnicodeDecodeError) as error:
        return unreadable_result(path, error)
    return check_text(path, text, settings, codes, shelf)


def check_text(
    path: str, text: str, settings: Settings, codes: frozenset[str], shelf: Shelf | None = None
) -> FileResult:
    """Returns the result of a file with this text; EMB000 is the only finding if it cannot be parsed.

    Args:
        path: The path of the file, relative to the project's root.
        text: The source.
        settings: The settings of the project.
        codes: The codes of the rules to run; without any, only the summary is made.
        shelf: The summaries of the other files; None to check the file alone.
    """
    try:
        file = source_file(path, text, settings, shelf)
    except (SyntaxError, ValueError, RecursionError) as error:
        return FileResult((_syntax_finding(path, text, error, settings),), directives(text, None), ())
    try:
        findings = _findings_of_file(file, codes) if codes else ()
        file_summary = None if shelf is None else summary(file)
        file_directives = directives(text, file.tree) if codes else ()
        near_paths, used_facts = ((), {}) if shelf is None else (shelf.near, shelf.used)
        return FileResult(findings, file_directives, file.imports, file_summary, used_facts, near_paths)
    except RecursionError as error:
        return FileResult((_syntax_finding(path, text, error, settings),), directives(text, None), ())
    finally:
        file.release()


def unreadable_result(path: str, error: Exception) -> FileResult:
    """Returns the result of a file that could not be read or decoded: one EMB000."""
    reason_text = (isinstance(error, OSError) and error.strerror) or str(error)
    return FileResult((all_rules()["EMB000"].finding_at(path, (1, 1, 1, 1), what=reason_text),), (), ())


def source_file(path: str, text: str, settings: Settings, shelf: Shelf | None = None) -> SourceFile:
    """Returns a text as a parsed file with its inference.

    Raises:
        SyntaxError: if the text is not Python.
        ValueError: if the text holds null bytes.
        RecursionError: if its expressions are nested too deeply.
    """
    return SourceFile(path, text, settings, parse(text, settings.target_version), infer, shelf)


def _findings_of_file(file: SourceFile, codes: frozenset[str]) -> tuple[Finding, ...]:
    try:
        return tuple(_findings_of_rules(file, codes))
    except RecursionError:  # the recursion is too deep for a chain of thousands of operators
        file_without_findings = SourceFile(file.path, file.text, file.settings, file.tree, infer, file.neighbours)
        try:
            with raise_recursion_limit():
                return tuple(_findings_of_rules(file_without_findings, codes))
        finally:
            file_without_findings.release()


def _findings_of_rules(file: SourceFile, codes: frozenset[str]) -> Iterator[Finding]:
    for rule in file_rules(file, codes):
        for finding in rule.check(file):
            if is_sure(finding, file.settings):
                yield finding._replace(fingerprint=fingerprint(finding, file.lines))


def _syntax_finding(path: str, text: str, error: Exception, settings: Settings) -> Finding:
    line, column = 1, 1
    reason_text = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if isinstance(error, SyntaxError):
        line, column, reason_text = error.lineno or 1, max(error.offset or 1, 1), error.msg
        target_version = settings.target_version
        if target_version is not None and target_version < sys.version_info[:2] and _does_parse(text):
            reason_text += f" (target-version is {target_version[0]}.{target_version[1]})"
        else:
            reason_text += later_python_hint(text, line)
    return all_rules()["EMB000"].finding_at(path, (line, column, line, column), what=reason_text)


def _does_parse(text: str) -> bool:
    try:
        parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def fingerprint(finding: Finding, lines: list[str]) -> str:
    """Returns a short hash of the rule's code and the source text found; it stays the same when the lines move."""
    stripped_text = " ".join(line.strip() for line in lines[finding.line - 1 : finding.end_line])
    return blake2b(f"{finding.code} {stripped_text}".encode(), digest_size=6).hexdigest()
