"""The arguments of a call, and the effects of methods of containers."""

import ast

from emberlint.inference import values as v
from emberlint.inference.expressions import value_from_container


class Arguments:
    """The values of the arguments of a call."""

    __slots__ = ("env", "keywords", "node", "positional", "starred")

    def __init__(self, node: ast.expr, env: v.Env, positional: list[v.Value]) -> None:
        self.node = node
        self.env = env
        self.positional = positional
        self.keywords: dict[str, v.Value] = {}
        self.starred = False

    def first_value(self) -> v.Value:
        """Returns the first positional argument, or None if there is none."""
        return self.positional[0] if self.positional else None

    def all_values(self) -> list[v.Value]:
        """Returns the values of all arguments, positional and by keyword."""
        return [*self.positional, *self.keywords.values()]


def call_sequence_method(base: v.Sequence, name: str, arguments: Arguments) -> v.Value:
    """Returns the result of a method of a list, set or iterator, and updates the container."""
    argument_values = [value_from_container(value, arguments.node) for value in arguments.positional]
    if name in ("append", "appendleft", "add", "insert", "push"):
        base.add(argument_values[-1] if argument_values else None)
        return v.NONE
    if name in ("extend", "update", "extendleft"):
        base.add(v.element_of(argument_values[0]) if argument_values else None)
        return v.NONE
    if name in ("pop", "popleft", "get", "__next__"):
        return base.element
    if name in ("numel", "index", "count", "sort", "reverse", "remove", "clear", "discard"):
        return v.NUMBER
    return base if name in ("copy", "union", "intersection", "difference", "__iter__") else None


def call_mapping_method(base: v.Mapping, name: str, arguments: Arguments) -> v.Value:
    """Returns the result of a method of a dict, and updates the dict."""
    argument_values = [value_from_container(argument, arguments.node) for argument in arguments.positional]
    call_node = arguments.node
    constant_key = (
        call_node.args[0].value
        if isinstance(call_node, ast.Call) and call_node.args and isinstance(call_node.args[0], ast.Constant)
        else None
    )
    if name == "items":
        return v.Sequence(v.Sequence(items=[base.key, base.element]))
    if name == "values":
        return v.Sequence(base.element)
    if name == "keys":
        return v.Sequence(base.key)
    if name in ("get", "pop"):
        value_at_key = base.by_key.get(constant_key, base.element) if constant_key is not None else base.element
        return v.join(value_at_key, argument_values[1]) if len(argument_values) > 1 else value_at_key
    if name == "setdefault":
        if len(argument_values) > 1:
            base.put(constant_key, argument_values[1])
        return base.by_key.get(constant_key, base.element)
    if name == "popitem":
        return v.Sequence(items=[base.key, base.element])
    if name == "update":
        for argument_value in argument_values:
            base.put(None, argument_value.element if isinstance(argument_value, v.Mapping) else None)
        for keyword, value in arguments.keywords.items():
            base.put(keyword, value_from_container(value, call_node))
        return v.NONE
    return base if name == "copy" else None
