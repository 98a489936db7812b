"""The possible values of an expression: a tensor, a container, an object of the file, or certainly something else."""

import ast
from enum import Enum
from typing import Union

from emberlint.config.tiers import Tier


class Tensor:
    """A tensor with its tier and the reason.

    `via` is the tensor it comes from, shown in explanations; `dtype` is a floating dtype that is certain, or "".
    """

    __slots__ = ("dtype", "node", "tier", "via", "why")

    def __init__(
        self, tier: Tier, why: str, node: ast.AST | None = None, via: "Tensor | None" = None, dtype: str = ""
    ) -> None:
        self.tier = tier
        self.why = why
        self.node = node
        self.via = via
        self.dtype = dtype

    def pass_on(self, why: str, node: ast.AST | None = None, dtype: str = "") -> "Tensor":
        """Returns this tensor after it was passed to another name or place, with a new reason and tier B at most."""
        return Tensor(self.tier if self.tier < Tier.B else Tier.B, why, node, self, dtype)

    def with_dtype(self, dtype: str) -> "Tensor":
        """Returns this tensor with another dtype."""
        return self if dtype == self.dtype else Tensor(self.tier, self.why, self.node, self.via, dtype)


class Other:
    """A value that is certainly not a tensor."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label


NONE = Other("None")
NUMBER = Other("a number, a dtype or the like")
REAL = Other("a number, an int or a float of Python")
STRING = Other("a string")
OPAQUE = Other("an object that is not a tensor")
OBJECT = Other("an object that is neither a tensor nor a number")


class Sequence:
    """A list, tuple, set or iterator: the join of its elements, and each element if known."""

    __slots__ = ("element", "items", "rest")

    def __init__(self, element: "Value" = None, items: "list[Value] | None" = None) -> None:
        self.items = items
        self.rest: Tensor | None = None  # the value that an annotation allows besides the container
        self.element = join_all(items) if items is not None else element

    def add(self, value: "Value") -> None:
        """Joins one more element into the sequence."""
        self.items = None
        self.element = join(self.element, value)


def is_number(value: "Value") -> bool:
    """Returns whether a value is a number, a dtype or the like."""
    return value is NUMBER or value is REAL


def is_opaque(value: "Value") -> bool:
    """Returns whether a value is an object about whose attributes, operators and calls nothing is known."""
    return value is OPAQUE or value is OBJECT


def shape_value() -> Sequence:
    """Returns the value of a shape: a tuple of numbers."""
    return Sequence(REAL)


class Mapping:
    """A dict: the join of its values, and each value by key if the keys are literals."""

    __slots__ = ("by_key", "element", "key", "rest")

    def __init__(self, by_key: "dict[object, Value] | None" = None, element: "Value" = None) -> None:
        self.by_key = by_key or {}
        self.element = join(element, join_all([*self.by_key.values()]))
        self.key: Value = OPAQUE
        self.rest: Tensor | None = None

    def put(self, key: object, value: "Value") -> None:
        """Joins a value into the dict, under its key if the key is a literal."""
        if key is not None:
            self.by_key[key] = join(self.by_key[key], value) if key in self.by_key else value
        self.element = join(self.element, value)


class Imported:
    """A function, class, module or other object that is imported, by its dotted origin."""

    __slots__ = ("origin",)

    def __init__(self, origin: str) -> None:
        self.origin = origin


class Function:
    """A function or lambda of this file, bound to an instance if it is a method."""

    __slots__ = ("bound", "given", "unit")

    def __init__(self, unit: "FunctionUnit", bound: "Value" = None, given: "tuple[Value, ...]" = ()) -> None:
        self.unit = unit
        self.bound = bound
        self.given = given  # the leading arguments that a partial already has


class Partial:
    """A `functools.partial` of a function from outside this file."""

    __slots__ = ("function",)

    def __init__(self, function: "Value") -> None:
        self.function = function


class Derived:
    """The function that a transform such as `value_and_grad` makes of another, with or without options."""

    __slots__ = ("function", "kind", "options")

    def __init__(self, kind: str, function: "Value", options: bool = False) -> None:
        self.kind = kind
        self.function = function
        self.options = options


class Returning:
    """A callable whose result is known, but not its code."""

    __slots__ = ("result",)

    def __init__(self, result: "Value") -> None:
        self.result = result


class PassedArgument:
    """The argument of a call in the result of a function of another file, which stands for whatever is passed."""

    __slots__ = ("at", "name")

    def __init__(self, at: int, name: str) -> None:
        self.at = at
        self.name = name


class Alias:
    """A name for a type in another file, with the value that it promises in an annotation."""

    __slots__ = ("value",)

    def __init__(self, value: "Value") -> None:
        self.value = value


class Choice:
    """A value that is one of several callables."""

    __slots__ = ("options",)

    def __init__(self, options: "tuple[Value, ...]") -> None:
        self.options = options


class Layer:
    """An instance of an imported module class; called with a tensor, it returns a tensor."""

    __slots__ = ()


LAYER = Layer()


class Env:
    """The names of a function, comprehension, class body or module, and the scope around it."""

    __slots__ = ("comprehension", "outer_names", "parent", "unit", "vars")

    def __init__(self, parent: "Env | None", unit: "FunctionUnit | None") -> None:
        self.vars: dict[str, Value] = {}
        self.parent = parent
        self.unit = unit
        self.comprehension = False
        self.outer_names: dict[str, Env] = {}  # declared `global` or `nonlocal`


class Progress(Enum):
    """The progress of the analysis of a function."""

    NEW = 0
    RUNNING = 1
    DONE = 2


class FunctionUnit:
    """A function or lambda, with what the analysis has learned: the arguments of its calls, and its results."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env) -> None:
        self.node = node
        self.env = env
        self.name: str = getattr(node, "name", "lambda")
        self.owner: ClassUnit | None = None
        self.kind = "function"  # "function", "method", "classmethod", "staticmethod" or "property"
        self.state = Progress.NEW
        self.given: dict[str, Value] = {}  # the values of arguments by parameter, joined over all calls
        self.hinted: dict[str, Value] = {}  # the values that parameters have by convention, by name
        self.contrary: set[str] = set()  # parameters used in a way that excludes a tensor
        self.declared: Value = None
        self.returns: list[Value] = []
        self.yields: list[Value] = []
        self.readers: dict[FunctionUnit, None] = {}
        self.is_fixed = False  # known from the summary of another file
        # values written to `global` (True) and `nonlocal` (False) names
        self.written: dict[str, tuple[bool, Value]] = {}


