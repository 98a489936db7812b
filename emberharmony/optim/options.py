"""The checks of an optimizer's options."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest


class Limit(NamedTuple):
    """What an option may be: in words, and as a test that returns whether a value is allowed."""

    text: str
    allows: Callable[[Any], bool]


FLAG = Limit("True or False", lambda value: isinstance(value, bool))
AT_LEAST_0 = Limit("a number >= 0", lambda value: value >= 0)
ANY_NUMBER = Limit("a number", lambda value: float(value) == float(value))
SHARE = Limit("a number in [0, 1]", lambda value: 0 <= value <= 1)
DECAY = Limit("a number in [0, 1)", lambda value: 0 <= value < 1)
DECAYS = Limit("two numbers in [0, 1)", lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value))
RATE = Limit("a number >= 0, or a schedule", lambda value: callable(value) or value >= 0)


def one_of(*values: Any) -> Limit:
    """Returns the limit of an option that is one of a few values."""
    return Limit(" or ".join(map(repr, values)), lambda value: value in values)


def require_allowed(head: str, options: Mapping[str, Any], limits: Mapping[str, Limit]) -> dict[str, Any]:
    """Returns the options of a group, with a number for a learning rate that is a number of another library.

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
            raise ArgumentError(f"{head}there is no option {name!r}{suggest(name, limits)}")
    for name, value in options.items():
        message = f"{head}{name} is {brief(value)}, expected {limits[name].text}"
        try:
            allowed = bool(limits[name].allows(value))
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(message) from error
        if not allowed:
            raise ArgumentError(message)
    return {name: _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    """Returns a number of NumPy as one of Python, because it would promote a tensor of fewer bits."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return value.item() if hasattr(value, "item") else value
