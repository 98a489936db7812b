"""Applies repairs to a file: finds the nodes by place, edits them, and checks that nothing else changed."""

import ast
import io
import tokenize
from collections.abc import Sequence
from functools import cached_property

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor, RemoveImportsVisitor
from libcst.helpers import get_full_name_for_node
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from emberlint.findings import Finding, Safety
from emberlint.fixes import edits
from emberlint.fixes.edits import RefusedError
from emberlint.fixes.spelling import ShadowedError, Spelling, spelling
from emberlint.knowledge.replacements import NEUTRAL
from emberlint.rule import FixResult
from emberlint.source.source_file import SourceFile

Place = tuple[int, int, int, int]  # line and column of start and end; columns count from 0
KERAS_LACKS = NEUTRAL | {"positive", "e", "inf", "nan", "newaxis", "pi"}
FIXABLE = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.AugAssign, cst.Call, cst.Attribute, cst.Name)


def fix(file: SourceFile, findings: Sequence[Finding], unsafe: bool = False) -> FixResult:
    """Returns the file with its findings repaired, and the refused findings with the reasons."""
    wanted: dict[Place, Finding] = {}
    refused: list[tuple[Finding, str]] = []
    for one in findings:
        reason = _not_asked(one, unsafe)
        if reason is None:
            wanted[_place(one)] = one
        else:
            refused.append((one, reason))
    if not wanted:
        return FixResult(file.text, (), tuple(refused))
    editor = _Editor(file, wanted)
    try:
        tree = MetadataWrapper(cst.parse_module(file.text)).visit(editor)
    except cst.ParserSyntaxError as error:
        return FixResult(file.text, (), (*refused, *((one, f"LibCST: {error.message}") for one in wanted.values())))
    tree = _without(file, _with(tree, editor.added), editor.renamed)
    refused += editor.refused
    refused += [
        (one, "its place was not found in the syntax tree") for one in wanted.values() if one not in editor.seen
    ]
    fault = _fault(file.text, tree.code)
    if fault is not None:
        return FixResult(file.text, (), (*refused, *((one, fault) for one in editor.fixed)))
    return FixResult(tree.code, tuple(editor.fixed), tuple(refused))


def _with(tree: cst.Module, namespaces: set[str]) -> cst.Module:
    """Returns the module with the missing imports of namespaces added."""
    for namespace in sorted(namespaces):
        package, _, name = namespace.rpartition(".")
        context = CodemodContext()
        AddImportsVisitor.add_needed_import(context, package, name)
        tree = AddImportsVisitor(context).transform_module(tree)
    return tree


def _without(file: SourceFile, tree: cst.Module, names: set[str]) -> cst.Module:
    """Returns the module without the imports that were used only by repaired expressions.

    An import with a comment stays, because a person must judge whether the comment still applies.
    """
    for name in sorted(names):
        for binding in file.names.root.bindings.get(name, ()):
            statement = file.parent(binding.node)
            if not isinstance(binding.node, ast.alias) or not isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            alias, context = binding.node, CodemodContext()
            module = alias.name if isinstance(statement, ast.Import) else statement.module or ""
            member = None if isinstance(statement, ast.Import) else alias.name
            RemoveImportsVisitor.remove_unused_import(context, module, member, alias.asname)
            shorter = RemoveImportsVisitor(context).transform_module(tree)
            tree = shorter if _comments(shorter.code) == _comments(tree.code) else tree
    return tree


def _not_asked(finding: Finding, unsafe: bool) -> str | None:
    """Returns the reason why a finding has no automatic repair, or None."""
    if finding.fix is None:
        return "this finding has no automatic repair"
    if finding.fix.safety is Safety.GUIDED:
        return f"advice: {finding.fix.title}"
    if finding.fix.safety is Safety.UNSAFE and not unsafe:
        return "needs --unsafe-fixes"
    return None


def _place(finding: Finding) -> Place:
    return finding.line, finding.column - 1, finding.end_line, finding.end_column - 1


