"""The base of activation layers, which writes their `__init__` and `__call__` from their annotated options.

Each subclass without parameters is one row: its name, the function of `ops` that it calls, and the options of that
function with their defaults, in the order of the constructor of `torch.nn`.
"""

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature
from operator import attrgetter
from typing import Any, dataclass_transform

from emberharmony.core.errors import ArgumentTypeError
from emberharmony.nn.module import Module
from emberharmony.nn.options import number_option


@dataclass_transform(eq_default=False)
class Activation(Module):
    """A layer without parameters that calls one function; the annotated attributes of a subclass are its options.

    Shape: that of the input, if the subclass does not say otherwise.
    """

    def __init_subclass__(cls, op: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        if op is not None:
            annotation_by_name = vars(cls).get("__annotations__", {})
            default_by_name = {name: vars(cls).get(name, Argument.empty) for name in annotation_by_name}
            cls.__init__ = _constructor_of_options(annotation_by_name, default_by_name)  # type: ignore[method-assign]
            cls.__call__ = _make_call_method(op, tuple(annotation_by_name))  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)  # after `__call__` is set, as `ops.record` may wrap it here

    def check_options(self) -> None:
        """Checks the values of the options after the constructor has stored them; subclasses may define it."""


def _constructor_of_options(kinds: dict[str, Any], options: dict[str, Any]) -> Callable[..., None]:
    """Returns an `__init__` that takes the options and keeps them in attributes."""
    parameters = [
        Argument(name, Argument.POSITIONAL_OR_KEYWORD, default=default, annotation=kinds[name])
        for name, default in options.items()
    ]
    signature = Signature(parameters)

    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound_arguments = signature.bind(*args, **kwargs)
        except TypeError as error:
            name, accepted_options = type(self).__name__, ", ".join(options) or "no option"
            raise ArgumentTypeError(
                f"{name}(): {error}; it takes {accepted_options}, and a layer its input: nn.{name}()(x)"
            ) from None
        bound_arguments.apply_defaults()
        for name, value in bound_arguments.arguments.items():
            setattr(self, name, number_option(name, value) if kinds[name] is float else value)
        self.check_options()

    self_parameter = Argument("self", Argument.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = Signature([self_parameter, *parameters])  # type: ignore[attr-defined]
    return construct


def _make_call_method(op: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Returns a `__call__` that calls a function with the input and the options."""
    if not names:
        call_method = lambda self, x: op(x)
    elif len(names) == 1:
        (name,) = names
        call_method = lambda self, x: op(x, getattr(self, name))
    else:
        get_options = attrgetter(*names)
        call_method = lambda self, x: op(x, *get_options(self))
    call_method.__name__ = call_method.__qualname__ = "__call__"  # the name that Python shows in its errors
    return call_method
