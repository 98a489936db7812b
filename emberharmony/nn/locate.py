"""Finds the layer in which an error is raised, by looking at the frames of the call stack.

A layer does not know its name in a model, and hooks that tell it would cost every call. So only an error that is raised
asks: the first argument of the innermost frame that is a module is the layer, that of the outermost is the model, and
the walk has the name of the layer in it.
"""

import sys
from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import EmberError
from emberharmony.core.state.locations import LOCATORS, TRACKERS, add_location
from emberharmony.nn.walk import Holder, named_modules

if TYPE_CHECKING:
    from emberharmony.nn import calls
else:
    calls = Deferred("emberharmony.nn.calls")


def layer_location() -> str:
    """Returns the innermost layer being called or made, and its model, as in "blocks.0.linear of Net"; or ""."""
    modules: list[Holder] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_argcount and (not modules or code.co_varnames[0] == "self"):
            first_argument = frame.f_locals.get(code.co_varnames[0])
            if isinstance(first_argument, Holder):
                modules.append(first_argument)
        frame = frame.f_back  # type: ignore[assignment]
    if not modules:
        return ""
    inner_module, outer_module = modules[0], modules[-1]
    try:
        name = next((name for name, module in named_modules(outer_module) if module is inner_module), "")
    except EmberError:  # a model that contains itself has no names
        name = ""
    class_name, outer_class_name = type(inner_module).__name__, type(outer_module).__name__
    if name:
        return f"{name} of {outer_class_name}, {_indefinite_article(class_name)} {class_name}"
    # While a layer is constructed it has no name in its model yet.
    return class_name if inner_module is outer_module else f"{class_name} of {outer_class_name}"


def _indefinite_article(kind: str) -> str:
    """Returns the indefinite article of the name of a class: an Embedding, an LSTM, a Linear."""
    is_spelled = kind[1:2].isupper()  # names such as LSTM are spelled letter by letter
    return "an" if kind[0] in ("AEFHILMNORSX" if is_spelled else "AEIOU") else "a"


def fault(error: EmberError) -> EmberError:
    """Returns an error that a layer is about to raise, with the layer's name in the model at the end of its message."""
    return add_location(error)


class _Tracker:
    """A tracker that wraps the calls of modules while ops are observed; it imports the code for it when needed."""

    def start(self) -> None:
        """Starts wrapping the calls of modules."""
        calls.CALLS.start()

    def stop(self) -> None:
        """Stops wrapping the calls of modules."""
        calls.CALLS.stop()


LOCATORS.append(layer_location)
TRACKERS.append(_Tracker())
observe = sys.modules.get("emberharmony.transforms.observe")
if observe is not None and observe.is_observing():  # an observation is already open at this import
    TRACKERS[-1].start()
