"""The text changes that turn a native use into the use of an op."""

import ast
from collections.abc import Iterator, Sequence

from emberlint.fixes.spelling import Spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.arguments import parameters
from emberlint.knowledge.replacements import PACKAGE
from emberlint.knowledge.signatures import DROPPED, Signature, Translation, UntranslatableError
from emberlint.port.conditions import BUILTINS
from emberlint.port.layers import argument_insertions
from emberlint.source.source_file import SourceFile

WITHOUT_LINE = "\0"  # the text that marks a line to be removed


def arguments_by_parameter(signature: Signature, plan: Translation, values: list[ast.expr]) -> dict[str, ast.expr]:
    """Returns the arguments of a call by the parameters of the op."""
    op_parameters = parameters()[signature.op]
    positional_names = [*op_parameters.positional, *(f"operands {index}" for index in range(len(values)))]
    keywords_and_values = zip(plan.keywords, values, strict=False)
    return {
        key or positional_names[index]: value
        for index, (key, value) in enumerate(keywords_and_values)
        if key != DROPPED
    }


def line_end(file: SourceFile) -> str:
    """Returns the line end of a file: LF or CR LF."""
    return "\r\n" if "\r\n" in file.text else "\n"


def receivers(call: ast.Call) -> list[ast.expr]:
    """Returns the operands before a method's arguments: `x` of `x.sum()`, `x` and `i` of `x.at[i].set(y)`."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return []
    receiver = function.value
    if (
        isinstance(receiver, ast.Subscript)
        and isinstance(receiver.value, ast.Attribute)
        and receiver.value.attr == "at"
    ):
        return [receiver.value.value, receiver.slice]
    return [receiver]


class NodeEditor:
    """The text changes that port one node of a file."""

    def __init__(self, file: SourceFile, node: ast.expr, space: Spelling) -> None:
        self.file, self.node, self.space = file, node, space
        self.depth = len([*file.ancestors(node)])

    def call_changes(self, signature: Signature, plan: Translation, before: list[ast.expr]) -> Iterator[Change]:
        """Yields the changes that make a call one of the op; `before` are the receivers of a method."""
        call, receiver_count = self.node, len(before)
        assert isinstance(call, ast.Call)
        op_name = signature.op.split(".", 2)[2] if signature.op.startswith(PACKAGE) else signature.op
        op_text = f"{self.space.text}.{op_name}"
        if signature.when == "axis":
            yield from self._subscript_changes(call)
            return
        if signature.when == "tensors":
            yield self.replacement_change(call.func, "")  # a tuple
            return
        if receiver_count == 2:
            yield from self._index_changes(call, op_text, before[1])
        elif before:
            yield from self._receiver_changes(call, op_text, plan.keywords[0])
        else:
            yield self.replacement_change(call.func, op_text)
        for node, opening_text, closing_text in argument_insertions(signature.when, call):
            yield self._insertion_change(node, opening_text)
            if closing_text:
                yield self._insertion_change(node, closing_text, after=True)
        for key, node in zip(plan.keywords[receiver_count:], call.args, strict=False):
            if key == DROPPED:
                yield self._drop_argument_change(call, node)
            elif key is not None and plan.packed < 0:
                yield self._insertion_change(node, f"{key}=")
        if plan.packed >= 0:
            yield from self._pack_changes(
                call.args[plan.packed - receiver_count :], plan.keywords[-1 - len(call.keywords)]
            )
        yield from self._keyword_changes(call, plan.keywords[len(plan.keywords) - len(call.keywords) :])
        value_by_parameter = arguments_by_parameter(signature, plan, [*before, *call.args, *_keyword_values(call)])
        dtype_node = value_by_parameter.get("dtype")
        if (
            isinstance(dtype_node, ast.Name)
            and dtype_node.id in BUILTINS
            and self.file.native_origin(dtype_node) is None
        ):
            yield self.replacement_change(dtype_node, f"{self.space.text}.{BUILTINS[dtype_node.id]}")
        if plan.fills:
            yield self._fill_change(call, plan, bool(call.args or call.keywords or before))

    def _keyword_changes(self, call: ast.Call, keys: Sequence[str | None]) -> Iterator[Change]:
        """Yields the changes that give the keyword arguments of a call the keywords of the op, or leave them out."""
        for key, keyword in zip(keys, call.keywords, strict=True):
            if key == DROPPED:
                yield self._drop_argument_change(call, keyword)
            elif key != keyword.arg:
                line, column = keyword.lineno, self.file.column(keyword.lineno, keyword.col_offset) - 1
                yield Change(line, column, column + len(keyword.arg or ""), 0, key or "")

    def replacement_change(self, node: ast.expr, text: str) -> Change:
        """Returns the change that replaces the text of a node."""
        if node.end_lineno != node.lineno:
            raise UntranslatableError("its name spans several lines")
        column_of = self.file.column
        start_column, end_column = (
            column_of(node.lineno, node.col_offset) - 1,
            column_of(node.lineno, node.end_col_offset or 0) - 1,
        )
        return Change(node.lineno, start_column, end_column, 0, text)

    def _drop_argument_change(self, call: ast.Call, node: ast.expr | ast.keyword) -> Change:
        """Returns the change that leaves out an argument, and its line if it stands alone there."""
        line, line_text = node.lineno, self.file.lines[node.lineno - 1]
        if node.end_lineno != line:
            raise UntranslatableError("an argument without meaning here spans several lines: leave it out")
        start_column, end_column = (
            self.file.column(line, offset) - 1 for offset in (node.col_offset, node.end_col_offset or 0)
        )
        text_before, text_after = line_text[:start_column].rstrip(), line_text[end_column:].lstrip()
        if not text_before and text_after in (",", ""):
            return Change(line, 0, len(line_text), 0, WITHOUT_LINE)
        if text_before.endswith(","):
            return Change(line, len(text_before) - 1, end_column, 0, "")
        if (not text_before and text_after.startswith(",")) or (
            text_before.endswith("(") and text_after.startswith((",", ")"))
        ):
            gap_length = len(text_after) - len(text_after[1:].lstrip()) if text_after.startswith(",") else 0
            return Change(line, start_column, len(line_text) - len(text_after) + gap_length, 0, "")
        raise UntranslatableError("an argument has no meaning here: leave it out")

    def _insertion_change(self, node: ast.expr, text: str, after: bool = False) -> Change:
        line, offset = (node.end_lineno or 0, node.end_col_offset or 0) if after else (node.lineno, node.col_offset)
        column = self.file.column(line, offset) - 1
        text_line = self.file.lines[line - 1]
        if not after:
            # The parentheses around an argument are not part of its node.
            while column and text_line[:column].rstrip().endswith("("):
                text_before = text_line[:column].rstrip()
                if not _opens_group(text_before):
                    break
                column = len(text_before) - 1
        depth = self.depth + 1 if not after else -self.depth - 1
        return Change(line, column, column, depth, text)

    def method_changes(self, function: str) -> Iterator[Change]:
        """Yields the changes of `x.method()` to `function(x)`."""
        assert isinstance(self.node, ast.Call)
        yield from self._receiver_changes(self.node, function, None)

    def result_part_change(self) -> Change:
        """Returns the change that drops `[0]`, `.values` or `.indices` after the call."""
        parent, call = self.file.parent(self.node), self.node
        assert isinstance(parent, ast.expr)
        if parent.end_lineno != call.end_lineno:
            raise UntranslatableError("its part of the result spans several lines")
        line_number = call.end_lineno or 0
        end_columns = [self.file.column(line_number, node.end_col_offset or 0) - 1 for node in (call, parent)]
        return Change(line_number, end_columns[0], end_columns[1], 0, "")

    def _index_changes(self, call: ast.Call, op: str, key: ast.expr) -> Iterator[Change]:
        """Yields the changes of `x.at[i].set(` to `op(x, i, `."""
        function = call.func
        assert isinstance(function, ast.Attribute)
        receiver = function.value
        assert isinstance(receiver, ast.Subscript)
        line, end_column = receiver.value.end_lineno or 0, self._column(receiver.value, is_end=True)
        line_text = self.file.lines[line - 1]
        dot_column, opening_column = line_text.rfind(".", 0, end_column), line_text.find("[", end_column)
        closing_column, name_end_column = self._column(receiver, is_end=True) - 1, self._column(function, is_end=True)
        parenthesis_column = line_text.find("(", name_end_column)
        gap_texts = (line_text[end_column:opening_column], line_text[name_end_column:parenthesis_column])
        if (
            function.end_lineno != line
            or line_text[dot_column + 1 : end_column].strip() != "at"
            or parenthesis_column < 0
            or any(map(str.strip, gap_texts))
        ):
            raise UntranslatableError("its index and its name are on several lines")
        if not line_text[:dot_column].strip():
            raise UntranslatableError("the chain of its methods spans several lines")
        start_column, index_column = self._column(call), len(line_text) - len(line_text[opening_column + 1 :].lstrip())
        yield Change(call.lineno, start_column, start_column, self.depth, f"{op}(")
        yield Change(line, len(line_text[:dot_column].rstrip()), index_column, 0, ", ")
        for index_part in key.elts if isinstance(key, ast.Tuple) else [key]:
            if isinstance(index_part, ast.Slice):
                yield from self._slice_changes(index_part)
        if isinstance(key, ast.Tuple):
            yield self._insertion_change(key, "(")
            yield self._insertion_change(key, ")", after=True)
        end_column = len(line_text[:closing_column].rstrip())
        yield Change(line, end_column, parenthesis_column + 1, 0, ", " if call.args or call.keywords else "")

    def _slice_changes(self, node: ast.Slice) -> Iterator[Change]:
        """Yields the changes of `a:b:c` to `slice(a, b, c)`."""
        line_number = node.lineno
        if node.end_lineno != line_number:
            raise UntranslatableError("a slice spans several lines")
        line_text, rank = self.file.lines[line_number - 1], len([*self.file.ancestors(node)])
        start_column, end_column = self._column(node), self._column(node, is_end=True)
        first_colon = line_text.find(":", start_column if node.lower is None else self._column(node.lower, is_end=True))
        second_colon = line_text.find(
            ":", first_colon + 1 if node.upper is None else self._column(node.upper, is_end=True), end_column
        )
        has_no_bounds = node.lower is node.upper is node.step is None
        lower_text = "None" if node.lower is None else ""
        colon_replacements = [
            (first_colon, lower_text if has_no_bounds else f"{lower_text}, {'None' if node.upper is None else ''}")
        ]
        colon_replacements += [(second_colon, ", " if node.step is not None else "")] if second_colon >= 0 else []
        yield Change(line_number, start_column, start_column, rank, "slice(")
        for colon_column, replacement_text in colon_replacements:  # the spaces around the colon are replaced too
            next_column = len(line_text) - len(line_text[colon_column + 1 :].lstrip())
            yield Change(
                line_number,
                max(start_column, len(line_text[:colon_column].rstrip())),
                min(next_column, end_column),
                0,
                replacement_text,
            )
        yield Change(line_number, end_column, end_column, -rank, ")")

    def _column(self, node: ast.expr, is_end: bool = False) -> int:
        line, offset = (node.end_lineno, node.end_col_offset) if is_end else (node.lineno, node.col_offset)
        return self.file.column(line or 0, offset or 0) - 1

    def _receiver_changes(self, call: ast.Call, op: str, key: str | None) -> Iterator[Change]:
        function = call.func
        assert isinstance(function, ast.Attribute)
        line, end_column = (
            function.end_lineno or 0,
            self.file.column(function.end_lineno or 0, function.end_col_offset or 0),
        )
        line_text = self.file.lines[line - 1]
        name_column = end_column - 1 - len(function.attr)
        dot_column = len(line_text[:name_column].rstrip()) - 1
        opening_column = line_text.find("(", end_column - 1)
        if (
            dot_column < 0
            or line_text[dot_column] != "."
            or opening_column < 0
            or line_text[end_column - 1 : opening_column].strip()
        ):
            raise UntranslatableError("its name spans several lines")
        if not line_text[:dot_column].strip() and (function.value.end_lineno or 0) != line:
            raise UntranslatableError("the chain of its methods spans several lines")
        start_column = self.file.column(call.lineno, call.col_offset) - 1
        yield Change(call.lineno, start_column, start_column, self.depth, f"{op}({key}=" if key else f"{op}(")
        yield Change(line, dot_column, opening_column + 1, 0, ", " if call.args or call.keywords else "")

    def _subscript_changes(self, call: ast.Call) -> Iterator[Change]:
        """Yields the changes of `x.size(0)` to `x.shape[0]`."""
        function = call.func
        assert isinstance(function, ast.Attribute)
        line, end_column = (
            function.end_lineno or 0,
            self.file.column(function.end_lineno or 0, function.end_col_offset or 0) - 1,
        )
        line_text, name_column = self.file.lines[line - 1], end_column - len(function.attr)
        if line_text[name_column:end_column] != function.attr or not line_text[end_column:].startswith("("):
            raise UntranslatableError("its name spans several lines")
        last_line, closing_column = (
            call.end_lineno or 0,
            self.file.column(call.end_lineno or 0, call.end_col_offset or 0) - 1,
        )
        yield Change(line, name_column, end_column + 1, 0, "shape[")
        yield Change(last_line, closing_column - 1, closing_column, 0, "]")

    def _pack_changes(self, nodes: list[ast.expr], key: str | None) -> Iterator[Change]:
        opening_text = f"{key}=" if key else ""
        if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple | ast.List):
            if opening_text:
                yield self._insertion_change(nodes[0], opening_text)
            return
        is_single = len(nodes) == 1
        if is_single and not isinstance(nodes[0], ast.Constant | ast.UnaryOp | ast.Starred):
            if opening_text:
                yield self._insertion_change(nodes[0], opening_text)
            return  # a number or a tuple, which both the native call and the op take
        yield self._insertion_change(nodes[0], f"{opening_text}(")
        yield self._insertion_change(nodes[-1], ",)" if is_single else ")", after=True)

    def _fill_change(self, call: ast.Call, plan: Translation, has_arguments: bool) -> Change:
        line, closing_column = (
            call.end_lineno or 0,
            self.file.column(call.end_lineno or 0, call.end_col_offset or 0) - 2,
        )
        text_before = self.file.lines[line - 1][:closing_column].rstrip()
        if has_arguments and not text_before:
            raise UntranslatableError(
                f"its closing parenthesis stands alone: add `{_added_keywords_text(plan)}` by hand"
            )
        separator = (
            ", " if has_arguments and not text_before.endswith(",") else " " if text_before.endswith(",") else ""
        )
        return Change(line, closing_column, closing_column, self.depth + 1, separator + _added_keywords_text(plan))


def _added_keywords_text(plan: Translation) -> str:
    return ", ".join(f"{name}={text}".replace("'", '"') for name, text in plan.fills)


def _keyword_values(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]


def _opens_group(before: str) -> bool:
    """Returns whether the last parenthesis of a text groups an expression instead of opening arguments."""
    return before[:-1].rstrip()[-1:] in ("", "(", ",", "=")
