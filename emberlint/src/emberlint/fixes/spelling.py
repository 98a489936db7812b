"""How the namespace of ops is written where a repair needs it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from emberlint.source.names import Binding, Scope
from emberlint.source.source_file import SourceFile

# Packages that give their namespace as an attribute: after `import keras`, `keras.ops` is there.
EAGER = frozenset({"emberharmony.ops", "keras.ops"})


@dataclass(frozen=True)
class Spelling:
    """The expression that names the namespace; `added` where it is to be imported first."""

    text: str
    namespace: str
    added: bool = False


class ShadowedError(Exception):
    """The name of the namespace means something else where it is needed."""


def spelling(file: SourceFile, node: ast.expr | ast.stmt) -> Spelling:
    """Return how to write the namespace at a node.

    Raises: ShadowedError where the name it would need is taken there.
    """
    chain = list(_chain(file, node))
    shadowed = ""
    for exact in (True, False):
        for scope, name, binding in _bindings(chain):
            namespace = _named(file, binding, exact)
            if namespace is None:
                continue
            # The nearest scope that has the name is where it is looked up; all its bindings there must agree.
            nearest = next(one for one in chain if name in one.bindings)
            if nearest is not scope or any(other.origin != binding.origin for other in scope.bindings[name]):
                shadowed = shadowed or name
            elif scope is not chain[0] or getattr(binding.node, "lineno", 0) <= node.lineno:
                return Spelling(name + namespace[len(binding.origin or "") :], namespace)
    if shadowed:
        raise ShadowedError(f"`{shadowed}` means something else here")
    namespace = _wanted(file, chain)
    parent, _, name = namespace.rpartition(".")
    if not parent:
        raise ShadowedError(f"{namespace} is no module of a package")
    if any(name in scope.bindings for scope in chain):
        raise ShadowedError(f"`{name}` means something else here")
    return Spelling(name, namespace, added=True)


def _chain(file: SourceFile, node: ast.AST) -> Iterator[Scope]:
    """The scopes in which a name is looked up at a node, the innermost first."""
    first = file.names.scope(node)
    here: Scope | None = first
    while here is not None:
        if here is first or not here.is_class:
            yield here
        here = here.parent


def _bindings(chain: list[Scope]) -> Iterator[tuple[Scope, str, Binding]]:
    for scope in chain:
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                if binding.origin:
                    yield scope, name, binding


def _named(file: SourceFile, binding: Binding, exact: bool) -> str | None:
    """The namespace that an import gives, itself or as an attribute."""
    if file.names.typing_only(binding.node):
        return None
    for namespace in file.settings.namespaces:
        if exact and binding.origin == namespace:
            return namespace
        if not exact and namespace.startswith(f"{binding.origin}.") and namespace in EAGER:
            return namespace
    return None


def _wanted(file: SourceFile, chain: list[Scope]) -> str:
    """The namespace whose functions the file imports one by one; where it imports none, the first of the settings."""
    origins = [binding.origin or "" for _, _, binding in _bindings(chain)]
    for namespace in file.settings.namespaces:
        if any(origin.startswith(f"{namespace}.") for origin in origins):
            return namespace
    return file.settings.namespaces[0]
