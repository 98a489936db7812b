"""The state of the evaluation: values of expressions, names and attributes, and conventions about parameters."""

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from fnmatch import translate
from functools import cache
from typing import Any

from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.annotations import Annotations
from emberlint.knowledge.kinds import (
    Kinds,
    is_plain_name,
)

Updates = dict[str, v.Value]
_SPINE = 60  # the largest depth of nested expressions to evaluate


@cache
def _node_types_and_methods(analysis: type) -> list[tuple[type[ast.AST], str]]:
    """Returns the types of nodes, each with the method named after it: `_Call` for `ast.Call`."""
    node_types = ((getattr(ast, name[1:], None), name) for name in dir(analysis) if name[0] == "_")
    return [(node_class, name) for node_class, name in node_types if isinstance(node_class, type)]


class Evaluation(ABC):
    """The base class of the analysis: the values of expressions and names, and conventions about parameters."""

    def __init__(self, settings: Settings) -> None:
        self.kinds = Kinds(settings)
        self.package = ""  # the package from which the file's relative imports start
        self.annotations = Annotations(self)
        self.values: dict[ast.AST, v.Value] = {}
        self._named: dict[str, v.Value] = {}
        self.aliases: dict[str, ast.expr] = {}
        self.units: dict[ast.AST, v.FunctionUnit] = {}
        self.pending: list[v.FunctionUnit] = []
        self.dirty: dict[v.FunctionUnit, None] = {}
        self.unit: v.FunctionUnit | None = None  # the function being analysed
        self.depth = 0
        self.is_forward = False  # whether the module body used what the first round does not know yet
        tensor_name_pattern = "|".join(translate(name) for name in settings.tensor_names)
        self._custom = re.compile(tensor_name_pattern) if tensor_name_pattern else None
        self._spaces = frozenset(settings.namespace_names)
        self._space = v.Imported(settings.namespaces[0]) if settings.namespaces else None
        self._handlers: dict[type[ast.AST], Callable[..., Any]] = {
            node_class: getattr(self, name) for node_class, name in _node_types_and_methods(type(self))
        }

    @abstractmethod
    def external_value(self, origin: str) -> v.Value:
        """Returns the value of a name of another file of the project, or None."""

    def imported_value(self, origin: str) -> v.Value:
        """Returns the value of something imported: what its file says of it, else a number or its origin."""
        value = self._named.get(origin)
        if value is None:
            value = self.external_value(origin)
            if value is None:
                value = v.Imported(origin)
                if self.kinds.is_constant(origin):
                    value = v.REAL if origin.startswith("math.") else v.NUMBER
            self._named[origin] = value
        return value

    @abstractmethod
    def narrow(self, test: ast.expr, env: v.Env) -> tuple[Updates, Updates]:
        """Returns the values of names that a test proves if it is true, and those if it is false."""

    @abstractmethod
    def bind(self, target: ast.expr, value: v.Value, env: v.Env) -> None:
        """Binds the names in an assignment target to a value."""

    @abstractmethod
    def call_method(self, instance: v.Instance, name: str, arguments: list[v.Value], node: ast.expr) -> v.Value:
        """Returns the inferred result of calling a method of a class of this file."""

    @abstractmethod
    def result_of_function(self, unit: v.FunctionUnit) -> v.Value:
        """Returns the inferred result of a function of this file."""

    def evaluate(self, node: ast.expr, env: v.Env) -> v.Value:
        """Returns the inferred value of an expression, and stores it by the node."""
        value: v.Value
        node_type = type(node)
        if node_type is ast.Name or node_type is ast.Constant:  # names and constants, the most frequent nodes
            value = self._handlers[node_type](node, env)
        else:
            evaluate_node = self._handlers.get(node_type)
            if evaluate_node is None:
                return None
            self.depth += 1
            value = evaluate_node(node, env) if self.depth < _SPINE else None
            self.depth -= 1
        if value is not None or node in self.values:
            self.values[node] = value
        return value

    def lookup(self, name: str, env: v.Env) -> tuple[bool, v.Value]:
        """Returns whether a name is bound, and its value; a tensor from an outer function counts as carried."""
        enclosing_env: v.Env | None = env
        while enclosing_env is not None:
            if name in enclosing_env.vars:
                value = enclosing_env.vars[name]
                if enclosing_env.unit is not env.unit and isinstance(value, v.Tensor) and value.tier is Tier.A:
                    value = value.pass_on(f"`{name}` of an outer scope", value.node, value.dtype)
                return True, value
            enclosing_env = enclosing_env.parent
        return False, None

    def function_unit(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: v.Env) -> v.FunctionUnit:
        """Returns the unit of a function, which is created when the definition is first reached."""
        function_unit = self.units.get(node)
        if function_unit is None:
            function_unit = self.units[node] = v.FunctionUnit(node, env)
            self.pending.append(function_unit)
        elif function_unit.env is not env:
            function_unit.env = env
            self.dirty[function_unit] = None
        return function_unit

    def iterated_element(self, value: v.Value, why: str, node: ast.expr) -> v.Value:
        """Returns the element that iterating over a value yields; for an instance its methods decide."""
        if not isinstance(value, v.Instance):
            return v.element_of(value, why, node)
        iterator_value = self.call_method(value, "__iter__", [], node) or self.call_method(value, "__aiter__", [], node)
        if isinstance(iterator_value, v.Instance):
            return self.call_method(iterator_value, "__next__", [], node)
        return (
            v.element_of(iterator_value)
            if iterator_value is not None
            else self.call_method(value, "__getitem__", [v.NUMBER], node)
        )

    # Conventions about names

    def exclude_tensor(self, name: str) -> None:
        """Records that a parameter is used in a way that excludes a tensor."""
        current_unit = self.unit
        if current_unit is not None and name not in current_unit.contrary:
            current_unit.contrary.add(name)
            if name in current_unit.hinted:
                self.dirty[current_unit] = None

    def infer_by_convention(self, node: ast.expr, env: v.Env, why: str) -> None:
        """Infers by convention that an unknown bare name is a tensor, also if a number stands next to it."""
        unknown_names = self._unknown_names(node, env)
        if len(unknown_names) != 1:
            self.infer_result_by_convention(node, env, why)
            return
        (name,) = unknown_names
        current_unit = self.unit
        tensor = v.Tensor(Tier.C, f"`{name}` is {why}", node)
        env.vars[name] = tensor
        if (
            current_unit is not None
            and name not in current_unit.hinted
            and _is_unannotated_parameter(current_unit, name)
        ):
            current_unit.hinted[name] = tensor
            self.dirty[current_unit] = None

    def infer_result_by_convention(self, node: ast.expr, env: v.Env, why: str) -> None:
        """Infers by convention that `a - b` of unknown names is a tensor, without saying which of them is."""
        unknown_names = self._unknown_names(node, env)
        if unknown_names and self.values.get(node) is None:
            self.values[node] = v.Tensor(Tier.C, f"what `{'` and `'.join(unknown_names)}` give is {why}", node)

    def _unknown_names(self, node: ast.expr, env: v.Env) -> list[str]:
        """Returns the names of an expression if none of their values is known, else an empty list."""
        conventional_names = [*dict.fromkeys(_tensor_like_names(node))]
        excluded_names = self.unit.contrary if self.unit is not None else ()
        has_known_name = any(
            env.vars.get(name, v.NONE) is not None or name in excluded_names for name in conventional_names
        )
        return [] if has_known_name else conventional_names

    def join_attribute(self, unit: v.ClassUnit, name: str, value: v.Value) -> None:
        """Joins a value into the inferred value of an attribute of a class."""
        if name in unit.attributes:
            value_before = unit.attributes[name]
            joined_value = v.join(value_before, value)
            if v.are_equal_values(value_before, joined_value):
                return
            unit.attributes[name] = joined_value
        else:
            unit.attributes[name] = joined_value = value
            if value is None:
                return
        for reading_unit in unit.readers.get(name, ()):
            self.dirty[reading_unit] = None


def _tensor_like_names(node: ast.expr) -> list[str]:
    """Returns the names in `x`, `-x`, `x + eps`, `x - y` that by convention are not numbers.

    The result is empty if the expression contains anything else.
    """
    if type(node) is ast.Name:
        return [] if is_plain_name(node.id) else [node.id]
    if type(node) is ast.UnaryOp:
        return _tensor_like_names(node.operand)
    if type(node) is ast.BinOp:
        name_lists = [_tensor_like_names(operand) for operand in (node.left, node.right) if not _is_plain(operand)]
        return [name for name_list in name_lists for name in name_list] if all(name_lists) else []
    return []


def _is_plain(node: ast.expr) -> bool:
    if type(node) is ast.UnaryOp:
        return _is_plain(node.operand)
    return type(node) is ast.Constant or (type(node) is ast.Name and is_plain_name(node.id))


def _is_unannotated_parameter(unit: v.FunctionUnit, name: str) -> bool:
    signature = unit.node.args
    parameter = next(
        (
            argument
            for argument in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)
            if argument.arg == name
        ),
        None,
    )
    return parameter is not None and parameter.annotation is None
