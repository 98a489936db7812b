"""Adds to an error where it was raised, as other packages report it: `nn` names the layer of the model.

Only an error that is raised asks for its location, so calls without errors cost nothing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E", bound=Exception)

LOCATORS: list[Callable[[], str]] = []
"""Functions that read the frames of their callers and return a location such as "blocks.0.linear of Net", or ""."""


def add_location(error: E) -> E:
    """Returns an error with its location at the end of its message; one that has a location already stays as it is."""
    if LOCATORS and not hasattr(error, "location"):
        location = next(filter(None, (locator() for locator in LOCATORS)), "")
        if location:
            error.location = location  # type: ignore[attr-defined]
            error.args = (f"{error.args[0] if error.args else ''} (in {location})", *error.args[1:])
    return error


TRACKERS: list[Any] = []
"""Objects whose `start()` makes the calls of modules tell `transforms.observe` where they are; `stop()` ends it."""

MADE: list[Callable[[type], None]] = []
"""Functions that are called with each new class of modules, while ops are observed."""
