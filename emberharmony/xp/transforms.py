"""Functions of a namespace that take functions, or trees of arrays: gradients, `vmap`, `compile`, loops, trees.

Such a function of `ops` gets tensors in the places of arrays. A function of the user's gets arrays, and gives tensors
to the function that calls it. So results have the same structure as with tensors, however transforms are nested.
"""

import functools
from collections.abc import Callable
from typing import Any

from emberharmony.core import selection
from emberharmony.xp.array import ArrayBase


def function_on_trees(kit: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of `ops` on trees, changed so that it takes and returns arrays of a backend.

    Args:
        function: one of `ops`, or a function that such a function returned.
    """

    @functools.wraps(function, updated=())
    def run_on_arrays(*args: Any, **kwargs: Any) -> Any:
        kit.join()
        lowered_args = [_lower_argument(kit, x) for x in args]
        lowered_kwargs = {name: _lower_argument(kit, x) for name, x in kwargs.items()}
        if selection.is_active(kit.bound):
            result = function(*lowered_args, **lowered_kwargs)
        else:
            with selection.Override(kit.backend):
                result = function(*lowered_args, **lowered_kwargs)
        # A function that is returned may keep the arguments.
        if any(map(_is_function, result if type(result) is tuple else (result,))):
            kit.memory.mark_kept(*args, *kwargs.values())
        return _lift_result(kit, result)

    return run_on_arrays


def _lower_argument(kit: Any, argument: Any) -> Any:
    """Returns an argument with tensors in the places of arrays, and functions that take and return tensors."""
    if isinstance(argument, (list, tuple)) and any(map(_is_function, argument)):
        return argument.__class__([_lower_argument(kit, x) for x in argument])
    if not _is_function(argument):
        return kit.lower(argument)

    @functools.wraps(argument, updated=())
    def call_on_arrays(*args: Any, **kwargs: Any) -> Any:
        lifted_arguments = [kit.lift_shared(x) for x in args]
        return kit.lower(argument(*lifted_arguments, **{name: kit.lift_shared(x) for name, x in kwargs.items()}))

    return call_on_arrays


def _is_function(value: Any) -> bool:
    """Returns whether a value is a function to be called with trees; layers, classes and arrays are not."""
    return callable(value) and not isinstance(value, (ArrayBase, type)) and not hasattr(value, "parameters")


def _lift_result(kit: Any, returned_value: Any) -> Any:
    """Returns the result of a function of trees with arrays in the places of tensors, whose memory may be shared."""
    if type(returned_value) is tuple:
        return tuple(_lift_result(kit, x) for x in returned_value)
    return function_on_trees(kit, returned_value) if _is_function(returned_value) else kit.lift_shared(returned_value)
