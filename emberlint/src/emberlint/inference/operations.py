"""The inferred results of operators, and the operators that work on tensors."""

import ast
from collections.abc import Collection

from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.dtypes import result_dtype
from emberlint.inference.evaluation import Evaluation, Updates
from emberlint.knowledge.kinds import is_stdlib
from emberlint.source.operators import OPERATORS


class Operations(Evaluation):
    """The methods of the analysis that infer the results of operators."""

    def _BinOp(self, node: ast.BinOp, env: v.Env) -> v.Value:
        nested_operations = [node]
        while (
            type(nested_operations[-1].left) is ast.BinOp
        ):  # a long sum nests to the left, so a loop avoids deep recursion
            nested_operations.append(nested_operations[-1].left)
        value = self.evaluate(nested_operations[-1].left, env)
        for operation in reversed(nested_operations):
            value = self.binary_result(value, self.evaluate(operation.right, env), operation.op, operation)
            if operation is not node and (value is not None or operation in self.values):
                self.values[operation] = value
        return value

    def binary_result(self, left: v.Value, right: v.Value, op: ast.operator, node: ast.AST) -> v.Value:
        """Returns the result of a binary operator: the tensor among its operands, if it is an operator on tensors."""
        if isinstance(left, v.Tensor):
            defines_operator = isinstance(op, ast.Pow) and self._is_foreign(right)
            stronger_tensor = self._stronger_tensor(left, right).with_dtype(result_dtype(op, left, right))
            return None if defines_operator or self._disproves_tensor(right, left) else stronger_tensor
        if isinstance(right, v.Tensor):
            if left is v.STRING or v.is_opaque(left) or isinstance(left, v.Mapping):
                return left
            if left is None and isinstance(op, ast.Mod):  # the left operand may be a format string
                return None
            if isinstance(left, v.Instance):
                return self._call_operator(left, op, right, node)
            return None if self._disproves_tensor(left, right) else right.with_dtype(result_dtype(op, left, right))
        if isinstance(left, v.Instance) or isinstance(right, v.Instance):
            return self._call_operator(left, op, right, node) if isinstance(left, v.Instance) else None
        if isinstance(left, v.Sequence) and isinstance(right, v.Sequence):
            return _concatenate_sequences(left, right)
        if isinstance(left, v.Sequence) and isinstance(op, ast.Mult):
            return v.Sequence(left.element)
        if isinstance(right, v.Sequence) and isinstance(op, ast.Mult):
            self._exclude_repeated(node)
            return v.Sequence(right.element)
        if isinstance(left, v.Mapping) and isinstance(right, v.Mapping):
            return v.join(left, right)
        if left is v.STRING or right is v.STRING:
            return v.STRING
        if not (v.is_number(left) and v.is_number(right)):
            return None
        return v.REAL if left is right is v.REAL else v.NUMBER

    def _is_foreign(self, value: v.Value) -> bool:
        """Returns whether a value is from another package, which as an exponent defines the operator: `tree**ω`."""
        if (
            not isinstance(value, v.Imported)
            or is_stdlib(value.origin)
            or self.kinds.is_in_tensor_library(value.origin)
        ):
            return False
        return value.origin.partition(".")[0] != self.package.partition(".")[0]

    @staticmethod
    def _stronger_tensor(left: v.Tensor, right: v.Value) -> v.Tensor:
        return right if isinstance(right, v.Tensor) and right.tier > left.tier else left

    @staticmethod
    def _disproves_tensor(other: v.Value, tensor: v.Tensor) -> bool:
        """Returns whether the other operand proves that an operand is not a tensor."""
        if other is v.STRING:
            return True
        return tensor.tier is Tier.C and (v.is_opaque(other) or isinstance(other, (v.Mapping, v.Instance)))

    def _exclude_repeated(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp) and type(node.left) is ast.Name:
            self.exclude_tensor(node.left.id)

    def _call_operator(self, left: v.Instance, op: ast.operator | ast.cmpop, right: v.Value, node: ast.AST) -> v.Value:
        method_name = OPERATORS[type(op)].method
        return self.call_method(left, method_name, [right], node) if isinstance(node, ast.expr) else None

    def _UnaryOp(self, node: ast.UnaryOp, env: v.Env) -> v.Value:
        nested_operations = [node]
        while type(nested_operations[-1].operand) is ast.UnaryOp:  # a loop avoids deep recursion
            nested_operations.append(nested_operations[-1].operand)
        value = self.evaluate(nested_operations[-1].operand, env)
        for operation in reversed(nested_operations):
            if isinstance(operation.op, ast.Not):
                value = v.NUMBER
            elif not (isinstance(value, v.Tensor) or v.is_number(value)):
                value = None
            if operation is not node and (value is not None or operation in self.values):
                self.values[operation] = value
        return value

    def _Compare(self, node: ast.Compare, env: v.Env) -> v.Value:
        strongest_tensor: v.Tensor | None = None
        left_operand = self.evaluate(node.left, env)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right_operand = self.evaluate(operand, env)
            if not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                compared_tensor = self.compared_tensor(left_operand, right_operand, op, node)
                if compared_tensor is not None and (
                    strongest_tensor is None or compared_tensor.tier > strongest_tensor.tier
                ):
                    strongest_tensor = compared_tensor
                if right_operand is v.STRING and type(node.left) is ast.Name:
                    self.exclude_tensor(node.left.id)
            left_operand = right_operand
        return v.NUMBER if strongest_tensor is None else strongest_tensor

    def compared_tensor(self, left: v.Value, right: v.Value, op: ast.cmpop, node: ast.AST) -> v.Tensor | None:
        """Returns the tensor that a comparison works on, or None."""
        for first_operand, second_operand in ((left, right), (right, left)):
            if isinstance(first_operand, v.Tensor):
                if (
                    isinstance(second_operand, v.Instance)
                    and second_operand is left
                    and second_operand.unit.method(OPERATORS[type(op)].method)
                ):
                    return None
                if self._disproves_tensor(second_operand, first_operand) or (
                    second_operand is v.NONE and first_operand.tier is Tier.C
                ):
                    return None
                return self._stronger_tensor(first_operand, second_operand).with_dtype("")
        return None

    def _BoolOp(self, node: ast.BoolOp, env: v.Env) -> v.Value:
        outer_names, learned_names = env.vars, set[str]()
        operand_values: list[v.Value] = []
        for operand in node.values:
            operand_values.append(self.evaluate(operand, env))
            values_if_true, values_if_false = self.narrow(operand, env)
            proved_values = values_if_true if isinstance(node.op, ast.And) else values_if_false
            if proved_values:
                learned_names.update(proved_values)
                env.vars = {**env.vars, **proved_values}
        self._drop_proved_facts(env, outer_names, learned_names)
        return v.join_all(operand_values)

    def _IfExp(self, node: ast.IfExp, env: v.Env) -> v.Value:
        self.evaluate(node.test, env)
        values_if_true, values_if_false = self.narrow(node.test, env)
        outer_values = env.vars
        branch_values = []
        for branch_node, proved_values in ((node.body, values_if_true), (node.orelse, values_if_false)):
            env.vars = {**outer_values, **proved_values} if proved_values else outer_values
            branch_values.append(self.evaluate(branch_node, env))
            self._drop_proved_facts(env, outer_values, proved_values.keys())
        return v.join(branch_values[0], branch_values[1])

    @staticmethod
    def _drop_proved_facts(env: v.Env, outer_values: Updates, proved_names: Collection[str]) -> None:
        """Drops the facts that a test proved, but keeps the names bound meanwhile."""
        if env.vars is not outer_values:
            outer_values.update(
                {
                    name: value
                    for name, value in env.vars.items()
                    if name not in outer_values and name not in proved_names
                }
            )
            env.vars = outer_values


def _concatenate_sequences(left: v.Sequence, right: v.Sequence) -> v.Sequence:
    if left.items is not None and right.items is not None:
        return v.Sequence(items=[*left.items, *right.items])
    return v.Sequence(v.join(left.element, right.element))
