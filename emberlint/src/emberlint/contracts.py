"""Checks layering contracts on the import graph: layers, independence, protected modules."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from emberlint.config.errors import UsageError, suggestion
from emberlint.config.settings import Contract
from emberlint.source.imports import Import
from emberlint.source.project import Project

Edges = Mapping[str, tuple[tuple[str, Import], ...]]


class Breach(NamedTuple):
    """An import that a contract forbids, with the chain of modules that it starts."""

    path: str
    at: Import
    chain: tuple[str, ...]
    contract: str


class Graph:
    """The import graph of the project's modules, without imports for type checkers only."""

    def __init__(self, project: Project) -> None:
        self.paths: dict[str, str] = {}
        for folder in project.settings.project_folders:
            for path in project.files(folder):
                self.paths[project.settings.module(path)] = path
        self.edges: Edges = {module: tuple(self._module_imports(project, path)) for module, path in self.paths.items()}

    def _module_imports(self, project: Project, path: str) -> Iterator[tuple[str, Import]]:
        for import_ in project.imports(path):
            module = self._module_of_import(import_.target)
            if module is not None and not import_.typing_only:
                yield module, import_

    def _module_of_import(self, target: str) -> str | None:
        """Returns the module that an import of `a.b.name` loads: the longest prefix that is a module, or None."""
        while target and target not in self.paths:
            target = target.rpartition(".")[0]
        return target or None

    def modules_below(self, module: str) -> list[str]:
        """Returns a module and all modules inside it."""
        return [name for name in self.paths if is_in(name, module)]


def is_in(module: str, package: str) -> bool:
    """Returns whether a module is a package itself or is inside it."""
    return module == package or module.startswith(package + ".")


def breaches(project: Project) -> Iterator[Breach]:
    """Yields every import that breaks a contract of the settings."""
    contracts = project.settings.contracts
    if not contracts:
        return
    import_graph = Graph(project)
    for contract in contracts:
        _check_packages_exist(import_graph, contract)
        if contract.type == "protected":
            yield from _protected_imports(import_graph, contract)
        else:
            yield from _forbidden_imports(import_graph, contract, list(_forbidden_pairs(contract)))


def _check_packages_exist(graph: Graph, contract: Contract) -> None:
    """Checks that each package a contract names exists, because a contract about a missing package always holds.

    A missing module of an existing package is allowed: it may be a layer that is still to be written.

    Raises:
        UsageError: if a package does not exist.
    """
    known_packages = {module.partition(".")[0] for module in graph.paths}
    for module in (name for group in (*contract.layers, *contract.modules) for name in _members_of_layer(group)[0]):
        package = module.partition(".")[0]
        if package not in known_packages:
            hint = suggestion(package, known_packages)
            raise UsageError(f"[tool.emberlint] contract {contract.name!r}: no package {package!r}{hint}")


def _forbidden_pairs(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yields the pairs (importer, imported) that a contract forbids."""
    # In `a | b` the modules are independent of each other; in `a : b` they may import each other.
    layers = [_members_of_layer(group) for group in contract.layers or contract.modules]
    for layer_index, (members, is_independent) in enumerate(layers):
        for lower_members, _ in layers[layer_index + 1 :]:
            yield from ((low, high) for low in lower_members for high in members)
            if contract.type == "independence":
                yield from ((high, low) for low in lower_members for high in members)
        if is_independent:
            yield from (
                (member, other_member) for member in members for other_member in members if member != other_member
            )


def _members_of_layer(layer: str) -> tuple[list[str], bool]:
    separator = ":" if ":" in layer else "|"
    return [word.strip() for word in layer.split(separator)], separator == "|"


def _forbidden_imports(graph: Graph, contract: Contract, pairs: Sequence[tuple[str, str]]) -> Iterator[Breach]:
    """Yields the forbidden direct imports, and the chains through modules that the contract does not name."""
    named_layers = {word for pair in pairs for word in pair}
    for importer in sorted({low for low, _ in pairs}):
        forbidden_packages = [high for low, high in pairs if low == importer]
        for module in sorted(graph.modules_below(importer)):
            yield from _forbidden_chains(graph, contract, module, forbidden_packages, named_layers)


def _forbidden_chains(
    graph: Graph, contract: Contract, module: str, targets: Sequence[str], named_layers: set[str]
) -> Iterator[Breach]:
    for imported_module, line in graph.edges[module]:
        import_chain = _shortest_chain(graph, imported_module, targets, named_layers, {module})
        if import_chain is not None:
            yield Breach(graph.paths[module], line, (module, *import_chain), contract.name)


def _shortest_chain(
    graph: Graph, start: str, targets: Sequence[str], named_layers: set[str], seen_modules: set[str]
) -> tuple[str, ...] | None:
    """Returns the shortest chain from `start` into a target through modules outside the contract, or None."""
    chain_queue: deque[tuple[str, ...]] = deque([(start,)])
    seen_modules = {*seen_modules, start}
    while chain_queue:
        chain = chain_queue.popleft()
        if any(is_in(chain[-1], target) for target in targets):
            return chain
        if any(is_in(chain[-1], layer) for layer in named_layers):
            continue  # the imports of a named module are judged on their own
        for next_module, _ in graph.edges[chain[-1]]:
            if next_module not in seen_modules:
                seen_modules.add(next_module)
                chain_queue.append((*chain, next_module))
    return None


def _protected_imports(graph: Graph, contract: Contract) -> Iterator[Breach]:
    """Yields the imports of protected modules by modules that are not allowed to."""
    allowed_importers = (*contract.modules, *contract.allowed)
    for module, module_imports in graph.edges.items():
        if any(is_in(module, allowed_importer) for allowed_importer in allowed_importers):
            continue
        for imported_module, line in module_imports:
            if any(is_in(imported_module, module) for module in contract.modules):
                yield Breach(graph.paths[module], line, (module, imported_module), contract.name)
