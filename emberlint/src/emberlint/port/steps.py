"""The steps of a port: for each native use of a file, the changes of its text, or the reason to leave it."""

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emberlint.fixes.spelling import ShadowedError, Spelling, spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.arguments import parameters
from emberlint.knowledge.native import Use
from emberlint.knowledge.replacements import neutral_dtype, replacement
from emberlint.knowledge.signatures import (
    PARTS,
    Signature,
    Translation,
    UntranslatableError,
    candidates,
    translated,
)
from emberlint.port.conditions import BUILTINS, Terms, reason_against
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import advice, is_plain
from emberlint.source.source_file import SourceFile

CLASSES = {"numpy": "numpy.ndarray", "torch": "torch.Tensor"}
TYPES = frozenset({*CLASSES.values(), "jax.Array", "jax.numpy.ndarray"})
# Methods that only tensors of PyTorch have, so that the name tells the library of a value of unknown type.
OF_TORCH = frozenset(
    {
        "clamp",
        "clone",
        "contiguous",
        "cpu",
        "detach",
        "dim",
        "expand",
        "index_select",
        "log_softmax",
        "logsumexp",
        "masked_fill",
    }
    | {"ndimension", "nelement", "numel", "numpy", "permute", "reciprocal", "rsqrt", "softmax", "tile", "tril", "triu"}
    | {"unsqueeze"}
)
OF_BUILTINS = frozenset(name for kind in (str, list, dict, set, complex, float, int) for name in dir(kind))
# how the reason for a tensor names the library that it comes from
_ORIGIN = re.compile(r"`(numpy|torch|emberharmony)\.[\w.]+`(?: returns|, a tensor type)")


class Step(NamedTuple):
    """A native use with its kind, and either the changes that port it or the reason against and the way out."""

    node: ast.expr
    native: str
    kind: str
    changes: tuple[Change, ...] = ()
    space: Spelling | None = None
    reason: str = ""
    advice: str = ""


def steps(file: SourceFile, terms: Terms) -> list[Step]:
    """Returns a step for each native use and for each method of a tensor whose library is known."""
    done = [*_calls(file, terms)]
    return [*done, *_others(file, done)]


def _calls(file: SourceFile, terms: Terms) -> Iterator[Step]:
    """Yields the steps of the calls of functions and methods."""
    for use in native_uses(file):
        call = file.parent(use.node)
        if use.kind != "dtype" and isinstance(call, ast.Call) and call.func is use.node:
            as_builtin = _compared(file, call, use)
            yield as_builtin or _called(file, call, use.origin, candidates(use.origin), use, terms)
    for call in file.index.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and file.native(call.func) is None:
            yield from _method(file, call, call.func, terms)


