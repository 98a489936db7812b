"""The summary of a file: the inferred values of its names, for the inference of files that import them."""

import ast
from collections.abc import Iterator
from typing import Any, Protocol

from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.explain import reason_line

Encoded = Any  # lists, strings and numbers, fit for JSON
_DEPTH = 3  # the depth from which nested containers are left out of a summary
_KEYS = 32  # a dict with more literal keys is described by its elements only
_PLAIN: dict[str, v.Value] = {
    "n": v.NUMBER,
    "r": v.REAL,
    "s": v.STRING,
    "0": v.NONE,
    "o": v.OPAQUE,
    "O": v.OBJECT,
    "L": v.LAYER,
}
_MARKS = {id(value): mark for mark, value in _PLAIN.items()}


class Analysed(Protocol):
    """The protocol of the analysis methods from which a summary is made."""

    module: v.Env
    libraries: tuple[str, ...]
    host: frozenset[str]  # libraries whose arrays are host data in this file
    aliases: dict[str, ast.expr]

    def result_of(self, unit: v.FunctionUnit) -> v.Value:
        """Returns the inferred result of a function of the analysed file."""
        ...

    def is_informative(self, origin: str) -> bool:
        """Returns whether something imported tells an importer more than its name does."""
        ...

    def alias_value(self, node: ast.expr) -> v.Value:
        """Returns the value of a name whose annotation is a given expression."""
        ...


def summarise(analysis: Analysed, module: str) -> Encoded | None:
    """Returns the summary of an analysed file, or None if it says nothing about tensors."""
    summary_writer = _Writer(analysis, module)
    encoded_by_name = {
        name: encoded
        for name, value in analysis.module.vars.items()
        if (encoded := summary_writer.encode_name(name, value))
    }
    return {"names": encoded_by_name, "classes": summary_writer.classes} if summary_writer.is_informative else None


class _Writer:
    def __init__(self, analysis: Analysed, module: str) -> None:
        self.analysis = analysis
        self.start = f"{module}." if module else ""
        self.classes: dict[str, Encoded] = {}
        self.is_informative = False

    def encode_name(self, name: str, value: v.Value) -> Encoded:
        """Returns the encoded value of a name of the module, or None."""
        if name.startswith("__") or "." in name:
            return None
        if isinstance(value, v.Imported):
            if not self.analysis.is_informative(value.origin):
                return None
            self.is_informative = True
            return ["i", value.origin]
        if value is None and name in self.analysis.aliases:
            encoded_alias = self.encode_value(self.analysis.alias_value(self.analysis.aliases[name]))
            return None if encoded_alias is None else ["y", encoded_alias]
        return self.encode_value(value)

    def encode_value(self, value: v.Value, depth: int = 0) -> Encoded:
        """Returns a value encoded as JSON data for the summary, or None if nothing is known of it."""
        if value is None or depth > _DEPTH:
            return None
        encoded_constant = _MARKS.get(id(value))
        if encoded_constant is not None:
            self.is_informative |= encoded_constant == "L"
            return encoded_constant
        if isinstance(value, v.Tensor):
            library = self._library_of_tensor(value)
            if library in self.analysis.host:
                return None  # host data of a backend, which no op has to handle
            self.is_informative = True
            return ["t", int(value.tier), library]
        if isinstance(value, v.Sequence):
            encoded_items = (
                None if value.items is None else [self.encode_value(item, depth + 1) for item in value.items]
            )
            return ["q", self.encode_value(value.element, depth + 1), encoded_items]
        if isinstance(value, v.Mapping):
            encoded_by_key = {
                key: self.encode_value(item, depth + 1) for key, item in value.by_key.items() if isinstance(key, str)
            }
            return [
                "m",
                self.encode_value(value.element, depth + 1),
                encoded_by_key if len(encoded_by_key) <= _KEYS else {},
            ]
        if isinstance(value, v.PassedArgument):
            self.is_informative = True
            return ["p", value.at, value.name]
        if isinstance(value, v.Imported):
            return ["i", value.origin] if self.analysis.is_informative(value.origin) else None
        return self._encode_definition(value, depth)

    def _library_of_tensor(self, value: v.Tensor) -> str:
        """Returns the library that made a tensor regardless of the active backend, or an empty string."""
        reason_text = reason_line(value)
        return next((name for name in self.analysis.libraries if f"`{name}" in reason_text), "")

    def _encode_definition(self, value: v.Value, depth: int) -> Encoded:
        if isinstance(value, v.Function):
            encoded_result = self.encode_value(self.analysis.result_of(value.unit), depth + 1)
            encoded_result_or_parameter = (
                self._encode_passthrough(value.unit) if _is_void(encoded_result) else encoded_result
            )
            return None if encoded_result_or_parameter is None else ["f", encoded_result_or_parameter]
        if isinstance(value, v.Returning):
            encoded_result_or_parameter = self.encode_value(value.result, depth + 1)
            return None if encoded_result_or_parameter is None else ["f", encoded_result_or_parameter]
        if isinstance(value, v.Alias):
            encoded_value = self.encode_value(value.value, depth + 1)
            return None if encoded_value is None else ["y", encoded_value]
        if isinstance(value, (v.Class, v.Instance)):
            origin = self._encode_class(value.unit)
            return None if origin is None else ["c" if isinstance(value, v.Class) else "x", origin]
        return None

    def _encode_passthrough(self, unit: v.FunctionUnit) -> Encoded:
        passed_value = passthrough_result(unit.node) if isinstance(unit.node, ast.FunctionDef) else None
        return self.encode_value(passed_value)

    def _encode_class(self, unit: v.ClassUnit) -> str | None:
        """Returns the origin of a class, and adds a class of this file to the summary."""
        if unit.origin:
            return unit.origin
        class_name = unit.node.name
        module_value = self.analysis.module.vars.get(class_name)
        if not isinstance(module_value, v.Class) or module_value.unit is not unit:
            return None  # importers cannot name a class inside a function or another class
        if class_name not in self.classes:
            self.classes[class_name] = None  # a class may hold instances of itself
            self.classes[class_name] = self._encode_class_body(unit)
        return self.start + class_name

    def _encode_class_body(self, unit: v.ClassUnit) -> Encoded:
        self.is_informative |= unit.is_module or unit.is_tensor
        encoded_by_method = {}
        for name, method in unit.methods.items():
            method_result = self.analysis.result_of(method)
            encoded_by_method[name] = [
                method.kind,
                self.encode_value(method_result, 1),
                bool(method.returns or method.yields),
            ]
        return {
            "bases": [origin for base in unit.bases if (origin := self._encode_class(base)) is not None],
            "foreign": unit.foreign,
            "flags": [unit.is_module, unit.is_tensor, unit.is_record, unit.is_dict],
            "fields": unit.fields,
            "declared": {name: self.encode_value(item, 1) for name, item in unit.declared.items()},
            "attributes": {name: self.encode_value(attribute, 1) for name, attribute in unit.attributes.items()},
            "methods": encoded_by_method,
        }


