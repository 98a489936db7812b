"""An index of a syntax tree, made in one walk: the nodes by type and the parent of each."""

import ast
from collections.abc import Iterator
from typing import Any, TypeVar, overload

A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)
C = TypeVar("C", bound=ast.AST)


class Tree:
    """The nodes of a module in source order."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.parents: dict[ast.AST, ast.AST] = {}
        self.by_type: dict[type[ast.AST], list[ast.AST]] = {}
        self._walk(module)

    def _walk(self, module: ast.Module) -> None:
        # This is the hottest loop of the linter, so it uses local names and avoids ast.iter_child_nodes, which is three
        # times slower.
        parents, by_type = self.parents, self.by_type
        node_type, skipped = ast.AST, (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
        stack: list[ast.AST] = [module]
        pop = stack.pop
        while stack:
            node = pop()
            kind = type(node)
            try:
                by_type[kind].append(node)
            except KeyError:
                by_type[kind] = [node]
            children: list[ast.AST] = []
            for value in node.__dict__.values():
                if type(value) is list:
                    children.extend(child for child in value if isinstance(child, node_type))
                elif isinstance(value, node_type):
                    children.append(value)
            for child in reversed(children):
                if not isinstance(child, skipped):
                    parents[child] = node
                    stack.append(child)

    @overload
    def nodes(self, kind: type[A], /) -> Iterator[A]: ...
    @overload
    def nodes(self, kind: type[A], second: type[B], /) -> Iterator[A | B]: ...
    @overload
    def nodes(self, kind: type[A], second: type[B], third: type[C], /) -> Iterator[A | B | C]: ...
    def nodes(self, *kinds: type[Any]) -> Iterator[Any]:
        """Yields the nodes of exactly these types, type by type."""
        for kind in kinds:
            yield from self.by_type.get(kind, ())

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the ancestors of `node`, the innermost first."""
        parents = self.parents
        above = parents.get(node)
        while above is not None:
            yield above
            above = parents.get(above)
