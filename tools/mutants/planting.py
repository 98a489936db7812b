"""Finds the place of a mutant in the source of its module, and replaces it."""

import ast
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mutants.mutant import Mutant


class PlantingError(Exception):
    """A mutant does not apply; the message says why and what to do."""


class Module(NamedTuple):
    """A parsed source file.

    Attributes:
        path: its name.
        source: its text.
        tree: its syntax tree.
        scopes: the functions and classes by their qualified name, which an overloaded function has several times.
    """

    path: str
    source: str
    tree: ast.Module
    scopes: dict[str, list[ast.AST]]

    @classmethod
    def parse(cls, path: str, source: str) -> "Module":
        """Returns the parsed file."""
        tree, scopes = ast.parse(source, path), dict[str, list[ast.AST]]()
        for name, node in _scopes(tree, ""):
            scopes.setdefault(name, []).append(node)
        return cls(path, source, tree, scopes)


class Place(NamedTuple):
    """A part of a source file, in lines from 1 and in bytes of a line."""

    line: int
    column: int
    end_line: int
    end_column: int


def plant(mutant: Mutant, module: Module) -> str:
    """Returns the source of the module with the fault in it.

    Raises:
        PlantingError: if the original is missing or ambiguous, or the replacement changes nothing or does not parse.
    """
    original, replacement = _parse_both(mutant)
    if _dump_nodes(original) == _dump_nodes(replacement):
        raise PlantingError("original and replacement are the same program: write another replacement")
    places = matching_places(mutant, module)
    if not places:
        raise PlantingError(
            f"`{_shorten_to_line(mutant.original)}` is not found in {_location_text(mutant)}: "
            "copy the expression or the statements from the present source"
        )
    if mutant.nth is None and len(places) > 1:
        lines = ", ".join(str(place.line) for place in places)
        raise PlantingError(
            f"`{_shorten_to_line(mutant.original)}` occurs {len(places)} times in {_location_text(mutant)} "
            f"(lines {lines}): quote more of it, or pass nth"
        )
    if mutant.nth is not None and not 1 <= mutant.nth <= len(places):
        raise PlantingError(
            f"nth is {mutant.nth}, but `{_shorten_to_line(mutant.original)}` occurs {len(places)} times in "
            f"{_location_text(mutant)}"
        )
    place = places[(mutant.nth or 1) - 1]
    mutated_source = _replace_place(module.source, place, _replacement_text(mutant))
    # The rest of the module is valid as it was.
    enclosing_node = next(node for node in reversed(module.tree.body) if _place_of(node, node).line <= place.line)
    mutated_lines = mutated_source.splitlines(keepends=True)
    end_line = (enclosing_node.end_lineno or 0) + len(mutated_lines) - len(module.source.splitlines())
    try:
        ast.parse("".join(mutated_lines[_place_of(enclosing_node, enclosing_node).line - 1 : end_line]))
    except SyntaxError as error:
        raise PlantingError(f"the replacement gives no valid program: {error}") from error
    return mutated_source


def matching_places(mutant: Mutant, module: Module) -> list[Place]:
    """Returns the places in the function that equal the original, in the order of the source."""
    original, _ = _parse_both(mutant)
    if mutant.function and mutant.function not in module.scopes:
        raise PlantingError(f"{mutant.module} has no function or class {mutant.function!r}: name its present one")
    original_dump = _dump_nodes(original)
    places: list[Place] = []
    for root in module.scopes.get(mutant.function, [module.tree]):
        if isinstance(original, list):
            for block in _blocks(root):
                places += _matching_sequences(block, original, original_dump, module.source)
        else:
            node_type = type(original)
            places += [
                _place_of(node, node)
                for node in _walk_nodes(root)
                if type(node) is node_type and _dump_nodes(node) == original_dump
            ]
    return sorted(places)


