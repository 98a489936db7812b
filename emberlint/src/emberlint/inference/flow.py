"""Executes statements in the order in which they run: assignments, branches that join, loops that run twice."""

import ast
from abc import abstractmethod
from collections.abc import Callable
from collections.abc import Sequence as Statements

from emberlint.config.settings import Settings
from emberlint.inference import values as v
from emberlint.inference.evaluation import Updates
from emberlint.inference.expressions import value_from_container
from emberlint.inference.narrowing import Narrowing

_LOOPS = 2  # depth of nested loops whose bodies are analysed twice


class Flow(Narrowing):
    """The methods of the analysis that execute statements on the inferred values of names."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.dotted: set[str] = set()  # the names of objects of which an attribute is stored like a name
        self.loops: list[list[Updates]] = []  # the values of names at the `break`s and `continue`s of each loop

    @abstractmethod
    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: v.Env) -> None:
        """Binds the name of a function to its value."""

    @abstractmethod
    def define_class(self, node: ast.ClassDef, env: v.Env) -> None:
        """Binds the name of a class to its value."""

    @abstractmethod
    def bind_import(self, node: ast.Import | ast.ImportFrom, env: v.Env) -> None:
        """Binds the names that an import statement defines."""

    def execute_block(self, body: Statements[ast.stmt], env: v.Env) -> bool:
        """Executes statements; returns whether the end of the block is never reached."""
        is_ended = False
        for statement in body:
            execute_statement = self._handlers.get(type(statement))
            if execute_statement is not None and execute_statement(statement, env):
                is_ended = True
        return is_ended

    # Binding of names and attributes

    def bind(self, target: ast.expr, value: v.Value, env: v.Env) -> None:
        """Binds the names in an assignment target to a value."""
        if isinstance(target, ast.Name):
            if isinstance(value, v.Tensor):
                value = value.pass_on(f"bound to `{target.id}`", target, value.dtype)
            self._bind_name(target.id, value, env)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._bind_targets(target.elts, value, env)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, env)
            if isinstance(target.value, ast.Name):
                self._set_attribute(f"{target.value.id}.{target.attr}", owner, value, env)
            if isinstance(owner, (v.Instance, v.Class)) and target.attr not in owner.unit.declared:
                stored_value = (
                    value.pass_on(f"kept in `.{target.attr}`", target) if isinstance(value, v.Tensor) else value
                )
                self.join_attribute(owner.unit, target.attr, stored_value)
        elif isinstance(target, ast.Subscript):
            self._store_item(target, value, env)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, v.Sequence(value), env)

    def _set_attribute(self, name: str, owner: v.Value, value: v.Value, env: v.Env) -> None:
        """Stores the value assigned to `x.name`, unless x is a value whose attributes are stored with its class."""
        if isinstance(owner, (v.Instance, v.Class, v.Tensor)) or not isinstance(value, v.Tensor):
            env.vars.pop(name, None)
        else:
            env.vars[name] = value.pass_on(f"kept in `{name}`", value.node)
            self.dotted.add(name.partition(".")[0])

    def _bind_name(self, name: str, value: v.Value, env: v.Env) -> None:
        if name in self.dotted:
            for attribute_key in [var for var in env.vars if var.startswith(f"{name}.")]:
                del env.vars[attribute_key]
        outer_env = env.outer_names.get(name) if env.outer_names else None
        if outer_env is not None:
            outer_env.vars[name] = v.join(outer_env.vars.get(name, v.NONE), value)
            if self.unit is not None:
                self.unit.written[name] = outer_env.parent is None, outer_env.vars[name]
        else:
            env.vars[name] = value

    def _store_item(self, target: ast.Subscript, value: v.Value, env: v.Env) -> None:
        container = self.evaluate(target.value, env)
        self.evaluate(target.slice, env)
        stored_element = value_from_container(value, target)
        if isinstance(container, v.Mapping):
            constant_key = target.slice.value if isinstance(target.slice, ast.Constant) else None
            self.change_container(container, lambda: container.put(constant_key, stored_element))
        elif isinstance(container, v.Sequence):
            self.change_container(container, lambda: container.add(stored_element))

    def _bind_targets(self, targets: list[ast.expr], value: v.Value, env: v.Env) -> None:
        unpacked_values: list[v.Value] | None = None
        if isinstance(value, v.Sequence):
            unpacked_values = value.items
        elif isinstance(value, v.Instance) and value.unit.is_record:
            unpacked_values = [
                value.unit.declared.get(field, value.unit.attributes.get(field)) for field in value.unit.fields
            ]
        star_index = next((index for index, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if unpacked_values is not None and star_index is None and len(unpacked_values) == len(targets):
            for target, unpacked_value in zip(targets, unpacked_values, strict=True):
                self.bind(target, unpacked_value, env)
            return
        if unpacked_values is not None and star_index is not None and len(unpacked_values) >= len(targets) - 1:
            count_after_star = len(targets) - star_index - 1
            starred_values = unpacked_values[star_index : len(unpacked_values) - count_after_star]
            unpacked_values = [
                *unpacked_values[:star_index],
                v.join_all(starred_values),
                *unpacked_values[len(unpacked_values) - count_after_star :],
            ]
            for target, unpacked_value in zip(targets, unpacked_values, strict=True):
                self.bind(target, unpacked_value, env)
            return
        element = v.element_of(value, "unpacked from a tensor")
        for target in targets:
            self.bind(target, element, env)

    def _Assign(self, node: ast.Assign, env: v.Env) -> None:
        value = self.evaluate(node.value, env)
        for target in node.targets:
            self.bind(target, value, env)
            if env.parent is None and isinstance(target, ast.Name):
                self.aliases[target.id] = node.value

    def _AnnAssign(self, node: ast.AnnAssign, env: v.Env) -> None:
        assigned_value = None if node.value is None else self.evaluate(node.value, env)
        declared_value = self.annotations.resolve(node.annotation, env)
        if declared_value is None:
            declared_value = assigned_value
        elif isinstance(declared_value, (v.Sequence, v.Mapping)) and not isinstance(
            declared_value, type(assigned_value)
        ):
            declared_value = v.join(declared_value, assigned_value)
        target = node.target
        if isinstance(target, ast.Name):
            if node.value is not None or declared_value is not None:
                self._bind_name(target.id, declared_value, env)
            if env.parent is None and node.value is not None:
                self.aliases[target.id] = node.value
        elif isinstance(target, ast.Attribute):
            self.bind(target, declared_value, env)

    def _AugAssign(self, node: ast.AugAssign, env: v.Env) -> None:
        target = node.target
        value_before = self.evaluate(target, env)
        operand_value = self.evaluate(node.value, env)
        new_value = self.binary_result(value_before, operand_value, node.op, node)
        if isinstance(value_before, v.Sequence):  # += extends in place
            added_element = v.element_of(operand_value)
            self.change_container(value_before, lambda: value_before.add(added_element))
            new_value = value_before
        self.values[target] = new_value
        if not isinstance(value_before, v.Tensor) or not isinstance(target, ast.Subscript):
            self.bind(target, new_value, env)

    def change_container(self, container: v.Sequence | v.Mapping, change: Callable[[], None]) -> None:
        """Changes a container, and marks the functions that read it from an attribute for another analysis."""
        element_before = container.element
        change()
        if not v.are_equal_values(element_before, container.element):
            self.mark_readers(container)

    # Simple statements

    def _Expr(self, node: ast.Expr, env: v.Env) -> None:
        self.evaluate(node.value, env)

    def _Return(self, node: ast.Return, env: v.Env) -> bool:
        value = v.NONE if node.value is None else self.evaluate(node.value, env)
        if self.unit is not None:
            self.unit.returns.append(value)
        return True

    def _Raise(self, node: ast.Raise, env: v.Env) -> bool:
        for raised_expression in (node.exc, node.cause):
            if raised_expression is not None:
                self.evaluate(raised_expression, env)
        return True

    def _Break(self, node: ast.stmt, env: v.Env) -> bool:
        if self.loops:
            self.loops[-1].append(dict(env.vars))
        return True

    _Continue = _Break

    def _Assert(self, node: ast.Assert, env: v.Env) -> None:
        self.evaluate(node.test, env)
        if node.msg is not None:
            self.evaluate(node.msg, env)
        env.vars.update(self.narrow(node.test, env)[0])

    def _Delete(self, node: ast.Delete, env: v.Env) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                env.vars.pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                self.evaluate(target, env)

    def _Global(self, node: ast.Global | ast.Nonlocal, env: v.Env) -> None:
        module_env = env.parent
        while isinstance(node, ast.Global) and module_env is not None and module_env.parent is not None:
            module_env = module_env.parent
        if module_env is not None:
            env.outer_names.update(dict.fromkeys(node.names, module_env))

    _Nonlocal = _Global

    def _Import(self, node: ast.Import | ast.ImportFrom, env: v.Env) -> None:
        self.bind_import(node, env)

    _ImportFrom = _Import

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: v.Env) -> None:
        self.define_function(node, env)

    _AsyncFunctionDef = _FunctionDef

    def _ClassDef(self, node: ast.ClassDef, env: v.Env) -> None:
        self.define_class(node, env)

    # Statements with branches

    def _If(self, node: ast.If, env: v.Env) -> bool:
        names_before, branch_ends = env.vars, []
        statement = node
        while True:  # a loop along `elif` instead of recursion
            self.evaluate(statement.test, env)
            values_if_true, values_if_false = self.narrow(statement.test, env)
            branch_ends.append(
                self._execute_branch(statement.body, {**env.vars, **values_if_true}, env, values_if_true)
            )
            env.vars = {**env.vars, **values_if_false}
            if len(statement.orelse) == 1 and type(statement.orelse[0]) is ast.If:
                statement = statement.orelse[0]
                continue
            branch_ends.append(self._execute_branch(statement.orelse, env.vars, env, values_if_false))
            break
        return self._merge_branches(branch_ends, names_before, env)

    def _execute_branch(
        self, body: Statements[ast.stmt], branch_values: Updates, env: v.Env, learned: Updates
    ) -> tuple[Updates | None, Updates]:
        """Executes a branch; returns the values of names at its end, or None if the end is never reached."""
        values_before, env.vars = env.vars, branch_values
        is_ended = self.execute_block(body, env)
        branch_values, env.vars = env.vars, values_before
        return (None if is_ended else branch_values), learned

    @staticmethod
    def _merge_branches(ends: list[tuple[Updates | None, Updates]], start: Updates, env: v.Env) -> bool:
        reached_ends = [
            (value_by_name, proved_values) for value_by_name, proved_values in ends if value_by_name is not None
        ]
        if not reached_ends:
            env.vars = start
            return True
        if len(reached_ends) == 1:
            env.vars = reached_ends[0][0]
            return False
        for value_by_name, proved_values in reached_ends:
            for name, value in proved_values.items():  # a fact that only the test proved ends with the branch
                if value_by_name.get(name) is value:
                    if name in start:
                        value_by_name[name] = start[name]
                    else:
                        del value_by_name[name]
        env.vars = merge_states([value_by_name for value_by_name, _ in reached_ends])
        return False

    def _Try(self, node: ast.Try | ast.TryStar, env: v.Env) -> bool:
        value_by_name_before = dict(env.vars)
        is_ended = self.execute_block(node.body, env)
        handler_values = merge_states([value_by_name_before, env.vars])
        if not is_ended:
            is_ended = self.execute_block(node.orelse, env)
        branch_ends: list[tuple[Updates | None, Updates]] = [(None if is_ended else env.vars, {})]
        for handler in node.handlers:
            value_by_name = dict(handler_values)
            if handler.name:
                value_by_name[handler.name] = None
            branch_ends.append(self._execute_branch(handler.body, value_by_name, env, {}))
        is_ended = self._merge_branches(branch_ends, handler_values, env)
        return self.execute_block(node.finalbody, env) or is_ended

    _TryStar = _Try

    def _With(self, node: ast.With | ast.AsyncWith, env: v.Env) -> bool:
        for item in node.items:
            manager_value = self.evaluate(item.context_expr, env)
            if item.optional_vars is not None:
                # a generator used as a context manager
                entered_value = manager_value.element if isinstance(manager_value, v.Sequence) else None
                if isinstance(manager_value, v.Instance):
                    entered_value = self.call_method(manager_value, "__enter__", [], item.context_expr)
                self.bind(item.optional_vars, entered_value, env)
        return self.execute_block(node.body, env)

    _AsyncWith = _With

    def _Match(self, node: ast.Match, env: v.Env) -> bool:
        subject_value = self.evaluate(node.subject, env)
        values_before = env.vars
        branch_ends: list[tuple[Updates | None, Updates]] = [(dict(values_before), {})]
        for case in node.cases:
            env.vars = dict(values_before)
            value_by_name_if_matched = self._match_pattern(case.pattern, subject_value, node.subject, env)
            if case.guard is not None:
                self.evaluate(case.guard, env)
            branch_ends.append(self._execute_branch(case.body, env.vars, env, value_by_name_if_matched))
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None:
                del branch_ends[0]  # a case that always matches leaves no path without a match
        return self._merge_branches(branch_ends, values_before, env)

    def _match_pattern(self, pattern: ast.pattern, subject: v.Value, node: ast.expr, env: v.Env) -> Updates:
        value_by_name: Updates = {}
        matched_value = subject
        if isinstance(pattern, ast.MatchClass):
            matched_value = self.annotations.resolve(pattern.cls, env)
            if isinstance(node, ast.Name):
                value_by_name[node.id] = matched_value
                env.vars[node.id] = matched_value
        for subpattern in ast.walk(pattern):
            captured_name = getattr(subpattern, "name", None) or getattr(subpattern, "rest", None)
            if isinstance(captured_name, str):
                env.vars[captured_name] = matched_value if subpattern is pattern else None
        if isinstance(pattern, ast.MatchAs) and isinstance(pattern.pattern, ast.MatchClass) and pattern.name:
            env.vars[pattern.name] = self.annotations.resolve(pattern.pattern.cls, env)
        return value_by_name

    # Statements that loop

    def _For(self, node: ast.For | ast.AsyncFor, env: v.Env) -> None:
        iterated_value = self.evaluate(node.iter, env)
        element = self.iterated_element(iterated_value, "an element of a tensor", node.iter)

        def run_body() -> None:
            self.bind(node.target, element, env)
            self.execute_block(node.body, env)

        self._execute_loop(run_body, env)
        self.execute_block(node.orelse, env)

    _AsyncFor = _For

    def _While(self, node: ast.While, env: v.Env) -> None:
        def run_body() -> None:
            self.evaluate(node.test, env)
            env.vars.update(self.narrow(node.test, env)[0])
            self.execute_block(node.body, env)

        self._execute_loop(run_body, env)
        if not any(isinstance(node, ast.Break) for statement in node.body for node in ast.walk(statement)):
            env.vars.update(self.narrow(node.test, env)[1])
        self.execute_block(node.orelse, env)

    def _execute_loop(self, run_body: Callable[[], None], env: v.Env) -> None:
        """Executes a loop body, and a second time if the body changed the values it started from."""
        value_by_name_before = dict(env.vars)
        self.loops.append([])
        run_body()
        values_after = merge_states([value_by_name_before, env.vars, *self.loops[-1]])
        changed_names = (name for name, value in value_by_name_before.items() if value is not values_after[name])
        if len(self.loops) <= _LOOPS and any(
            not v.are_equal_values(value_by_name_before[name], values_after[name]) for name in changed_names
        ):
            env.vars = dict(values_after)
            run_body()
            values_after = merge_states([values_after, env.vars, *self.loops[-1]])
        self.loops.pop()
        env.vars = values_after


def merge_states(states: list[Updates]) -> Updates:
    """Returns the joined values of names at a point where several paths of the program meet."""
    merged_values = dict(states[0])
    for path_values in states[1:]:
        for name, value in path_values.items():
            if name not in merged_values:
                merged_values[name] = value
            elif merged_values[name] is not value:
                merged_values[name] = v.join(merged_values[name], value)
    return merged_values
