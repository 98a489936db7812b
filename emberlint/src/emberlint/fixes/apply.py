"""Applies repairs to a file: finds the nodes by place, edits them, and checks that nothing else changed."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from emberlint.findings import Finding, Safety
from emberlint.fixes import edits
from emberlint.fixes.edits import RefusedError
from emberlint.fixes.imports import LINE_END, add_namespaces, comments, remove_imports
from emberlint.fixes.spelling import ShadowedError, Spelling, spelling
from emberlint.fixes.splice import SPACE, Change, apply_changes, dotted_name, op_of, operator_changes, rename_changes
from emberlint.knowledge.replacements import NEUTRAL
from emberlint.rule import FixResult
from emberlint.source.parsing import parse
from emberlint.source.source_file import SourceFile

_ANNOTATION = 200  # the length of a string that may be an annotation
Place = tuple[int, int, int, int]  # line and column of start and end; columns count from 0
KERAS_LACKS = NEUTRAL | {"positive", "e", "inf", "nan", "newaxis", "pi"}
RENAMING = ("EMB102", "EMB106", "EMB107")  # the rules whose repairs give a name another one
FIXABLE = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.AugAssign, cst.Call, cst.Attribute, cst.Name)


def fix(file: SourceFile, findings: Sequence[Finding], unsafe: bool = False) -> FixResult:
    """Returns the file with its findings repaired, and the refused findings with the reasons."""
    findings_by_place: dict[Place, Finding] = {}
    refused_fixes: list[tuple[Finding, str]] = []
    for finding in findings:
        refusal_reason = _reason_not_repaired(finding, unsafe)
        if refusal_reason is None:
            findings_by_place[_finding_place(finding)] = finding
        else:
            refused_fixes.append((finding, refusal_reason))
    if not findings_by_place:
        return FixResult(file.text, (), tuple(refused_fixes))
    file_repair = _FileRepair(file, findings_by_place)
    try:
        repaired_text = file_repair.repaired_text()
    except cst.ParserSyntaxError as error:
        return FixResult(
            file.text,
            (),
            (*refused_fixes, *((finding, f"LibCST: {error.message}") for finding in findings_by_place.values())),
        )
    refused_fixes += file_repair.refused
    refused_fixes += [
        (finding, "its place was not found in the syntax tree")
        for finding in findings_by_place.values()
        if finding not in file_repair.seen
    ]
    repair_fault = file_repair.fault or _repair_fault_text(repaired_text)
    if repair_fault is not None:
        return FixResult(file.text, (), (*refused_fixes, *((finding, repair_fault) for finding in file_repair.fixed)))
    return FixResult(repaired_text, tuple(file_repair.fixed), tuple(refused_fixes))


class _FileRepair:
    """The repair of one file: most operators by splicing its lines, the statements with other findings by LibCST."""

    def __init__(self, file: SourceFile, wanted: dict[Place, Finding]) -> None:
        self.file = file
        self.wanted = wanted
        self.fixed: list[Finding] = []
        self.refused: list[tuple[Finding, str]] = []
        self.seen: set[Finding] = set()
        self.added: set[str] = set()
        self.renamed: set[str] = set()
        self.fault: str | None = None
        self.simple: dict[Place, list[Change]] = {}
        lines_and_ends = LINE_END.split(file.text)
        self.lines, self.ends = lines_and_ends[::2], [*lines_and_ends[1::2], ""]

    def repaired_text(self) -> str:
        """Returns the text of the file with its findings repaired."""
        statement_ranges = self._statement_ranges()
        covered_lines = {
            line for first_line, last_line in statement_ranges for line in range(first_line, last_line + 1)
        }
        simple_changes = [
            change for span in self.wanted if span[0] not in covered_lines for change in self._changes_at(span)
        ]
        apply_changes(self.lines, simple_changes)
        repaired_lines = [*map(str.__add__, self.lines, self.ends)]
        for first_line, last_line in reversed(statement_ranges):
            repaired_lines[first_line - 1 : last_line] = [self._edit_lines(first_line, last_line)]
        return self._adapt_imports("".join(repaired_lines))

    def _changes_at(self, place: Place) -> list[Change]:
        finding = self.wanted[place]
        self.seen.add(finding)
        node, is_renaming = self._node_by_place[place], finding.code in RENAMING
        op = _replacement(finding).removeprefix("ops.") if is_renaming else op_of(node)
        try:
            namespace_spelling = spelling(self.file, node)
            _require_op(namespace_spelling, op)
        except (RefusedError, ShadowedError) as error:
            self.refused.append((finding, str(error)))
            return []
        self.fixed.append(finding)
        if is_renaming:
            self.renamed.add(dotted_name(node).partition(".")[0])
        if namespace_spelling.added:
            self.added.add(namespace_spelling.namespace)
        return [
            change._replace(text=change.text.replace(SPACE, namespace_spelling.text)) if change.text else change
            for change in self.simple[place]
        ]

    def _statement_ranges(self) -> list[tuple[int, int]]:
        """Returns the first and last lines of the statements that LibCST edits."""
        statement_ranges: list[tuple[int, int]] = []
        for span in sorted(self.wanted):
            node = self._node_by_place.get(span)
            simple_changes = None if node is None else self._simple_changes(self.wanted[span], node)
            if simple_changes is not None:
                self.simple[span] = simple_changes
                continue
            first_line, last_line = self._statement_lines(span, node)
            while statement_ranges and first_line <= statement_ranges[-1][1]:
                first_line, last_line = (
                    min(first_line, statement_ranges[-1][0]),
                    max(last_line, statement_ranges[-1][1]),
                )
                statement_ranges.pop()
            statement_ranges.append((first_line, last_line))
        return statement_ranges

    def _simple_changes(self, finding: Finding, node: ast.AST) -> list[Change] | None:
        """Returns the changes of a line that repair a finding, or None if only LibCST can."""
        if finding.code in RENAMING:
            return rename_changes(self.file, node, _replacement(finding))
        return operator_changes(self.file, node) if finding.code in ("EMB201", "EMB202") else None

    @cached_property
    def _node_by_place(self) -> dict[Place, ast.expr | ast.stmt]:
        """The parser's nodes at the places of the findings."""
        column_of, finding_lines = self.file.column, {span[0] for span in self.wanted}
        candidate_nodes = (
            parent
            for parent in self.file.index.parents
            if isinstance(parent, ast.expr | ast.stmt) and parent.lineno in finding_lines
        )
        node_by_place: dict[Place, ast.expr | ast.stmt] = {}
        for node in candidate_nodes:
            end_line, end_offset = node.end_lineno or node.lineno, node.end_col_offset or 0
            node_place = (
                node.lineno,
                column_of(node.lineno, node.col_offset) - 1,
                end_line,
                column_of(end_line, end_offset) - 1,
            )
            if node_place in self.wanted:
                node_by_place[node_place] = node
        return node_by_place

    def _statement_lines(self, place: Place, node: ast.AST | None) -> tuple[int, int]:
        """Returns the lines of the statement around a finding, or of the top-level one if the former has a block."""
        enclosing_nodes = [] if node is None else [node, *self.file.ancestors(node)]
        statements = [node for node in enclosing_nodes if isinstance(node, ast.stmt)]
        if not statements:
            return 1, len(self.lines)
        inner_statement, outer_statement = statements[0], statements[-1]
        statement = (
            outer_statement
            if getattr(inner_statement, "body", None) or getattr(inner_statement, "cases", None)
            else inner_statement
        )
        if statement is inner_statement and not self._stands_alone(*_first_and_last_line(inner_statement)):
            statement = outer_statement  # for example the statement after `else:` on the same line
        return _first_and_last_line(statement)

    def _stands_alone(self, first: int, last: int) -> bool:
        """Returns whether lines can be parsed without those around them."""
        try:
            cst.parse_module("".join(self._indentable_lines(first, last)))
        except cst.ParserSyntaxError:
            return False
        return True

    def _indentable_lines(self, first: int, last: int) -> tuple[str, str]:
        """Returns a header, such as `if True:`, and indented lines that can be parsed after it."""
        range_text = "".join(map(str.__add__, self.lines[first - 1 : last], self.ends[first - 1 : last]))
        return "if 1:\n" if range_text[:1] in (" ", "\t") else "", range_text

    def _edit_lines(self, first: int, last: int) -> str:
        """Returns lines whose findings LibCST has repaired."""
        header_text, statement_text = self._indentable_lines(first, last)
        finding_by_span = {span: finding for span, finding in self.wanted.items() if first <= span[0] <= last}
        editor = _Editor(self.file, finding_by_span, self._node_by_place, first - 1 - header_text.count("\n"))
        parsed_module = cst.parse_module(header_text + statement_text)
        edited_code = MetadataWrapper(parsed_module, unsafe_skip_copy=True).visit(editor).code.removeprefix(header_text)
        self.fixed += editor.fixed
        self.refused += editor.refused
        self.seen.update(editor.seen)
        self.added |= editor.added
        self.renamed |= editor.renamed
        if comments(statement_text, header_text) != comments(edited_code, header_text):
            self.fault = "a comment would be lost"
        return edited_code

    def _adapt_imports(self, text: str) -> str:
        """Returns the text with the imports that the repairs need, and without those that they made useless."""
        try:
            text = add_namespaces(text, self.added)
        except SyntaxError:
            return text  # the caller refuses a text that does not parse
        if not self.renamed:
            return text
        tree = parse(text)
        unused_names = _unused_names(tree, self.renamed)
        if not unused_names:
            return text
        last_line = max(
            (
                statement.end_lineno or 1
                for statement in tree.body
                if isinstance(statement, ast.Import | ast.ImportFrom)
            ),
            default=0,
        )
        lines_and_ends = LINE_END.split(text)
        head_text, tail_text = "".join(lines_and_ends[: 2 * last_line]), "".join(lines_and_ends[2 * last_line :])
        cleaned_code = remove_imports(self.file, cst.parse_module(head_text), unused_names).code
        if comments(head_text) != comments(cleaned_code):
            self.fault = "a comment would be lost"
        return cleaned_code + tail_text


