"""The steps of a port: for each native use of a file, the changes of its text, or the reason to leave it."""

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence

from emberlint.fixes.spelling import ShadowedError, Spelling, module_spelling, spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.arguments import parameters
from emberlint.knowledge.methods import OF_TORCH, is_torch_receiver
from emberlint.knowledge.native import Use
from emberlint.knowledge.replacements import (
    PACKAGE,
    WAYS,
    dtype_of_tensor_type,
    neutral_dtype,
    program_name,
    reason_without_op,
    replacement,
)
from emberlint.knowledge.signatures import PARTS, Signature, UntranslatableError, signatures_of, translate
from emberlint.port.annotations import annotation_step, is_annotation
from emberlint.port.conditions import OWN, Terms, reason_against, reason_for_function
from emberlint.port.modules import (
    KIND,
    are_modules_blocked,
    are_names_free,
    class_step,
    is_module_use,
    keep_modules_together,
    package_space,
    rebindable_names,
)
from emberlint.port.own_methods import accepts_call, is_own_method
from emberlint.port.regions import TRACED, Region, is_inside, regions
from emberlint.port.step import ANNOTATION, Step
from emberlint.port.text import NodeEditor, arguments_by_parameter, receivers
from emberlint.port.training import is_of_parameters, no_grad_step, training_steps
from emberlint.port.writes import writes, writing_method_calls
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import is_plain_rename
from emberlint.source.source_file import SourceFile

CLASSES = {"numpy": "numpy.ndarray", "torch": "torch.Tensor", "jax": "jax.Array"}
TYPES = frozenset({*CLASSES.values(), "jax.numpy.ndarray"})
COMPOSE = "compose it from ops, or move it to a backend folder"
UNKNOWN = "the arguments of `*` and `**` are known only at run time"
OF_BUILTINS = frozenset(name for kind in (str, list, dict, set, complex, float, int) for name in dir(kind))
ARRAYS = frozenset({"numpy", "torch", "mlx", "jax", "emberharmony"})
# the part of a tensor's reason that names the library that it comes from
_ORIGIN = re.compile(r"`(numpy|torch|jax|emberharmony)\.[\w.]+`(?: returns|, a tensor type)")


def steps(file: SourceFile, terms: Terms) -> list[Step]:
    """Returns a step for each native use and for each method of a tensor whose library is known."""
    freed_names = rebindable_names(file)
    all_steps = _native_steps(file, terms._replace(freed=freed_names))
    if freed_names and (are_modules_blocked(all_steps, terms) or not are_names_free(file, all_steps, freed_names)):
        freed_names = frozenset()
        all_steps = _native_steps(file, terms)
    all_steps = keep_modules_together(file, all_steps, terms._replace(freed=freed_names))
    native_regions = regions(file, {step.node for step in all_steps if step.changes})
    if not native_regions:
        return all_steps
    if any(
        step.kind == KIND and is_inside(file, step.node, region.node) for step in all_steps for region in native_regions
    ):
        terms = terms._replace(modules="a compiled function of this file uses modules, and stays native")
    return [
        *_steps_outside(
            file, keep_modules_together(file, _native_steps(file, terms, is_left=True), terms), native_regions
        )
    ]


def _native_steps(file: SourceFile, terms: Terms, is_left: bool = False) -> list[Step]:
    """Returns the steps of all native uses of a file; `is_left` says that a native call stays native."""
    call_steps = [*_native_call_steps(file, terms), *training_steps(file, terms)]
    is_left = is_left or terms.is_left or any(not step.changes for step in call_steps)
    return [*call_steps, *_uncalled_steps(file, call_steps, is_left, terms), *_in_place_write_steps(file, terms)]


def _steps_outside(file: SourceFile, steps: Sequence[Step], native_regions: Sequence[Region]) -> Iterator[Step]:
    """Yields the steps outside of the functions that stay native, and one step for each of those."""
    steps_by_region = {
        region.node: [step for step in steps if is_inside(file, step.node, region.node)] for region in native_regions
    }
    region_by_mark = {region.mark: region for region in native_regions}
    dropped_ids = {id(step) for inner_steps in steps_by_region.values() for step in inner_steps}
    for step in steps:
        region = region_by_mark.pop(step.node, None)
        if id(step) in dropped_ids:
            continue
        if region is None:
            yield step
            continue
        if region.reason == TRACED:
            yield step._replace(kind="compiled", reason=f"{TRACED}, because {step.reason}")
        else:
            yield Step(step.node, region.native, "compiled", reason=region.reason, advice=region.advice)
    for region in native_regions:
        first_node = region.mark if region.mark in region_by_mark else None
        if region.mark is None and steps_by_region[region.node]:
            first_node = steps_by_region[region.node][0].node
        if first_node is not None:
            yield Step(first_node, region.native, "compiled", reason=region.reason, advice=region.advice)


