"""Warns when a model has got parameters that the optimizer which was made for it lacks."""

import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from emberharmony.core.errors import TrainingWarning

MODELS: WeakKeyDictionary[Any, Callable[[], Any]] = WeakKeyDictionary()
"""By optimizer, a weak reference to the model that it was made for, if it was given one; no part of its state."""


def warn_of_new_parameters(optimizer: Any, caller: str, names: list[str], stacklevel: int) -> None:
    """Warns, once for an optimizer, that its model has parameters which the optimizer lacks.

    Args:
        optimizer: lacks them.
        caller: who noticed, as `Adam.step()`.
        names: of the parameters.
        stacklevel: as of `warnings.warn`, counted from the caller of this function.
    """
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    MODELS.pop(optimizer, None)
    warnings.warn(
        f"{caller} does not change {', '.join(names[:4])}: the model got new parameters after the optimizer was made, "
        f"so make a new one, or use add_param_group({{'params': layer}})",
        TrainingWarning,
        stacklevel + 1,
    )
