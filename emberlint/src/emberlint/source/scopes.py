"""The scopes of a module, and what binds a name in a scope."""

import ast
from typing import NamedTuple

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPE_NODES = frozenset((ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *COMPREHENSIONS))


class Binding(NamedTuple):
    """A binding: a statement or expression that binds a name in a scope."""

    kind: str  # import, value, parameter, function, class, element (unpacked or iterated), other
    node: ast.AST
    value: ast.expr | None = None  # the bound value, if it is an expression
    origin: str | None = None  # the dotted name, for an import


class Scope:
    """The names bound in one module, class, function or comprehension."""

    __slots__ = ("bindings", "declared", "node", "parent")

    def __init__(self, node: ast.AST, parent: "Scope | None") -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.declared: dict[str, str] = {}  # names declared `global` or `nonlocal`, with that keyword

    @property
    def is_class(self) -> bool:
        """Whether this is a class body, whose names inner functions do not see."""
        return type(self.node) is ast.ClassDef


def unpacked_value(name: ast.Name, target: ast.Tuple | ast.List, assignment: ast.AST | None) -> ast.expr | None:
    """Returns the expression that `a, b = x, y` assigns to `name`, or None."""
    if not isinstance(assignment, ast.Assign) or not isinstance(assignment.value, (ast.Tuple, ast.List)):
        return None
    value_nodes = assignment.value.elts
    has_no_star = not any(isinstance(node, ast.Starred) for node in (*target.elts, *value_nodes))
    return value_nodes[target.elts.index(name)] if has_no_star and len(value_nodes) == len(target.elts) else None


def is_inside(scope: ast.AST, child: ast.AST, below: ast.AST | None) -> bool:
    """Returns whether `child`, a direct child of a scope's node, is evaluated inside the scope.

    `below` is the child of `child` on the way to the expression in question.
    """
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return isinstance(child, ast.stmt)
    if isinstance(scope, ast.Lambda):
        return child is scope.body
    is_first = isinstance(child, ast.comprehension) and child is scope.generators[0]  # type: ignore[attr-defined]
    return not (is_first and isinstance(child, ast.comprehension) and below is child.iter)
