"""Keeps what each expression is, what names and attributes hold, and what convention says of parameters."""

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from fnmatch import translate

from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.annotations import Annotations
from emberlint.knowledge.kinds import (
    Kinds,
    is_plain_name,
)

Updates = dict[str, v.Value]
_SPINE = 60  # operators in one chain, beyond which nothing is said


class Evaluation(ABC):
    """What the evaluation of all kinds of expressions shares."""

    def __init__(self, settings: Settings) -> None:
        self.kinds = Kinds(settings)
        self.annotations = Annotations(self)
        self.values: dict[ast.AST, v.Value] = {}
        self.aliases: dict[str, ast.expr] = {}
        self.units: dict[ast.AST, v.FunctionUnit] = {}
        self.pending: list[v.FunctionUnit] = []
        self.dirty: dict[v.FunctionUnit, None] = {}
        self.unit: v.FunctionUnit | None = None  # the function being analysed
        self.depth = 0
        patterns = "|".join(translate(one) for one in settings.tensor_names)
        self._custom = re.compile(patterns) if patterns else None
        self._handlers: dict[type[ast.AST], Callable[[ast.expr, v.Env], v.Value]] = {
            getattr(ast, name[1:]): getattr(self, name)
            for name in dir(type(self))
            if name[0] == "_" and isinstance(getattr(ast, name[1:], None), type)
        }

    @abstractmethod
    def narrow(self, test: ast.expr, env: v.Env) -> tuple[Updates, Updates]:
        """Return what a test tells of names where it holds, and where it does not."""

    @abstractmethod
    def bind(self, target: ast.expr, value: v.Value, env: v.Env) -> None:
        """Give a target a value."""

    @abstractmethod
    def call_method(self, instance: v.Instance, name: str, arguments: list[v.Value], node: ast.expr) -> v.Value:
        """Return what a method of a class of this file gives."""

    @abstractmethod
    def result(self, unit: v.FunctionUnit) -> v.Value:
        """Return what a function of this file gives."""

    def evaluate(self, node: ast.expr, env: v.Env) -> v.Value:
        """Return what an expression is, and remember it."""
        handler = self._handlers.get(type(node))
        if handler is None:
            return None
        self.depth += 1
        value = handler(node, env) if self.depth < _SPINE else None
        self.depth -= 1
        if value is not None or node in self.values:
            self.values[node] = value
        return value

    def lookup(self, name: str, env: v.Env) -> tuple[bool, v.Value]:
        """Return whether a name is bound, and what it holds; a tensor of an outer function is carried in."""
        scope: v.Env | None = env
        while scope is not None:
            if name in scope.vars:
                value = scope.vars[name]
                if scope.unit is not env.unit and isinstance(value, v.Tensor) and value.tier is Tier.A:
                    value = value.carried(f"`{name}` of an outer scope", value.node)
                return True, value
            scope = scope.parent
        return False, None

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: v.Env) -> v.FunctionUnit:
        """Return the unit of a function, made when its definition is first met."""
        unit = self.units.get(node)
        if unit is None:
            unit = self.units[node] = v.FunctionUnit(node, env)
            self.pending.append(unit)
        elif unit.env is not env:
            unit.env = env
            self.dirty[unit] = None
        return unit

    def elements(self, value: v.Value, why: str, node: ast.expr) -> v.Value:
        """Return what iterating over a value gives; an object of the file says so by its methods."""
        if not isinstance(value, v.Instance):
            return v.element_of(value, why, node)
        iterator = self.call_method(value, "__iter__", [], node) or self.call_method(value, "__aiter__", [], node)
        if isinstance(iterator, v.Instance):
            return self.call_method(iterator, "__next__", [], node)
        return (
            v.element_of(iterator) if iterator is not None else self.call_method(value, "__getitem__", [v.NUMBER], node)
        )

    # Conventions

    def contradict(self, name: str) -> None:
        """Note that a parameter is used as no tensor is."""
        unit = self.unit
        if unit is not None and name not in unit.contrary:
            unit.contrary.add(name)
            if name in unit.hinted:
                self.dirty[unit] = None

    def hint(self, node: ast.expr, env: v.Env, why: str) -> None:
        """Take a bare name that nothing is known of for a tensor, by convention; also where a number stands beside."""
        names = self._unknown_names(node, env)
        if len(names) != 1:
            self.hint_result(node, env, why)
            return
        (name,) = names
        unit = self.unit
        tensor = v.Tensor(Tier.C, f"`{name}` is {why}", node)
        env.vars[name] = tensor
        if unit is not None and name not in unit.hinted and _is_bare_parameter(unit, name):
            unit.hinted[name] = tensor
            self.dirty[unit] = None

    def hint_result(self, node: ast.expr, env: v.Env, why: str) -> None:
        """Take `a - b`, of which nothing is known, for a tensor; which of the two is one cannot be told."""
        names = self._unknown_names(node, env)
        if names and self.values.get(node) is None:
            self.values[node] = v.Tensor(Tier.C, f"what `{'` and `'.join(names)}` give is {why}", node)

    def _unknown_names(self, node: ast.expr, env: v.Env) -> list[str]:
        """The names of an expression, if nothing is known of any."""
        names = [*dict.fromkeys(_names(node))]
        contrary = self.unit.contrary if self.unit is not None else ()
        known = any(env.vars.get(one, v.NONE) is not None or one in contrary for one in names)
        return [] if known else names

    def learn(self, unit: v.ClassUnit, name: str, value: v.Value) -> None:
        """Join a value into an attribute of a class."""
        if name in unit.attributes:
            old = unit.attributes[name]
            new = v.join(old, value)
            if v.same(old, new):
                return
            unit.attributes[name] = new
        else:
            unit.attributes[name] = new = value
            if value is None:
                return
        for reader in unit.readers.get(name, ()):
            self.dirty[reader] = None


def _names(node: ast.expr) -> list[str]:
    """The names in `x`, `-x`, `x + eps`, `x - y`: those that by custom are no number's; none where there is more."""
    if type(node) is ast.Name:
        return [] if is_plain_name(node.id) else [node.id]
    if type(node) is ast.UnaryOp:
        return _names(node.operand)
    if type(node) is ast.BinOp:
        parts = [_names(part) for part in (node.left, node.right) if not _is_plain(part)]
        return [name for part in parts for name in part] if all(parts) else []
    return []


def _is_plain(node: ast.expr) -> bool:
    if type(node) is ast.UnaryOp:
        return _is_plain(node.operand)
    return type(node) is ast.Constant or (type(node) is ast.Name and is_plain_name(node.id))


def _is_bare_parameter(unit: v.FunctionUnit, name: str) -> bool:
    spec = unit.node.args
    found = next((one for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if one.arg == name), None)
    return found is not None and found.annotation is None
