"""The native things that a file names: functions, dtypes, conversions, random numbers, devices, types."""

import ast
from collections.abc import Iterator

from emberlint.knowledge.native import MODULES, Use, kind_of
from emberlint.source.source_file import SourceFile


def native_uses(file: SourceFile) -> tuple[Use, ...]:
    """Return each foreign native thing that a file names, and its kind."""
    return file.derived(_uses)


def _uses(file: SourceFile) -> tuple[Use, ...]:
    return tuple(_each_use(file))


def _each_use(file: SourceFile) -> Iterator[Use]:
    """Yield each native thing a file names, once, as its longest dotted expression; imports are not uses."""
    if not file.mentions_native:
        return
    for node in file.index.nodes(ast.Attribute, ast.Name, ast.Call):
        above = file.parent(node)
        if isinstance(node, ast.Call) and not _is_getattr(node):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(above, ast.Attribute) and (isinstance(node, ast.Attribute | ast.Name | ast.Call)):
            continue  # a part of a longer expression, which speaks for it
        origin = file.native(node)
        if origin is None or not _is_thing(file, node, origin) or _is_typing(file, node):
            continue
        called = isinstance(above, ast.Call) and above.func is node
        yield Use(node, origin, kind_of(origin, called))


def _is_getattr(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "getattr"


def _is_thing(file: SourceFile, node: ast.expr, origin: str) -> bool:
    """A bare module is no use of it: what is done with it is."""
    if "." not in origin:
        return False
    if isinstance(node, ast.Attribute):
        # `self.xp`, where self.xp = np.linalg, names a module again
        return file.native(node.value) is not None or origin not in MODULES
    if origin in MODULES:
        return False
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    return not any(isinstance(one.node, ast.alias) and one.node.name == origin for one in bindings)


def _is_typing(file: SourceFile, node: ast.expr) -> bool:
    """Whether a name was imported for type checkers alone, so that nothing of it ever runs."""
    if not file.mentions("TYPE_CHECKING"):
        return False
    while isinstance(node, ast.Attribute):
        node = node.value
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    return bool(bindings) and all(file.names.typing_only(one.node) for one in bindings)