def _parse_both(mutant: Mutant) -> tuple[ast.expr | list[ast.stmt], ast.expr | list[ast.stmt]]:
    """Returns original and replacement, both as expressions or both as statements."""
    original, replacement = _parse_expression(mutant.original), _parse_expression(mutant.replacement)
    if original is None or replacement is None:
        return _parse_statements(mutant.original), _parse_statements(mutant.replacement)
    return original, replacement


def _parse_expression(source: str) -> ast.expr | None:
    try:
        return ast.parse(textwrap.dedent(source).strip(), mode="eval").body
    except SyntaxError:
        return None


def _parse_statements(source: str) -> list[ast.stmt]:
    indented_source = textwrap.indent(textwrap.dedent(source).strip(), "  ")
    try:
        # `return`, `await` and `continue` are valid there.
        function = ast.parse(f"async def _():\n for _ in _:\n{indented_source}").body[0]
    except SyntaxError as error:
        raise PlantingError(f"`{_shorten_to_line(source)}` is neither an expression nor statements: {error}") from error
    assert isinstance(function, ast.AsyncFunctionDef)
    loop = function.body[0]
    assert isinstance(loop, ast.For)
    return loop.body


def _dump_nodes(part: ast.AST | Sequence[ast.AST]) -> str:
    if isinstance(part, ast.AST):
        return ast.dump(part)
    return ";".join(
        _dump_nodes(statement.value if isinstance(statement, ast.Expr) else statement) for statement in part
    )


def _matching_sequences(
    block: list[ast.stmt], original: list[ast.stmt], original_dump: str, source: str
) -> Iterator[Place]:
    count = len(original)
    for start in range(len(block) - count + 1):
        statements = block[start : start + count]
        if (
            type(statements[0]) is type(original[0])
            and _dump_nodes(statements) == original_dump
            and not _is_elif(statements[0], source)
        ):
            yield _place_of(statements[0], statements[-1])


def _scopes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yields the qualified name of each function and class with its node."""
    for block in _direct_blocks(node):
        for child in block:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + child.name, child
                yield from _scopes(child, f"{prefix}{child.name}.")
            else:
                yield from _scopes(child, prefix)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yields all sequences of statements."""
    for block in _direct_blocks(node):
        yield block
        for child in block:
            yield from _blocks(child)


def _direct_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # that of a lambda is an expression
            yield block
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body


def _walk_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all nodes but those in f-strings: Python 3.11 gives wrong places there."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk_nodes(child)


def _is_elif(node: ast.stmt, source: str) -> bool:
    return isinstance(node, ast.If) and source.splitlines()[node.lineno - 1].strip().startswith("elif")


def _place_of(first: ast.AST, last: ast.AST) -> Place:
    decorators = getattr(first, "decorator_list", [])
    line = decorators[0].lineno if decorators else getattr(first, "lineno", 1)
    return Place(
        line,
        getattr(first, "col_offset", 0),
        getattr(last, "end_lineno", 1),
        getattr(last, "end_col_offset", 0),
    )


def _replacement_text(mutant: Mutant) -> str:
    text = textwrap.dedent(mutant.replacement).strip()
    return f"({text})" if isinstance(_parse_both(mutant)[0], ast.expr) else text


def _replace_place(source: str, place: Place, text: str) -> str:
    lines = source.splitlines(keepends=True)
    first, last = lines[place.line - 1].encode(), lines[place.end_line - 1].encode()
    indented_text = text.replace("\n", "\n" + " " * place.column)
    middle_text = first[: place.column].decode() + indented_text + last[place.end_column :].decode()
    return "".join([*lines[: place.line - 1], middle_text, *lines[place.end_line :]])


def _location_text(mutant: Mutant) -> str:
    return f"{mutant.function} of {mutant.module}" if mutant.function else mutant.module


def _shorten_to_line(source: str) -> str:
    text = " ".join(source.split())
    return text if len(text) <= 70 else text[:67] + "..."