def _fault(before: str, after: str) -> str | None:
    """Returns what a repair broke, or None."""
    try:
        ast.parse(after)
    except SyntaxError as error:
        return f"the result would not parse: {error.msg}"
    return None if _comments(before) == _comments(after) else "a comment would be lost"


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(token.string for token in tokens if token.type == tokenize.COMMENT)


class _Editor(cst.CSTTransformer):
    """Edits the reported nodes; children come before their parents, so nested repairs combine."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: SourceFile, wanted: dict[Place, Finding]) -> None:
        super().__init__()
        self.file, self.wanted = file, wanted
        self.lines = file.text.splitlines()
        self.fixed: list[Finding] = []
        self.seen: list[Finding] = []
        self.refused: list[tuple[Finding, str]] = []
        self.added: set[str] = set()
        self.renamed: set[str] = set()

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]
        """Returns the node with the repair of its finding applied, or as it is if it has no finding."""
        updated = super().on_leave(original_node, updated_node)
        if not isinstance(original_node, FIXABLE) or not isinstance(updated, FIXABLE):
            return updated
        place = self.get_metadata(PositionProvider, original_node)
        finding = self.wanted.get(_key(place))
        if finding is None or finding in self.seen or not _fits(finding, original_node):
            return updated
        self.seen.append(finding)
        try:
            edited = self._edited(finding, updated)
        except (RefusedError, ShadowedError) as error:
            self.refused.append((finding, str(error)))
            return updated
        self.fixed.append(finding)
        return self._apart(edited, place)

    def _edited(self, finding: Finding, node: cst.CSTNode) -> cst.CSTNode:
        space = self._spelling(finding)
        if isinstance(node, cst.BinaryOperation):
            edited: cst.CSTNode = edits.binary(space.text, node)
        elif isinstance(node, cst.UnaryOperation):
            edited = edits.unary(space.text, node)
        elif isinstance(node, cst.Comparison):
            edited = edits.comparison(space.text, node)
        elif isinstance(node, cst.AugAssign):
            edited = edits.augmented(space.text, node)
        elif isinstance(node, cst.Call):
            edited = edits.called(space.text, node)
        else:
            replacement = finding.fix.replacement if finding.fix is not None else ""
            edited = edits.renamed(space.text + replacement.removeprefix("ops"))
        op = (get_full_name_for_node(edited) or "").removeprefix(f"{space.text}.")
        if space.namespace == "keras.ops" and (op in KERAS_LACKS or "." in op):
            raise RefusedError(f"keras.ops has no `{op}`")
        if isinstance(node, cst.Attribute | cst.Name):
            self.renamed.add((get_full_name_for_node(node) or "").partition(".")[0])
        if space.added:
            self.added.add(space.namespace)
        return edited

    def _spelling(self, finding: Finding) -> Spelling:
        return spelling(self.file, self._nodes[_place(finding)])

    @cached_property
    def _nodes(self) -> dict[Place, ast.expr | ast.stmt]:
        """Collects the parser's nodes by place."""
        nodes = (node for node in ast.walk(self.file.tree) if isinstance(node, ast.expr | ast.stmt))
        return {self._at(node): node for node in nodes}

    def _at(self, node: ast.expr | ast.stmt) -> Place:
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        column = self.file.column
        return node.lineno, column(node.lineno, node.col_offset) - 1, end_line, column(end_line, end) - 1

    def _apart(self, edited: cst.CSTNode, place: CodeRange) -> cst.CSTNode:
        """Adds a space where a name would otherwise join the word before it, as in `return-x`."""
        line = self.lines[place.start.line - 1] if place.start.line <= len(self.lines) else ""
        before = line[place.start.column - 1 : place.start.column] if place.start.column else ""
        if isinstance(edited, cst.Call) and not edited.lpar and (before.isalnum() or before == "_"):
            return edited.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return edited


def _key(place: CodeRange) -> Place:
    return place.start.line, place.start.column, place.end.line, place.end.column


def _fits(finding: Finding, node: cst.CSTNode) -> bool:
    """Returns whether a node is of the kind that a repair edits; a name is edited only by renaming it."""
    renames = finding.code in ("EMB102", "EMB106", "EMB107")
    return renames == isinstance(node, cst.Attribute | cst.Name)
