"""Lazy imports of modules that few programs need, so that the others do not pay for them.

What few programs need is imported at its first use: modules that only bodies of ops call, the translation of errors,
the programs of optimizers, hints for unknown names. A test compares each name with the import beside it for type
checkers. On PyTorch the modules that an op may reach are imported before `torch.compile` may meet one, because it
cannot trace an import. To import the categories of ops themselves late would leave the table of all ops incomplete,
from which dispatch, protocol and checks derive.
"""

import importlib
from types import ModuleType
from typing import Any, ClassVar


class Deferred:
    """A stand-in for a module, which it imports when one of its attributes is first read.

    From then on its attributes are those of the module, in one dict, so that Python reads them without a call.
    """

    __slots__ = ("__dict__", "_module", "_name")

    made: "ClassVar[list[Deferred]]" = []  # noqa: RUF012  (ruff does not see ClassVar inside of quotes)

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None
        Deferred.made.append(self)

    def __getattr__(self, name: str) -> Any:
        # Keep the module, because torch.compile can trace an attribute but not an import. Do not take it from
        # sys.modules, where another thread may have put a module whose import has not finished.
        if self._module is None:
            _import_module(self)
        return getattr(self._module, name)


def _import_module(deferred: Deferred) -> None:
    """Imports the module behind a `Deferred`; as a method, it would hide an attribute of that module."""
    deferred._module = module_of(deferred._name)
    deferred.__dict__ = deferred._module.__dict__


def module_of(name: str) -> ModuleType:
    """Returns a module, and imports it if the program has not."""
    return importlib.import_module(name)


def import_now(package: str) -> None:
    """Imports a deferred module, or those of a package, so that `torch.compile` can trace their first use too."""
    first_unread = _LOOKED_AT.get(package, 0)
    while first_unread < len(Deferred.made):  # an import may make further ones
        made_count = len(Deferred.made)
        for deferred in Deferred.made[first_unread:made_count]:
            if f"{deferred._name}.".startswith(f"{package}."):
                _import_module(deferred)
        first_unread = _LOOKED_AT[package] = made_count


def import_what_ops_reach() -> None:
    """Imports the deferred modules that a call of an op may need, because `torch.compile` cannot trace an import."""
    for package in (
        "numpy",
        "emberharmony.backend.shared",
        "emberharmony.backend.torch.elementwise",
        "emberharmony.backend.torch.flow.programs",
        "emberharmony.ops",
        "emberharmony.transforms.trees",
    ):
        import_now(package)


_LOOKED_AT: dict[str, int] = {}
"""By package, how many of `Deferred.made` have been imported, or are of others; each `ops.compile` asks."""
