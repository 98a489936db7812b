"""What an expression is, from what its parts are."""

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from fnmatch import translate

from emberharmony.lint.inference.annotations import Annotations
from emberharmony.lint.inference.kinds import (
    PLAIN_ATTRIBUTES,
    TENSOR_ATTRIBUTES,
    TEXT_METHODS,
    Kinds,
    is_plain_name,
)
from emberharmony.lint.inference.values import (
    NONE,
    NUMBER,
    OPAQUE,
    STRING,
    Class,
    ClassUnit,
    Env,
    Function,
    FunctionUnit,
    Imported,
    Instance,
    Mapping,
    Other,
    Sequence,
    Tensor,
    Value,
    element_of,
    join,
    joined,
    same,
)
from emberharmony.lint.operators import OPERATORS
from emberharmony.lint.settings import Settings
from emberharmony.lint.tiers import Tier

Updates = dict[str, Value]
_SPINE = 60  # operators in one chain, beyond which nothing is said


class Expressions(ABC):
    """Evaluates expressions, and keeps what it found for each."""

    def __init__(self, settings: Settings) -> None:
        self.kinds = Kinds(settings)
        self.annotations = Annotations(self)
        self.values: dict[ast.AST, Value] = {}
        self.aliases: dict[str, ast.expr] = {}
        self.units: dict[ast.AST, FunctionUnit] = {}
        self.pending: list[FunctionUnit] = []
        self.dirty: dict[FunctionUnit, None] = {}
        self.unit: FunctionUnit | None = None  # the function being analysed
        self.depth = 0
        patterns = "|".join(translate(one) for one in settings.tensor_names)
        self._custom = re.compile(patterns) if patterns else None
        self._handlers: dict[type[ast.AST], Callable[[ast.expr, Env], Value]] = {
            getattr(ast, name[1:]): getattr(self, name)
            for name in dir(type(self))
            if name[0] == "_" and isinstance(getattr(ast, name[1:], None), type)
        }

    @abstractmethod
    def narrow(self, test: ast.expr, env: Env) -> tuple[Updates, Updates]:
        """Return what a test tells of names where it holds, and where it does not."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value, env: Env) -> None:
        """Give a target a value."""

    @abstractmethod
    def call_method(self, instance: Instance, name: str, arguments: list[Value], node: ast.expr) -> Value:
        """Return what a method of a class of this file gives."""

    @abstractmethod
    def result(self, unit: FunctionUnit) -> Value:
        """Return what a function of this file gives."""

    def evaluate(self, node: ast.expr, env: Env) -> Value:
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

    # Names and constants

    def _Constant(self, node: ast.Constant, env: Env) -> Value:
        value = node.value
        if value is None:
            return NONE
        return STRING if isinstance(value, str | bytes) else NUMBER

    def lookup(self, name: str, env: Env) -> tuple[bool, Value]:
        """Return whether a name is bound, and what it holds; a tensor of an outer function is carried in."""
        scope: Env | None = env
        while scope is not None:
            if name in scope.vars:
                value = scope.vars[name]
                if scope.unit is not env.unit and isinstance(value, Tensor) and value.tier is Tier.A:
                    value = value.carried(f"`{name}` of an outer scope", value.node)
                return True, value
            scope = scope.parent
        return False, None

    def _Name(self, node: ast.Name, env: Env) -> Value:
        _, value = self.lookup(node.id, env)
        if value is None and self._custom is not None and self._custom.match(node.id):
            return Tensor(Tier.C, f"`{node.id}` is named as the configured `tensor-names` are", node)
        return value

    def _NamedExpr(self, node: ast.NamedExpr, env: Env) -> Value:
        value = self.evaluate(node.value, env)
        while env.parent is not None and env.comprehension:
            env = env.parent
        self.bind(node.target, value, env)
        return value

    # Attributes and subscripts

    def _Attribute(self, node: ast.Attribute, env: Env) -> Value:
        if type(node.value) is ast.Name and f"{node.value.id}.{node.attr}" in env.vars:
            self.evaluate(node.value, env)
            return env.vars[f"{node.value.id}.{node.attr}"]  # narrowed by a test
        return self.attribute(self.evaluate(node.value, env), node)

    def attribute(self, base: Value, node: ast.Attribute) -> Value:
        """Return what an attribute of a value is."""
        name = node.attr
        if base is None:
            if type(node.value) is ast.Name and name in TEXT_METHODS:
                self.contradict(node.value.id)
            return None
        if isinstance(base, Imported):
            origin = f"{base.origin}.{name}"
            return NUMBER if self.kinds.is_constant(origin) else Imported(origin)
        if isinstance(base, Tensor):
            return self._tensor_attribute(base, node)
        if isinstance(base, Instance | Class):
            return self._member(base, node)
        return base if isinstance(base, Other) and base is not OPAQUE else None

    def _tensor_attribute(self, base: Tensor, node: ast.Attribute) -> Value:
        name = node.attr
        if base.tier is Tier.C and name in TEXT_METHODS and type(node.value) is ast.Name:
            self.contradict(node.value.id)
            return None
        if name in TENSOR_ATTRIBUTES:
            return base.carried(f"`.{name}` of a tensor", node)
        return NUMBER if name in PLAIN_ATTRIBUTES else None

    def _member(self, base: Instance | Class, node: ast.Attribute) -> Value:
        name, stored = node.attr, False
        found: Value = None
        for unit in base.unit.lineage():
            if name in unit.methods:
                return self._method(unit.methods[name], base)
            if self.unit is not None:
                unit.readers.setdefault(name, set()).add(self.unit)
            if name in unit.declared:
                return unit.declared[name]
            if name in unit.attributes:
                found = join(found, unit.attributes[name]) if stored else unit.attributes[name]
                stored = True
        if isinstance(found, Tensor):
            return found
        if not stored and base.unit.is_record and name == "_replace":
            return base
        return found

    def _method(self, unit: FunctionUnit, base: Instance | Class) -> Value:
        if unit.kind == "property":
            return self.result(unit)
        if unit.kind == "staticmethod" or (isinstance(base, Class) and unit.kind == "method"):
            return Function(unit)
        return Function(unit, Class(base.unit) if unit.kind == "classmethod" else base)

    def _Subscript(self, node: ast.Subscript, env: Env) -> Value:
        base = self.evaluate(node.value, env)
        index = self.evaluate(node.slice, env)
        return self.subscript(base, index, node)

    def subscript(self, base: Value, index: Value, node: ast.Subscript) -> Value:
        """Return what a value holds at an index."""
        if isinstance(base, Tensor):
            if base.tier is Tier.C and index is STRING:
                if type(node.value) is ast.Name:
                    self.contradict(node.value.id)
                return None
            return base.carried("a part of a tensor", node)
        if isinstance(base, Sequence):
            return _item(base, node.slice)
        if isinstance(base, Mapping):
            key = _literal(node.slice)
            return base.by_key[key] if key is not None and key in base.by_key else base.element
        if isinstance(base, Instance):
            return self.call_method(base, "__getitem__", [index], node)
        return base if base is NUMBER or base is STRING else None

    def _Slice(self, node: ast.Slice, env: Env) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.evaluate(part, env)
        return NUMBER

    # Operators

    def _BinOp(self, node: ast.BinOp, env: Env) -> Value:
        spine = [node]
        while type(spine[-1].left) is ast.BinOp:  # long sums lean to the left: no recursion for those
            spine.append(spine[-1].left)
        value = self.evaluate(spine[-1].left, env)
        for part in reversed(spine):
            value = self.binary(value, self.evaluate(part.right, env), part.op, part)
            if part is not node and (value is not None or part in self.values):
                self.values[part] = value
        return value

    def binary(self, left: Value, right: Value, op: ast.operator, node: ast.AST) -> Value:
        """Return what a binary operator gives: the tensor among its operands, if it is an operator on tensors."""
        if isinstance(left, Tensor):
            return None if self._refuses(right, left) else self._stronger(left, right)
        if isinstance(right, Tensor):
            if left is STRING or left is OPAQUE or isinstance(left, Mapping):
                return left
            if left is None and isinstance(op, ast.Mod):  # may well be a format
                return None
            if isinstance(left, Instance):
                return self._operated(left, op, right, node)
            return None if self._refuses(left, right) else right
        if isinstance(left, Instance) or isinstance(right, Instance):
            return self._operated(left, op, right, node) if isinstance(left, Instance) else None
        if isinstance(left, Sequence) and isinstance(right, Sequence):
            return _concatenated(left, right)
        if isinstance(left, Sequence) and isinstance(op, ast.Mult):
            return Sequence(left.element)
        if isinstance(right, Sequence) and isinstance(op, ast.Mult):
            self._repeats(node)
            return Sequence(right.element)
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            return join(left, right)
        if left is STRING or right is STRING:
            return STRING
        return NUMBER if left is NUMBER and right is NUMBER else None

    @staticmethod
    def _stronger(left: Tensor, right: Value) -> Tensor:
        return right if isinstance(right, Tensor) and right.tier > left.tier else left

    @staticmethod
    def _refuses(other: Value, tensor: Tensor) -> bool:
        """Whether what stands beside a tensor says that it is none."""
        if other is STRING:
            return True
        return tensor.tier is Tier.C and (other is OPAQUE or isinstance(other, Mapping | Instance))

    def _repeats(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and type(node.left) is ast.Name:
            self.contradict(node.left.id)

    def _operated(self, left: Instance, op: ast.operator | ast.cmpop, right: Value, node: ast.AST) -> Value:
        special = OPERATORS[type(op)].method
        return self.call_method(left, special, [right], node) if isinstance(node, ast.expr) else None

    def _UnaryOp(self, node: ast.UnaryOp, env: Env) -> Value:
        value = self.evaluate(node.operand, env)
        if isinstance(node.op, ast.Not):
            return NUMBER
        return value if isinstance(value, Tensor) or value is NUMBER else None

    def _Compare(self, node: ast.Compare, env: Env) -> Value:
        found: Tensor | None = None
        left = self.evaluate(node.left, env)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(operand, env)
            if not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                pair = self.compared(left, right, op, node)
                if pair is not None and (found is None or pair.tier > found.tier):
                    found = pair
                if right is STRING and type(node.left) is ast.Name:
                    self.contradict(node.left.id)
            left = right
        return NUMBER if found is None else found

    def compared(self, left: Value, right: Value, op: ast.cmpop, node: ast.AST) -> Tensor | None:
        """Return the tensor that a comparison works on, if it does."""
        for one, two in ((left, right), (right, left)):
            if isinstance(one, Tensor):
                if isinstance(two, Instance) and two is left and two.unit.method(OPERATORS[type(op)].method):
                    return None
                if self._refuses(two, one) or (two is NONE and one.tier is Tier.C):
                    return None
                return self._stronger(one, two)
        return None

    def _BoolOp(self, node: ast.BoolOp, env: Env) -> Value:
        kept, told = env.vars, set[str]()
        found: list[Value] = []
        for value in node.values:
            found.append(self.evaluate(value, env))
            holds, fails = self.narrow(value, env)
            updates = holds if isinstance(node.op, ast.And) else fails
            if updates:
                told.update(updates)
                env.vars = {**env.vars, **updates}
        self._widen(env, kept, told)
        return joined(found)

    def _IfExp(self, node: ast.IfExp, env: Env) -> Value:
        self.evaluate(node.test, env)
        holds, fails = self.narrow(node.test, env)
        kept = env.vars
        found = []
        for branch, updates in ((node.body, holds), (node.orelse, fails)):
            env.vars = {**kept, **updates} if updates else kept
            found.append(self.evaluate(branch, env))
            self._widen(env, kept, updates.keys())
        return join(found[0], found[1])

    @staticmethod
    def _widen(env: Env, kept: Updates, told: Collection[str]) -> None:
        """Forget what a test told; keep what was bound meanwhile."""
        if env.vars is not kept:
            kept.update({name: value for name, value in env.vars.items() if name not in kept and name not in told})
            env.vars = kept

    # Displays and comprehensions

    def _List(self, node: ast.List | ast.Set | ast.Tuple, env: Env) -> Value:
        values = [self.evaluate(one, env) for one in node.elts]
        if any(type(one) is ast.Starred for one in node.elts):
            return Sequence(joined(values))
        return Sequence(items=values)

    _Tuple = _List
    _Set = _List

    def _Starred(self, node: ast.Starred, env: Env) -> Value:
        return element_of(self.evaluate(node.value, env))

    def _Dict(self, node: ast.Dict, env: Env) -> Value:
        mapping = Mapping()
        for key, value in zip(node.keys, node.values, strict=True):
            held = self.evaluate(value, env)
            if key is None:
                mapping.put(None, held.element if isinstance(held, Mapping) else None)
            else:
                mapping.key = self.evaluate(key, env)
                mapping.put(_literal(key), held)
        return mapping

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Env) -> Env:
        inner = Env(env, env.unit)
        inner.comprehension = True
        for generator in node.generators:
            values = self.evaluate(generator.iter, inner)
            self.bind(generator.target, element_of(values, "an element of a tensor", generator.iter), inner)
            for test in generator.ifs:
                self.evaluate(test, inner)
                inner.vars.update(self.narrow(test, inner)[0])
        return inner

    def _ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, env: Env) -> Value:
        return Sequence(carried(self.evaluate(node.elt, self._comprehended(node, env)), node))

    _SetComp = _ListComp
    _GeneratorExp = _ListComp

    def _DictComp(self, node: ast.DictComp, env: Env) -> Value:
        inner = self._comprehended(node, env)
        key = self.evaluate(node.key, inner)
        mapping = Mapping(element=carried(self.evaluate(node.value, inner), node))
        mapping.key = key
        return mapping

    # The rest

    def _JoinedStr(self, node: ast.JoinedStr, env: Env) -> Value:
        for part in node.values:
            if type(part) is ast.FormattedValue:
                self.evaluate(part.value, env)
                if part.format_spec is not None:
                    self.evaluate(part.format_spec, env)
        return STRING

    def _Await(self, node: ast.Await, env: Env) -> Value:
        return self.evaluate(node.value, env)

    def _Yield(self, node: ast.Yield, env: Env) -> Value:
        value = NONE if node.value is None else self.evaluate(node.value, env)
        if self.unit is not None:
            self.unit.yields.append(value)
        return None

    def _YieldFrom(self, node: ast.YieldFrom, env: Env) -> Value:
        value = self.evaluate(node.value, env)
        if self.unit is not None:
            self.unit.yields.append(element_of(value))
        return None

    def _Lambda(self, node: ast.Lambda, env: Env) -> Value:
        return Function(self.function(node, env))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env) -> FunctionUnit:
        """Return the unit of a function, made when its definition is first met."""
        unit = self.units.get(node)
        if unit is None:
            unit = self.units[node] = FunctionUnit(node, env)
            self.pending.append(unit)
        elif unit.env is not env:
            unit.env = env
            self.dirty[unit] = None
        return unit

    # Conventions

    def contradict(self, name: str) -> None:
        """Note that a parameter is used as no tensor is."""
        unit = self.unit
        if unit is not None and name not in unit.contrary:
            unit.contrary.add(name)
            if name in unit.hinted:
                self.dirty[unit] = None

    def hint(self, node: ast.expr, env: Env, why: str) -> None:
        """Take a bare name that nothing is known of for a tensor, by convention; also where a number stands beside."""
        name = _only_name(node)
        if name is None:
            return
        unit = self.unit
        if env.vars.get(name, NONE) is not None or (unit is not None and name in unit.contrary):
            return
        tensor = Tensor(Tier.C, f"`{name}` is {why}", node)
        env.vars[name] = tensor
        if unit is not None and name not in unit.hinted and _is_bare_parameter(unit, name):
            unit.hinted[name] = tensor
            self.dirty[unit] = None

    def learn(self, unit: ClassUnit, name: str, value: Value) -> None:
        """Join a value into an attribute of a class."""
        if name in unit.attributes:
            old = unit.attributes[name]
            new = join(old, value)
            if same(old, new):
                return
            unit.attributes[name] = new
        else:
            unit.attributes[name] = new = value
            if value is None:
                return
        for reader in unit.readers.get(name, ()):
            self.dirty[reader] = None


def _only_name(node: ast.expr) -> str | None:
    """The name in `x`, `-x`, `x + eps`, `x ** 2`: the only one that by custom is no number's."""
    if type(node) is ast.Name:
        return None if is_plain_name(node.id) else node.id
    if type(node) is ast.UnaryOp:
        return _only_name(node.operand)
    if type(node) is ast.BinOp:
        names = [_only_name(part) for part in (node.left, node.right) if not _is_plain(part)]
        return names[0] if len(names) == 1 else None
    return None


def _is_plain(node: ast.expr) -> bool:
    return type(node) is ast.Constant or (type(node) is ast.Name and is_plain_name(node.id))


def _is_bare_parameter(unit: FunctionUnit, name: str) -> bool:
    spec = unit.node.args
    found = next((one for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if one.arg == name), None)
    return found is not None and found.annotation is None


def _item(base: Sequence, index: ast.expr) -> Value:
    if isinstance(index, ast.Slice):
        return base if base.items is None else Sequence(base.element)
    position = _literal(index)
    if base.items is not None and isinstance(position, int) and -len(base.items) <= position < len(base.items):
        return base.items[position]
    return base.element


def _literal(node: ast.expr) -> object:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int) else None
    return node.value if isinstance(node, ast.Constant) else None


def _concatenated(left: Sequence, right: Sequence) -> Sequence:
    if left.items is not None and right.items is not None:
        return Sequence(items=[*left.items, *right.items])
    return Sequence(join(left.element, right.element))


def carried(value: Value, node: ast.AST, why: str = "put into a container") -> Value:
    """Return a value as it comes out of where it was put."""
    return value.carried(why, node) if isinstance(value, Tensor) and value.tier is Tier.A else value
