"""Rewrites the imports of a moved module, in every form that names it literally."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import get_absolute_module_for_import, get_full_name_for_node

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SPACE = cst.SimpleWhitespace(" ")


@dataclass(frozen=True)
class Moves:
    """The modules that move as a whole, by their old names, and the names that move out of modules that stay."""

    modules: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # the names that `import *` of each old module provided
    exports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def new_module(self, old: str) -> str | None:
        """Returns the new name of a module, or None if it did not move."""
        return self.modules.get(old)

    def new_name(self, old: str) -> str | None:
        """Returns the new dotted name of a module, or of a name defined in one."""
        old_segments = old.split(".")
        for end_index in range(len(old_segments), 0, -1):
            module, remaining_parts = ".".join(old_segments[:end_index]), old_segments[end_index:]
            new_name = self.modules.get(module) or (
                self.names.get(module, {}).get(remaining_parts[0]) if remaining_parts else None
            )
            if new_name is not None:
                return ".".join([new_name, *remaining_parts])
        return None


def rewrite_imports(text: str, module: str, is_package: bool, moves: Moves, absolute: bool = False) -> str:
    """Returns the text with its imports adapted to the moves; `absolute` makes relative imports absolute too.

    An import of a module from itself is dropped, because the name is defined there now.
    """
    package = module if is_package else module.rpartition(".")[0]
    parsed_module = cst.parse_module(text)
    return parsed_module.visit(_Rewriter(module, package, moves, absolute)).code


def name_expression(name: str) -> cst.Attribute | cst.Name:
    """Returns the expression for a dotted name."""
    parsed_expression = cst.parse_expression(name)
    assert isinstance(parsed_expression, cst.Attribute | cst.Name)
    return parsed_expression


class _Rewriter(cst.CSTTransformer):
    def __init__(self, module: str, package: str, moves: Moves, absolute: bool) -> None:
        super().__init__()
        self.module, self.package, self.moves, self.absolute = module, package, moves, absolute
        self.orphaned: Sequence[cst.EmptyLine] = ()  # comments and blank lines above a dropped import
        self.plain: set[str] = set()  # `import a.b.c` binds only a, and the code spells out a.b.c

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            if alias.asname is None:
                self.plain.add(alias.evaluated_name)
        return False

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        return updated_node.with_changes(names=[self._move_alias(alias) for alias in updated_node.names])

    def _move_alias(self, alias: cst.ImportAlias) -> cst.ImportAlias:
        new_name = self.moves.new_module(alias.evaluated_name)
        return alias if new_name is None else alias.with_changes(name=name_expression(new_name))

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BaseCompoundStatement):
            self.orphaned = ()
        return super().on_visit(node)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine] | cst.RemovalSentinel:
        if self.orphaned:
            updated_node = updated_node.with_changes(leading_lines=[*self.orphaned, *updated_node.leading_lines])
            self.orphaned = ()
        new_statements: list[list[cst.BaseSmallStatement]] = []
        has_changed = False
        for small_statement in updated_node.body:
            statements = (
                self._split_import(small_statement)
                if isinstance(small_statement, cst.ImportFrom)
                else [small_statement]
            )
            has_changed = has_changed or statements != [small_statement]
            new_statements.extend([statement] for statement in statements)
        if not has_changed:
            return updated_node
        if not new_statements:
            self.orphaned = updated_node.leading_lines
            return cst.RemoveFromParent()
        new_lines = [updated_node.with_changes(body=body) for body in new_statements]
        no_whitespace = cst.TrailingWhitespace()
        new_lines = [
            *(line.with_changes(trailing_whitespace=no_whitespace) for line in new_lines[:-1]),
            new_lines[-1],
        ]
        return cst.FlattenSentinel([new_lines[0], *(line.with_changes(leading_lines=[]) for line in new_lines[1:])])

    def _split_import(self, node: cst.ImportFrom) -> list[cst.BaseSmallStatement]:
        """Returns a `from` import split into one import for each module that the names are in after the moves."""
        source_module = (
            get_absolute_module_for_import(self.package + ".x", node) if self.package or not node.relative else None
        )
        if source_module is None:
            return [node]
        if isinstance(node.names, cst.ImportStar):
            return self._rewrite_star_import(node, source_module)
        aliases_by_module: dict[str, list[cst.ImportAlias]] = {}
        for alias in node.names:
            aliases_by_module.setdefault(self._module_after_move(source_module, alias.evaluated_name), []).append(alias)
        if set(aliases_by_module) == {source_module} and not (self.absolute and node.relative):
            return [node]
        aliases_by_kept_module = {
            module: aliases
            for module, aliases in aliases_by_module.items()
            if module != self.module or source_module == self.module
        }
        return [
            self._import_from_module(node, module, aliases, split=len(aliases_by_module) > 1)
            for module, aliases in aliases_by_kept_module.items()
        ]

    def _module_after_move(self, base: str, name: str) -> str:
        """Returns the module from which a name must be imported after the moves."""
        new_module = self.moves.new_module(base)
        if new_module is not None:
            return new_module
        submodule = self.moves.new_module(f"{base}.{name}")
        if submodule is not None:
            return submodule.rpartition(".")[0]
        return self.moves.names.get(base, {}).get(name, base)

    def _import_from_module(
        self, node: cst.ImportFrom, place: str, aliases: list[cst.ImportAlias], split: bool
    ) -> cst.BaseSmallStatement:
        imported_aliases = list(aliases)
        if split:
            imported_aliases = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in imported_aliases]
        return node.with_changes(
            module=name_expression(place),
            relative=[],
            names=imported_aliases,
            whitespace_after_from=_SPACE,
            whitespace_before_import=_SPACE,
            lpar=None if split else node.lpar,
            rpar=None if split else node.rpar,
        )

    def _rewrite_star_import(self, node: cst.ImportFrom, base: str) -> list[cst.BaseSmallStatement]:
        new_name = self.moves.new_module(base)
        if new_name is None:
            return [self._import_with_module(node, base) if self.absolute and node.relative else node]
        if new_name == self.module:
            return []
        if base not in self.moves.exports:
            return [self._import_with_module(node, new_name)]
        exported_aliases = [cst.ImportAlias(cst.Name(name)) for name in self.moves.exports[base]]
        return [cst.ImportFrom(module=name_expression(new_name), names=exported_aliases)] if exported_aliases else []

    def _import_with_module(self, node: cst.ImportFrom, module: str) -> cst.ImportFrom:
        import_whitespace = {"whitespace_after_from": _SPACE, "whitespace_before_import": _SPACE}
        return node.with_changes(module=name_expression(module), relative=[], **import_whitespace)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        dotted_name = get_full_name_for_node(original_node)
        new_name = None if dotted_name is None else self.moves.new_module(dotted_name)
        if (
            dotted_name is None
            or new_name is None
            or not any(
                plain_import == dotted_name or plain_import.startswith(f"{dotted_name}.") for plain_import in self.plain
            )
        ):
            return updated_node
        return name_expression(new_name)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        """Returns a string literal with the new name if its whole content is the name of a moved module."""
        if updated_node.prefix:
            return updated_node
        quoted_text = updated_node.raw_value
        new_name = self.moves.new_name(quoted_text) if _DOTTED.fullmatch(quoted_text) else None
        quote = updated_node.quote
        return updated_node if new_name is None else updated_node.with_changes(value=f"{quote}{new_name}{quote}")


def computed_import_lines(tree: ast.Module, package: str, frontend: str) -> Iterator[int]:
    """Yields the lines that import a module below the frontend by a name composed at run time.

    `package` is the package of the module that is read; relative names start from it.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            if (_constant_start(node) or "").startswith(f"{frontend}."):
                yield node.lineno
        elif isinstance(node, ast.Call) and _is_import_function(node.func) and node.args:
            argument, other_arguments = node.args[0], [*node.args[1:], *(word.value for word in node.keywords)]
            if isinstance(argument, ast.Constant | ast.Name):
                continue
            constant_start = _constant_start(argument)
            is_in_package = package == frontend or any(
                frontend in ast.unparse(other_argument) for other_argument in other_arguments
            )
            if (is_in_package and (not constant_start or constant_start.startswith("."))) or (
                constant_start and f"{frontend}.".startswith(constant_start)
            ):
                yield node.lineno


def _is_import_function(function: ast.expr) -> bool:
    function_name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return function_name in ("import_module", "__import__")


def _constant_start(node: ast.expr) -> str | None:
    """Returns the constant text at the start of a composed string, or None if the start is computed too."""
    if isinstance(node, ast.JoinedStr):
        return _constant_start(node.values[0]) if node.values else ""
    if isinstance(node, ast.BinOp):
        return _constant_start(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # "toy.ops.{}".format(name)
        return _constant_start(node.func.value)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