def _method(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> Iterator[Step]:
    """Yields the step of a method, if its receiver is known as a tensor of a library or as the result of an op."""
    known = {owner: candidates(f"{name}.{function.attr}") for owner, name in CLASSES.items()}
    if not any(known.values()):
        return
    evidence = file.inference.evidence(function.value)
    origin = _ORIGIN.search(evidence.reason) if evidence is not None and evidence.tier.name in ("A", "B") else None
    library = origin[1] if origin is not None else ""
    if library not in CLASSES and _is_of_torch(file, call, function, terms):
        library = "torch"
    found = known.get(library)
    if found:
        yield _called(file, call, found[0].native, found, None, terms)
    elif library and library not in CLASSES:
        name = next(one[0].op for one in known.values() if one)
        why = "the result of an op has this method in some libraries only"
        yield Step(call, f".{function.attr}", "method", reason=why, advice=f"ops.{name}")
    elif not library and terms.uses_arrays and _may_be_tensor(file, function):
        name = _first_op(call, [one for some in known.values() for one in some])
        if name:
            why, way = f"`{file.segment(function.value)}` may be a native tensor", f"annotate it, or write ops.{name}"
            yield Step(call, f".{function.attr}", "method", reason=why, advice=way)


def _may_be_tensor(file: SourceFile, function: ast.Attribute) -> bool:
    """Returns whether a method that no builtin type has is called on a parameter without annotation."""
    if function.attr in OF_BUILTINS or not isinstance(function.value, ast.Name):
        return False
    bindings = file.names.bindings(function.value)
    arguments = [one.node for one in bindings if isinstance(one.node, ast.arg) and one.node.annotation is None]
    is_own = function.value.id in ("self", "cls") or file.inference.is_other(function.value)
    return bool(bindings) and len(arguments) == len(bindings) and not is_own


def _first_op(call: ast.Call, found: Sequence[Signature]) -> str:
    """Returns the op of the first signature that takes the arguments of a method's call, or an empty string."""
    for one in found:
        with contextlib.suppress(UntranslatableError):
            translated(one, 1 + len(call.args), [keyword.arg or "" for keyword in call.keywords])
            return one.op
    return ""


def _is_of_torch(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> bool:
    """Returns whether the call of a method tells that its receiver is a tensor of PyTorch, in a file that uses it."""
    # NumPy's method takes the order of all axes: two of them exchange nothing, or what PyTorch's exchanges
    exchanges = (
        function.attr == "transpose" and terms.uses_only_torch and [*map(_is_literal, call.args)] == [True, True]
    )
    if not terms.uses_torch or not (function.attr in OF_TORCH or exchanges):
        return False
    own = any(one.name == function.attr and _takes(one, call) for one in file.index.nodes(ast.FunctionDef))
    receiver = function.value
    is_self = isinstance(receiver, ast.Name) and receiver.id in ("self", "cls")
    is_super = isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super"
    return not (own or is_self or is_super or file.names.origins(receiver) or file.inference.is_other(receiver))


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _takes(function: ast.FunctionDef, call: ast.Call) -> bool:
    """Returns whether a method of the file takes as many arguments as a call gives; `*` and `**` give any number."""
    given = function.args
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return True
    most = len(given.posonlyargs) + len(given.args) - 1
    count = len(call.args) + len(call.keywords)
    return most - len(given.defaults) <= count and (count <= most or given.vararg is not None or bool(given.kwonlyargs))


def _compared(file: SourceFile, call: ast.Call, use: Use) -> Step | None:
    """Returns the step of a `torch.Size` that is only compared, where a tuple does the same, or None."""
    is_compared = isinstance(file.parent(call), ast.Compare) and len(call.args) == 1 and not call.keywords
    if use.origin != "torch.Size" or not is_compared or "tuple" in file.names.root.bindings:
        return None
    column = file.column
    start, end = (column(call.lineno, at) - 1 for at in (call.func.col_offset, call.func.end_col_offset or 0))
    return Step(call, use.origin, "call", (Change(call.lineno, start, end, 0, "tuple"),))


def _called(
    file: SourceFile, call: ast.Call, origin: str, found: Sequence[Signature], use: Use | None, terms: Terms
) -> Step:
    """Returns the step of a call: by the first of the signatures that takes its arguments."""
    kind = "method" if use is None else "call" if use.kind == "use" else use.kind
    why, way = "no op is known to equal this call", _advice(file, use)
    if origin.startswith("jax.random."):
        why = "JAX draws numbers from a key, ops from a stream"
    part = _part(file, call)
    for one in sorted(found, key=lambda one: one.part is None):
        if one.part not in (None, part):
            continue
        try:
            space = spelling(file, call)
            changes = _translated(file, call, one, space, use is None, terms)
            if one.part is not None:
                changes = (*changes, _Text(file, call, space).without_part())
            return Step(call, origin, kind, changes, space)
        except (UntranslatableError, ShadowedError) as error:
            if one is found[0]:
                why, way = str(error), way or f"ops.{one.op}"
    return Step(call, origin, kind, reason=why, advice=way)


def _part(file: SourceFile, call: ast.Call) -> int | None:
    """Returns the index of the item of a call's result that is used at once: `[0]`, `.values` or `.indices`."""
    above = file.parent(call)
    if isinstance(above, ast.Subscript) and above.value is call and isinstance(above.slice, ast.Constant):
        return above.slice.value if type(above.slice.value) is int else None
    return PARTS.get(above.attr) if isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load) else None


def _translated(
    file: SourceFile, call: ast.Call, found: Signature, space: Spelling, is_method: bool, terms: Terms
) -> tuple[Change, ...]:
    """Returns the changes that make a call one of the op.

    Raises:
        UntranslatableError: if no call of the op equals it.
    """
    arguments = [*([call.func.value] if is_method and isinstance(call.func, ast.Attribute) else []), *call.args]
    plan = translated(found, len(arguments), [one.arg or "" for one in call.keywords])
    # the arguments that the op takes as a tuple, or as any number of arguments too
    last = len(found.places) - 1 if parameters()[found.op].variadic else plan.packed
    several = arguments[last:] if last >= 0 else []
    starred = any(isinstance(one, ast.Starred) and one not in several for one in arguments)
    if starred or any(one.arg is None for one in call.keywords):
        raise UntranslatableError("the arguments of `*` and `**` are known only at run time")
    if any(isinstance(one, ast.JoinedStr) for one in file.ancestors(call)):
        raise UntranslatableError("it is inside an f-string")
    values = [*arguments, *(one.value for one in call.keywords)]
    reason = reason_against(file, found, call, _by_parameter(found, plan, values), terms)
    if reason is not None:
        raise UntranslatableError(reason)
    return tuple(_Text(file, call, space).changes(found, plan, is_method))


def _by_parameter(found: Signature, plan: Translation, values: list[ast.expr]) -> dict[str, ast.expr]:
    target = parameters()[found.op]
    names = [*target.positional, *(f"operands {at}" for at in range(len(values)))]
    given = zip(plan.keywords, values, strict=False)
    return {key or names[at]: one for at, (key, one) in enumerate(given)}


def _advice(file: SourceFile, use: Use | None) -> str:
    return "" if use is None else advice(file, use).title


def _others(file: SourceFile, calls: Sequence[Step]) -> Iterator[Step]:
    """Yields the steps of dtypes, constants and functions that are not called."""
    ported = {id(step.node) for step in calls if step.changes}
    is_left = any(not step.changes for step in calls)
    for use in native_uses(file):
        above = file.parent(use.node)
        if use.kind != "dtype" and isinstance(above, ast.Call) and above.func is use.node:
            continue
        if use.origin in TYPES and _is_annotation(file, use.node):
            yield _annotated(file, use)
            continue
        neutral, found = neutral_dtype(use.origin), replacement(use.origin)
        call = file.parent(above) if isinstance(above, ast.keyword) else above
        is_argument = isinstance(call, ast.Call) and call.func is not use.node and id(call) in ported
        kind = "constant" if use.kind == "use" else use.kind
        name = neutral or (found.op if found is not None else "")
        takes = name in parameters()
        if not name or takes or not (is_argument or is_plain(file, use)):
            why = "a function is passed as a value" if takes else "no op is known to equal it here"
            yield Step(use.node, use.origin, kind, reason=why, advice=f"ops.{name}" if name else "")
            continue
        if neutral and is_left and not is_argument:
            why = "a native call that is left may be given this dtype, which ops understand too"
            yield Step(use.node, use.origin, kind, reason=why, advice=f"ops.{name}")
            continue
        try:
            space = spelling(file, use.node)
            changes = (_Text(file, use.node, space).replaced(use.node, f"{space.text}.{name}"),)
        except (UntranslatableError, ShadowedError) as error:
            yield Step(use.node, use.origin, kind, reason=str(error), advice=f"ops.{name}")
            continue
        yield Step(use.node, use.origin, kind, changes, space)


def _is_annotation(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an expression is in the annotation of a parameter, a result or a variable."""
    child: ast.AST = node
    for above in file.ancestors(node):
        if isinstance(above, ast.arg | ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef):
            return child in (getattr(above, "annotation", None), getattr(above, "returns", None))
        child = above
    return False


def _annotated(file: SourceFile, use: Use) -> Step:
    """Returns the step of an annotation: the type of the tensors of every backend."""
    space = Spelling("Tensor", "emberharmony.Tensor", added=True)
    bound = any(one.origin != space.namespace for one in file.names.root.bindings.get(space.text, ()))
    if bound or file.settings.namespaces[:1] != ("emberharmony.ops",):
        why = "`Tensor` is bound to something else" if bound else "the namespace has no type of tensors"
        return Step(use.node, use.origin, "annotation", reason=why, advice=space.namespace)
    try:
        changes = (_Text(file, use.node, space).replaced(use.node, space.text),)
    except UntranslatableError as error:
        return Step(use.node, use.origin, "annotation", reason=str(error), advice=space.namespace)
    return Step(use.node, use.origin, "annotation", changes, space)


class _Text:
    """The changes of the text of one node."""

    def __init__(self, file: SourceFile, node: ast.expr, space: Spelling) -> None:
        self.file, self.node, self.space = file, node, space
        self.depth = len([*file.ancestors(node)])

    def changes(self, found: Signature, plan: Translation, is_method: bool) -> Iterator[Change]:
        """Yields the changes that make a call one of the op."""
        call = self.node
        assert isinstance(call, ast.Call)
        op = f"{self.space.text}.{found.op}"
        if is_method:
            yield from self._receiver(call, op, plan.keywords[0])
        else:
            yield self.replaced(call.func, op)
        for key, node in zip(plan.keywords[is_method:], call.args, strict=False):
            if key is not None and plan.packed < 0:
                yield self._inserted(node, f"{key}=")
        if plan.packed >= 0:
            yield from self._packed(call.args[plan.packed - is_method :], plan.keywords[-1 - len(call.keywords)])
        keys = plan.keywords[len(plan.keywords) - len(call.keywords) :]
        for key, keyword in zip(keys, call.keywords, strict=True):
            if key != keyword.arg:
                line, column = keyword.lineno, self.file.column(keyword.lineno, keyword.col_offset) - 1
                yield Change(line, column, column + len(keyword.arg or ""), 0, key or "")
        names = _by_parameter(found, plan, [*([call.func] if is_method else []), *call.args, *_values(call)])
        dtype = names.get("dtype")
        if isinstance(dtype, ast.Name) and dtype.id in BUILTINS and self.file.native(dtype) is None:
            yield self.replaced(dtype, f"{self.space.text}.{BUILTINS[dtype.id]}")
        if plan.fills:
            yield self._filled(call, plan, bool(call.args or call.keywords or is_method))

    def replaced(self, node: ast.expr, text: str) -> Change:
        """Returns the change of a node's text."""
        if node.end_lineno != node.lineno:
            raise UntranslatableError("its name spans several lines")
        column = self.file.column
        start, end = column(node.lineno, node.col_offset) - 1, column(node.lineno, node.end_col_offset or 0) - 1
        return Change(node.lineno, start, end, 0, text)

    def _inserted(self, node: ast.expr, text: str, after: bool = False) -> Change:
        line, offset = (node.end_lineno or 0, node.end_col_offset or 0) if after else (node.lineno, node.col_offset)
        column = self.file.column(line, offset) - 1
        text_line = self.file.lines[line - 1]
        if not after:
            # an argument in parentheses, which are not part of its node
            while column and text_line[:column].rstrip().endswith("("):
                before = text_line[:column].rstrip()
                if not _opens_group(before):
                    break
                column = len(before) - 1
        depth = self.depth + 1 if not after else -self.depth - 1
        return Change(line, column, column, depth, text)

    def without_part(self) -> Change:
        """Returns the change that drops `[0]`, `.values` or `.indices` after the call."""
        whole, call = self.file.parent(self.node), self.node
        assert isinstance(whole, ast.expr)
        if whole.end_lineno != call.end_lineno:
            raise UntranslatableError("its part of the result spans several lines")
        line = call.end_lineno or 0
        ends = [self.file.column(line, node.end_col_offset or 0) - 1 for node in (call, whole)]
        return Change(line, ends[0], ends[1], 0, "")

    def _receiver(self, call: ast.Call, op: str, key: str | None) -> Iterator[Change]:
        function = call.func
        assert isinstance(function, ast.Attribute)
        line, end = function.end_lineno or 0, self.file.column(function.end_lineno or 0, function.end_col_offset or 0)
        text = self.file.lines[line - 1]
        name = end - 1 - len(function.attr)
        dot = len(text[:name].rstrip()) - 1
        opening = text.find("(", end - 1)
        if dot < 0 or text[dot] != "." or opening < 0 or text[end - 1 : opening].strip():
            raise UntranslatableError("its name spans several lines")
        if not text[:dot].strip() and (function.value.end_lineno or 0) != line:
            raise UntranslatableError("the chain of its methods spans several lines")
        start = self.file.column(call.lineno, call.col_offset) - 1
        yield Change(call.lineno, start, start, self.depth, f"{op}({key}=" if key else f"{op}(")
        yield Change(line, dot, opening + 1, 0, ", " if call.args or call.keywords else "")

    def _packed(self, nodes: list[ast.expr], key: str | None) -> Iterator[Change]:
        opening = f"{key}=" if key else ""
        if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple | ast.List):
            if opening:
                yield self._inserted(nodes[0], opening)
            return
        is_single = len(nodes) == 1
        if is_single and not isinstance(nodes[0], ast.Constant | ast.UnaryOp | ast.Starred):
            if opening:
                yield self._inserted(nodes[0], opening)
            return  # a number or a tuple, which both the native call and the op take
        yield self._inserted(nodes[0], f"{opening}(")
        yield self._inserted(nodes[-1], ",)" if is_single else ")", after=True)

    def _filled(self, call: ast.Call, plan: Translation, has_arguments: bool) -> Change:
        line, end = call.end_lineno or 0, self.file.column(call.end_lineno or 0, call.end_col_offset or 0) - 2
        before = self.file.lines[line - 1][:end].rstrip()
        if has_arguments and not before:
            raise UntranslatableError(f"its closing parenthesis stands alone: add `{_text(plan)}` by hand")
        comma = ", " if has_arguments and not before.endswith(",") else " " if before.endswith(",") else ""
        return Change(line, end, end, self.depth + 1, comma + _text(plan))


def _text(plan: Translation) -> str:
    return ", ".join(f"{name}={text}".replace("'", '"') for name, text in plan.fills)


def _values(call: ast.Call) -> list[ast.expr]:
    return [one.value for one in call.keywords]


def _opens_group(before: str) -> bool:
    """Returns whether the last parenthesis of a text groups an expression instead of opening arguments."""
    return before[:-1].rstrip()[-1:] in ("", "(", ",", "=")