def _is_void(data: Encoded) -> bool:
    """Returns whether an encoded value says nothing, as a tuple of unknown values."""
    return data is None or (data[0] == "q" and not any(item is not None for item in (data[1], *(data[2] or []))))


def passthrough_result(function: ast.FunctionDef) -> v.Value:
    """Returns the result of a function that computes only with its parameters: a parameter, or a tuple of some."""
    signature = function.args
    parameter_names = [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)]
    if not _may_return_parameter(function.body, {name: index for index, name in enumerate(parameter_names)}):
        return None
    stored_names, returned_nodes = set[str](), list[ast.expr | None]()
    for node in _body_nodes(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            stored_names.add(node.id)
        elif isinstance(node, ast.Return):
            returned_nodes.append(node.value)
        elif isinstance(node, (ast.Yield, ast.YieldFrom)):
            return None
    index_by_name = {name: index for index, name in enumerate(parameter_names) if name not in stored_names}
    passed_values = [_passed_parameter(return_, index_by_name) for return_ in returned_nodes]
    if not passed_values or any(passed_value is None for passed_value in passed_values):
        return None
    first_value = passed_values[0]
    return first_value if all(_are_alike(first_value, passed_value) for passed_value in passed_values[1:]) else None


def _may_return_parameter(body: list[ast.stmt], places: dict[str, int]) -> bool:
    """Returns whether the first `return` at the top of a body, if there is one, computes only with parameters."""
    first_return = next((statement for statement in body if isinstance(statement, ast.Return)), None)
    return first_return is None or _passed_parameter(first_return.value, places) is not None


def _passed_parameter(node: ast.expr | None, places: dict[str, int]) -> v.Value:
    """Returns the parameter that an expression computes with."""
    if isinstance(node, ast.Tuple):
        item_values = [_passed_parameter(elt, places) for elt in node.elts]
        return v.Sequence(items=item_values) if any(item is not None for item in item_values) else None
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _passed_parameter(node.operand, places)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mod):
        return _passed_parameter(node.left, places) or _passed_parameter(node.right, places)
    return v.PassedArgument(places[node.id], node.id) if isinstance(node, ast.Name) and node.id in places else None


def _are_alike(one: v.Value, other: v.Value) -> bool:
    if isinstance(one, v.PassedArgument) and isinstance(other, v.PassedArgument):
        return one.at == other.at
    if isinstance(one, v.Sequence) and isinstance(other, v.Sequence):
        first_items, second_items = one.items or [], other.items or []
        return len(first_items) == len(second_items) and all(map(_are_alike, first_items, second_items))
    return one is other is None


def _body_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yields the nodes of a function's body, without those of functions and classes inside it."""
    pending_nodes: list[ast.AST] = [*function.body]
    while pending_nodes:
        node = pending_nodes.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending_nodes.extend(ast.iter_child_nodes(node))


class Summaries(Protocol):
    """The summaries of the project's files."""

    def summary(self, module: str) -> Encoded | None:
        """Returns the summary of a module, or None."""
        ...

    def is_module(self, module: str) -> bool:
        """Returns whether the project has a module of that name."""
        ...


