"""Templates: the tree structures of a captured module's arguments and results, as plain data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, CaptureError, brief, suggest

Template = dict[str, Any]
"""A tree as plain data: {"leaf": place}, {"constant": value}, or a "kind" with its "items" and, if it has, "keys"."""


class Record(dict[str, Any]):
    """A result with named fields, as transformers' `ModelOutput`: a dict that also has attributes and indices.

    Example:
        >>> result = Record(logits=1, cache=2)
        >>> result.logits, result[0], result["cache"]
        (1, 1, 2)
    """

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the result has no {name!r}{suggest(name, self)}")

    def __getitem__(self, key: Any) -> Any:
        return [*self.values()][key] if isinstance(key, (int, slice)) else super().__getitem__(key)


def _new_record(keys: tuple[str, ...], items: Sequence[Any]) -> Record:
    return Record(zip(keys, items, strict=True))


ops.register_node(
    Record,
    lambda record: ([*record.values()], tuple(record)),
    _new_record,
)


def leaves(template: Template, value: Any, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yields (leaf number, tensor, path) for each tensor in an argument that matches a template.

    Raises:
        ArgumentError: if a number, string or None is another one than at the capture.
        ArgumentTypeError: if the argument has another structure.
    """
    if "leaf" in template:
        yield template["leaf"], value, path
    elif "constant" in template:
        expected_constant = template["constant"]
        if value is not expected_constant and (
            type(value) is not type(expected_constant) or value != expected_constant
        ):
            raise ArgumentError(
                f"{path} was {expected_constant!r} when the model was captured, and is {brief(value)} now: capture it "
                f"again, because the program follows from such arguments"
            )
    else:
        yield from _inner_leaves(template, value, path)


def _inner_leaves(template: Template, value: Any, path: str) -> Iterator[tuple[int, Any, str]]:
    keys, items = template.get("keys"), template["items"]
    if keys is None:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise ArgumentTypeError(f"{path} must be a {template['kind']} of {len(items)}, not {brief(value)}")
        for i, item in enumerate(items):
            yield from leaves(item, value[i], f"{path}[{i}]")
    else:
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise ArgumentTypeError(f"{path} must be a dict with the keys {keys}, not {brief(value)}")
        for key, item in zip(keys, items, strict=True):
            yield from leaves(item, value[key], f"{path}[{key!r}]")


def build_tree(template: Template, values: Sequence[Any]) -> Any:
    """Builds the tree that a template describes, with values in the places of its leaves."""
    if "leaf" in template:
        return values[template["leaf"]]
    if "constant" in template:
        return template["constant"]
    items = [build_tree(item, values) for item in template["items"]]
    if template["kind"] == "record":
        return Record(zip(template["keys"], items, strict=True))
    if template["kind"] == "dict":
        return dict(zip(template["keys"], items, strict=True))
    return items if template["kind"] == "list" else tuple(items)


def has_leaves(template: Template) -> bool:
    """Returns whether a template has a leaf, that is a place for a tensor."""
    return "leaf" in template or any(map(has_leaves, template.get("items", ())))


class Signature:
    """The signature of a captured module: parameter names and the template of each argument.

    Args:
        names: the names of the parameters of `forward`, in their order.
        arguments: by the name of each argument that was given, its template.
    """

    def __init__(self, names: Sequence[str], arguments: Mapping[str, Template]) -> None:
        self.names, self.arguments = list(names), dict(arguments)

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[int, Any, str]]:
        """Returns (leaf number, tensor, path) for each tensor in the arguments of a call.

        Raises:
            ArgumentError: if an argument is missing, was not given at the capture, or has another constant.
            ArgumentTypeError: if an argument has another structure.
        """
        value_by_name = dict(zip(self._positional_names(len(args)), args, strict=True))
        for name in kwargs:
            if name in value_by_name:
                raise ArgumentError(f"argument {name!r} is given by place and by name")
        value_by_name |= kwargs
        for name, value in value_by_name.items():
            if name not in self.arguments and value is not None:
                raise ArgumentError(
                    f"the model was captured without the argument {name!r}{suggest(name, self.arguments)}; its "
                    f"arguments are {', '.join(self.arguments)}"
                )
        leaf_entries: list[tuple[int, Any, str]] = []
        for name, template in self.arguments.items():
            if name in value_by_name:
                leaf_entries += leaves(template, value_by_name[name], name)
            elif has_leaves(template):
                raise ArgumentError(f"argument {name!r} is missing")
        return leaf_entries

    def _positional_names(self, count: int) -> list[str]:
        return [self.names[i] if i < len(self.names) else f"*{i}" for i in range(count)]

    def to_data(self) -> dict[str, Any]:
        """Returns the signature as plain data."""
        return {"names": self.names, "arguments": self.arguments}

    @classmethod
    def from_data(cls, data: Any) -> "Signature":
        """Returns the signature that plain data describes.

        Raises:
            CaptureError: if the data is something else.
        """
        if not isinstance(data, dict) or not isinstance(data.get("arguments"), dict):
            raise CaptureError("the program has no signature")
        return cls([str(name) for name in data.get("names", ())], data["arguments"])
