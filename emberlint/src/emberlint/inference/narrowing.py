"""Narrowing: the values of names that tests such as `isinstance`, `is None` and `callable` prove."""

import ast

from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.evaluation import Updates
from emberlint.inference.library_calls import LibraryCalls

_NOTHING: tuple[Updates, Updates] = ({}, {})


class Narrowing(LibraryCalls):
    """The methods of the analysis that narrow the values of names by tests."""

    def narrow(self, test: ast.expr, env: v.Env) -> tuple[Updates, Updates]:
        """Returns the values of names that a test proves if it is true, and those if it is false."""
        if isinstance(test, ast.Call):
            return self._narrow_call(test, env)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            values_if_true, values_if_false = self.narrow(test.operand, env)
            return values_if_false, values_if_true
        if isinstance(test, ast.BoolOp):
            return self._narrow_boolean(test, env)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._narrow_compare(test, env)
        return _NOTHING

    def _narrow_boolean(self, test: ast.BoolOp, env: v.Env) -> tuple[Updates, Updates]:
        value_by_name: Updates = {}
        outcome_index = 0 if isinstance(test.op, ast.And) else 1
        for operand in test.values:
            value_by_name.update(self.narrow(operand, env)[outcome_index])
        return (value_by_name, {}) if outcome_index == 0 else ({}, value_by_name)

    def _narrow_compare(self, test: ast.Compare, env: v.Env) -> tuple[Updates, Updates]:
        name, op, right_operand = _subject_name(test.left), test.ops[0], test.comparators[0]
        if (
            name is not None
            and "." not in name
            and isinstance(right_operand, ast.Constant)
            and right_operand.value is None
        ):
            if isinstance(op, ast.Is):
                return {name: v.NONE}, {}
            return ({}, {name: v.NONE}) if isinstance(op, ast.IsNot) else _NOTHING
        left_operand = test.left
        if (
            isinstance(left_operand, ast.Call)
            and isinstance(left_operand.func, ast.Name)
            and left_operand.func.id == "type"
            and left_operand.args
        ):
            type_updates = self._narrow_by_type(left_operand.args[0], right_operand, env)
            if isinstance(op, (ast.Is, ast.Eq)):
                return type_updates
            return type_updates[::-1] if isinstance(op, (ast.IsNot, ast.NotEq)) else _NOTHING
        return _NOTHING

    def _narrow_call(self, test: ast.Call, env: v.Env) -> tuple[Updates, Updates]:
        if not test.args:
            return _NOTHING
        function, name = test.func, _subject_name(test.args[0])
        if name is None:
            return _NOTHING
        if isinstance(function, ast.Name) and not self.lookup(function.id, env)[0]:
            if function.id == "isinstance" and len(test.args) == 2:
                return self._narrow_by_type(test.args[0], test.args[1], env)
            return ({name: v.OPAQUE}, {}) if function.id == "callable" else _NOTHING
        callee_value = self.values.get(function)
        if isinstance(callee_value, v.Imported) and callee_value.origin.endswith(
            (".is_tensor", ".is_array", ".is_keras_tensor")
        ):
            return {name: v.Tensor(Tier.A, f"`{callee_value.origin}` holds for it", test)}, {}
        return _NOTHING

    def _narrow_by_type(self, subject: ast.expr, kind: ast.expr, env: v.Env) -> tuple[Updates, Updates]:
        subject_name = _subject_name(subject)
        if subject_name is None:
            return _NOTHING
        type_nodes = _members_of_type(kind)
        type_values = [self.annotations.resolve(member, env) for member in type_nodes]
        tensor_values = [value for value in type_values if isinstance(value, v.Tensor)]
        value_by_name_if_false: Updates = {}
        known_value = self.values.get(subject)
        if tensor_values:
            # If the test allows several types, the rest remains unknown; if it allows only tensors, the rest is not a
            # tensor.
            value_if_false = known_value if isinstance(known_value, (v.Sequence, v.Mapping)) else v.OPAQUE
            return {subject_name: tensor_values[0] if len(tensor_values) == len(type_values) else known_value}, {
                subject_name: value_if_false
            }
        if isinstance(known_value, (v.Sequence, v.Mapping)) and any(
            isinstance(value, type(known_value)) for value in type_values
        ):
            value_by_name_if_false = {} if known_value.rest is None else {subject_name: known_value.rest}
        if type_values and all(v.is_number(value) or value is v.STRING for value in type_values):
            self.exclude_tensor(subject_name)
        return {subject_name: _instance_value(type_values, known_value)}, value_by_name_if_false


def _instance_value(type_values: list[v.Value], before: v.Value) -> v.Value:
    """Returns the value of x if `isinstance(x, types)` is true; a known container keeps its value."""
    if len(type_values) == 1 and type_values[0] is not None:
        if isinstance(type_values[0], (v.Sequence, v.Mapping)) and not v.holds_tensor(type_values[0]):
            return (
                before if isinstance(before, (v.Sequence, v.Mapping)) else _container_of_tensors(type_values[0], before)
            )
        return type_values[0]
    if any(isinstance(value, (v.Sequence, v.Mapping)) for value in type_values):
        return before if isinstance(before, (v.Sequence, v.Mapping)) else _container_of_tensors(v.Sequence(), before)
    return v.OPAQUE


def _container_of_tensors(container: v.Sequence | v.Mapping, before: v.Value) -> v.Value:
    """Returns a container of tensors, if `x` was taken for a tensor and turns out to be a container."""
    if isinstance(before, v.Tensor) and container.element is not v.NUMBER:
        element_tensor = before.pass_on("an element of it, where it is a container", before.node)
        return v.Mapping(element=element_tensor) if isinstance(container, v.Mapping) else v.Sequence(element_tensor)
    return container


def _members_of_type(kind: ast.expr) -> list[ast.expr]:
    if isinstance(kind, ast.Tuple):
        return kind.elts
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return [*_members_of_type(kind.left), *_members_of_type(kind.right)]
    return [kind]


def _subject_name(node: ast.expr) -> str | None:
    """Returns the name under which the subject of a test is stored: `x`, or `self.x`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.NamedExpr):
        return node.target.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return None
