"""The hooks of Python and IPython that show errors and warnings.

What they need, `core.display`, is imported when something is shown.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

from emberharmony.core.deferred import Deferred

tracebacks: Any = Deferred("emberharmony.core.display.tracebacks")
_INSTALLED = "_emberharmony"
"""The attribute that marks a hook of ours."""


def install_hooks() -> None:
    """Replaces the functions by which Python and IPython show errors and warnings by those of `tracebacks`.

    The import of `ops` calls it. The hooks that were there before are called by ours, so other tools keep theirs.
    """
    _hook_function(
        sys, "excepthook", lambda shown: lambda kind, error, trace: tracebacks.show_error(shown, error, trace)
    )
    _hook_function(warnings, "showwarning", lambda shown: lambda *given: tracebacks.show_warning(shown, *given))
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        _hook_function(
            shell.InteractiveTB,
            "structured_traceback",
            lambda shown: lambda *given, **options: tracebacks.lines_of_error(shown, *given, **options),
        )


def _hook_function(owner: Any, name: str, hook: Callable[[Any], Any]) -> None:
    """Replaces a function by `hook(function)`, unless that has been done."""
    original = getattr(owner, name)
    if not hasattr(original, _INSTALLED):
        hooked_function = hook(original)
        setattr(hooked_function, _INSTALLED, True)
        setattr(owner, name, hooked_function)
