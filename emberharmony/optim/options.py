"""The options of an optimizer: its annotated fields, and the checks of their values."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, dataclass_transform

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest
from emberharmony.optim.schedules import Rate

Kind = TypeVar("Kind", bound=type)


class Limit(NamedTuple):
    """The allowed values of an option: a text for messages, and a function that tests a value."""

    text: str
    allows: Callable[[Any], bool]


FLAG = Limit("True or False", lambda value: isinstance(value, bool))
AT_LEAST_0 = Limit("a number >= 0", lambda value: value >= 0)
ANY_NUMBER = Limit("a number", lambda value: float(value) == float(value))
SHARE = Limit("a number in [0, 1]", lambda value: 0 <= value <= 1)
DECAYS = Limit("two numbers in [0, 1)", lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value))
RATE = Limit("a number >= 0, or a schedule", lambda value: callable(value) or value >= 0)

LearningRate: TypeAlias = Annotated[Rate, RATE]
NotNegative: TypeAlias = Annotated[float, AT_LEAST_0]
AnyNumber: TypeAlias = Annotated[float, ANY_NUMBER]
Share: TypeAlias = Annotated[float, SHARE]
Decays: TypeAlias = Annotated[tuple[float, float], DECAYS]


@dataclass_transform(eq_default=False)
def add_init_and_limits(kind: Kind) -> Kind:
    """Adds `__init__` and `limits` to an optimizer class by its annotated fields; a class decorator.

    A field is annotated with `InitVar` of its type, which says its limit by `Annotated`; a boolean may be True or
    False. The first field is `params`. What follows `_: KW_ONLY` is taken by keyword only.
    """
    annotation_by_name: dict[str, Any] = kind.__annotations__
    option_fields = {
        name: field
        for name, field in annotation_by_name.items()
        if not (isinstance(field, InitVar) or field is KW_ONLY)
    }
    type_by_name = {name: field.type for name, field in annotation_by_name.items() if isinstance(field, InitVar)}
    kind.limits = {  # type: ignore[attr-defined]
        name: _limit_of_annotation(annotation) for name, annotation in type_by_name.items() if name != "params"
    }
    parameter_names = [name for name in annotation_by_name if name not in option_fields]
    kind.__init__ = _Constructor(kind, parameter_names, type_by_name, dict(vars(kind)))  # type: ignore[misc]
    for name in type_by_name.keys() & vars(kind).keys():
        delattr(kind, name)
    kind.__annotations__ = option_fields
    return kind


def _limit_of_annotation(annotation: Any) -> Limit:
    """Returns the limit of an option from the annotation of its field."""
    limit: Limit = FLAG if annotation is bool else annotation.__metadata__[0]
    return limit


class _Constructor:
    """A generated `__init__` with a parameter for each field, which passes all of them to the base's `__init__`.

    It is written as a text, as that of a dataclass is, so that Python itself checks and names the arguments; and at its
    first use, because to write those of all optimizers would cost the import 1.3 ms.
    """

    def __init__(self, kind: type, names: list[str], types: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self._kind, self._names, self._types = kind, names, types
        self._defaults = {f"default_{name}": values[name] for name in types if name in values}

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._kind.__init__ = construct = self._write_constructor()  # type: ignore[misc]
        return construct.__get__(instance, owner)

    def _write_constructor(self) -> Any:
        parameter_texts = []
        for name in self._names:
            default_name = f"default_{name}"
            argument_text = f"{name}={default_name}" if default_name in self._defaults else name
            parameter_texts.append(argument_text if name in self._types else "*")
        arguments_text = ", ".join(f"{name}={name}" for name in self._types)
        namespace: dict[str, Any] = {"kind": self._kind, "__name__": self._kind.__module__, **self._defaults}
        exec(
            f"def __init__(self, {', '.join(parameter_texts)}):\n    super(kind, self).__init__({arguments_text})\n",
            namespace,
        )
        construct = namespace["__init__"]
        class_by_name = {
            name: getattr(annotation, "__origin__", annotation) for name, annotation in self._types.items()
        }
        construct.__annotations__ = {**class_by_name, "return": None}
        construct.__qualname__ = f"{self._kind.__qualname__}.__init__"
        return construct


def limit_to_values(*values: Any) -> Limit:
    """Returns the limit of an option that is one of a few values."""
    return Limit(" or ".join(map(repr, values)), lambda value: value in values)


def checked_options(head: str, options: Mapping[str, Any], limits: Mapping[str, Limit]) -> dict[str, Any]:
    """Checks the options of a group against their limits, and returns them with NumPy numbers as Python numbers.

    Args:
        head: the beginning of a message, such as `"AdamW(): "`.
        options: all options of the optimizer.
        limits: what each may be.

    Raises:
        ArgumentError: if an option is unknown, or its value is not allowed.
        ArgumentTypeError: if the type of a value is wrong.
    """
    for name in options:
        if name not in limits:
            hint = suggest(name, limits) or f" (known: {', '.join(limits)})"
            raise ArgumentError(f"{head}there is no option {name!r}{hint}")
    for name, value in options.items():
        message = f"{head}{name} is {brief(value)}, expected {limits[name].text}"
        try:
            is_allowed = bool(limits[name].allows(value))
        except (TypeError, ValueError) as error:
            way_out = f"; float({name}) makes a number of a text" if isinstance(value, str) else ""
            raise ArgumentTypeError(f"{message}{way_out}") from error
        if not is_allowed:
            raise ArgumentError(message)
    return {name: _python_number(value) for name, value in options.items()}


def _python_number(value: Any) -> Any:
    """Converts a NumPy number to a Python number, because NumPy's would promote tensors of narrower dtypes."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_python_number, value))
    return value.item() if hasattr(value, "item") else value
