"""Deprecation: a public name or parameter that will be removed still works, and warns with its successor.

`docs/stability.md` says for how long. A warning points at the line of the caller, because Python's default filter shows
only warnings about the user's own program.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.names.unknown_names import unknown_name_error

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")


def deprecated(advice: str, *, since: str, name: str = "") -> Callable[[C], C]:
    """Returns a decorator of a function or class that will be removed; each call warns.

    Args:
        advice: what to use in its place, as in "use ops.clip".
        since: the version that deprecates it.
        name: what the warning calls it; its qualified name by default.

    Example:
        >>> @deprecated("use clip", since="1.2")
        ... def limit(x): ...
    """

    def decorate(declared: Any) -> Any:
        warning_text = f"{name or declared.__qualname__} is deprecated since version {since}: {advice}"
        if isinstance(declared, type):
            original_init = declared.__init__  # type: ignore[misc]

            @functools.wraps(original_init)
            def warn_and_initialise(self: Any, *args: Any, **kwargs: Any) -> None:
                if type(self) is declared:
                    warnings.warn(warning_text, DeprecationWarning, stacklevel=2)
                original_init(self, *args, **kwargs)

            declared.__init__ = warn_and_initialise  # type: ignore[misc]
            declared.__deprecated__ = warning_text  # type: ignore[attr-defined]
            return declared

        @functools.wraps(declared)
        def call_with_warning(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(warning_text, DeprecationWarning, stacklevel=2)
            return declared(*args, **kwargs)

        call_with_warning.__deprecated__ = warning_text  # type: ignore[attr-defined]
        return call_with_warning

    return decorate


def renamed_parameters(*, since: str, **renamed: str) -> Callable[[F], F]:
    """Returns a decorator of a function whose parameters have new names; the old keywords still work, and warn.

    Args:
        since: the version that renames them.
        **renamed: by their old names, the new ones.

    Raises:
        ArgumentTypeError: when the function is called with both names of a parameter.

    Example:
        >>> @renamed_parameters(since="1.2", dim="axis")
        ... def total(x, axis=None): ...
    """

    def decorate(fn: F) -> F:
        @functools.wraps(fn)
        def call_with_new_names(*args: Any, **kwargs: Any) -> Any:
            for old_keyword in renamed.keys() & kwargs.keys():
                new_keyword = renamed[old_keyword]
                if new_keyword in kwargs:
                    raise ArgumentTypeError(
                        f"{fn.__qualname__}() got both {new_keyword!r} and its old name {old_keyword!r}: give "
                        f"{new_keyword!r} alone"
                    )
                warning_text = (
                    f"the parameter {old_keyword!r} of {fn.__qualname__} is deprecated since version {since}: use "
                    f"{new_keyword!r}"
                )
                warnings.warn(warning_text, DeprecationWarning, stacklevel=2)
                kwargs[new_keyword] = kwargs.pop(old_keyword)
            return fn(*args, **kwargs)

        return call_with_new_names  # type: ignore[return-value]

    return decorate


RENAMED: dict[str, tuple[str, str]] = {}
"""By the old names of ops, such as "linalg.old", the new name in that namespace, and the version that renamed it."""


def op_of_old_name(module: str, name: str) -> Any:
    """Returns the op that had an old name in `ops` or one of its namespaces, and warns that the name is deprecated.

    Args:
        module: the module of the namespace.
        name: the name that it lacks.

    Raises:
        AttributeError: if the name is not an old one; the message has a hint.
    """
    namespace_name = module.removeprefix("emberharmony.ops").lstrip(".")
    new_name, since_version = RENAMED.get(f"{namespace_name}.{name}" if namespace_name else name, ("", ""))
    if not new_name:
        raise unknown_name_error(module, name)
    warning_text = f"{module}.{name} is deprecated since version {since_version}: use {new_name}"
    warnings.warn(warning_text, DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new_name)
