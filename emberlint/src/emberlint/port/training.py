"""The steps of a training loop: `loss.backward()` becomes `ops.backward` of a function that computes the loss.

PyTorch records what computes a loss; ops differentiate a function. So the statements from the first that calls a model
to the loss become a function, if nothing that they bind is used elsewhere.
"""

import ast
from collections.abc import Iterator

from emberlint.fixes.spelling import ShadowedError, module_spelling, spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.replacements import WAYS
from emberlint.knowledge.signatures import UntranslatableError
from emberlint.port.conditions import Terms, is_device, is_dtype
from emberlint.port.losses import body_of, calls_of_file, function_of, is_method_call, loss_of
from emberlint.port.modules import HOOKS, KIND, MOVES, has_modules, is_module, package_space
from emberlint.port.step import Step
from emberlint.port.text import NodeEditor, line_end
from emberlint.source.source_file import SourceFile

BACKWARD = "ops.backward(loss_fn, parameters), where loss_fn() computes the loss"
KEPT = "kept"  # the name of the list of values that are read after the gradients are computed
SCHEDULERS = "torch.optim.lr_scheduler."
GRADIENTS = "gradients are those of parameters, which ops.backward is given"


def training_steps(file: SourceFile, terms: Terms) -> Iterator[Step]:
    """Yields the steps of the methods of modules, optimizers and losses that the libraries do not share."""
    if "torch" not in terms.libraries:
        return
    defines_modules = has_modules(file)
    for call in file.index.nodes(ast.Call):
        function = call.func
        if not isinstance(function, ast.Attribute) or file.names.origins(function.value):
            continue
        name, receiver = function.attr, function.value
        if name == "backward" and not file.inference.is_no_tensor(receiver) and not _is_super(receiver):
            yield _step_of_method(file, call, BACKWARD, _backward_changes)
        elif defines_modules and name == "register_buffer":
            yield _step_of_method(file, call, "self.name = nn.Buffer(tensor)", _buffer_changes, terms)
        elif (
            defines_modules
            and name == "step"
            and not call.args
            and not call.keywords
            and _clears_gradients_late(file, call)
        ):
            yield _step_of_method(file, call, "step(clear=False)", _step_without_clearing)
        elif defines_modules and name in HOOKS and not file.inference.is_no_tensor(receiver):
            refusal_reason = f"modules and parameters of emberharmony have no {name}()"
            yield Step(call, f".{name}", KIND, reason=refusal_reason, advice="see the page on layers")
        elif defines_modules and name in ("to", *MOVES) and is_module(file, receiver):
            yield _step_of_method(file, call, "module.to(device=..., dtype=...)", _module_method_changes)
    for attribute_store in file.index.nodes(ast.Attribute) if defines_modules else ():
        if (
            attribute_store.attr == "requires_grad"
            and file.native_origin(attribute_store) is None
            and is_of_parameters(file, attribute_store.value)
        ):
            yield _trainable_step(file, attribute_store)
        elif attribute_store.attr == "requires_grad" and file.native_origin(attribute_store) is None:
            yield Step(attribute_store, ".requires_grad", KIND, reason=GRADIENTS, advice="parameter.trainable")
    for call in file.index.nodes(ast.Call) if defines_modules else ():
        gradient_keyword = next((keyword for keyword in call.keywords if keyword.arg == "requires_grad"), None)
        if gradient_keyword is not None and not (file.native_origin(call.func) or "").endswith(".Parameter"):
            yield Step(gradient_keyword.value, "requires_grad", KIND, reason=GRADIENTS, advice="nn.Parameter")


def _step_of_method(file: SourceFile, call: ast.Call, way: str, changes: object, *terms: Terms) -> Step:
    """Returns the step of a method's call, with the changes from a function, or the reason that the function raises."""
    assert isinstance(call.func, ast.Attribute)
    assert callable(changes)
    try:
        ops_spelling = spelling(file, call)
        step_changes = tuple(changes(file, call, ops_spelling, *terms))
        buffer_spelling = package_space(file, call, "emberharmony.nn.Buffer", *terms) if terms else ops_spelling
        return Step(call, f".{call.func.attr}", KIND, step_changes, buffer_spelling)
    except (UntranslatableError, ShadowedError) as error:
        return Step(call, f".{call.func.attr}", KIND, reason=str(error), advice=way)


