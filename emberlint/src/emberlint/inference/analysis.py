"""Analyses one file: its module body, then every function, then again the functions whose inputs have changed."""

import ast
from collections.abc import Iterable

from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.calls import FORWARD
from emberlint.inference.flow import Flow
from emberlint.inference.forms import refine
from emberlint.inference.summary import Summaries, SummaryReader
from emberlint.knowledge.kinds import is_plain_name
from emberlint.knowledge.ops_table import RETURNS
from emberlint.source.imports import origin_base

# Each round analyses the module body again if it uses its functions and classes, which are known by then, and only
# those functions that depend on something that has changed.
_ROUNDS = 4
_RECORDS = ("dataclasses.dataclass", ".NamedTuple", "attrs.define", "attrs.frozen", "attr.s", "attr.dataclass")
_PROPERTIES = ("property", "functools.cached_property", "functools.singledispatchmethod")
_FIRST = ("__init__", "__post_init__", "setup", "build")


class Analysis(Flow):
    """Infers the values of the expressions of one module."""

    def __init__(
        self, settings: Settings, package: str, summaries: Summaries | None = None, is_backend: bool = False
    ) -> None:
        super().__init__(settings)
        self.package = package
        self.libraries = settings.backends
        self.host = frozenset(settings.host) if is_backend else frozenset[str]()
        self.reader = None if summaries is None else SummaryReader(summaries)
        self.classes: dict[ast.ClassDef, v.ClassUnit] = {}
        self.module = v.Env(None, None)

    def run(self, tree: ast.Module) -> None:
        """Analyses a module in rounds until no inferred value changes."""
        for round_index in range(_ROUNDS):
            self.execute_block(tree.body, self.module)
            self._analyse_pending()
            dirty_units, self.dirty = [*self.dirty], {}
            if not dirty_units and (round_index or not self.is_forward):
                return
            for unit in dirty_units:
                self.analyse(unit)
            self._analyse_pending()

    def release(self) -> None:
        """Drops everything inferred, so that no circle of references keeps the syntax tree in memory."""
        for unit in (*self.units.values(), *self.classes.values()):
            unit.__dict__.clear()
        self.__dict__.clear()

    def _analyse_pending(self) -> None:
        while self.pending:
            pending_units, self.pending = self.pending, []
            for unit in sorted(pending_units, key=lambda one: one.name not in _FIRST):
                if unit.state is v.Progress.NEW:
                    self.analyse(unit)

    def analyse(self, unit: v.FunctionUnit) -> None:
        """Analyses the body of a function, and marks its callers if its result has changed."""
        if unit.state is v.Progress.RUNNING or unit.is_fixed:
            return
        unit.state = v.Progress.RUNNING
        state_before = self.unit, self.depth, self.loops
        self.unit, self.depth, self.loops = unit, 0, []
        result_before = refine(unit.declared, self._join_returns(unit) if unit.returns or unit.yields else None)
        unit.returns, unit.yields = [], []
        body_env = v.Env(unit.env, unit)
        self._bind_parameters(unit, body_env)
        node = unit.node
        if isinstance(node, ast.Lambda):
            unit.returns.append(self.evaluate(node.body, body_env))
        else:
            self.execute_block(node.body, body_env)
        self.unit, self.depth, self.loops = state_before
        unit.state = v.Progress.DONE
        if unit.readers and _are_different(result_before, refine(unit.declared, self._join_returns(unit))):
            self.dirty.update(dict.fromkeys(unit.readers))

    @staticmethod
    def _join_returns(unit: v.FunctionUnit) -> v.Value:
        returned_values = unit.yields or unit.returns
        joined_value: v.Value = v.NONE
        for value in returned_values:
            joined_value = v.join(joined_value, value)
        return joined_value

    # The values of parameters

    def _bind_parameters(self, unit: v.FunctionUnit, env: v.Env) -> None:
        signature = unit.node.args
        positional_parameters = [*signature.posonlyargs, *signature.args]
        positional_defaults: list[ast.expr | None] = [None] * (len(positional_parameters) - len(signature.defaults)) + [
            *signature.defaults
        ]
        receiver = self._receiver_value(unit)
        for index, (parameter, default) in enumerate(
            [
                *zip(positional_parameters, positional_defaults, strict=True),
                *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
            ]
        ):
            if index == 0 and receiver is not None:
                env.vars[parameter.arg] = receiver
            else:
                env.vars[parameter.arg] = self._parameter_value(unit, parameter, default, env, index)
        if signature.vararg is not None:
            variadic_element = self.annotations.resolve(signature.vararg.annotation, unit.env)
            variadic_value = unit.given.get(signature.vararg.arg)
            env.vars[signature.vararg.arg] = (
                variadic_value
                if variadic_element is None and variadic_value is not None
                else v.Sequence(variadic_element)
            )
        if signature.kwarg is not None:
            env.vars[signature.kwarg.arg] = v.Mapping(
                element=self.annotations.resolve(signature.kwarg.annotation, unit.env)
            )

    def _receiver_value(self, unit: v.FunctionUnit) -> v.Value:
        if unit.owner is None or unit.kind in ("function", "staticmethod"):
            return None
        return v.Class(unit.owner) if unit.kind == "classmethod" else v.Instance(unit.owner)

    def _parameter_value(
        self, unit: v.FunctionUnit, parameter: ast.arg, default: ast.expr | None, env: v.Env, position: int
    ) -> v.Value:
        parameter_name = parameter.arg
        if parameter.annotation is not None:
            declared_value = self.annotations.resolve(parameter.annotation, unit.env)
            if isinstance(declared_value, v.Tensor):
                declared_value = v.Tensor(declared_value.tier, f"`{parameter_name}` is {declared_value.why}", parameter)
            return refine(declared_value, self._given_value(unit, parameter_name))
        given_value = self._given_value(unit, parameter_name)
        if given_value is not None:
            return given_value
        if default is not None and not (isinstance(default, ast.Constant) and default.value is None):
            default_value = self.evaluate(default, unit.env)
            if isinstance(default_value, v.Tensor):
                return default_value.pass_on(f"the default of `{parameter_name}`", default)
            return (
                None if v.is_opaque(default_value) else default_value
            )  # a default such as None proves nothing about the parameter
        if parameter_name in unit.contrary:
            return None
        if default is None and self._is_forward_method(unit) and not is_plain_name(parameter_name):
            return v.Tensor(Tier.C, f"`{parameter_name}` is an argument of `{unit.name}` of a module class", parameter)
        return unit.hinted.get(parameter_name)

    def _given_value(self, unit: v.FunctionUnit, name: str) -> v.Value:
        given_value = unit.given.get(name)
        return None if isinstance(given_value, v.Tensor) and name in unit.contrary else given_value

    @staticmethod
    def _is_forward_method(unit: v.FunctionUnit) -> bool:
        return unit.owner is not None and unit.owner.is_module and unit.name in FORWARD

    # Definitions of functions and classes

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: v.Env) -> None:
        """Binds a function's name."""
        env.vars[node.name] = self._apply_decorators(self.function_unit(node, env), node, env)[0]

    def _apply_decorators(
        self, unit: v.FunctionUnit, node: ast.FunctionDef | ast.AsyncFunctionDef, env: v.Env
    ) -> tuple[v.Value, list[str]]:
        """Returns the value of a function after its decorators, and the origins of the decorators."""
        if unit.declared is None:
            declared_value = self.annotations.resolve(node.returns, env) if node.returns is not None else None
            if isinstance(declared_value, v.Tensor):
                declared_value = v.Tensor(Tier.B, f"`{node.name}` is {declared_value.why}", node.returns)
            unit.declared = declared_value
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.evaluate(default, env)
        function_value: v.Value = v.Function(unit)
        origins = []
        for decorator in reversed(node.decorator_list):
            value = self.evaluate(decorator, env)
            origin = value.origin if isinstance(value, v.Imported) else _builtin_name(decorator, value)
            origins.append(origin)
            if self.kinds.result_kind(origin) == "transform":
                function_value = v.Derived(origin.rpartition(".")[2], function_value)
        return function_value, origins

    def define_class(self, node: ast.ClassDef, env: v.Env) -> None:
        """Binds a class's name, and infers its attributes from its body."""
        class_unit = self.classes.get(node)
        if class_unit is None:
            class_unit = self.classes[node] = v.ClassUnit(node)
        env.vars[node.name] = v.Class(class_unit)
        self._evaluate_bases(class_unit, node, env)
        class_env = v.Env(env, env.unit)
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._define_method(class_unit, statement, env, class_env)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                self._define_field(class_unit, statement, env, class_env)
            else:
                self.execute_block([statement], class_env)
        for name, value in class_env.vars.items():
            if name not in class_unit.methods and name not in class_unit.declared:
                stored_value = value.pass_on(f"kept in `.{name}`", value.node) if isinstance(value, v.Tensor) else value
                if stored_value is not v.NONE:
                    self.join_attribute(class_unit, name, stored_value)

    def _evaluate_bases(self, unit: v.ClassUnit, node: ast.ClassDef, env: v.Env) -> None:
        origins = []
        for base in node.bases:
            base_value = self.evaluate(base, env)
            if isinstance(base, ast.Subscript):
                base_value = self.evaluate(base.value, env)
            if isinstance(base_value, v.Class) and base_value.unit is not unit and base_value.unit not in unit.bases:
                unit.bases.append(base_value.unit)
            elif isinstance(base_value, v.Imported):
                origins.append(base_value.origin)
        for decorator in node.decorator_list:
            decorator_function = decorator.func if isinstance(decorator, ast.Call) else decorator
            self.evaluate(decorator, env)
            base_value = self.values.get(decorator_function)
            if isinstance(base_value, v.Imported):
                origins.append(base_value.origin)
        unit.foreign = origins
        unit.is_module = any(map(self.kinds.is_module_class, origins)) or any(base.is_module for base in unit.bases)
        unit.is_tensor = any(map(self.kinds.is_tensor_type, origins)) or any(base.is_tensor for base in unit.bases)
        unit.is_dict = any(origin.endswith(".TypedDict") for origin in origins) or any(
            base.is_dict for base in unit.bases
        )
        unit.is_record = any(origin.endswith(_RECORDS) for origin in origins) or any(
            base.is_record for base in unit.bases
        )

    def _define_method(
        self, unit: v.ClassUnit, node: ast.FunctionDef | ast.AsyncFunctionDef, env: v.Env, body: v.Env
    ) -> None:
        method_unit = self.function_unit(node, env)  # methods do not see the names of the class
        method_unit.owner = unit
        _, origins = self._apply_decorators(method_unit, node, body)
        method_unit.kind = "method"
        if "staticmethod" in origins:
            method_unit.kind = "staticmethod"
        elif "classmethod" in origins or node.name in ("__new__", "__init_subclass__", "__class_getitem__"):
            method_unit.kind = "classmethod"
        elif any(origin in _PROPERTIES or origin.endswith("property") for origin in origins):
            method_unit.kind = "property"
        if not any(
            isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")
            for decorator in node.decorator_list
        ):
            unit.methods[node.name] = method_unit
        body.vars[node.name] = v.Function(method_unit)

    def _define_field(self, unit: v.ClassUnit, statement: ast.AnnAssign, env: v.Env, body: v.Env) -> None:
        assert isinstance(statement.target, ast.Name)
        field_name = statement.target.id
        declared_value = self.annotations.resolve(statement.annotation, env)
        default_value = None if statement.value is None else self.evaluate(statement.value, body)
        unit.fields.append(field_name) if field_name not in unit.fields else None
        if isinstance(declared_value, v.Tensor):
            declared_value = declared_value.pass_on(
                f"the attribute `.{field_name}` has this annotation", statement.annotation
            )
        if declared_value is not None:
            unit.declared[field_name] = declared_value
        elif v.holds_tensor(default_value):
            self.join_attribute(unit, field_name, default_value)

    def bind_import(self, node: ast.Import | ast.ImportFrom, env: v.Env) -> None:
        """Binds the names of an import."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top_name = alias.name.partition(".")[0]
                env.vars[alias.asname or top_name] = v.Imported(alias.name if alias.asname else top_name)
            return
        base_origin = origin_base(node, self.package)
        for alias in node.names:
            if alias.name == "*":
                if self.kinds.is_op(f"{base_origin}."):
                    env.vars.update({name: v.Imported(f"{base_origin}.{name}") for name in RETURNS})
                elif self.reader is not None:
                    env.vars.update(self.reader.public_values(base_origin))
                continue
            env.vars[alias.asname or alias.name] = self.imported_value(f"{base_origin}.{alias.name}")

    # Names of other files

    def external_value(self, origin: str) -> v.Value:
        """Returns the value of a name of another file of the project, or None."""
        if self.reader is None or self.kinds.is_op(origin) or self.kinds.is_tensor_type(origin):
            return None  # the settings on a name count more than the project's own file of that name
        return self.reader.find_value(origin)

    def result_of(self, unit: v.FunctionUnit) -> v.Value:
        """Returns the result of a function, for the summary of the file."""
        if unit.declared is not None:
            return unit.declared
        if unit.yields:
            return v.Sequence(v.join_all(unit.yields))
        return v.join_all(unit.returns) if unit.returns else None

    def is_informative(self, origin: str) -> bool:
        """Returns whether something imported tells an importer more than its name does."""
        return self.kinds.is_in_tensor_library(origin) or self.external_value(origin) is not None

    def alias_value(self, node: ast.expr) -> v.Value:
        """Returns the value of a name whose annotation is a given expression."""
        return self.annotations.resolve(node, self.module)

    def mark_readers(self, container: v.Sequence | v.Mapping) -> None:
        """Marks the functions that read a container for another analysis, because it holds something new."""
        for unit in self.classes.values():
            for name, value in unit.attributes.items():
                if value is container:
                    self.dirty.update(dict.fromkeys(unit.readers.get(name, ())))


def imported_roots(nodes: Iterable[ast.Import | ast.ImportFrom], package: str) -> set[str]:
    """Returns the top-level names of the modules that a file imports."""
    root_names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            root_names.update(alias.name.partition(".")[0] for alias in node.names)
        else:
            root_names.add(origin_base(node, package).partition(".")[0])
    return root_names


def _builtin_name(decorator: ast.expr, value: v.Value) -> str:
    return decorator.id if isinstance(decorator, ast.Name) and value is None else ""


def _are_different(before: v.Value, after: v.Value) -> bool:
    return v.holds_tensor(before) != v.holds_tensor(after) or type(before) is not type(after)
