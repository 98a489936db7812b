"""The modules, optimizers and loaders of a file, which are ported together or not at all.

A layer of PyTorch takes no parameter of `emberharmony.nn`, and an optimizer none of the other library. So one use that
has to stay keeps all others of the group.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence

from emberlint.fixes.spelling import ShadowedError, Spelling, package_spelling
from emberlint.fixes.splice import Change
from emberlint.knowledge.native import Use
from emberlint.knowledge.replacements import PACKAGE, WAYS, program_name, replacement
from emberlint.knowledge.signatures import UntranslatableError, signatures_of
from emberlint.port.conditions import Terms
from emberlint.port.step import Step
from emberlint.port.text import NodeEditor, line_end
from emberlint.source.native_uses import native_uses
from emberlint.source.source_file import SourceFile

KIND = "module"
GROUP = ("torch.nn.", "torch.optim.", "torch.utils.data.")
FUNCTIONS = "torch.nn.functional."
FREED = {"nn": "torch.nn", "optim": "torch.optim"}  # the names that both libraries have for their packages
MIXED = "modules, optimizers and loaders of two libraries do not mix"
# Attributes of modules and parameters that only PyTorch has, or that have another meaning there.
HOOKS = frozenset(
    {"register_backward_hook", "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"}
    | {"register_module", "register_parameter", "add_module", "get_parameter", "get_submodule", "named_children"}
    | {"requires_grad_", "share_memory", "to_empty"}
)
MOVES = frozenset({"bfloat16", "cpu", "cuda", "double", "float", "half", "type", "zero_grad"})


def is_module_use(origin: str) -> bool:
    """Returns whether a native name is a module, an optimizer or a loader, or a function that takes one."""
    return origin.startswith(GROUP) and not origin.startswith(FUNCTIONS)


def has_modules(file: SourceFile) -> bool:
    """Returns whether a file uses modules, optimizers or loaders of PyTorch."""
    return any(is_module_use(use.origin) for use in native_uses(file))


def package_space(file: SourceFile, node: ast.AST, op: str, terms: Terms) -> Spelling:
    """Returns the expression for the package of a layer, a loss or an optimizer at a node.

    Raises:
        ShadowedError: if its names are bound to something else.
        UntranslatableError: if the namespace of the settings is another one.
    """
    if file.settings.namespaces[:1] != ("emberharmony.ops",):
        raise UntranslatableError(f"the namespace has no {program_name(op)}")
    return package_spelling(file, node, ".".join(op.split(".")[:2]), terms.freed)


def class_step(file: SourceFile, use: Use, terms: Terms) -> Step:
    """Returns the step of a class that is not called: a base, an annotation, an argument."""
    substitute, parent = replacement(use.origin), file.parent(use.node)
    op_name = substitute.op if substitute is not None and substitute.op.startswith(PACKAGE) else ""
    is_class = op_name.rpartition(".")[2][:1].isupper()
    is_base = isinstance(parent, ast.ClassDef) and use.node in parent.bases
    refusal_reason = "no layer or optimizer is known to equal it here"
    if is_class and (
        is_base or signatures_of(use.origin) or use.origin in ("torch.nn.Module", "torch.optim.Optimizer")
    ):
        try:
            class_spelling = package_space(file, use.node, op_name, terms)
            base_change = NodeEditor(file, use.node, class_spelling).replacement_change(
                use.node, f"{class_spelling.text}.{op_name.split('.', 2)[2]}"
            )
            forward_changes = (
                tuple(_forward_changes(file, parent)) if isinstance(parent, ast.ClassDef) and is_base else ()
            )
            return Step(use.node, use.origin, KIND, (base_change, *forward_changes), class_spelling)
        except (UntranslatableError, ShadowedError) as error:
            refusal_reason = str(error)
    return Step(use.node, use.origin, KIND, reason=refusal_reason, advice=program_name(op_name) if op_name else "")


def _forward_changes(file: SourceFile, module_class: ast.ClassDef) -> Iterator[Change]:
    """Yields the changes of the methods `forward` of a class of modules, and of those that derive from it.

    Raises:
        UntranslatableError: if a class has `__call__` too.
    """
    module_classes = [module_class]
    for class_ in module_classes:  # the loop extends the list that it iterates over
        module_classes += [subclass for subclass in subclasses(file, class_) if subclass not in module_classes]
    for class_node in module_classes:
        method_by_name = {
            statement.name: statement
            for statement in class_node.body
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        forward = method_by_name.get("forward")
        if forward is not None and "__call__" in method_by_name:
            raise UntranslatableError(f"`{class_node.name}` has forward and __call__")
        if forward is not None:
            line_text = file.lines[forward.lineno - 1]
            start_column = line_text.find("forward", file.column(forward.lineno, forward.col_offset) - 1)
            yield Change(forward.lineno, start_column, start_column + len("forward"), 0, "__call__")
        for call in (node for node in ast.walk(class_node) if isinstance(node, ast.Call)):
            yield from _forward_call_changes(file, call)


def _forward_call_changes(file: SourceFile, call: ast.Call) -> Iterator[Change]:
    """Yields the change of `self.forward(x)` to `self(x)`, and of `super().forward(x)`."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "forward":
        return
    receiver, line = function.value, function.end_lineno or 0
    is_super = isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "super"
    if not is_super and not (isinstance(receiver, ast.Name) and receiver.id == "self"):
        return
    end_column = file.column(line, function.end_col_offset or 0) - 1
    start_column = end_column - len("forward")
    if file.lines[line - 1][start_column - 1 : end_column] != ".forward":
        raise UntranslatableError("its name spans several lines")
    yield (
        Change(line, start_column, end_column, 0, "__call__")
        if is_super
        else Change(line, start_column - 1, end_column, 0, "")
    )


