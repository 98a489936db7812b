"""The steps of a training loop: `loss.backward()` becomes `ops.backward` of a function that computes the loss.

PyTorch records what computes a loss; ops differentiate a function. So the statements from the first that calls a model
to the loss become a function, if nothing that they bind is used elsewhere.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from emberlint.fixes.spelling import ShadowedError, module, spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.replacements import WAYS
from emberlint.knowledge.signatures import UntranslatableError
from emberlint.port.conditions import Terms, is_device, is_dtype
from emberlint.port.modules import HOOKS, KIND, MOVES, has_modules, is_module, space
from emberlint.port.step import Step
from emberlint.port.text import Text, line_end
from emberlint.source.source_file import SourceFile

BACKWARD = "ops.backward(loss_fn, parameters), where loss_fn() computes the loss"
GRADIENTS = "gradients are those of parameters, which ops.backward is given"
# Methods of tensors, and functions, that prepare data; a model is never called like them.
_OF_DATA = frozenset(
    {"cpu", "cuda", "detach", "float", "long", "reshape", "size", "squeeze", "to", "unsqueeze", "view"}
)
_BUILTINS = frozenset({"enumerate", "float", "int", "len", "next", "print", "range"})
_SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Loss(NamedTuple):
    """The statements that compute a loss: their list, the first and the last that assigns it, and `backward`."""

    body: Sequence[ast.stmt]
    first: int
    last: int
    backward: int

    @property
    def region(self) -> Sequence[ast.stmt]:
        return self.body[self.first : self.last + 1]


def training(file: SourceFile, terms: Terms) -> Iterator[Step]:
    """Yields the steps of the methods of modules, optimizers and losses that the libraries do not share."""
    if "torch" not in terms.libraries:
        return
    modules = has_modules(file)
    for call in file.index.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or file.names.origins(function.value):
            continue
        name, receiver = function.attr, function.value
        if name == "backward" and not file.inference.is_other(receiver) and not _is_super(receiver):
            yield _step(file, call, BACKWARD, _backward)
        elif modules and name == "register_buffer":
            yield _step(file, call, "self.name = nn.Buffer(tensor)", _buffer, terms)
        elif modules and name == "step" and not call.args and not call.keywords and _clears_late(file, call):
            yield _step(file, call, "step(clear=False)", _stepped)
        elif modules and name in HOOKS and not file.inference.is_other(receiver):
            why = f"modules and parameters of emberharmony have no {name}()"
            yield Step(call, f".{name}", KIND, reason=why, advice="see the page on layers")
        elif modules and name in ("to", *MOVES) and is_module(file, receiver):
            yield _step(file, call, "module.to(device=..., dtype=...)", _moved)
    for store in file.index.nodes(ast.Attribute) if modules else ():
        if store.attr == "requires_grad" and file.native(store) is None:
            yield Step(store, ".requires_grad", KIND, reason=GRADIENTS, advice="parameter.trainable")
    for call in file.index.nodes(ast.Call) if modules else ():
        key = next((one for one in call.keywords if one.arg == "requires_grad"), None)
        if key is not None and not (file.native(call.func) or "").endswith(".Parameter"):
            yield Step(key.value, "requires_grad", KIND, reason=GRADIENTS, advice="nn.Parameter")


def _step(file: SourceFile, call: ast.Call, way: str, changes: object, *more: Terms) -> Step:
    """Returns the step of a method, with the changes that a function yields, or the reason that it raises."""
    assert isinstance(call.func, ast.Attribute)
    assert callable(changes)
    try:
        found = spelling(file, call)
        done = tuple(changes(file, call, found, *more))
        where = space(file, call, "emberharmony.nn.Buffer", *more) if more else found
        return Step(call, f".{call.func.attr}", KIND, done, where)
    except (UntranslatableError, ShadowedError) as error:
        return Step(call, f".{call.func.attr}", KIND, reason=str(error), advice=way)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _stepped(file: SourceFile, call: ast.Call, _: object) -> Iterator[Change]:
    """Yields the change of `optimizer.step()`, whose namesake also clears the gradients unless it must not."""
    line, end = call.end_lineno or 0, file.column(call.end_lineno or 0, call.end_col_offset or 0) - 2
    yield Change(line, end, end, 0, "clear=False")


def _clears_late(file: SourceFile, call: ast.Call) -> bool:
    """Returns whether the gradients are still read after an optimizer's step: none clears them in the same block."""
    assert isinstance(call.func, ast.Attribute)
    receiver = ast.dump(call.func.value)
    clearing = (one.func for one in _calls(file) if _is_method(one, "zero_grad"))
    if not any(isinstance(one, ast.Attribute) and ast.dump(one.value) == receiver for one in clearing):
        return False  # a scheduler or an environment, or gradients that are set otherwise
    statement = file.parent(call)
    body = _body(file, statement) if isinstance(statement, ast.Expr) else None
    beside = [one.value for one in body or () if isinstance(one, ast.Expr)]
    cleared = any(_is_method(one, "zero_grad") for one in beside)
    reads = any(one.attr == "grad" for one in file.index.nodes(ast.Attribute))
    return reads or not cleared


