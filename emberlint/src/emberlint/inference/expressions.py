"""The values of expressions from the values of their parts: names, attributes, subscripts, displays, comprehensions."""

import ast

from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.operations import Operations
from emberlint.knowledge.kinds import (
    PLAIN_ATTRIBUTES,
    TENSOR_ATTRIBUTES,
    TEXT_METHODS,
)


class Expressions(Operations):
    """The methods of the analysis that infer the values of expressions other than operators and calls."""

    # Values of names and constants

    def _Constant(self, node: ast.Constant, env: v.Env) -> v.Value:
        constant = node.value
        if constant is None:
            return v.NONE
        if isinstance(constant, (str, bytes)):
            return v.STRING
        return v.REAL if type(constant) in (int, float) else v.NUMBER

    def _Name(self, node: ast.Name, env: v.Env) -> v.Value:
        value = env.vars[node.id] if node.id in env.vars else self.lookup(node.id, env)[1]
        if value is None and node.id in self._spaces:
            return self._space
        if value is None and self._custom is not None and self._custom.match(node.id):
            return v.Tensor(Tier.C, f"`{node.id}` has a name that matches `tensor-names`", node)
        return value

    def _NamedExpr(self, node: ast.NamedExpr, env: v.Env) -> v.Value:
        value = self.evaluate(node.value, env)
        while env.parent is not None and env.comprehension:
            env = env.parent
        self.bind(node.target, value, env)
        return value

    # Values of attributes and subscripts

    def _Attribute(self, node: ast.Attribute, env: v.Env) -> v.Value:
        if type(node.value) is ast.Name and f"{node.value.id}.{node.attr}" in env.vars:
            self.evaluate(node.value, env)
            return env.vars[f"{node.value.id}.{node.attr}"]  # a test has narrowed the attribute
        return self.attribute_value(self.evaluate(node.value, env), node)

    def attribute_value(self, base: v.Value, node: ast.Attribute) -> v.Value:
        """Returns the inferred value of an attribute of an object with a known value."""
        attribute_name = node.attr
        if base is None:
            if type(node.value) is ast.Name and attribute_name in TEXT_METHODS:
                self.exclude_tensor(node.value.id)
            return v.shape_value() if attribute_name == "shape" else None
        if isinstance(base, v.Imported):
            return self.imported_value(f"{base.origin}.{attribute_name}")
        if isinstance(base, v.Tensor):
            return self._tensor_attribute(base, node)
        if isinstance(base, (v.Instance, v.Class)):
            return self._attribute_of_object(base, node)
        return base if isinstance(base, v.Other) and not v.is_opaque(base) else None

    def _tensor_attribute(self, base: v.Tensor, node: ast.Attribute) -> v.Value:
        attribute_name = node.attr
        if base.tier is Tier.C and attribute_name in TEXT_METHODS and type(node.value) is ast.Name:
            self.exclude_tensor(node.value.id)
            return None
        if attribute_name in TENSOR_ATTRIBUTES:
            return base.pass_on(f"`.{attribute_name}` of a tensor", node)
        if attribute_name == "shape":
            return v.shape_value()
        return v.NUMBER if attribute_name in PLAIN_ATTRIBUTES else None

    def _attribute_of_object(self, base: v.Instance | v.Class, node: ast.Attribute) -> v.Value:
        attribute_name, is_stored = node.attr, False
        self.is_forward |= self.unit is None
        attribute_value: v.Value = None
        for unit in base.unit.class_and_bases():
            if attribute_name in unit.methods:
                return self._value_of_method(unit.methods[attribute_name], base)
            if self.unit is not None:
                unit.readers.setdefault(attribute_name, {})[self.unit] = None
            if attribute_name in unit.declared:
                return unit.declared[attribute_name]
            if attribute_name in unit.attributes:
                attribute_value = (
                    v.join(attribute_value, unit.attributes[attribute_name])
                    if is_stored
                    else unit.attributes[attribute_name]
                )
                is_stored = True
        if isinstance(attribute_value, v.Tensor):
            return attribute_value
        if not is_stored and base.unit.is_record and attribute_name == "_replace":
            return base
        return attribute_value

    def _value_of_method(self, unit: v.FunctionUnit, base: v.Instance | v.Class) -> v.Value:
        if unit.kind == "property":
            return self.result_of_function(unit)
        if unit.kind == "staticmethod" or (isinstance(base, v.Class) and unit.kind == "method"):
            return v.Function(unit)
        return v.Function(unit, v.Class(base.unit) if unit.kind == "classmethod" else base)

    def _Subscript(self, node: ast.Subscript, env: v.Env) -> v.Value:
        container = self.evaluate(node.value, env)
        index_value = self.evaluate(node.slice, env)
        return self.subscript_value(container, index_value, node)

    def subscript_value(self, base: v.Value, index: v.Value, node: ast.Subscript) -> v.Value:
        """Returns the inferred value of `base[index]`."""
        if isinstance(base, v.Tensor):
            if base.tier is Tier.C and index is v.STRING:
                if type(node.value) is ast.Name:
                    self.exclude_tensor(node.value.id)
                return None
            return base.pass_on("a part of a tensor", node, base.dtype)
        if isinstance(base, v.Sequence):
            return _item_value(base, node.slice)
        if isinstance(base, v.Mapping):
            literal_key = _literal_value(node.slice)
            return base.by_key[literal_key] if literal_key is not None and literal_key in base.by_key else base.element
        if isinstance(base, v.Instance):
            return self.call_method(base, "__getitem__", [index], node)
        return base if v.is_number(base) or base is v.STRING else None

    def _Slice(self, node: ast.Slice, env: v.Env) -> v.Value:
        for bound_node in (node.lower, node.upper, node.step):
            if bound_node is not None:
                self.evaluate(bound_node, env)
        return v.NUMBER

    # Values of lists, dicts and comprehensions

    def _List(self, node: ast.List | ast.Set | ast.Tuple, env: v.Env) -> v.Value:
        element_values = [self.evaluate(elt, env) for elt in node.elts]
        if any(type(elt) is ast.Starred for elt in node.elts):
            return v.Sequence(v.join_all(element_values))
        return v.Sequence(items=element_values)

    _Tuple = _List

    _Set = _List

    def _Starred(self, node: ast.Starred, env: v.Env) -> v.Value:
        return self.iterated_element(self.evaluate(node.value, env), "", node)

    def _Dict(self, node: ast.Dict, env: v.Env) -> v.Value:
        mapping = v.Mapping()
        item_values: list[v.Value] = []
        for key, value in zip(node.keys, node.values, strict=True):
            item_value = self.evaluate(value, env)
            if key is None:
                item_values.append(item_value.element if isinstance(item_value, v.Mapping) else None)
            else:
                mapping.key = self.evaluate(key, env)
                mapping.put(_literal_value(key), item_value)
                item_values.append(item_value)
        mapping.element = v.join_all(item_values) if item_values else None
        return mapping

    def _comprehension_env(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: v.Env
    ) -> v.Env:
        comprehension_env = v.Env(env, env.unit)
        comprehension_env.comprehension = True
        for generator in node.generators:
            iterated_value = self.evaluate(generator.iter, comprehension_env)
            self.bind(
                generator.target,
                self.iterated_element(iterated_value, "an element of a tensor", generator.iter),
                comprehension_env,
            )
            for test in generator.ifs:
                self.evaluate(test, comprehension_env)
                comprehension_env.vars.update(self.narrow(test, comprehension_env)[0])
        return comprehension_env

    def _ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, env: v.Env) -> v.Value:
        return v.Sequence(value_from_container(self.evaluate(node.elt, self._comprehension_env(node, env)), node))

    _SetComp = _ListComp

    _GeneratorExp = _ListComp

    def _DictComp(self, node: ast.DictComp, env: v.Env) -> v.Value:
        comprehension_env = self._comprehension_env(node, env)
        key_value = self.evaluate(node.key, comprehension_env)
        mapping = v.Mapping(element=value_from_container(self.evaluate(node.value, comprehension_env), node))
        mapping.key = key_value
        return mapping

    # Values of other expressions

    def _JoinedStr(self, node: ast.JoinedStr, env: v.Env) -> v.Value:
        for string_part in node.values:
            if type(string_part) is ast.FormattedValue:
                self.evaluate(string_part.value, env)
                if string_part.format_spec is not None:
                    self.evaluate(string_part.format_spec, env)
        return v.STRING

    def _Await(self, node: ast.Await, env: v.Env) -> v.Value:
        return self.evaluate(node.value, env)

    def _Yield(self, node: ast.Yield, env: v.Env) -> v.Value:
        value = v.NONE if node.value is None else self.evaluate(node.value, env)
        if self.unit is not None:
            self.unit.yields.append(value)
        return None

    def _YieldFrom(self, node: ast.YieldFrom, env: v.Env) -> v.Value:
        value = self.evaluate(node.value, env)
        if self.unit is not None:
            self.unit.yields.append(v.element_of(value))
        return None

    def _Lambda(self, node: ast.Lambda, env: v.Env) -> v.Value:
        return v.Function(self.function_unit(node, env))


def _item_value(base: v.Sequence, index: ast.expr) -> v.Value:
    if isinstance(index, ast.Slice):
        return base if base.items is None else v.Sequence(base.element)
    constant_index = _literal_value(index)
    if (
        base.items is not None
        and isinstance(constant_index, int)
        and -len(base.items) <= constant_index < len(base.items)
    ):
        return base.items[constant_index]
    return base.element


def _literal_value(node: ast.expr) -> object:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int) else None
    return node.value if isinstance(node, ast.Constant) else None


def value_from_container(value: v.Value, node: ast.AST, why: str = "put into a container") -> v.Value:
    """Returns the value that an element has when it is read back from a container: a tensor is less certain."""
    return value.pass_on(why, node) if isinstance(value, v.Tensor) and value.tier is Tier.A else value
