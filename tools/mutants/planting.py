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
    if _dump(original) == _dump(replacement):
        raise PlantingError("original and replacement are the same program: write another replacement")
    places = matches(mutant, module)
    if not places:
        raise PlantingError(
            f"`{_one_line(mutant.original)}` is not found in {_where(mutant)}: "
            "copy the expression or the statements from the present source"
        )
    if mutant.nth is None and len(places) > 1:
        lines = ", ".join(str(place.line) for place in places)
        raise PlantingError(
            f"`{_one_line(mutant.original)}` occurs {len(places)} times in {_where(mutant)} (lines {lines}): "
            "quote more of it, or pass nth"
        )
    if mutant.nth is not None and not 1 <= mutant.nth <= len(places):
        raise PlantingError(
            f"nth is {mutant.nth}, but `{_one_line(mutant.original)}` occurs {len(places)} times in {_where(mutant)}"
        )
    place = places[(mutant.nth or 1) - 1]
    mutated = _replace(module.source, place, _text(mutant))
    # The rest of the module is valid as it was.
    around = next(node for node in reversed(module.tree.body) if _span(node, node).line <= place.line)
    text = mutated.splitlines(keepends=True)
    end = (around.end_lineno or 0) + len(text) - len(module.source.splitlines())
    try:
        ast.parse("".join(text[_span(around, around).line - 1 : end]))
    except SyntaxError as error:
        raise PlantingError(f"the replacement gives no valid program: {error}") from error
    return mutated


def matches(mutant: Mutant, module: Module) -> list[Place]:
    """Returns the places in the function that equal the original, in the order of the source."""
    original, _ = _parse_both(mutant)
    if mutant.function and mutant.function not in module.scopes:
        raise PlantingError(f"{mutant.module} has no function or class {mutant.function!r}: name its present one")
    wanted = _dump(original)
    places: list[Place] = []
    for root in module.scopes.get(mutant.function, [module.tree]):
        if isinstance(original, list):
            for block in _blocks(root):
                places += _sequences(block, original, wanted, module.source)
        else:
            kind = type(original)
            places += [_span(node, node) for node in _walk(root) if type(node) is kind and _dump(node) == wanted]
    return sorted(places)


def _parse_both(mutant: Mutant) -> tuple[ast.expr | list[ast.stmt], ast.expr | list[ast.stmt]]:
    """Returns original and replacement, both as expressions or both as statements."""
    original, replacement = _expression(mutant.original), _expression(mutant.replacement)
    if original is None or replacement is None:
        return _statements(mutant.original), _statements(mutant.replacement)
    return original, replacement


def _expression(source: str) -> ast.expr | None:
    try:
        return ast.parse(textwrap.dedent(source).strip(), mode="eval").body
    except SyntaxError:
        return None


def _statements(source: str) -> list[ast.stmt]:
    text = textwrap.indent(textwrap.dedent(source).strip(), "  ")
    try:
        # `return`, `await` and `continue` are valid there.
        function = ast.parse(f"async def _():\n for _ in _:\n{text}").body[0]
    except SyntaxError as error:
        raise PlantingError(f"`{_one_line(source)}` is neither an expression nor statements: {error}") from error
    assert isinstance(function, ast.AsyncFunctionDef)
    loop = function.body[0]
    assert isinstance(loop, ast.For)
    return loop.body


def _dump(part: ast.AST | Sequence[ast.AST]) -> str:
    if isinstance(part, ast.AST):
        return ast.dump(part)
    return ";".join(_dump(statement.value if isinstance(statement, ast.Expr) else statement) for statement in part)


def _sequences(block: list[ast.stmt], original: list[ast.stmt], wanted: str, source: str) -> Iterator[Place]:
    count = len(original)
    for start in range(len(block) - count + 1):
        part = block[start : start + count]
        if type(part[0]) is type(original[0]) and _dump(part) == wanted and not _is_elif(part[0], source):
            yield _span(part[0], part[-1])


def _scopes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Yields the qualified name of each function and class with its node."""
    for block in _own_blocks(node):
        for child in block:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + child.name, child
                yield from _scopes(child, f"{prefix}{child.name}.")
            else:
                yield from _scopes(child, prefix)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yields all sequences of statements."""
    for block in _own_blocks(node):
        yield block
        for child in block:
            yield from _blocks(child)


def _own_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # that of a lambda is an expression
            yield block
    for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield inner.body


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all nodes but those in f-strings: Python 3.11 gives wrong places there."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _is_elif(node: ast.stmt, source: str) -> bool:
    return isinstance(node, ast.If) and source.splitlines()[node.lineno - 1].strip().startswith("elif")


def _span(first: ast.AST, last: ast.AST) -> Place:
    decorators = getattr(first, "decorator_list", [])
    line = decorators[0].lineno if decorators else getattr(first, "lineno", 1)
    return Place(
        line,
        getattr(first, "col_offset", 0),
        getattr(last, "end_lineno", 1),
        getattr(last, "end_col_offset", 0),
    )


def _text(mutant: Mutant) -> str:
    text = textwrap.dedent(mutant.replacement).strip()
    return f"({text})" if isinstance(_parse_both(mutant)[0], ast.expr) else text


def _replace(source: str, place: Place, text: str) -> str:
    lines = source.splitlines(keepends=True)
    first, last = lines[place.line - 1].encode(), lines[place.end_line - 1].encode()
    indented = text.replace("\n", "\n" + " " * place.column)
    middle = first[: place.column].decode() + indented + last[place.end_column :].decode()
    return "".join([*lines[: place.line - 1], middle, *lines[place.end_line :]])


def _where(mutant: Mutant) -> str:
    return f"{mutant.function} of {mutant.module}" if mutant.function else mutant.module


def _one_line(source: str) -> str:
    text = " ".join(source.split())
    return text if len(text) <= 70 else text[:67] + "..."