def _in_place_write_steps(file: SourceFile, terms: Terms) -> Iterator[Step]:
    """Yields the steps of in-place writes that stay, because the libraries treat views differently."""
    if not terms.libraries.isdisjoint(ARRAYS):
        for write in (*writes(file), *writing_method_calls(file, terms.libraries)):
            write_name = f".{write.node.func.attr}" if isinstance(write.node, ast.Call) else "in-place write"  # type: ignore[attr-defined]
            yield Step(write.node, write_name, "write", reason=write.reason, advice=write.advice)


def _native_call_steps(file: SourceFile, terms: Terms) -> Iterator[Step]:
    """Yields the steps of the calls of functions and methods."""
    for use in native_uses(file):
        call = file.parent(use.node)
        if use.kind != "dtype" and isinstance(call, ast.Call) and call.func is use.node:
            special_step = _comparison_step(file, call, use) or no_grad_step(file, call, use.origin)
            yield special_step or _call_step(file, call, use.origin, signatures_of(use.origin), use, terms)
    for call in file.index.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and file.native_origin(call.func) is None:
            yield from _method_steps(file, call, call.func, terms)


def _method_steps(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> Iterator[Step]:
    """Yields the step of a method, if its receiver is known as a tensor of a library or as the result of an op."""
    if len(receivers(call)) == 2:
        yield from _indexed_write_step(file, call, function, terms)
        return
    ops_by_owner = {owner: signatures_of(f"{class_name}.{function.attr}") for owner, class_name in CLASSES.items()}
    if not any(ops_by_owner.values()):
        return
    is_unknown = file.inference.evidence(function.value) is None and not is_of_parameters(file, function.value)
    if function.attr == "numel" and is_unknown:
        yield from _size_step(file, call, function, terms)
        return
    evidence = file.inference.evidence(function.value)
    origin_match = (
        _ORIGIN.search(evidence.reason) if evidence is not None and evidence.tier.name in ("A", "B") else None
    )
    library = origin_match[1] if origin_match is not None else ""
    is_of_torch = library not in CLASSES and _is_of_torch(file, call, function, terms)
    is_unsure = is_of_torch or _is_unknown_elsewhere(file, function.value)
    if is_unsure and any(accepts_call(method, call) for method in terms.own.get(function.attr, ())):
        op_name = next(op_signatures[0].op for op_signatures in ops_by_owner.values() if op_signatures)
        reason = f"`{file.segment(function.value)}` {OWN}"
        yield Step(call, f".{function.attr}", "method", reason=reason, advice=f"annotate it, or write ops.{op_name}")
        return
    library = "torch" if is_of_torch else library
    assumed_library = next(iter(array_libraries)) if len(array_libraries := terms.libraries & ARRAYS) == 1 else ""
    signatures = ops_by_owner.get(assumed_library if library == "emberharmony" else library)
    step = _call_step(file, call, signatures[0].native, signatures, None, terms) if signatures else None
    if step is not None and (step.changes or library in CLASSES):
        yield step
    elif library and library not in CLASSES:
        op_name = next(op_signatures[0].op for op_signatures in ops_by_owner.values() if op_signatures)
        reason = "the result of an op has this method in some libraries only"
        yield Step(call, f".{function.attr}", "method", reason=reason, advice=f"ops.{op_name}")
    elif not library and not terms.libraries.isdisjoint(ARRAYS) and _may_be_tensor(file, function):
        op_name = _first_op(call, [signature for signatures in ops_by_owner.values() for signature in signatures])
        if op_name:
            receiver_text = "it" if isinstance(function.value, ast.Name) else "its names"
            reason = f"`{file.segment(function.value)}` may be a native tensor"
            advice = f"annotate {receiver_text}, or write ops.{op_name}"
            yield Step(call, f".{function.attr}", "method", reason=reason, advice=advice)


def _is_unknown_elsewhere(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether a name that is read is bound in several places, in one of them to a value of unknown type."""
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    bound_values = [binding.value for binding in bindings if isinstance(binding.value, ast.expr)]
    return len(bindings) > 1 and any(file.inference.evidence(value) is None for value in bound_values)


def _size_step(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> Iterator[Step]:
    """Yields the step of `x.numel()`, which shapes of PyTorch have too, if x is not known as a tensor."""
    name, reason, advice = "torch.Size.numel", "", "math.prod"
    if file.inference.is_shape(function.value) and not (call.args or call.keywords):
        try:
            math_space = module_spelling(file, call, "math")
            yield Step(
                call, name, "method", tuple(NodeEditor(file, call, math_space).method_changes("math.prod")), math_space
            )
            return
        except (UntranslatableError, ShadowedError) as error:
            reason = str(error)
    elif not terms.libraries.isdisjoint({"torch", "emberharmony"}) and not is_own_method(file, call, function):
        name, advice = ".numel", "annotate it, or write ops.size for a tensor, math.prod for a shape"
        reason = f"`{file.segment(function.value)}` may be a tensor or a shape"
    if reason:
        yield Step(call, name, "method", reason=reason, advice=advice)


def _indexed_write_step(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> Iterator[Step]:
    """Yields the step of `x.at[i].set(y)`, which arrays of JAX and MLX have."""
    if "pandas" in terms.libraries or terms.libraries.isdisjoint({"jax", "mlx", "emberharmony"}):
        return
    native_name = f".at[].{function.attr}"
    step = _call_step(file, call, native_name, signatures_of(f"jax.Array.at.{function.attr}"), None, terms)
    if step.changes and not ("jax" in terms.libraries and "mlx" not in terms.libraries):
        refusal_reason = "if it is an array of MLX, its integers take floats, which ops refuse"
        step = Step(call, native_name, "method", reason=refusal_reason, advice="ops.set_item")
    yield step


def _may_be_tensor(file: SourceFile, function: ast.Attribute) -> bool:
    """Returns whether a method that no builtin type has is called on what may be a tensor, as far as is known."""
    return function.attr not in OF_BUILTINS and _is_of_parameter(file, function.value)


def _is_of_parameter(file: SourceFile, node: ast.expr, depth: int = 0) -> bool:
    """Returns whether an expression is a parameter without annotation, a part of one, or computed from one."""
    # A comparison of unknown values counts as a bool here, which has no such method.
    if (file.inference.is_no_tensor(node) and not isinstance(node, ast.Compare)) or depth > 8:
        return False
    if isinstance(node, ast.BinOp | ast.Compare):
        operand_nodes = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        return any(_is_of_parameter(file, operand_node, depth + 1) for operand_node in operand_nodes)
    if isinstance(node, ast.UnaryOp | ast.Subscript):
        return _is_of_parameter(file, node.operand if isinstance(node, ast.UnaryOp) else node.value, depth + 1)
    if not isinstance(node, ast.Name) or node.id in ("self", "cls"):
        return False
    bindings = file.names.bindings(node)
    return bool(bindings) and all(
        binding.node.annotation is None
        if isinstance(binding.node, ast.arg)
        else binding.kind == "value"
        and isinstance(binding.value, ast.expr)
        and _is_of_parameter(file, binding.value, depth + 1)
        for binding in bindings
    )


def _first_op(call: ast.Call, signatures: Sequence[Signature]) -> str:
    """Returns the op of the first signature that takes the arguments of a method's call, or an empty string."""
    for signature in signatures:
        with contextlib.suppress(UntranslatableError):
            translate(signature, 1 + len(call.args), [keyword.arg or "" for keyword in call.keywords])
            return signature.op
    return ""


def _is_of_torch(file: SourceFile, call: ast.Call, function: ast.Attribute, terms: Terms) -> bool:
    """Returns whether the call of a method tells that its receiver is a tensor of PyTorch, in a file that uses it."""
    # `x.transpose(0, 1)` exchanges two axes in PyTorch, but names the order of all axes in NumPy: it tells PyTorch only
    # in a file that uses no library of NumPy's kind.
    is_only_torch = terms.libraries.isdisjoint({"numpy", "mlx", "jax", "tensorflow"})
    exchanges_axes = function.attr == "transpose" and is_only_torch and [*map(_is_literal, call.args)] == [True, True]
    casts_tensor = function.attr in ("to", "type") and _is_operand(file, call)  # a module has `.to` and `.type` too
    is_torch_method = function.attr in OF_TORCH or is_torch_receiver(function.attr, call)
    if "torch" not in terms.libraries or not (is_torch_method or exchanges_axes or casts_tensor):
        return False
    return not is_own_method(file, call, function)


def _is_operand(file: SourceFile, call: ast.Call) -> bool:
    """Returns whether the result of a call is used as an index or as an operand of an operator."""
    parent = file.parent(call)
    is_index = isinstance(parent, ast.Subscript) and parent.slice is call
    return is_index or isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Compare)


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _comparison_step(file: SourceFile, call: ast.Call, use: Use) -> Step | None:
    """Returns the step of a `torch.Size` that is only compared, where a tuple does the same, or None."""
    is_compared = isinstance(file.parent(call), ast.Compare) and len(call.args) == 1 and not call.keywords
    if use.origin != "torch.Size" or not is_compared or "tuple" in file.names.root.bindings:
        return None
    column_of = file.column
    start_column, end_column = (
        column_of(call.lineno, offset) - 1 for offset in (call.func.col_offset, call.func.end_col_offset or 0)
    )
    return Step(call, use.origin, "call", (Change(call.lineno, start_column, end_column, 0, "tuple"),))


def _call_step(
    file: SourceFile, call: ast.Call, origin: str, signatures: Sequence[Signature], use: Use | None, terms: Terms
) -> Step:
    """Returns the step that ports a call by the first signature that takes its arguments, or that says why not."""
    step_kind = "method" if use is None else "call" if use.kind == "use" else use.kind
    step_kind = KIND if is_module_use(origin) else step_kind
    reason, advice = reason_without_op(origin), _advice_text(file, use, signatures)
    if origin.startswith("jax.random."):
        reason = "JAX draws numbers from a key, ops from a stream"
    index_step = _item_index(file, call)
    for signature in sorted(signatures, key=lambda one: one.part is None):
        if signature.part not in (None, index_step):
            continue
        try:
            op_spelling = (
                package_space(file, call, signature.op, terms)
                if signature.op.startswith(PACKAGE)
                else spelling(file, call)
            )
            changes = _call_changes(
                file, call, signature, op_spelling, [] if use is not None else receivers(call), terms
            )
            if signature.part is not None:
                changes = (*changes, NodeEditor(file, call, op_spelling).result_part_change())
            return Step(call, origin, step_kind, changes, op_spelling)
        except (UntranslatableError, ShadowedError) as error:
            if signature is signatures[0]:
                reason, op_name = str(error), program_name(signature.op)
                advice = "" if use is None else WAYS.get(origin, "")
                advice = advice or ("see its docstring" if op_name in reason else op_name)
    return Step(call, origin, step_kind, reason=reason, advice=advice)


def _item_index(file: SourceFile, call: ast.Call) -> int | None:
    """Returns the index of the item of a call's result that is used at once: `[0]`, `.values` or `.indices`."""
    parent = file.parent(call)
    if isinstance(parent, ast.Subscript) and parent.value is call and isinstance(parent.slice, ast.Constant):
        return parent.slice.value if type(parent.slice.value) is int else None
    return PARTS.get(parent.attr) if isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load) else None