class ClassUnit:
    """A class and the values of its attributes."""

    def __init__(self, node: ast.ClassDef) -> None:
        self.node = node
        self.origin = ""  # the dotted name of a class of another file
        self.bases: list[ClassUnit] = []
        self.foreign: list[str] = []  # the origins of imported bases
        self.is_module = False
        self.is_tensor = False
        self.is_record = False  # a dataclass or named tuple, whose fields are its arguments
        self.is_dict = False  # a TypedDict, whose fields are its keys
        self.fields: list[str] = []
        self.declared: dict[str, Value] = {}
        self.attributes: dict[str, Value] = {}
        self.methods: dict[str, FunctionUnit] = {}
        self.readers: dict[str, dict[FunctionUnit, None]] = {}

    def class_and_bases(self) -> "list[ClassUnit]":
        """Returns this class and its bases in this file, the nearest first."""
        class_and_bases = [self]
        for unit in class_and_bases:
            class_and_bases.extend(base for base in unit.bases if base not in class_and_bases)
        return class_and_bases

    def method(self, name: str) -> FunctionUnit | None:
        """Returns the method of that name, from this class or a base, or None."""
        return next((unit.methods[name] for unit in self.class_and_bases() if name in unit.methods), None)


class Class:
    """A class of this file."""

    __slots__ = ("unit",)

    def __init__(self, unit: ClassUnit) -> None:
        self.unit = unit


class Instance:
    """An instance of a class of this file."""

    __slots__ = ("unit",)

    def __init__(self, unit: ClassUnit) -> None:
        self.unit = unit


Value = Union[  # noqa: UP007 - names are quoted
    Tensor,
    Other,
    Sequence,
    Mapping,
    Imported,
    Function,
    Partial,
    Derived,
    Returning,
    PassedArgument,
    Alias,
    Choice,
    Layer,
    Class,
    Instance,
    None,
]
"""The inferred value of an expression; None means that nothing is known."""

_CALLABLE = (Imported, Function, Partial, Derived, Returning, Choice, Layer, Class)
_DEPTH = 4  # containers nested more deeply are treated as unknown
_OPTIONS = 8


def join(left: Value, right: Value, depth: int = 0) -> Value:
    """Returns the value of a name that is `left` on one path and `right` on another.

    A tensor on either path makes the result a tensor. A container on either path takes precedence over the rest,
    because it accepts the same operators.
    """
    if left is right:
        return left
    if left is None or right is None:
        known_tensor = _without_dtypes(left if right is None else right)
        return known_tensor if holds_tensor(known_tensor) else None
    if left is NONE:
        return right
    if right is NONE:
        return left
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        return _join_sequences(left, right, depth)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _join_mappings(left, right, depth)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return (left if left.tier >= right.tier else right).with_dtype(left.dtype if left.dtype == right.dtype else "")
    return _join_kinds(left, right)


