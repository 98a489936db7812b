"""Ports a file: applies the steps until nothing more changes, and marks what remains."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import NamedTuple

import libcst as cst
from libcst.helpers import get_full_name_for_node

from emberlint.fixes.imports import LINE_END, add_namespaces, comments, remove_imports
from emberlint.fixes.splice import apply_changes
from emberlint.port.conditions import HOST, OWN, Terms
from emberlint.port.modules import KIND
from emberlint.port.own_methods import Methods
from emberlint.port.step import ANNOTATION, Step
from emberlint.port.steps import steps
from emberlint.port.text import WITHOUT_LINE
from emberlint.source.notebooks.joined import CellPlace
from emberlint.source.notebooks.notebook import Notebook
from emberlint.source.parsing import parse
from emberlint.source.source_file import SourceFile

MARK = "# emberlint: port:"
NO_CALLS = frozenset({ANNOTATION, "dtype", "constant", "write"})
ROUNDS = 8  # a ported call may make a method's receiver known as a tensor; chains are rarely longer


class UseReport(NamedTuple):
    """A native use: its name, its kind, its line; and the reason and the way out if it remains.

    In a notebook the line is one of the cell with the number `cell`, which is 0 elsewhere.
    """

    native: str
    kind: str
    line: int
    reason: str = ""
    advice: str = ""
    cell: int = 0


class Ported(NamedTuple):
    """A file before and after: the uses that were ported, by their lines before, and those that remain, after."""

    before: str
    after: str
    ported: tuple[UseReport, ...]
    remaining: tuple[UseReport, ...]

    @property
    def has_modules(self) -> bool:
        """Whether modules, optimizers or loaders were ported."""
        return any(use_report.kind == KIND for use_report in self.ported)

    @property
    def keeps_modules(self) -> bool:
        """Whether modules, optimizers or loaders remain native."""
        return any(use_report.kind == KIND for use_report in self.remaining)

    @property
    def has_dtypes(self) -> bool:
        """Whether dtypes were ported, which other files may read."""
        return any(use_report.kind == "dtype" for use_report in self.ported)

    @property
    def keeps_calls(self) -> bool:
        """Whether native calls remain, to which dtypes of other files may come."""
        return any(use_report.kind not in NO_CALLS for use_report in self.remaining)


def port(
    file: SourceFile,
    parsed: Callable[[str], SourceFile],
    default_float: str = "float32",
    notebook: Notebook | None = None,
    own: Methods = MappingProxyType({}),
    modules: str = "",
    mark: bool = False,
    is_left: bool = False,
) -> Ported:
    """Returns the file with every exact native use ported, and what remains.

    A file that would not parse afterwards, or would lose a comment, is left as it is.

    Args:
        file: The file.
        parsed: Returns the file with another text, to port what the first round made known.
        default_float: The dtype that ops give Python floats in the ported program.
        notebook: The notebook whose joined text the file has. Lines that are not Python may use names, so the imports
            of these stay.
        own: The methods of the classes of the project, also those of other files.
        modules: Why modules and optimizers stay native, if they must.
        mark: Whether a comment above each statement that keeps a native use tells why; a file that has such comments
            gets new ones in any case.
        is_left: Whether native calls are left in another file. Dtypes that this file keeps, as a default or an
            attribute, then stay native, because they may come to such a call.

    Raises:
        NotebookError: if the cells are lost.
    """
    text, ported_uses = file.text, list[UseReport]()
    port_terms = _terms_of_file(file, default_float, own)._replace(modules=modules, is_left=is_left)
    kept_words = notebook.magic_words() if notebook is not None else frozenset()
    current_file = parsed(_remove_marks(text))
    for _ in range(ROUNDS):
        steps_to_apply = [step for step in steps(current_file, port_terms) if step.changes]
        ported_text = _apply_steps(current_file, steps_to_apply, kept_words)
        if ported_text == current_file.text or not _is_sound(current_file.text, ported_text):
            break
        ported_uses += _reported_uses(steps_to_apply, current_file.text, notebook)
        current_file = parsed(ported_text)
    remaining_steps = [step for step in steps(current_file, port_terms) if not step.changes]
    marked_text, line_after_marks = (
        _add_marks(current_file, remaining_steps) if mark or MARK in text else (current_file.text, lambda line: line)
    )
    return Ported(
        text,
        marked_text,
        tuple(ported_uses),
        tuple(_reported_uses(remaining_steps, marked_text, notebook, line_after_marks)),
    )


def _reported_uses(
    steps: list[Step], text: str, notebook: Notebook | None, line_of: Callable[[int], int] = lambda line: line
) -> Iterator[UseReport]:
    """Yields the uses of some steps, at their lines in a text, which are lines of cells in a notebook."""
    current_notebook = notebook and Notebook(notebook.json_with_text(text))
    for step in steps:
        line_number = line_of(step.node.lineno)
        cell_place = (
            current_notebook.place(line_number)
            if current_notebook is not None
            else CellPlace(0, line_number, line_number)
        )
        yield UseReport(step.native, step.kind, cell_place.line, step.reason, step.advice, cell_place.cell)


def _terms_of_file(file: SourceFile, default_float: str, own_methods: Methods) -> Terms:
    """Returns the assumptions of a port of a file; a mark or `ops.to_numpy` shows that it was ported in part."""
    root_packages = {
        f"{binding.origin}".partition(".")[0]
        for name_bindings in file.names.root.bindings.values()
        for binding in name_bindings
    }
    if MARK in file.text and OWN in file.text:
        root_packages.add("torch")
    is_mixed = "emberharmony" in root_packages and file.calls_method(frozenset({"to_numpy"}))
    is_marked = MARK in file.text and HOST in file.text
    is_host = bool(root_packages & {"torch", "mlx", "jax", "tensorflow"}) or is_mixed or is_marked
    return Terms(default_float, is_host, frozenset(root_packages), own_methods)


def _apply_steps(file: SourceFile, changing: list[Step], kept_words: frozenset[str]) -> str:
    """Returns the text with the changes applied, the namespace imported, and the unused native imports dropped."""
    if not changing:
        return file.text
    lines_and_ends = LINE_END.split(file.text)
    lines, line_ends = lines_and_ends[::2], [*lines_and_ends[1::2], ""]
    apply_changes(lines, [change for step in changing for change in step.changes])
    changed_text = "".join(
        line + line_ending for line, line_ending in zip(lines, line_ends, strict=True) if line != WITHOUT_LINE
    )
    added_namespaces = {step.space.namespace for step in changing if step.space is not None and step.space.added}
    native_names = {_first_name(file, step.node) for step in changing}
    try:
        return remove_imports(
            file, cst.parse_module(add_namespaces(changed_text, added_namespaces)), native_names - kept_words - {""}
        ).code
    except (cst.ParserSyntaxError, SyntaxError):
        return file.text


def _first_name(file: SourceFile, node: ast.expr) -> str:
    """Returns the name that a native use begins with, or an empty string for the method of a value."""
    function_node = node.func if isinstance(node, ast.Call) else node
    function_name = (
        get_full_name_for_node(cst.parse_expression(file.segment(function_node)))
        if file.native_origin(function_node)
        else None
    )
    return (function_name or "").partition(".")[0]


def _is_sound(before: str, after: str) -> bool:
    try:
        parse(after)
    except SyntaxError:
        return False
    return comments(before) == comments(after)


def _remove_marks(text: str) -> str:
    """Returns the text without the marks of an earlier port."""
    if MARK not in text:
        return text
    tokens = tokenize.generate_tokens(io.StringIO(text, newline=None).readline)
    mark_lines = {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith(MARK) and token.string.startswith(MARK)
    }
    text_lines = text.splitlines(keepends=True) if "\f" not in text else re.findall(r"[^\n]*\n|[^\n]+", text)
    return "".join(line for number, line in enumerate(text_lines, 1) if number not in mark_lines)


def _add_marks(file: SourceFile, remaining_steps: list[Step]) -> tuple[str, Callable[[int], int]]:
    """Returns the text with a mark above each statement that keeps a native use, and where a line is then."""
    texts_by_line: dict[int, list[str]] = {}
    marked_annotations: set[tuple[str, str]] = set()
    for step in remaining_steps:
        if step.kind == ANNOTATION and (step.native, step.reason) in marked_annotations:
            continue  # a file gets one comment for all annotations with the same type
        marked_annotations.add((step.native, step.reason))
        statement = next((node for node in [step.node, *file.ancestors(step.node)] if isinstance(node, ast.stmt)), None)
        if statement is None:
            continue
        first_line = min(
            [statement.lineno, *(decorator.lineno for decorator in getattr(statement, "decorator_list", []))]
        )
        advice_text = f" ({step.advice})" if step.advice else ""
        mark_text = f"{MARK} {step.native}: {step.reason}{advice_text}"
        if mark_text not in texts_by_line.setdefault(first_line, []):
            texts_by_line[first_line].append(" ".join(mark_text.split()))
    lines_and_ends = LINE_END.split(file.text)
    text_parts: list[str] = []
    for line_number, (line, end) in enumerate(zip(lines_and_ends[::2], [*lines_and_ends[1::2], ""], strict=True), 1):
        indent = line[: len(line) - len(line.lstrip())]
        text_parts += [f"{indent}{mark_text}{end or chr(10)}" for mark_text in texts_by_line.get(line_number, ())]
        text_parts.append(line + end)
    return "".join(text_parts), lambda line: line + sum(len(mark) for at, mark in texts_by_line.items() if at <= line)