def _call_changes(
    file: SourceFile, call: ast.Call, signature: Signature, space: Spelling, before: list[ast.expr], terms: Terms
) -> tuple[Change, ...]:
    """Returns the text changes that turn a native call into a call of the op.

    Raises:
        UntranslatableError: if no call of the op equals it.
    """
    if any(keyword.arg is None for keyword in call.keywords):
        raise UntranslatableError(UNKNOWN)
    positional_arguments = [*before, *call.args]
    translation = translate(signature, len(positional_arguments), [keyword.arg or "" for keyword in call.keywords])
    # the arguments that the op takes as a tuple or as variadic arguments may be starred
    first_packed_index = len(signature.places) - 1 if parameters()[signature.op].variadic else translation.packed
    packed_arguments = positional_arguments[first_packed_index:] if first_packed_index >= 0 else []
    is_starred = any(
        isinstance(argument, ast.Starred) and argument not in packed_arguments for argument in positional_arguments
    )
    if is_starred:
        raise UntranslatableError(UNKNOWN)
    if any(isinstance(ancestor, ast.JoinedStr) for ancestor in file.ancestors(call)):
        raise UntranslatableError("it is inside an f-string")
    all_arguments = [*positional_arguments, *(keyword.value for keyword in call.keywords)]
    reason = reason_against(file, signature, call, arguments_by_parameter(signature, translation, all_arguments), terms)
    if reason is not None:
        raise UntranslatableError(reason)
    return tuple(NodeEditor(file, call, space).call_changes(signature, translation, before))


