"""The results of calling Python's builtins."""

import ast

from emberlint.inference import values as v
from emberlint.inference.calls import Calls
from emberlint.inference.expressions import value_from_container
from emberlint.inference.methods import Arguments
from emberlint.knowledge.kinds import (
    BUILTINS,
)

SIMPLE: dict[str, v.Value] = {
    "number": v.NUMBER,
    "real": v.REAL,
    "bool": v.NUMBER,
    "dtype": v.NUMBER,
    "string": v.STRING,
    "none": v.NONE,
    "other": v.OPAQUE,
    "object": v.OBJECT,
}


class BuiltinCalls(Calls):
    """The methods of the analysis that infer the results of calls of Python's builtins."""

    def call_builtin(self, kind: str, name: str, arguments: Arguments) -> v.Value:
        """Returns the inferred result of calling a builtin."""
        if kind in SIMPLE:
            return SIMPLE[kind]
        result_value: v.Value = getattr(self, f"_result_of_builtin_{kind}")(name, arguments)
        return result_value

    def _result_of_builtin_range(self, name: str, arguments: Arguments) -> v.Value:
        if isinstance(arguments.node, ast.Call):
            for argument in arguments.node.args:
                if type(argument) is ast.Name:
                    self.exclude_tensor(argument.id)
        return v.Sequence(v.REAL)

    def _result_of_builtin_sequence(self, name: str, arguments: Arguments) -> v.Value:
        iterated_value = arguments.first_value()
        if not arguments.positional:
            return v.Sequence(items=[])
        if isinstance(iterated_value, v.Sequence):
            return (
                v.Sequence(items=[*iterated_value.items])
                if iterated_value.items is not None
                else v.Sequence(iterated_value.element)
            )
        return v.Sequence(v.element_of(iterated_value))

    def _result_of_builtin_zip(self, name: str, arguments: Arguments) -> v.Value:
        zipped_rows = arguments.first_value()
        if (
            arguments.starred
            and len(arguments.positional) == 1
            and isinstance(zipped_rows, v.Sequence)
            and zipped_rows.items is not None
        ):
            return v.Sequence(items=[v.Sequence(item) for item in zipped_rows.items])  # zip(*pairs) gives the columns
        return v.Sequence(v.Sequence(items=[v.element_of(value) for value in arguments.positional]))

    def _result_of_builtin_enumerate(self, name: str, arguments: Arguments) -> v.Value:
        return v.Sequence(v.Sequence(items=[v.REAL, v.element_of(arguments.first_value())]))

    def _result_of_builtin_map(self, name: str, arguments: Arguments) -> v.Value:
        element_values = [v.element_of(value) for value in arguments.positional[1:]]
        call_node = arguments.node
        if (
            arguments.first_value() is None
            and isinstance(call_node, ast.Call)
            and call_node.args
            and type(call_node.args[0]) is ast.Name
        ):
            result_kind = BUILTINS.get(call_node.args[0].id, "unknown")
            return v.Sequence(SIMPLE.get(result_kind))
        return v.Sequence(
            value_from_container(self.call_callback(arguments.first_value(), element_values, arguments), call_node)
        )

    def _result_of_builtin_filter(self, name: str, arguments: Arguments) -> v.Value:
        element_value = v.element_of(arguments.positional[1]) if len(arguments.positional) > 1 else None
        self.call_callback(arguments.first_value(), [element_value], arguments)
        return v.Sequence(element_value)

    def _result_of_builtin_sum(self, name: str, arguments: Arguments) -> v.Value:
        return v.element_of(arguments.first_value(), "the sum of its parts", arguments.node)

    def _result_of_builtin_extreme(self, name: str, arguments: Arguments) -> v.Value:
        if len(arguments.positional) > 1:
            return v.join_all(arguments.positional)
        return v.element_of(arguments.first_value(), f"the {name} of its parts", arguments.node)

    def _result_of_builtin_arithmetic(self, name: str, arguments: Arguments) -> v.Value:
        tensors = [value for value in arguments.positional if isinstance(value, v.Tensor)]
        if not tensors:
            return v.NUMBER if v.is_number(arguments.first_value()) else None
        if name == "divmod":
            return v.Sequence(tensors[0].pass_on("`divmod` of it", arguments.node))
        return tensors[0].with_dtype(tensors[0].dtype if name == "abs" else "")

    def _result_of_builtin_next(self, name: str, arguments: Arguments) -> v.Value:
        return v.element_of(arguments.first_value())

    def _result_of_builtin_mapping(self, name: str, arguments: Arguments) -> v.Value:
        first_argument = arguments.first_value()
        mapping = v.Mapping()
        if isinstance(first_argument, v.Mapping):
            mapping = v.Mapping(dict(first_argument.by_key), first_argument.element)
            mapping.key = first_argument.key
        elif isinstance(first_argument, v.Sequence) and isinstance(first_argument.element, v.Sequence):
            key_and_value = first_argument.element
            mapping.put(
                None,
                key_and_value.items[1]
                if key_and_value.items is not None and len(key_and_value.items) == 2
                else key_and_value.element,
            )
        for key, value in arguments.keywords.items():
            mapping.put(key, value_from_container(value, arguments.node))
        return mapping

    def _result_of_builtin_getattr(self, name: str, arguments: Arguments) -> v.Value:
        call_node = arguments.node
        if not (
            isinstance(call_node, ast.Call) and len(call_node.args) > 1 and isinstance(call_node.args[1], ast.Constant)
        ):
            return None
        attribute_node = ast.Attribute(call_node.args[0], str(call_node.args[1].value), ast.Load())
        return self.attribute_value(arguments.first_value(), ast.copy_location(attribute_node, call_node))

    def _result_of_builtin_super(self, name: str, arguments: Arguments) -> v.Value:
        owner_class = None if self.unit is None else self.unit.owner
        if owner_class is None:
            return None
        class_without_methods = v.ClassUnit(owner_class.node)
        class_without_methods.bases, class_without_methods.is_module, class_without_methods.foreign = (
            owner_class.bases,
            owner_class.is_module,
            owner_class.foreign,
        )
        return v.Instance(class_without_methods)