def _calls(file: SourceFile) -> Iterator[ast.Call]:
    return iter(file.index.nodes(ast.Call))


def _is_method(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _moved(file: SourceFile, call: ast.Call, found: object) -> Iterator[Change]:
    """Yields the changes of `module.to(device)`, or of `module.zero_grad()`.

    Raises:
        UntranslatableError: if the argument may be something else, or the method is another one.
    """
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "zero_grad" and not call.args and not call.keywords:
        yield from Text(file, call, spelling(file, call)).method(f"{spelling(file, call).text}.zero_grad")
        return
    if call.func.attr != "to" or len(call.args) + len(call.keywords) != 1:
        raise UntranslatableError(f"modules of emberharmony have no {call.func.attr}() like this")
    if call.keywords and call.keywords[0].arg in ("device", "dtype"):
        return
    if not call.args:
        raise UntranslatableError("modules of emberharmony have no to() like this")
    name = "device" if is_device(file, call.args[0]) else "dtype" if is_dtype(file, call.args[0], True) else ""
    if not name:
        raise UntranslatableError(f"`{file.segment(call.args[0])}` may be a device or a dtype")
    line, offset = call.args[0].lineno, call.args[0].col_offset
    yield Change(line, file.column(line, offset) - 1, file.column(line, offset) - 1, 0, f"{name}=")


def _buffer(file: SourceFile, call: ast.Call, found: object, terms: Terms) -> Iterator[Change]:
    """Yields the changes of `self.register_buffer("name", tensor)` to `self.name = nn.Buffer(tensor)`.

    Raises:
        UntranslatableError: if the name is no text, or the tensor may be None.
    """
    assert isinstance(call.func, ast.Attribute)
    name, given = call.args[0] if call.args else None, call.args[1:]
    is_text = isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier()
    is_none = any(isinstance(one, ast.Constant) and one.value is None for one in given)
    keys = {one.arg for one in call.keywords}
    if (
        not isinstance(file.parent(call), ast.Expr)
        or not is_text
        or len(given) != 1
        or is_none
        or keys - {"persistent"}
    ):
        raise UntranslatableError("its name or its tensor is not written out")
    assert isinstance(name, ast.Constant)
    line, column = call.lineno, file.column
    if name.lineno != line or given[0].lineno != line:
        raise UntranslatableError("its arguments begin on another line")
    start = column(line, call.func.value.end_col_offset or 0) - 1
    end = column(line, given[0].col_offset) - 1
    if "(" in file.lines[line - 1][column(line, name.end_col_offset or 0) - 1 : end]:
        raise UntranslatableError("its tensor is in parentheses")
    where = space(file, call, "emberharmony.nn.Buffer", terms)
    yield Change(line, start, end, 0, f".{name.value!s} = {where.text}.Buffer(")


def _body(file: SourceFile, statement: ast.AST | None) -> Sequence[ast.stmt] | None:
    """Returns the list of statements that a statement is in."""
    above = file.parent(statement) if statement is not None else None
    for name in ("body", "orelse", "finalbody"):
        some = getattr(above, name, None)
        if isinstance(some, list) and statement in some:
            return some
    return None


def _backward(file: SourceFile, call: ast.Call, found: object) -> Iterator[Change]:
    """Yields the changes that make a function of the statements that compute a loss.

    Raises:
        UntranslatableError: if the statements are of another form.
    """
    loss = _loss(file, call)
    name = "compute_loss"
    taken = {one.id for one in file.index.nodes(ast.Name)} | {one.arg for one in file.index.nodes(ast.arg)}
    if name in taken:
        raise UntranslatableError(f"`{name}` is bound in this file")
    ops, parameters = spelling(file, call).text, _parameters(file, call)
    assert isinstance(call.func, ast.Attribute)
    target = file.segment(call.func.value)
    first, last = loss.region[0], loss.region[-1]
    column = file.column
    indent = file.lines[first.lineno - 1][: column(first.lineno, first.col_offset) - 1]
    opening = f"{indent}def {name}():{line_end(file)}    "
    for number in range(first.lineno, (last.end_lineno or 0) + 1):
        text = opening if number == first.lineno else "    "
        if file.lines[number - 1].strip():
            yield Change(number, 0, 0, -1000, text)
    end = len(file.lines[(last.end_lineno or 1) - 1])
    closing = line_end(file)
    if isinstance(last, ast.Assign):
        place = last.targets[0]
        start = column(place.lineno, place.col_offset) - 1
        text = file.lines[last.lineno - 1]
        equals = text.index("=", column(place.lineno, place.end_col_offset or 0) - 1) + 1
        yield Change(last.lineno, start, len(text) - len(text[equals:].lstrip()), 0, "return ")
    else:
        closing = f"{line_end(file)}{indent}    return {target}{closing}"
    yield Change(last.end_lineno or 0, end, end, 1000, closing)
    start, end = (column(call.lineno, at) - 1 for at in (call.col_offset, call.end_col_offset or 0))
    yield Change(call.lineno, start, end, 0, f"{target} = {ops}.backward({name}, {parameters})")


def _loss(file: SourceFile, call: ast.Call) -> _Loss:
    """Returns the statements that compute the loss of a call of `backward`.

    Raises:
        UntranslatableError: if these are not known.
    """
    assert isinstance(call.func, ast.Attribute)
    receiver, statement = call.func.value, file.parent(call)
    body = _body(file, statement)
    if call.args or call.keywords or not isinstance(statement, ast.Expr) or body is None:
        raise UntranslatableError("it is given a gradient or an option, or its result is used")
    if not isinstance(receiver, ast.Name) or call.lineno != call.end_lineno:
        raise UntranslatableError("the loss has no name")
    at = body.index(statement)
    assigning = [i for i, one in enumerate(body[:at]) if receiver.id in _bound(one)]
    if not assigning:
        raise UntranslatableError(f"`{receiver.id}` is computed in another block")
    last = assigning[-1]
    first = _first(file, body, last)
    loss = _Loss(body, first, last, at)
    _require_closed(file, loss, receiver.id)
    return loss


def _first(file: SourceFile, body: Sequence[ast.stmt], last: int) -> int:
    """Returns the place of the first statement that computes, with a model, what the loss is computed from.

    Raises:
        UntranslatableError: if a name is computed with one before the block, in the same pass of its loop.
    """
    needed, first = _loaded(body[last]), last
    for at in range(last, -1, -1):
        one = body[at]
        if not needed & _bound(one):
            continue
        needed |= _loaded(one)
        if at == last or _may_call_model(file, one):
            first = at
    above: ast.AST | None = file.parent(body[0])
    while above is not None and not isinstance(above, _FUNCTIONS | ast.For | ast.AsyncFor | ast.While | ast.Module):
        around = _body(file, above) or ()
        earlier = around[: around.index(above)] if isinstance(above, ast.stmt) and around else ()
        if any(needed & _bound(one) and _may_call_model(file, one) for one in earlier):
            raise UntranslatableError("what it is computed from is computed in another block")
        above = file.parent(above)
    return first


def _may_call_model(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether a statement may compute with parameters: it calls more than functions of libraries."""
    return any(isinstance(one, ast.Call) and not _is_of_library(file, one) for one in ast.walk(statement))


def _is_of_library(file: SourceFile, call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        return file.native(function) is not None or function.attr in _OF_DATA
    return file.native(function) is not None or getattr(function, "id", "") in _BUILTINS


def _require_closed(file: SourceFile, loss: _Loss, name: str) -> None:
    """Checks that the statements of a loss can be moved to a function.

    Raises:
        UntranslatableError: if a name is used elsewhere, or a statement is of another form.
    """
    region, lines = loss.region, range(loss.region[0].lineno, (loss.region[-1].end_lineno or 0) + 1)
    bound = frozenset().union(*map(_bound, region))
    last = region[-1]
    if isinstance(last, ast.Assign) and not (len(last.targets) == 1 and isinstance(last.targets[0], ast.Name)):
        raise UntranslatableError("the loss is one of several targets")
    known: set[str] = set()
    for one in region:
        if not _is_movable(file, one):
            raise UntranslatableError("a statement between the model and the loss is no assignment")
        first = (_loaded(one) & bound) - known
        if first:
            raise UntranslatableError(f"`{min(first)}` is assigned from itself")
        known |= _bound(one)
    for one in loss.body[loss.last + 1 : loss.backward]:
        if _loaded(one) & bound or not isinstance(one, ast.Expr):
            raise UntranslatableError("the loss is used before the gradients are computed")
    for node in file.index.nodes(ast.Name):
        is_read = node.id in bound - {name} and isinstance(node.ctx, ast.Load) and node.lineno not in lines
        if is_read and _function(file, node) is _function(file, last) and not _is_bound_before(file, node):
            raise UntranslatableError(f"`{node.id}` is used after the gradients are computed")


def _is_movable(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether a statement does the same in a function with more indentation, and begins its line."""
    start = file.column(statement.lineno, statement.col_offset) - 1
    if file.lines[statement.lineno - 1][:start].strip() or not isinstance(statement, _SIMPLE):
        return False
    if not all(isinstance(one, ast.Name) for one in _targets(statement)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.NamedExpr):
            return False
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_text and getattr(node, "lineno", 0) != getattr(node, "end_lineno", 0):
            return False
    return not any(_mentions(statement, name) for name in ("zero_grad", "step"))


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Call) and _is_method(one, name) for one in ast.walk(node))


