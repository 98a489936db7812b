"""The namespaces of ops, such as `ops.linalg`: a module says the categories of the ops that are its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def fill_namespace(
    space: dict[str, Any],
    modules: Mapping[str, Mapping[str, Any]],
    categories: Sequence[str],
    *,
    without: Sequence[str] = (),
    also: Mapping[str, Any] | None = None,
) -> None:
    """Makes ops the names of a module, and hints at unknown names; a prefix that equals the module's name is dropped.

    So `random_normal` is `ops.random.normal`.

    Args:
        space: the module's `globals()`.
        modules: the ops by the module that declares them.
        categories: the modules whose ops it has, below `emberharmony.ops`.
        without: ops of these that it does not have.
        also: other ops and classes that it has.
    """
    module_name = space["__name__"]
    prefix = f"{module_name.rpartition('.')[2]}_"
    function_by_name = dict(also or {})
    for category in categories:
        for name, function in modules[f"emberharmony.ops.{category}"].items():
            if name not in without:
                function_by_name[name.removeprefix(prefix)] = function
    for name in [name for name in space if not name.startswith("__")]:
        del space[name]
    space.update(function_by_name)
    space["__all__"] = sorted(function_by_name)
    space["__getattr__"] = _module_getattr(module_name)


def _module_getattr(module: str) -> Callable[[str], object]:
    def get_by_old_name(name: str) -> object:
        """Returns what an old name stands for, with a warning; raises `AttributeError` with a hint for others."""
        from emberharmony.core.names.deprecation import op_of_old_name  # only old and unknown names need it

        return op_of_old_name(module, name)

    return get_by_old_name
