"""Adds imports that repairs need, and removes imports that nothing uses after the repairs."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import RemoveImportsVisitor

from emberlint.source.parsing import parse
from emberlint.source.source_file import SourceFile

LINE_END = re.compile(r"(\r\n|\r|\n)")


def add_namespaces(text: str, namespaces: Iterable[str]) -> str:
    """Returns a text with imports of namespaces added to its first imports, or after them.

    Raises:
        SyntaxError: if the text is not Python.
    """
    for namespace in sorted(namespaces):
        text = _add_namespace(text, parse(text), namespace)
    return text


def _add_namespace(text: str, tree: ast.Module, namespace: str) -> str:
    package, _, name = namespace.rpartition(".")
    import_text = f"from {package} import {name}" if package else f"import {name}"
    lines_and_ends = LINE_END.split(text)
    first_statements = [*_first_statements(tree)]
    for first_statement in first_statements:
        if (
            isinstance(first_statement, ast.ImportFrom)
            and package
            and first_statement.module == package
            and not first_statement.level
            and first_statement.names[0].name != "*"
        ):
            column = first_statement.names[0].col_offset
            line_bytes = lines_and_ends[2 * first_statement.names[0].lineno - 2].encode()
            lines_and_ends[2 * first_statement.names[0].lineno - 2] = (
                line_bytes[:column] + f"{name}, ".encode() + line_bytes[column:]
            ).decode()
            return "".join(lines_and_ends)
    last_line = first_statements[-1].end_lineno or 1 if first_statements else _first_line(tree) - 1
    pieces_before, pieces_after = lines_and_ends[: 2 * last_line], lines_and_ends[2 * last_line :]
    line_end = next((piece for piece in lines_and_ends[1::2]), "\n")
    if len(pieces_before) % 2:
        pieces_before.append(line_end)  # the file ends without a line end
    needs_blank_line = len(tree.body) > len(first_statements) and pieces_after[0].strip() != ""
    return "".join([*pieces_before, f"{import_text}{line_end}{line_end if needs_blank_line else ''}", *pieces_after])


def _first_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yields the docstring and the imports before all other statements, each alone on its lines."""
    has_docstring = ast.get_docstring(tree, clean=False) is not None
    for number, statement in enumerate(tree.body):
        is_alone = number + 1 == len(tree.body) or tree.body[number + 1].lineno != statement.end_lineno
        if not is_alone or not (isinstance(statement, ast.Import | ast.ImportFrom) or (has_docstring and number == 0)):
            return
        yield statement


def _first_line(tree: ast.Module) -> int:
    """Returns the line of the first statement of a module, with its decorators."""
    first_nodes = [*tree.body[:1], *(getattr(tree.body[0], "decorator_list", ()) if tree.body else ())]
    return min((node.lineno for node in first_nodes), default=1)


def remove_imports(file: SourceFile, tree: cst.Module, names: Iterable[str]) -> cst.Module:
    """Returns the module without the imports that were used only by repaired expressions.

    An import with a comment stays, because a person must judge whether the comment still applies.
    """
    # Names that the module still reads are sorted out first, because LibCST takes a tenth of a second.
    names_read = {node.id for node in ast.walk(parse(tree.code)) if isinstance(node, ast.Name)}
    for name in sorted({*names} - names_read):
        for binding in file.names.root.bindings.get(name, ()):
            statement = file.parent(binding.node)
            if not isinstance(binding.node, ast.alias) or not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            alias, context = binding.node, CodemodContext()
            module_name = alias.name if isinstance(statement, ast.Import) else statement.module or ""
            member_name = None if isinstance(statement, ast.Import) else alias.name
            RemoveImportsVisitor.remove_unused_import(context, module_name, member_name, alias.asname)
            shortened_tree = RemoveImportsVisitor(context).transform_module(tree)
            tree = shortened_tree if comments(shortened_tree.code) == comments(tree.code) else tree
    return tree


def comments(text: str, head: str = "") -> list[str]:
    """Returns the comments of a text, sorted; `head` is what the text needs before it to be parsed."""
    if "#" not in text:
        return []
    tokens = tokenize.generate_tokens(io.StringIO(head + text, newline=None).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)
