"""Docstrings that are completed when somebody reads them, so that the import does not pay for it."""

from collections.abc import Iterable, Mapping
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, SupportsIndex

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.core.docstrings import completion
else:
    completion = Deferred("emberharmony.core.docstrings.completion")


class Docstring(str):
    """The docstring of an op, function, class or method as it was written; readers see it completed.

    `help`, `inspect.getdoc`, IPython, Sphinx and doctest begin with the expansion of tabs, and `print` asks for the
    `str`: both give the text with a description of each parameter (`completion`).

    Attributes:
        owner: what it describes: an `OpSpec`, a function, a class, or a class and the name of its method.
    """

    owner: Any

    def __str__(self) -> str:
        return completion.complete_docstring(self.owner)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        """Returns the completed text without tabs."""
        return str(self).expandtabs(tabsize)


def docstring(text: str | None, owner: Any) -> str | None:
    """Returns a docstring that is completed when it is read; None where Python keeps no docstrings."""
    if text is None:
        return None
    complete_text = Docstring(text)
    complete_text.owner = owner
    return complete_text


def document(value: Any) -> None:
    """Lets the docstring of a function of the package, or those of a class and its methods, be completed when read.

    Of a module that has no `__all__` it does so for what the module holds. A method of a backend, to which the first
    call of an op binds its name in the modules that import it, stays as it is.
    """
    if isinstance(value, ModuleType):
        # Not for the modules that it has imported: these import each other, and other packages.
        members = () if hasattr(value, "__all__") else tuple(vars(value).values())
        for member in members:
            if not isinstance(member, ModuleType):
                document(member)
        return
    if not str(getattr(value, "__module__", "")).startswith("emberharmony."):
        return
    if isinstance(value, type):
        if type(vars(value).get("__doc__")) is str:
            value.__doc__ = docstring(value.__doc__, value)
        for name, member in vars(value).items():
            function = getattr(member, "__func__", member)
            if name[0] != "_" and hasattr(function, "__code__") and type(function.__doc__) is str:
                function.__doc__ = docstring(function.__doc__, (value, name))
    elif hasattr(value, "__code__") and type(value.__doc__) is str and not isinstance(value, MethodType):
        value.__doc__ = docstring(value.__doc__, value)


def document_all(names: Iterable[str], scope: Mapping[str, Any]) -> None:
    """Completes the docstrings of the listed names that a module has."""
    for name in names:
        if name in scope:
            document(scope[name])