def _advice_text(file: SourceFile, use: Use | None, signatures: Sequence[Signature]) -> str:
    """Returns a text that says what to write instead of a native function."""
    if use is None:
        return ""
    if signatures and replacement(use.origin) is None:
        return program_name(signatures[0].op)
    found_op = replacement(use.origin)
    if use.origin in WAYS or found_op is None:
        return WAYS.get(use.origin, COMPOSE)
    # the advice is empty where the reason names the op already
    return f"see emberharmony.{program_name(found_op.op)}" if found_op.op.startswith(PACKAGE) else "see its docstring"


def _uncalled_steps(file: SourceFile, calls: Sequence[Step], is_left: bool, terms: Terms) -> Iterator[Step]:
    """Yields the steps of dtypes, constants and functions that are not called.

    If a native call is left, it may be given the dtypes of the file, which then stay native.
    """
    ported_nodes = {id(step.node) for step in calls if step.changes}
    for use in native_uses(file):
        parent = file.parent(use.node)
        if use.kind != "dtype" and isinstance(parent, ast.Call) and parent.func is use.node:
            continue
        if is_module_use(use.origin):
            yield class_step(file, use, terms)
            continue
        candidate_ops = signatures_of(use.origin)
        if candidate_ops and isinstance(parent, ast.FunctionDef) and use.node in parent.decorator_list:
            yield _function_step(file, use, candidate_ops[0], 1, reason_for_function(file, candidate_ops[0], parent))
            continue
        if candidate_ops and id(parent) in ported_nodes and _is_transformed(file, use.node, parent):
            yield _function_step(file, use, candidate_ops[0], len(candidate_ops[0].places))
            continue
        if use.origin in TYPES and is_annotation(file, use.node):
            yield annotation_step(file, use)
            continue
        call = file.parent(parent) if isinstance(parent, ast.keyword) else parent
        is_argument = isinstance(call, ast.Call) and call.func is not use.node and id(call) in ported_nodes
        yield _value_step(file, use, candidate_ops, is_argument, is_left)