def subclasses(file: SourceFile, kind: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """Yields the classes of the file that name a class as their base."""
    for class_node in file.index.nodes(ast.ClassDef):
        for base in class_node.bases:
            if isinstance(base, ast.Name) and any(binding.node is kind for binding in file.names.bindings(base)):
                yield class_node


def is_module(file: SourceFile, node: ast.expr, depth: int = 0) -> bool:
    """Returns whether an expression is known as a module of PyTorch: a call of a class, or a name bound to one."""
    if isinstance(node, ast.Call):
        origin = file.native_origin(node.func) or ""
        if isinstance(node.func, ast.Attribute) and not origin:
            returns_itself = node.func.attr in ("to", "train", "eval", *MOVES)
            return returns_itself and is_module(file, node.func.value, depth)
        bound_nodes = (
            [binding.node for binding in file.names.bindings(node.func)] if isinstance(node.func, ast.Name) else []
        )
        is_own_class = bool(bound_nodes) and all(
            isinstance(binding, ast.ClassDef) and _derives_from_module(file, binding) for binding in bound_nodes
        )
        return is_own_class or (is_module_use(origin) and origin.startswith("torch.nn.") and origin.count(".") == 2)
    if isinstance(node, ast.Name) and depth < 3:
        bound_values = [binding.value if binding.kind == "value" else None for binding in file.names.bindings(node)]
        return bool(bound_values) and all(
            isinstance(value, ast.expr) and is_module(file, value, depth + 1) for value in bound_values
        )
    return False


def _derives_from_module(file: SourceFile, kind: ast.ClassDef, depth: int = 0) -> bool:
    """Returns whether a class of the file derives from a module of PyTorch."""
    if depth > 8:
        return False
    base_nodes = [
        binding.node for base in kind.bases if isinstance(base, ast.Name) for binding in file.names.bindings(base)
    ]
    has_kind_base = any(
        isinstance(binding, ast.ClassDef) and _derives_from_module(file, binding, depth + 1) for binding in base_nodes
    )
    return has_kind_base or any((file.native_origin(base) or "").startswith("torch.nn.") for base in kind.bases)


def are_modules_blocked(steps: Iterable[Step], terms: Terms) -> bool:
    """Returns whether the modules of a file stay native, because one of their uses has to."""
    class_steps = [step for step in steps if step.kind == KIND]
    return bool(class_steps) and (bool(terms.modules) or not all(step.changes for step in class_steps))


def keep_modules_together(file: SourceFile, steps: Sequence[Step], terms: Terms) -> list[Step]:
    """Returns the steps of a port; if one use of modules stays native, the steps of all modules change nothing."""
    class_steps = [step for step in steps if step.kind == KIND]
    if not are_modules_blocked(steps, terms):
        used_namespaces = {step.space.namespace for step in steps if step.space is not None}
        import_changes = tuple(
            _import_changes(
                file, frozenset(freed_name for freed_name in terms.freed if f"{PACKAGE}{freed_name}" in used_namespaces)
            )
        )
        first_step = next((step for step in steps if step.changes), None)
        return [
            step._replace(changes=(*step.changes, *import_changes)) if step is first_step else step for step in steps
        ]
    blocking_name = next((step.native for step in class_steps if not step.changes), "")
    refusal_reason = f"`{blocking_name}` stays native, and {MIXED}" if blocking_name else terms.modules
    ported_ids = {id(step) for step in class_steps if step.changes}
    return [
        step._replace(changes=(), space=None, reason=refusal_reason, advice=_advice_of_step(step))
        if id(step) in ported_ids
        else step
        for step in steps
    ]


def _advice_of_step(step: Step) -> str:
    substitute = replacement(step.native)
    return program_name(substitute.op) if substitute is not None else WAYS.get(step.native, step.advice)


def rebindable_names(file: SourceFile) -> frozenset[str]:
    """Returns the names of packages that a port may bind anew: those that a single import on one line binds."""
    return frozenset(name for name, origin in FREED.items() if _is_bound_once(file, name, origin))


def _first_name(node: ast.expr) -> str:
    """Returns the first name of a dotted expression: `a` of `a.b.c`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_bound_once(file: SourceFile, name: str, origin: str) -> bool:
    name_bindings = file.names.root.bindings.get(name, ())
    if len(name_bindings) != 1 or name_bindings[0].origin != origin or not isinstance(name_bindings[0].node, ast.alias):
        return False
    statement = file.parent(name_bindings[0].node)
    return isinstance(statement, ast.Import | ast.ImportFrom) and statement.lineno == statement.end_lineno


def are_names_free(file: SourceFile, steps: Iterable[Step], freed: frozenset[str]) -> bool:
    """Returns whether no native use is left under the package names that a port binds anew."""
    changed_ids = {id(step.node) for step in steps if step.changes}
    for use in native_uses(file):
        if _first_name(use.node) in freed and changed_ids.isdisjoint((id(use.node), id(file.parent(use.node)))):
            return False
    return True


def _import_changes(file: SourceFile, freed: frozenset[str]) -> Iterator[Change]:
    """Yields the changes of the imports that bind the names of packages."""
    names_by_statement: dict[ast.stmt, list[str]] = {}
    for name in sorted(freed):
        statement = file.parent(file.names.root.bindings[name][0].node)
        assert isinstance(statement, ast.stmt)
        names_by_statement.setdefault(statement, []).append(name)
    for statement, unused_names in names_by_statement.items():
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        kept_aliases = [name for name in statement.names if (name.asname or name.name) not in unused_names]
        alias_texts = [
            alias.name if alias.asname is None else f"{alias.name} as {alias.asname}" for alias in kept_aliases
        ]
        import_head = "import" if isinstance(statement, ast.Import) else f"from {statement.module} import"
        import_lines = [
            *([f"{import_head} {', '.join(alias_texts)}"] if kept_aliases else []),
            f"from emberharmony import {', '.join(unused_names)}",
        ]
        column_of = file.column
        start_column, end_column = (
            column_of(statement.lineno, offset) - 1 for offset in (statement.col_offset, statement.end_col_offset or 0)
        )
        indent = file.lines[statement.lineno - 1][:start_column]
        yield Change(statement.lineno, start_column, end_column, 0, f"{line_end(file)}{indent}".join(import_lines))
