"""Writes suppression comments: `# noqa: EMB201` on the lines of findings."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.run.repair import Repaired, replace_text
from emberlint.run.suppress import NOQA, is_silenceable
from emberlint.source.notebooks.joined import NotebookError
from emberlint.source.notebooks.magics import LINE
from emberlint.source.parsing import parse
from emberlint.source.reading import read_notebook, read_text

# Since Python 3.12 an f-string, and since 3.14 a template, is several tokens.
_STARTS = {getattr(tokenize, name, tokenize.STRING) for name in ("STRING", "FSTRING_START", "TSTRING_START")}
_ENDS = {getattr(tokenize, name, tokenize.STRING) for name in ("STRING", "FSTRING_END", "TSTRING_END")}


class Silenced(NamedTuple):
    """A file before and after, and the number of lines with a new or longer comment."""

    change: Repaired
    lines: int


def silence(findings: Iterable[Finding], settings: Settings, write: bool) -> dict[str, Silenced]:
    """Writes a comment on the lines of findings; returns the changed files by path.

    A finding about a file that cannot be parsed, or about a comment, stays.

    Args:
        findings: The findings, with paths relative to the project's root.
        settings: The settings of the project.
        write: Whether to write the files, each in one step.
    """
    findings_by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if is_silenceable(finding):
            findings_by_path.setdefault(finding.path, []).append(finding)
    silenced_by_path = {}
    for path, file_findings in findings_by_path.items():
        absolute_path = settings.root / path
        text_change = _silence_file(path, absolute_path, file_findings)
        if text_change.before != text_change.after:
            old_lines, new_lines = text_change.before.splitlines(), text_change.after.splitlines()
            silenced_by_path[path] = Silenced(
                text_change, sum(old_line != new_line for old_line, new_line in zip(old_lines, new_lines, strict=False))
            )
            if write:
                replace_text(absolute_path, text_change.after)
    return silenced_by_path


def _silence_file(path: str, file: Path, findings: Sequence[Finding]) -> Repaired:
    content = file.read_bytes()
    notebook = read_notebook(path, content)
    if notebook is None:
        text = read_text(content, newline="")
        return Repaired(text, _text_of_same_tree(text, add_comments(text, _codes_by_line(findings))))
    findings_in_text = [finding._replace(line=notebook.joined_line(finding.cell, finding.line)) for finding in findings]
    try:
        changed_text = _text_of_same_tree(notebook.text, add_comments(notebook.text, _codes_by_line(findings_in_text)))
        return Repaired(notebook.content, notebook.json_with_text(changed_text))
    except NotebookError:  # the line is one of IPython; its finding is reported again
        return Repaired(notebook.content, notebook.content)


def _text_of_same_tree(text_before: str, text_after: str) -> str:
    """Returns a text with comments if its syntax tree is that of the text without them, else that text."""
    return text_after if ast.dump(parse(text_after)) == ast.dump(parse(text_before)) else text_before


def _codes_by_line(findings: Iterable[Finding]) -> dict[int, set[str]]:
    codes_by_line: dict[int, set[str]] = {}
    for finding in findings:
        codes_by_line.setdefault(finding.line, set()).add(finding.code)
    return codes_by_line


def add_comments(text: str, codes: Mapping[int, Iterable[str]]) -> str:
    """Returns a text with comments that silence rules on lines.

    A comment stands at the end of its line or, if that is inside a string or a continued line, at the end of the next
    line where a comment can stand, which belongs to the same statement. Codes join a `# noqa: F401` that is there. A
    text that cannot be parsed stays as it is.

    Args:
        text: The source.
        codes: The codes by line, counted from 1.
    """
    try:
        comment_columns, lines_within_strings = _comment_columns(text)
    except (tokenize.TokenError, SyntaxError):
        return text
    text_lines = LINE.findall(text) or [""]
    codes_by_line: dict[int, set[str]] = {}
    for line, codes_of_line in codes.items():
        comment_line = line
        while comment_line in lines_within_strings or (
            comment_line not in comment_columns
            and comment_line < len(text_lines)
            and text_lines[comment_line - 1].rstrip("\r\n").endswith("\\")
        ):
            comment_line += 1
        codes_by_line.setdefault(min(comment_line, len(text_lines)), set()).update(codes_of_line)
    for line, line_codes in codes_by_line.items():
        old_line = text_lines[line - 1]
        if not (line == 1 and old_line.startswith("#!")):  # the comment would be an argument of the interpreter
            line_text = old_line.rstrip("\r\n")
            text_lines[line - 1] = (
                _add_comment(line_text, comment_columns.get(line), sorted(line_codes)) + old_line[len(line_text) :]
            )
    return "".join(text_lines)


def _comment_columns(text: str) -> tuple[dict[int, int], set[int]]:
    """Returns the column of the comment of each line that has one, and the lines that end inside a string."""
    column_by_line: dict[int, int] = {}
    lines_within_strings: set[int] = set()
    open_string_lines: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == tokenize.COMMENT:
            column_by_line[token.start[0]] = token.start[1]
        if token.type in _STARTS:
            open_string_lines.append(token.start[0])
        if token.type in _ENDS:
            lines_within_strings.update(range(open_string_lines.pop(), token.end[0]))
    return column_by_line, lines_within_strings


def _add_comment(line: str, start: int | None, codes: Sequence[str]) -> str:
    noqa_match = None if start is None else NOQA.search(line, start)
    if noqa_match is None:
        separator = "  " if line.strip() else ""
        return f"{line.rstrip()}{separator}# noqa: {', '.join(codes)}"
    listed_codes = re.split(r"[,\s]+", noqa_match["codes"].upper())
    added_codes = [code for code in codes if code not in listed_codes]
    return ", ".join([line[: noqa_match.end()], *added_codes]) + line[noqa_match.end() :]