def _first_and_last_line(node: ast.stmt) -> tuple[int, int]:
    first_line = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return first_line, node.end_lineno or first_line


def _unused_names(tree: ast.Module, names: Iterable[str]) -> set[str]:
    """Returns the names that nothing in a module reads."""
    unused_names = {*names}
    for node in ast.walk(tree):
        unused_names.difference_update(_names_read(node))
        if not unused_names:
            break
    return unused_names


def _names_read(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node reads, also inside a string that may be an annotation or in `__all__`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < _ANNOTATION:
        yield from re.findall(r"\w+", node.value)


def _reason_not_repaired(finding: Finding, unsafe: bool) -> str | None:
    """Returns the reason why a finding has no automatic repair, or None."""
    if finding.fix is None:
        return "this finding has no automatic repair"
    if finding.fix.safety is Safety.GUIDED:
        return f"advice: {finding.fix.title}"
    if finding.fix.safety is Safety.UNSAFE and not unsafe:
        return "needs --unsafe-fixes"
    return None


def _finding_place(finding: Finding) -> Place:
    return finding.line, finding.column - 1, finding.end_line, finding.end_column - 1


def _repair_fault_text(after: str) -> str | None:
    """Returns a text that says what is wrong with the repaired file, or None."""
    try:
        parse(after)
    except SyntaxError as error:
        return f"the result would not parse: {error.msg}"
    return None


class _Editor(cst.CSTTransformer):
    """Edits the reported nodes; children come before their parents, so nested repairs combine."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self, file: SourceFile, wanted: Mapping[Place, Finding], nodes: Mapping[Place, ast.expr | ast.stmt], offset: int
    ) -> None:
        super().__init__()
        self.file, self.wanted, self.nodes = file, wanted, nodes
        self.offset = offset  # the number of lines of the file before the edited text
        self.lines = file.lines
        self.fixed: list[Finding] = []
        self.seen: list[Finding] = []
        self.refused: list[tuple[Finding, str]] = []
        self.added: set[str] = set()
        self.renamed: set[str] = set()
        self.printed = 0  # the number of f-string expressions like `{x=}` around the current node

    def visit_FormattedStringExpression(self, node: cst.FormattedStringExpression) -> None:
        """Counts an expression of an f-string that prints its own text, as in `f"{x + 1=}"`."""
        self.printed += node.equal is not None

    def leave_FormattedStringExpression(
        self, original_node: cst.FormattedStringExpression, updated_node: cst.FormattedStringExpression
    ) -> cst.FormattedStringExpression:
        """Notes the end of an expression of an f-string that prints its own text."""
        self.printed -= original_node.equal is not None
        return updated_node

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]
        """Returns the node with the repair of its finding applied, or as it is if it has no finding."""
        child_edited_node = super().on_leave(original_node, updated_node)
        if not isinstance(original_node, FIXABLE) or not isinstance(child_edited_node, FIXABLE):
            return child_edited_node
        code_range = self.get_metadata(PositionProvider, original_node)
        finding = self.wanted.get(_range_key(code_range, self.offset))
        if finding is None or finding in self.seen or not _fits_repair(finding, original_node):
            return child_edited_node
        self.seen.append(finding)
        try:
            edited_node = self._edit_node(finding, child_edited_node)
        except (RefusedError, ShadowedError) as error:
            self.refused.append((finding, str(error)))
            return child_edited_node
        self.fixed.append(finding)
        return self._parenthesize_after_word(edited_node, code_range)

    def _edit_node(self, finding: Finding, node: cst.CSTNode) -> cst.CSTNode:
        if self.printed:
            raise RefusedError("`=` in the f-string prints the text of the expression")
        namespace_spelling = self._spelling(finding)
        if isinstance(node, cst.BinaryOperation):
            edited_node: cst.CSTNode = edits.binary_call(namespace_spelling.text, node)
        elif isinstance(node, cst.UnaryOperation):
            edited_node = edits.unary_call(namespace_spelling.text, node)
        elif isinstance(node, cst.Comparison):
            edited_node = edits.comparison_call(namespace_spelling.text, node)
        elif isinstance(node, cst.AugAssign):
            edited_node = edits.augmented_assignment(namespace_spelling.text, node)
        elif isinstance(node, cst.Call):
            edited_node = edits.function_call(namespace_spelling.text, node)
        else:
            edited_node = edits.op_reference(namespace_spelling.text + _replacement(finding).removeprefix("ops"))
        _require_op(
            namespace_spelling, (get_full_name_for_node(edited_node) or "").removeprefix(f"{namespace_spelling.text}.")
        )
        if isinstance(node, cst.Attribute | cst.Name):
            self.renamed.add((get_full_name_for_node(node) or "").partition(".")[0])
        if namespace_spelling.added:
            self.added.add(namespace_spelling.namespace)
        return edited_node

    def _spelling(self, finding: Finding) -> Spelling:
        return spelling(self.file, self.nodes[_finding_place(finding)])

    def _parenthesize_after_word(self, edited: cst.CSTNode, place: CodeRange) -> cst.CSTNode:
        """Puts a call in parentheses where its name would join the word before it: `return-x` becomes `return(...)`."""
        line_number = place.start.line + self.offset
        line_text = self.lines[line_number - 1] if line_number <= len(self.lines) else ""
        character_before = line_text[place.start.column - 1 : place.start.column] if place.start.column else ""
        if isinstance(edited, cst.Call) and not edited.lpar and (character_before.isalnum() or character_before == "_"):
            return edited.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return edited


def _replacement(finding: Finding) -> str:
    return "" if finding.fix is None else finding.fix.replacement


def _require_op(space: Spelling, op: str) -> None:
    """Raises `RefusedError` if the namespace lacks an op."""
    if space.namespace == "keras.ops" and (op in KERAS_LACKS or "." in op):
        raise RefusedError(f"keras.ops has no `{op}`")


def _range_key(place: CodeRange, offset: int) -> Place:
    return place.start.line + offset, place.start.column, place.end.line + offset, place.end.column


def _fits_repair(finding: Finding, node: cst.CSTNode) -> bool:
    """Returns whether a node is of the kind that a repair edits; a name is edited only by renaming it."""
    return (finding.code in RENAMING) == isinstance(node, cst.Attribute | cst.Name)
