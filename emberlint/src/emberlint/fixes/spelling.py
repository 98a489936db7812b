"""Finds the expression for the namespace of ops at the place of a repair."""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from emberlint.source.scopes import Binding, Scope
from emberlint.source.source_file import SourceFile

# Packages that load their namespace themselves: after `import keras`, the attribute `keras.ops` exists.
EAGER = frozenset({"emberharmony.ops", "keras.ops"})


@dataclass(frozen=True)
class Spelling:
    """The expression for the namespace; `added` if the repair must import it first."""

    text: str
    namespace: str
    added: bool = False


class ShadowedError(Exception):
    """Raised when the name of the namespace is bound to something else at the place of a repair."""


def spelling(file: SourceFile, node: ast.expr | ast.stmt) -> Spelling:
    """Returns the expression for the namespace at a node.

    Raises:
        ShadowedError: if the name is bound to something else there.
    """
    scope_chain = list(_scope_chain(file, node))
    shadowed_name = ""
    scope_imports = [import_ for scope in scope_chain for import_ in _imports_of_scope(file, scope)]
    for is_exact in (True, False):
        for scope, name, binding in scope_imports:
            namespace = _bound_namespace(file, binding, is_exact)
            if namespace is None:
                continue
            # Python looks a name up in the nearest scope that binds it; all bindings in that scope must agree.
            nearest_scope = next(scope for scope in scope_chain if name in scope.bindings)
            if nearest_scope is not scope or any(
                other_binding.origin != binding.origin for other_binding in scope.bindings[name]
            ):
                shadowed_name = shadowed_name or name
            elif scope is not scope_chain[0] or getattr(binding.node, "lineno", 0) <= node.lineno:
                return Spelling(name + namespace[len(binding.origin or "") :], namespace)
    if shadowed_name:
        raise ShadowedError(f"`{shadowed_name}` is bound to something else here")
    namespace = _preferred_namespace(file, [binding.origin or "" for _, _, binding in scope_imports])
    parent, _, name = namespace.rpartition(".")
    if not parent:
        raise ShadowedError(f"the namespace {namespace!r} has no package to import it from")
    if any(name in scope.bindings for scope in scope_chain):
        raise ShadowedError(f"`{name}` is bound to something else here")
    return Spelling(name, namespace, added=True)


def package_spelling(file: SourceFile, node: ast.AST, name: str, freed: Collection[str] = ()) -> Spelling:
    """Returns the expression for a package beside ops, such as `emberharmony.nn`, at a node.

    Its last part is the name, also where it is bound to a module of another library that is `freed`: then the caller
    replaces the import.

    Raises:
        ShadowedError: if `emberharmony` is bound to something else there.
    """
    root_package, _, last_part = name.rpartition(".")
    bound_origins = [
        binding.origin for scope in _scope_chain(file, node) for binding in scope.bindings.get(last_part, ())
    ]
    if all(origin == name for origin in bound_origins) or last_part in freed:
        return Spelling(last_part, name, added=not bound_origins)
    if any(
        binding.origin != root_package
        for scope in _scope_chain(file, node)
        for binding in scope.bindings.get(root_package, ())
    ):
        raise ShadowedError(f"`{last_part}` and `{root_package}` are bound to something else here")
    return Spelling(name, root_package, added=root_package not in file.names.root.bindings)


def module_spelling(file: SourceFile, node: ast.expr, name: str) -> Spelling:
    """Returns the expression for a module of the standard library at a node.

    Raises:
        ShadowedError: if its name is bound to something else there.
    """
    bound_origins = [binding.origin for scope in _scope_chain(file, node) for binding in scope.bindings.get(name, ())]
    if any(origin != name for origin in bound_origins):
        raise ShadowedError(f"`{name}` is bound to something else here")
    return Spelling(name, name, added=name not in file.names.root.bindings)


def _scope_chain(file: SourceFile, node: ast.AST) -> Iterator[Scope]:
    """Yields the scopes in which Python looks up a name at a node, the innermost first."""
    innermost_scope = file.names.scope(node)
    enclosing_scope: Scope | None = innermost_scope
    while enclosing_scope is not None:
        if enclosing_scope is innermost_scope or not enclosing_scope.is_class:
            yield enclosing_scope
        enclosing_scope = enclosing_scope.parent


def _imports_of_scope(file: SourceFile, scope: Scope) -> list[tuple[Scope, str, Binding]]:
    """Returns the imports of a scope, which are collected once because many repairs ask."""
    found_imports = file.compute_once(_empty_import_cache)
    if scope not in found_imports:
        bindings = ((name, binding) for name, scope_bindings in scope.bindings.items() for binding in scope_bindings)
        found_imports[scope] = [(scope, name, binding) for name, binding in bindings if binding.origin]
    return found_imports[scope]


def _empty_import_cache(file: SourceFile) -> dict[Scope, list[tuple[Scope, str, Binding]]]:
    return {}


def _bound_namespace(file: SourceFile, binding: Binding, exact: bool) -> str | None:
    """Returns the namespace that an import binds, directly or as an attribute, or None."""
    if file.names.is_typing_only(binding.node):
        return None
    for namespace in file.settings.namespaces:
        if exact and binding.origin == namespace:
            return namespace
        if not exact and namespace.startswith(f"{binding.origin}.") and namespace in EAGER:
            return namespace
    return None


def _preferred_namespace(file: SourceFile, origins: list[str]) -> str:
    """Returns the namespace whose functions the file imports by name, else the first namespace of the settings."""
    for namespace in file.settings.namespaces:
        if any(origin.startswith(f"{namespace}.") for origin in origins):
            return namespace
    return file.settings.namespaces[0]