def _is_bound_before(file: SourceFile, node: ast.Name) -> bool:
    """Returns whether a statement before a name in its own block, or a loop around it, binds it."""
    child: ast.AST = node
    for above in file.ancestors(node):
        if isinstance(above, _FUNCTIONS | ast.Module):
            return False
        body = _body(file, child) if isinstance(child, ast.stmt) else None
        if body is not None:
            earlier = body[: body.index(child)]
            if any(node.id in _bound(one) and not _is_loss_region(file, one) for one in earlier):
                return True
        if isinstance(above, ast.For | ast.AsyncFor) and node.id in _stored(above.target):
            return True
        child = above
    return False


def _is_loss_region(file: SourceFile, statement: ast.stmt) -> bool:
    """Returns whether `backward` is called after a statement, in its block."""
    body = _body(file, statement) or ()
    return any(isinstance(one, ast.Expr) and _is_method(one.value, "backward") for one in body[body.index(statement) :])


def _function(file: SourceFile, node: ast.AST) -> ast.AST | None:
    return next((one for one in file.ancestors(node) if isinstance(one, _FUNCTIONS)), None)


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yields the targets of an assignment, those of a tuple one by one."""
    some = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for one in some:
        if isinstance(one, ast.Tuple | ast.List):
            yield from one.elts
        elif one is not None:
            yield one


def _stored(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))


def _bound(statement: ast.stmt) -> frozenset[str]:
    """Returns the names that a statement binds."""
    return _stored(statement)


def _loaded(statement: ast.stmt) -> frozenset[str]:
    """Returns the names that a statement reads; `x += 1` reads x."""
    found = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        found.add(statement.target.id)
    return frozenset(found)


def _parameters(file: SourceFile, call: ast.Call) -> str:
    """Returns the expression for the parameters whose gradients a call of `backward` is for.

    Raises:
        UntranslatableError: if the function has no optimizer, or several.
    """
    here = _function(file, call)
    found: dict[str, set[str]] = {"step": set(), "zero_grad": set()}
    clipped = set()
    for one in _calls(file):
        if _function(file, one) is not here:
            continue
        if isinstance(one.func, ast.Attribute) and one.func.attr in found and not one.args:
            found[one.func.attr].add(file.segment(one.func.value))
        if (file.native(one.func) or "").startswith("torch.nn.utils.clip_grad") and one.args:
            clipped.add(file.segment(one.args[0]))
    optimizers = found["step"]
    given = {
        file.segment(use.args[0])
        for use in _calls(file)
        if (file.native(use.func) or "").startswith("torch.optim.") and use.args and _function(file, use) is here
    }
    if len(optimizers) > 1 or len(found["zero_grad"] - optimizers) > 1:
        raise UntranslatableError("it computes gradients for several optimizers")
    if not optimizers and not found["zero_grad"]:
        raise UntranslatableError("no optimizer in the same function tells whose gradients it computes")
    if not optimizers:
        return min(found["zero_grad"])
    own = f"{min(optimizers)}.parameters()"
    if not clipped or clipped == given:
        return own
    if any(not one.endswith(".parameters()") for one in clipped):
        raise UntranslatableError("other gradients than those of the optimizer are clipped")
    return f"[{', '.join([*sorted(clipped), own])}]"


def ungraded(file: SourceFile, call: ast.Call, origin: str) -> Step | None:
    """Returns the step of `with torch.no_grad():`, which means nothing for modules of emberharmony, or None."""
    is_item = isinstance(file.parent(call), ast.withitem) and not (call.args or call.keywords)
    if origin not in ("torch.no_grad", "torch.inference_mode") or not is_item or not has_modules(file):
        return None
    try:
        where = module(file, call, "contextlib")
        changes = (Text(file, call, where).replaced(call.func, "contextlib.nullcontext"),)
        return Step(call, origin, KIND, changes, where)
    except (UntranslatableError, ShadowedError) as error:
        return Step(call, origin, KIND, reason=str(error), advice=WAYS[origin])