def _join_kinds(left: Value, right: Value) -> Value:
    for first_value, second_value in ((left, right), (right, left)):
        if isinstance(first_value, (Sequence, Mapping)) and isinstance(second_value, (Tensor, Other)):
            return first_value
    for first_value, second_value in ((left, right), (right, left)):
        if isinstance(first_value, Tensor):
            return (
                first_value.with_dtype(first_value.dtype if second_value is REAL else "")
                if isinstance(second_value, Other)
                else None
            )
    if is_number(left) and is_number(right):
        return NUMBER
    if isinstance(left, Other) and isinstance(right, Other):
        return OPAQUE
    if are_equal_values(left, right):
        return left
    return _choice_of(left, right) if isinstance(left, _CALLABLE) and isinstance(right, _CALLABLE) else None


def _without_dtypes(value: Value) -> Value:
    """Returns a value without the dtypes of its tensors."""
    if isinstance(value, Tensor):
        return value.with_dtype("")
    if isinstance(value, Sequence) and isinstance(value.element, Tensor) and value.element.dtype:
        return Sequence(value.element.with_dtype(""))
    if isinstance(value, Mapping) and isinstance(value.element, Tensor):
        return Mapping({key: _without_dtypes(item) for key, item in value.by_key.items()}, value.element.with_dtype(""))
    return value


def _choice_of(left: Value, right: Value) -> Value:
    distinct_options: list[Value] = []
    for alternative in (left, right):
        for option in alternative.options if isinstance(alternative, Choice) else (alternative,):
            if not any(are_equal_values(option, kept_option) for kept_option in distinct_options):
                distinct_options.append(option)
    return Choice(tuple(distinct_options)) if len(distinct_options) <= _OPTIONS else None


def _join_sequences(left: Sequence, right: Sequence, depth: int) -> Value:
    if depth > _DEPTH:
        return left
    if left.items is not None and right.items is not None and len(left.items) == len(right.items):
        item_pairs = zip(left.items, right.items, strict=True)
        return Sequence(items=[join(first_item, second_item, depth + 1) for first_item, second_item in item_pairs])
    if left.items == []:
        return right
    if right.items == []:
        return left
    return Sequence(join(left.element, right.element, depth + 1))


def _join_mappings(left: Mapping, right: Mapping, depth: int) -> Value:
    if depth > _DEPTH:
        return left
    joined_mapping = Mapping(dict(left.by_key), join(left.element, right.element, depth + 1))
    for key, value in right.by_key.items():
        joined_mapping.put(key, value)
    return joined_mapping


def join_all(values: "list[Value]") -> Value:
    """Returns the join of all values."""
    if not values:
        return NONE
    joined_value = values[0]
    for value in values[1:]:
        joined_value = join(joined_value, value)
    return joined_value


def holds_tensor(value: Value, depth: int = 0) -> bool:
    """Returns whether a value is a tensor or a container of tensors."""
    if isinstance(value, Tensor):
        return True
    if isinstance(value, (Sequence, Mapping)) and depth < _DEPTH:
        return holds_tensor(value.element, depth + 1)
    return False


def holds_object(value: Value, depth: int = 0) -> bool:
    """Returns whether a value is known to be, or to hold, something else than numbers and tensors: None, a text."""
    if isinstance(value, Sequence):
        item_values = [value.element] if value.items is None else value.items
        return depth < _DEPTH and any(holds_object(item, depth + 1) for item in item_values)
    return isinstance(value, (Mapping, Instance, Class, Function)) or value in (NONE, STRING, OBJECT)


def are_equal_values(left: Value, right: Value, depth: int = 0) -> bool:
    """Returns whether two values are equal apart from their reasons."""
    if left is right:
        return True
    if type(left) is not type(right) or depth > _DEPTH:
        return False
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left.tier == right.tier and left.dtype == right.dtype
    if isinstance(left, (Sequence, Mapping)) and isinstance(right, (Sequence, Mapping)):
        return are_equal_values(left.element, right.element, depth + 1)
    if isinstance(left, Function) and isinstance(right, Function):
        return left.unit is right.unit and are_equal_values(left.bound, right.bound, depth + 1)
    if isinstance(left, Imported) and isinstance(right, Imported):
        return left.origin == right.origin
    if isinstance(left, Choice) and isinstance(right, Choice):
        return len(left.options) == len(right.options)
    if isinstance(left, (Class, Instance)) and isinstance(right, (Class, Instance)):
        return left.unit is right.unit
    return False


def element_of(value: Value, why: str = "", node: ast.AST | None = None) -> Value:
    """Returns the element that iterating over a value yields."""
    if isinstance(value, Tensor):
        return value.pass_on(why or "an element of a tensor", node)
    if isinstance(value, Sequence):
        return value.element
    if isinstance(value, Mapping):
        return value.key
    return value if value is STRING or is_number(value) else None
