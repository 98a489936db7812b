"""The layouts of weights: the names and the order of axes that a library gives to the tensors of its layers."""

from typing import Any

from emberharmony.core.errors import ArgumentError, brief, suggest

LAYOUTS = ("torch", "mlx", "keras")
"""The tags of the layouts."""


def require_layout(layout: Any, argument: str = "layout") -> None:
    """Checks that an argument is the tag of a layout.

    Raises:
        ArgumentError: if not.
    """
    if layout not in LAYOUTS:
        hint = suggest(layout, LAYOUTS)
        names_text = ", ".join(map(repr, LAYOUTS))
        raise ArgumentError(f"{argument} must be one of {names_text}, got {brief(layout)}{hint}")