def _value_step(
    file: SourceFile, use: Use, candidate_ops: Sequence[Signature], is_argument: bool, is_left: bool
) -> Step:
    """Returns the step of a dtype, a constant or a function that is passed as a value."""
    neutral_name, substitute = neutral_dtype(use.origin), replacement(use.origin)
    neutral_name = neutral_name or (dtype_of_tensor_type(use.origin) if is_argument else None)
    step_kind = "constant" if use.kind == "use" else use.kind
    op_name = neutral_name or (substitute.op if substitute is not None else "")
    is_known_op = op_name in parameters()
    if not op_name and is_annotation(file, use.node):
        advice = WAYS.get(use.origin, "")
        return Step(use.node, use.origin, ANNOTATION, reason="no type of ops is known to equal it", advice=advice)
    if not op_name or is_known_op or not (is_argument or is_plain_rename(file, use)):
        reason = (
            "a function is passed as a value" if is_known_op or candidate_ops else "no op is known to equal it here"
        )
        advice = (
            f"ops.{op_name}" if op_name else f"ops.{candidate_ops[0].op}" if candidate_ops else WAYS.get(use.origin, "")
        )
        return Step(use.node, use.origin, step_kind, reason=reason, advice=advice)
    if neutral_name and is_left and not is_argument:
        reason = "a native call that is left may be given this dtype, which ops understand too"
        return Step(use.node, use.origin, step_kind, reason=reason, advice=f"ops.{op_name}")
    try:
        namespace_spelling = spelling(file, use.node)
        node_editor = NodeEditor(file, use.node, namespace_spelling)
        changes = (node_editor.replacement_change(use.node, f"{namespace_spelling.text}.{op_name}"),)
    except (UntranslatableError, ShadowedError) as error:
        return Step(use.node, use.origin, step_kind, reason=str(error), advice=f"ops.{op_name}")
    return Step(use.node, use.origin, step_kind, changes, namespace_spelling)


def _is_transformed(file: SourceFile, node: ast.expr, parent: ast.AST | None) -> bool:
    """Returns whether an expression is the function that a transform is given."""
    signatures = (
        signatures_of(file.native_origin(parent.func) or "")
        if isinstance(parent, ast.Call) and node in parent.args[:1]
        else ()
    )
    return any("fn" in signature.arguments.values() for signature in signatures)


def _function_step(
    file: SourceFile, use: Use, signature: Signature, argument_count: int, reason: str | None = None
) -> Step:
    """Returns the step of a decorator, or of a function that a transform calls, with so many arguments or less."""
    try:
        namespace_spelling = spelling(file, use.node)
        translation = translate(signature, argument_count, [])
        if reason is not None or translation.fills or translation.packed >= 0 or set(translation.keywords) != {None}:
            raise UntranslatableError(reason or "a function is passed as a value")
        node_editor = NodeEditor(file, use.node, namespace_spelling)
        changes = (node_editor.replacement_change(use.node, f"{namespace_spelling.text}.{signature.op}"),)
        return Step(use.node, use.origin, "call", changes, namespace_spelling)
    except (UntranslatableError, ShadowedError) as error:
        return Step(use.node, use.origin, "call", reason=str(error), advice=f"ops.{signature.op}")
