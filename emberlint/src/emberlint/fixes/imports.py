"""Adds the imports that repairs need, and removes those that they made useless."""

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


def with_namespaces(text: str, namespaces: Iterable[str]) -> str:
    """Returns a text with imports of namespaces added to its first imports, or after them.

    Raises:
        SyntaxError: if the text is not Python.
    """
    for namespace in sorted(namespaces):
        text = _with_namespace(text, parse(text), namespace)
    return text


def _with_namespace(text: str, tree: ast.Module, namespace: str) -> str:
    package, _, name = namespace.rpartition(".")
    statement = f"from {package} import {name}" if package else f"import {name}"
    pieces = LINE_END.split(text)
    first_statements = [*_first_statements(tree)]
    for alias in first_statements:
        if (
            isinstance(alias, ast.ImportFrom)
            and package
            and alias.module == package
            and not alias.level
            and alias.names[0].name != "*"
        ):
            column = alias.names[0].col_offset
            line = pieces[2 * alias.names[0].lineno - 2].encode()
            pieces[2 * alias.names[0].lineno - 2] = (line[:column] + f"{name}, ".encode() + line[column:]).decode()
            return "".join(pieces)
    last_line = first_statements[-1].end_lineno or 1 if first_statements else _first_line(tree) - 1
    head, tail = pieces[: 2 * last_line], pieces[2 * last_line :]
    end = next((piece for piece in pieces[1::2]), "\n")
    if len(head) % 2:
        head.append(end)  # the file ends without a line end
    is_close = len(tree.body) > len(first_statements) and tail[0].strip() != ""
    return "".join([*head, f"{statement}{end}{end if is_close else ''}", *tail])


def _first_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yields the docstring and the imports before all other statements, each alone on its lines."""
    has_docstring = ast.get_docstring(tree, clean=False) is not None
    for number, statement in enumerate(tree.body):
        is_alone = number + 1 == len(tree.body) or tree.body[number + 1].lineno != statement.end_lineno
        if not is_alone or not (isinstance(statement, ast.Import | ast.ImportFrom) or (has_docstring and number == 0)):
            return
        yield statement


def _first_line(tree: ast.Module) -> int:
    """Returns the line of the first statement."""
    nodes = [*tree.body[:1], *(getattr(tree.body[0], "decorator_list", ()) if tree.body else ())]
    return min((node.lineno for node in nodes), default=1)


def without(file: SourceFile, tree: cst.Module, names: Iterable[str]) -> cst.Module:
    """Returns the module without the imports that were used only by repaired expressions.

    An import with a comment stays, because a person must judge whether the comment still applies.
    """
    # LibCST looks at scopes too, but takes a tenth of a second even where the module still reads the name.
    names_read = {node.id for node in ast.walk(parse(tree.code)) if isinstance(node, ast.Name)}
    for name in sorted({*names} - names_read):
        for binding in file.names.root.bindings.get(name, ()):
            statement = file.parent(binding.node)
            if not isinstance(binding.node, ast.alias) or not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            alias, context = binding.node, CodemodContext()
            module = alias.name if isinstance(statement, ast.Import) else statement.module or ""
            member = None if isinstance(statement, ast.Import) else alias.name
            RemoveImportsVisitor.remove_unused_import(context, module, member, alias.asname)
            shorter = RemoveImportsVisitor(context).transform_module(tree)
            tree = shorter if comments(shorter.code) == comments(tree.code) else tree
    return tree


def comments(text: str, head: str = "") -> list[str]:
    """Returns the comments of a text, sorted; `head` is what the text needs before it to be parsed."""
    if "#" not in text:
        return []
    tokens = tokenize.generate_tokens(io.StringIO(head + text, newline=None).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)
