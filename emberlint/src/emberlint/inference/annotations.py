"""Infers values from type annotations."""

import ast
from typing import Protocol

from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.knowledge.kinds import Kinds, is_stdlib, word_set

_TYPING = ("typing", "typing_extensions", "collections.abc", "types", "collections")
_INNER = frozenset(
    ("Annotated", "Optional", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly", "InitVar", "Awaitable")
)
_SEQUENCES = word_set("""
    List Sequence MutableSequence Set FrozenSet AbstractSet MutableSet Iterable Iterator Collection Generator Reversible
    AsyncGenerator AsyncIterator AsyncIterable Deque deque list set frozenset ContextManager AbstractContextManager
""")
_MAPPINGS = frozenset(
    ("Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict", "dict", "ChainMap")
)
_BUILTINS: dict[str, v.Value] = {
    **dict.fromkeys(("int", "float"), v.REAL),
    **dict.fromkeys(("bool", "complex"), v.NUMBER),
    **dict.fromkeys(("str", "bytes", "bytearray"), v.STRING),
    **dict.fromkeys(("type", "slice", "BaseException", "Exception"), v.OPAQUE),
}
_GENERIC = frozenset(("list", "tuple", "dict", "set", "frozenset", "type"))
_UNKNOWN = frozenset(("Any", "object", "TypeVar", "Self", "Generic", "Protocol"))
_BY_CUSTOM = frozenset(("Tensor", "TensorLike", "KerasTensor", "NDArray", "Operand"))
_ALIAS_DEPTH = 8


class Lookup(Protocol):
    """The protocol of the analysis methods that the resolution of annotations needs."""

    kinds: Kinds
    aliases: dict[str, ast.expr]
    is_forward: bool

    def lookup(self, name: str, env: v.Env) -> tuple[bool, v.Value]:
        """Returns whether a name is bound in a scope, and its inferred value."""
        ...

    def external_value(self, origin: str) -> v.Value:
        """Returns the value of a name of another file of the project, or None."""
        ...


class Annotations:
    """Resolves type annotations to inferred values."""

    def __init__(self, analysis: Lookup) -> None:
        self.analysis = analysis
        self._parsed: dict[str, ast.expr | None] = {}

    def resolve(self, node: ast.expr | None, env: v.Env, depth: int = 0) -> v.Value:
        """Returns the value that an annotation promises, or None if it promises nothing."""
        if node is None or depth > _ALIAS_DEPTH:
            return None
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.resolve(self._parse(node.value), env, depth + 1)
            return v.NONE if node.value is None else None
        if isinstance(node, ast.Name):
            return self._value_of_name(node, env, depth)
        if isinstance(node, ast.Attribute):
            origin = self._origin(node, env)
            return None if origin is None else self._value_of_named_type(origin, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._value_of_union([node.left, node.right], env, depth)
        if isinstance(node, ast.Subscript):
            return self._value_of_generic(node, env, depth)
        if isinstance(node, ast.Call):
            return self._value_of_new_type(node, env, depth)
        return None

    def _parse(self, text: str) -> ast.expr | None:
        if text not in self._parsed:
            try:
                self._parsed[text] = ast.parse(text.strip(), mode="eval").body
            except SyntaxError:  # a string in Literal or Annotated need not be code
                self._parsed[text] = None
        return self._parsed[text]

    def _value_of_name(self, node: ast.Name, env: v.Env, depth: int) -> v.Value:
        is_bound, named_value = self.analysis.lookup(node.id, env)
        if not is_bound:
            if node.id in _SEQUENCES or node.id == "tuple":
                return v.Sequence()
            if node.id not in _BUILTINS and node.id != "dict":
                self.analysis.is_forward = True
            return v.Mapping() if node.id == "dict" else _BUILTINS.get(node.id)
        if isinstance(named_value, v.Class):
            return self._as_instance(named_value)
        if isinstance(named_value, v.Imported):
            return self._value_of_type(named_value.origin, node)
        if isinstance(named_value, v.Alias):
            return named_value.value
        alias_expression = self.analysis.aliases.get(node.id)
        return None if alias_expression is None else self.resolve(alias_expression, env, depth + 1)

    def _as_instance(self, value: v.Class) -> v.Value:
        if value.unit.is_tensor:
            return v.Tensor(Tier.A, f"annotated with `{value.unit.node.name}`, a tensor type")
        return typed_dict_value(value.unit) if value.unit.is_dict else v.Instance(value.unit)

    def _origin(self, node: ast.expr, env: v.Env) -> str | None:
        if isinstance(node, ast.Name):
            is_bound, named_value = self.analysis.lookup(node.id, env)
            if not is_bound:
                self.analysis.is_forward |= node.id not in _GENERIC
                return f"builtins.{node.id}"
            return named_value.origin if isinstance(named_value, v.Imported) else None
        if isinstance(node, ast.Attribute):
            base_origin = self._origin(node.value, env)
            return None if base_origin is None else f"{base_origin}.{node.attr}"
        return None

    def _value_of_named_type(self, origin: str, node: ast.expr) -> v.Value:
        external_value = self.analysis.external_value(origin)
        if isinstance(external_value, v.Class):
            return self._as_instance(external_value)
        if isinstance(external_value, v.Alias):
            return external_value.value
        return self._value_of_type(external_value.origin if isinstance(external_value, v.Imported) else origin, node)

    def _value_of_type(self, origin: str, node: ast.expr) -> v.Value:
        origin_kinds, last_name = self.analysis.kinds, origin.rpartition(".")[2]
        if origin_kinds.is_tensor_type(origin):
            return v.Tensor(Tier.A, f"annotated with `{origin}`, a tensor type", node)
        if origin.startswith(_TYPING):
            if last_name in _SEQUENCES or last_name == "Tuple":
                return v.Sequence()
            return v.Mapping() if last_name in _MAPPINGS else (None if last_name in _UNKNOWN else v.OPAQUE)
        if is_stdlib(origin):
            return v.OBJECT if origin_kinds.result_kind(origin) == "object" else v.OPAQUE
        if origin_kinds.result_kind(origin) == "shape":
            return v.shape_value()
        if last_name in _BY_CUSTOM:
            return v.Tensor(Tier.C, f"annotated with `{origin}`, by its name a tensor type", node)
        if last_name in ("Shape", "Axis", "DType", "DTypeLike") or origin_kinds.is_constant(origin):
            return v.NUMBER
        if last_name == "Tensors":
            return v.Sequence(v.Tensor(Tier.B, f"annotated with `{origin}`, a sequence of tensors", node))
        return v.LAYER if origin_kinds.is_module_class(origin) else None

    def _value_of_union(self, members: list[ast.expr], env: v.Env, depth: int) -> v.Value:
        member_values = [self.resolve(member, env, depth + 1) for member in members]
        joined_value = member_values[0]
        for value in member_values[1:]:
            joined_value = v.join(joined_value, value)
        if isinstance(joined_value, (v.Sequence, v.Mapping)):
            joined_value.rest = next((value for value in member_values if isinstance(value, v.Tensor)), None)
        if isinstance(joined_value, v.Tensor) and any(
            value is None or isinstance(value, v.Instance) for value in member_values
        ):
            return v.Tensor(Tier.C, f"{joined_value.why} or something else", joined_value.node)
        return joined_value

    def _value_of_generic(self, node: ast.Subscript, env: v.Env, depth: int) -> v.Value:
        origin = self._origin(node.value, env)
        type_arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not type_arguments:
            return v.Sequence()
        last_name = "" if origin is None else origin.rpartition(".")[2]
        if origin is None:
            return self.resolve(node.value, env, depth + 1)
        if origin.startswith("jaxtyping."):
            return self.resolve(type_arguments[0], env, depth + 1)
        if not origin.startswith((*_TYPING, "builtins.", "contextlib", "dataclasses")):
            return self.resolve(node.value, env, depth + 1)
        if last_name == "Union":
            return self._value_of_union(type_arguments, env, depth)
        if last_name in _INNER:
            return self.resolve(type_arguments[0], env, depth + 1)
        if last_name == "Coroutine":
            return self.resolve(type_arguments[-1], env, depth + 1)
        if last_name in ("tuple", "Tuple"):
            return self._value_of_tuple(type_arguments, env, depth)
        if last_name in _SEQUENCES:
            return v.Sequence(self._as_element(self.resolve(type_arguments[0], env, depth + 1)))
        if last_name in _MAPPINGS:
            mapping = v.Mapping(element=self._as_element(self.resolve(type_arguments[-1], env, depth + 1)))
            mapping.key = self.resolve(type_arguments[0], env, depth + 1)
            return mapping
        if last_name == "Callable":
            return v.Returning(self._as_element(self.resolve(type_arguments[-1], env, depth + 1)))
        return v.OPAQUE if last_name in ("Literal", "type", "Type") else None

    def _value_of_tuple(self, parameters: list[ast.expr], env: v.Env, depth: int) -> v.Value:
        if len(parameters) == 2 and isinstance(parameters[1], ast.Constant) and parameters[1].value is Ellipsis:
            return v.Sequence(self._as_element(self.resolve(parameters[0], env, depth + 1)))
        return v.Sequence(items=[self._as_element(self.resolve(parameter, env, depth + 1)) for parameter in parameters])

    @staticmethod
    def _as_element(value: v.Value) -> v.Value:
        """Returns the value of an element of an annotated container.

        The evidence for it is one tier weaker than for an annotated name, because code may store other elements.
        """
        reason_text = "an element of a container with this annotation"
        return value.pass_on(reason_text, value.node) if isinstance(value, v.Tensor) else value

    def _value_of_new_type(self, node: ast.Call, env: v.Env, depth: int) -> v.Value:
        last_name = (self._origin(node.func, env) or "").rpartition(".")[2]
        if last_name == "NewType" and len(node.args) == 2:
            return self.resolve(node.args[1], env, depth + 1)
        if last_name == "TypeVar":
            bound_expressions = [keyword.value for keyword in node.keywords if keyword.arg == "bound"] or node.args[1:]
            return self._value_of_union(bound_expressions, env, depth) if bound_expressions else None
        return None


def typed_dict_value(unit: v.ClassUnit) -> v.Mapping:
    """Returns the mapping value of a TypedDict, with the declared values by key."""
    value_by_key: dict[object, v.Value] = {}
    for class_unit in reversed(unit.class_and_bases()):
        value_by_key.update(class_unit.declared)
    return v.Mapping(value_by_key)