class SummaryReader:
    """Reads the summaries of other files, and decodes them to values for the analysis of one file."""

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._value_by_origin: dict[str, v.Value] = {}
        self._classes: dict[str, v.ClassUnit] = {}

    def find_value(self, origin: str) -> v.Value:
        """Returns the value of a name of another file of the project, or None."""
        if origin not in self._value_by_origin:
            self._value_by_origin[origin] = None  # ends the recursion of names imported in a circle
            self._value_by_origin[origin] = self._find(origin)
        return self._value_by_origin[origin]

    def public_values(self, module: str) -> dict[str, v.Value]:
        """Returns the values of the public names of a module, for `import *`."""
        summary = self._summaries.summary(module)
        public_names = [] if summary is None else [name for name in summary["names"] if not name.startswith("_")]
        return {name: value for name in public_names if (value := self.find_value(f"{module}.{name}")) is not None}

    def _find(self, origin: str) -> v.Value:
        module, _, name = origin.rpartition(".")
        if not module or self._summaries.is_module(origin):
            return None
        summary = self._summaries.summary(module)
        encoded_value = None if summary is None else summary["names"].get(name)
        return None if encoded_value is None else self.decode_value(encoded_value, origin)

    def decode_value(self, data: Encoded, origin: str) -> v.Value:
        """Returns the value that was encoded as `data`; `origin` is the name in its reason."""
        if data is None or isinstance(data, str):
            return None if data is None else _PLAIN[data]
        kind_tag = data[0]
        if kind_tag == "t":
            maker_text = f" made by `{data[2]}`" if data[2] else ""
            return v.Tensor(min(Tier(data[1]), Tier.B), f"`{origin}` is a tensor{maker_text} in its file")
        if kind_tag == "i":
            return self.find_value(data[1]) or v.Imported(data[1])
        if kind_tag == "q":
            if data[2] is not None:
                return v.Sequence(items=[self.decode_value(item, origin) for item in data[2]])
            return v.Sequence(self.decode_value(data[1], origin))
        if kind_tag == "m":
            value_by_key: dict[object, v.Value] = {
                key: self.decode_value(item, origin) for key, item in data[2].items()
            }
            return v.Mapping(value_by_key, self.decode_value(data[1], origin))
        if kind_tag == "f":
            result_value = self.decode_value(data[1], origin)
            if isinstance(result_value, v.Tensor):
                result_value = v.Tensor(result_value.tier, result_value.why.replace("is a tensor", "returns a tensor"))
            return v.Returning(result_value)
        if kind_tag == "p":
            return v.PassedArgument(data[1], data[2])
        if kind_tag == "y":
            return v.Alias(self.decode_value(data[1], origin))
        class_unit = self._decode_class(data[1])
        return None if class_unit is None else v.Class(class_unit) if kind_tag == "c" else v.Instance(class_unit)

    def _decode_class(self, origin: str) -> v.ClassUnit | None:
        if origin in self._classes:
            return self._classes[origin]
        module, _, name = origin.rpartition(".")
        summary = self._summaries.summary(module) if module else None
        encoded_class = None if summary is None else summary["classes"].get(name)
        if encoded_class is None:
            return None
        class_unit = self._classes[origin] = v.ClassUnit(ast.ClassDef(name, [], [], [], []))
        class_unit.origin = origin
        class_unit.foreign, class_unit.fields = [*encoded_class["foreign"]], [*encoded_class["fields"]]
        class_unit.is_module, class_unit.is_tensor, class_unit.is_record, class_unit.is_dict = encoded_class["flags"]
        class_unit.bases = [
            base for base_data in encoded_class["bases"] if (base := self._decode_class(base_data)) is not None
        ]
        for class_values, encoded_values in (
            (class_unit.declared, encoded_class["declared"]),
            (class_unit.attributes, encoded_class["attributes"]),
        ):
            class_values.update(
                {
                    attribute_name: self.decode_value(encoded_value, f"{origin}.{attribute_name}")
                    for attribute_name, encoded_value in encoded_values.items()
                }
            )
        for method_name, (method_kind, encoded_result, returns) in encoded_class["methods"].items():
            class_unit.methods[method_name] = self._decode_method(
                class_unit,
                method_name,
                method_kind,
                self.decode_value(encoded_result, f"{origin}.{method_name}"),
                returns,
            )
        return class_unit

    @staticmethod
    def _decode_method(owner: v.ClassUnit, name: str, kind: str, result: v.Value, returns: bool) -> v.FunctionUnit:
        no_parameters = ast.arguments([], [], None, [], [], None, [])
        method_unit = v.FunctionUnit(ast.FunctionDef(name, no_parameters, [], []), v.Env(None, None))
        method_unit.owner, method_unit.kind, method_unit.declared = owner, kind, result
        method_unit.state, method_unit.is_fixed = v.Progress.DONE, True
        method_unit.returns = [None] if returns else []
        return method_unit