def _trainable_step(file: SourceFile, node: ast.Attribute) -> Step:
    """Returns the step of `parameter.requires_grad`, which is `trainable` here."""
    line_number, end_column = node.end_lineno or 0, file.column(node.end_lineno or 0, node.end_col_offset or 0) - 1
    start_column = end_column - len(node.attr)
    if file.lines[line_number - 1][start_column:end_column] != node.attr:
        return Step(node, ".requires_grad", KIND, reason="its name spans several lines", advice="parameter.trainable")
    return Step(node, ".requires_grad", KIND, (Change(line_number, start_column, end_column, 0, "trainable"),))


def is_of_parameters(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a name is bound by loops over parameters, or an expression is the weight or bias of a layer."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("weight", "bias")
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    iterated_nodes = []
    for binding in bindings:
        child: ast.AST = binding.node
        for ancestor in file.ancestors(binding.node):
            if isinstance(ancestor, ast.For | ast.comprehension):
                iterated_nodes.append(ancestor.iter if child is ancestor.target else None)
                break
            child = ancestor
    optimizer_arguments = [
        iterated_node.func.attr
        if isinstance(iterated_node, ast.Call) and isinstance(iterated_node.func, ast.Attribute)
        else ""
        for iterated_node in iterated_nodes
    ]
    return (
        bool(optimizer_arguments)
        and len(optimizer_arguments) == len(bindings)
        and set(optimizer_arguments) <= {"parameters", "named_parameters"}
    )


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _step_without_clearing(file: SourceFile, call: ast.Call, _: object) -> Iterator[Change]:
    """Yields the change of `optimizer.step()`, whose namesake also clears the gradients unless it must not."""
    line, closing_column = call.end_lineno or 0, file.column(call.end_lineno or 0, call.end_col_offset or 0) - 2
    yield Change(line, closing_column, closing_column, 0, "clear=False")


def _clears_gradients_late(file: SourceFile, call: ast.Call) -> bool:
    """Returns whether the gradients are still read after an optimizer's step: none clears them in the same block."""
    assert isinstance(call.func, ast.Attribute)
    receiver_text = ast.dump(call.func.value)
    clearing_functions = (call.func for call in calls_of_file(file) if is_method_call(call, "zero_grad"))
    if not any(
        isinstance(clearing_call, ast.Attribute) and ast.dump(clearing_call.value) == receiver_text
        for clearing_call in clearing_functions
    ):
        return False  # without gradients, the receiver is a scheduler or an environment
    statement = file.parent(call)
    block_statements = body_of(file, statement) if isinstance(statement, ast.Expr) else None
    expression_calls = [statement.value for statement in block_statements or () if isinstance(statement, ast.Expr)]
    clears_in_block = any(is_method_call(call, "zero_grad") for call in expression_calls)
    reads_grad = any(node.attr == "grad" for node in file.index.nodes(ast.Attribute))
    return reads_grad or not clears_in_block


def _module_method_changes(file: SourceFile, call: ast.Call, signature: object) -> Iterator[Change]:
    """Yields the changes of `module.to(device)`, or of `module.zero_grad()`.

    Raises:
        UntranslatableError: if the argument may be something else, or the method is another one.
    """
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "zero_grad" and not call.args and not call.keywords:
        yield from NodeEditor(file, call, spelling(file, call)).method_changes(f"{spelling(file, call).text}.zero_grad")
        return
    if call.func.attr != "to" or len(call.args) + len(call.keywords) != 1:
        raise UntranslatableError(f"modules of emberharmony have no {call.func.attr}() like this")
    if call.keywords and call.keywords[0].arg in ("device", "dtype"):
        return
    if not call.args:
        raise UntranslatableError("modules of emberharmony have no to() like this")
    keyword_name = "device" if is_device(file, call.args[0]) else "dtype" if is_dtype(file, call.args[0], True) else ""
    if not keyword_name:
        raise UntranslatableError(f"`{file.segment(call.args[0])}` may be a device or a dtype")
    line, offset = call.args[0].lineno, call.args[0].col_offset
    yield Change(line, file.column(line, offset) - 1, file.column(line, offset) - 1, 0, f"{keyword_name}=")


def _buffer_changes(file: SourceFile, call: ast.Call, signature: object, terms: Terms) -> Iterator[Change]:
    """Yields the changes of `self.register_buffer("name", tensor)` to `self.name = nn.Buffer(tensor)`.

    Raises:
        UntranslatableError: if the name is no text, or the tensor may be None.
    """
    assert isinstance(call.func, ast.Attribute)
    name, other_arguments = call.args[0] if call.args else None, call.args[1:]
    has_literal_name = isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier()
    has_none_value = any(isinstance(argument, ast.Constant) and argument.value is None for argument in other_arguments)
    keyword_names = {keyword.arg for keyword in call.keywords}
    if (
        not isinstance(file.parent(call), ast.Expr)
        or not has_literal_name
        or len(other_arguments) != 1
        or has_none_value
        or keyword_names - {"persistent"}
    ):
        raise UntranslatableError("its name or its tensor is not written out")
    assert isinstance(name, ast.Constant)
    line, column_of = call.lineno, file.column
    if name.lineno != line or other_arguments[0].lineno != line:
        raise UntranslatableError("its arguments begin on another line")
    start_column = column_of(line, call.func.value.end_col_offset or 0) - 1
    end_column = column_of(line, other_arguments[0].col_offset) - 1
    if "(" in file.lines[line - 1][column_of(line, name.end_col_offset or 0) - 1 : end_column]:
        raise UntranslatableError("its tensor is in parentheses")
    buffer_spelling = package_space(file, call, "emberharmony.nn.Buffer", terms)
    yield Change(line, start_column, end_column, 0, f".{name.value!s} = {buffer_spelling.text}.Buffer(")


def _backward_changes(file: SourceFile, call: ast.Call, signature: object) -> Iterator[Change]:
    """Yields the changes that turn the statements before `loss.backward()` into a function and differentiate it.

    Raises:
        UntranslatableError: if the statements are of another form.
    """
    loss = loss_of(file, call)
    function_name = "compute_loss"
    taken_names = {node.id for node in file.index.nodes(ast.Name)} | {node.arg for node in file.index.nodes(ast.arg)}
    if taken_names & {function_name, KEPT}:
        raise UntranslatableError(f"`{min(taken_names & {function_name, KEPT})}` is bound in this file")
    ops_text, parameters_text = spelling(file, call).text, _parameters_text(file, call)
    assert isinstance(call.func, ast.Attribute)
    loss_text = file.segment(call.func.value)
    first_statement, last_statement = loss.region[0], loss.region[-1]
    column_of = file.column
    indent = file.lines[first_statement.lineno - 1][: column_of(first_statement.lineno, first_statement.col_offset) - 1]
    new_line = f"{line_end(file)}{indent}"
    appends = [f"{KEPT}.append({ops_text}.stop_gradient({kept_name})){new_line}    " for kept_name in loss.kept]
    opening = f"{indent}{f'{KEPT} = []{new_line}' if appends else ''}def {function_name}():{line_end(file)}    "
    for line_number in range(first_statement.lineno, (last_statement.end_lineno or 0) + 1):
        text = opening if line_number == first_statement.lineno else "    "
        if file.lines[line_number - 1].strip():
            yield Change(line_number, 0, 0, -1000, text)
    end = len(file.lines[(last_statement.end_lineno or 1) - 1])
    closing_text = line_end(file)
    if isinstance(last_statement, ast.Assign):
        assigned_target = last_statement.targets[0]
        start = column_of(assigned_target.lineno, assigned_target.col_offset) - 1
        text = file.lines[last_statement.lineno - 1]
        equals_index = text.index("=", column_of(assigned_target.lineno, assigned_target.end_col_offset or 0) - 1) + 1
        yield Change(
            last_statement.lineno, start, len(text) - len(text[equals_index:].lstrip()), 0, f"{''.join(appends)}return "
        )
    else:
        closing_text = f"{new_line}    {''.join(appends)}return {loss_text}{closing_text}"
    yield Change(last_statement.end_lineno or 0, end, end, 1000, closing_text)
    start, end = (column_of(call.lineno, offset) - 1 for offset in (call.col_offset, call.end_col_offset or 0))
    assignment_text = f"{loss.kept[0]} = {KEPT}[0]" if len(loss.kept) == 1 else f"{', '.join(loss.kept)} = {KEPT}"
    names_text = f"{new_line}{assignment_text}" if appends else ""
    yield Change(
        call.lineno, start, end, 0, f"{loss_text} = {ops_text}.backward({function_name}, {parameters_text}){names_text}"
    )


def _parameters_text(file: SourceFile, call: ast.Call) -> str:
    """Returns the expression for the parameters whose gradients a call of `backward` is for.

    Raises:
        UntranslatableError: if the function has no optimizer, or several.
    """
    enclosing_function, scheduler_names = function_of(file, call), _scheduler_names(file)
    receivers_by_method: dict[str, set[str]] = {"step": set(), "zero_grad": set()}
    clipped_texts = set()
    for parameters_call in calls_of_file(file):
        if function_of(file, parameters_call) is not enclosing_function:
            continue
        if (
            isinstance(parameters_call.func, ast.Attribute)
            and parameters_call.func.attr in receivers_by_method
            and not parameters_call.args
            and file.segment(parameters_call.func.value) not in scheduler_names
        ):
            receivers_by_method[parameters_call.func.attr].add(file.segment(parameters_call.func.value))
        if (file.native_origin(parameters_call.func) or "").startswith(
            "torch.nn.utils.clip_grad"
        ) and parameters_call.args:
            clipped_texts.add(file.segment(parameters_call.args[0]))
    optimizer_names = receivers_by_method["step"]
    parameter_sources = {
        file.segment(optimizer_call.args[0])
        for optimizer_call in calls_of_file(file)
        if _is_optimizer(file, optimizer_call)
        and optimizer_call.args
        and function_of(file, optimizer_call) is enclosing_function
    }
    if len(optimizer_names) > 1 or len(receivers_by_method["zero_grad"] - optimizer_names) > 1:
        optimizers_text = ", ".join(sorted(optimizer_names | receivers_by_method["zero_grad"]))
        raise UntranslatableError(f"it may compute gradients for several optimizers: {optimizers_text}")
    if not optimizer_names and not receivers_by_method["zero_grad"]:
        raise UntranslatableError("no optimizer in the same function tells whose gradients it computes")
    if not optimizer_names:
        return min(receivers_by_method["zero_grad"])
    _require_cleared_gradients(file, call, min(optimizer_names))
    parameters_text = f"{min(optimizer_names)}.parameters()"
    if not clipped_texts or clipped_texts == parameter_sources:
        return parameters_text
    if any(not clipped_text.endswith(".parameters()") for clipped_text in clipped_texts):
        raise UntranslatableError("other gradients than those of the optimizer are clipped")
    return f"[{', '.join([*sorted(clipped_texts), parameters_text])}]"


def _is_optimizer(file: SourceFile, call: ast.Call) -> bool:
    """Returns whether a call makes an optimizer."""
    native_name = file.native_origin(call.func) or ""
    return native_name.startswith("torch.optim.") and not native_name.startswith(SCHEDULERS)


def _scheduler_names(file: SourceFile) -> frozenset[str]:
    """Returns the names of learning rate schedulers, whose `step` is not that of an optimizer."""
    return frozenset(
        file.segment(target)
        for assignment in file.index.nodes(ast.Assign)
        if isinstance(assignment.value, ast.Call)
        and (file.native_origin(assignment.value.func) or "").startswith(SCHEDULERS)
        for target in assignment.targets
    )


def _require_cleared_gradients(file: SourceFile, call: ast.Call, optimizer: str) -> None:
    """Checks that no gradients of another loss are left: with several optimizers, `zero_grad` comes just before.

    Raises:
        UntranslatableError: if it does not.
    """
    if len([call for call in calls_of_file(file) if _is_optimizer(file, call)]) < 2:
        return
    statement = file.parent(call)
    block_statements = body_of(file, statement) or ()
    earlier_calls = [
        earlier_statement.value
        for earlier_statement in block_statements[: block_statements.index(statement)]
        if isinstance(earlier_statement, ast.Expr)
    ]
    clearing_functions = (
        earlier_statement.func
        for earlier_statement in earlier_calls
        if isinstance(earlier_statement, ast.Call) and is_method_call(earlier_statement, "zero_grad")
    )
    if not any(
        isinstance(clearing_call, ast.Attribute) and file.segment(clearing_call.value) == optimizer
        for clearing_call in clearing_functions
    ):
        raise UntranslatableError(f"{optimizer}.zero_grad() does not come before it, and the file has other optimizers")


def no_grad_step(file: SourceFile, call: ast.Call, origin: str) -> Step | None:
    """Returns the step of `with torch.no_grad():`, which modules of emberharmony do not need, or None."""
    is_context_manager = isinstance(file.parent(call), ast.withitem) and not (call.args or call.keywords)
    if origin not in ("torch.no_grad", "torch.inference_mode") or not is_context_manager or not has_modules(file):
        return None
    try:
        contextlib_spelling = module_spelling(file, call, "contextlib")
        changes = (NodeEditor(file, call, contextlib_spelling).replacement_change(call.func, "contextlib.nullcontext"),)
        return Step(call, origin, KIND, changes, contextlib_spelling)
    except (UntranslatableError, ShadowedError) as error:
        return Step(call, origin, KIND, reason=str(error), advice=WAYS[origin])
