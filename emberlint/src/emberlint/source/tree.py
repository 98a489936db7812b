"""An index of a syntax tree, made in one walk: the nodes by type and the parent of each."""

import ast
from collections.abc import Iterator
from typing import Any, TypeVar, overload

A = TypeVar("A", bound=ast.AST)
B = TypeVar("B", bound=ast.AST)
C = TypeVar("C", bound=ast.AST)

# Fields that hold no nodes, or only the nodes of contexts and operators, which the index leaves out.
_PLAIN = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "asname", "module", "level", "kind", "conversion", "is_async", "simple"}
    | {"rest", "kwd_attrs", "type_comment", "type_ignores", "tag", "str"}
)
_NOT_PLAIN = {"name": {"TypeAlias"}, "names": {"Import", "ImportFrom"}}  # the types in which these fields hold nodes
_CONSTANTS = frozenset({"Constant", "MatchSingleton"})  # the types whose field `value` is no node


def _node_fields() -> dict[type[ast.AST], tuple[str, ...]]:
    """Returns the fields of each type of node that hold nodes, the last one first."""
    fields_by_type = {}
    for node_class in vars(ast).values():
        if isinstance(node_class, type) and issubclass(node_class, ast.AST):
            field_names_reversed = () if node_class.__name__ in _CONSTANTS else reversed(node_class._fields)
            field_names = (
                name
                for name in field_names_reversed
                if name not in _PLAIN and node_class.__name__ in _NOT_PLAIN.get(name, {node_class.__name__})
            )
            fields_by_type[node_class] = tuple(field_names)
    return fields_by_type


_FIELDS = _node_fields()


class Tree:
    """The nodes of a module in source order."""

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.parents: dict[ast.AST, ast.AST] = {}
        self.by_type: dict[type[ast.AST], list[ast.AST]] = {}
        self._walk(module)

    def _walk(self, module: ast.Module) -> None:
        # This is the hottest loop of the linter, so it uses local names, knows the fields of each type that hold nodes,
        # and avoids ast.iter_child_nodes, which is several times slower.
        parents, nodes_by_type, fields_by_type = self.parents, self.by_type, _FIELDS
        pending_nodes: list[ast.AST] = [module]
        pop, push = pending_nodes.pop, pending_nodes.append
        while pending_nodes:
            node = pop()
            node_type = type(node)
            if node_type in nodes_by_type:
                nodes_by_type[node_type].append(node)
            else:
                nodes_by_type[node_type] = [node]
            for name in fields_by_type[node_type]:
                field_value = getattr(node, name)
                if type(field_value) is list:
                    for child in reversed(field_value):
                        if child is not None:
                            parents[child] = node
                            push(child)
                elif field_value is not None:
                    parents[field_value] = node
                    push(field_value)

    @overload
    def nodes(self, kind: type[A], /) -> Iterator[A]: ...
    @overload
    def nodes(self, kind: type[A], second: type[B], /) -> Iterator[A | B]: ...
    @overload
    def nodes(self, kind: type[A], second: type[B], third: type[C], /) -> Iterator[A | B | C]: ...
    def nodes(self, *kinds: type[Any]) -> Iterator[Any]:
        """Yields the nodes of exactly these types, type by type."""
        for node_class in kinds:
            yield from self.by_type.get(node_class, ())

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the ancestors of `node`, the innermost first."""
        parents = self.parents
        ancestor = parents.get(node)
        while ancestor is not None:
            yield ancestor
            ancestor = parents.get(ancestor)
