"""The guards of compiled functions: what `torch.compile` looks at in each call to see whether its code still holds.

Dynamo guards whatever it reads while it traces. In a model over ops, half of that is this package: its functions, the
defaults of its ops, the constants of its modules. None of it changes, so looking at it in each call is only lost time.
"""

import re
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any

_DEFINITIONS = frozenset({"BUILTIN_MATCH", "CLASS_MATCH", "CLOSURE_MATCH", "FUNCTION_MATCH", "MODULE_MATCH"})
"""The kinds of guards that hold while a function, class or module is the one that was traced."""
_OWN = "__import_emberharmony_dot_"
_VARIABLE = r"G\['__import_emberharmony_dot_(?:backend_dot_\w+|core_dot_op_globals)'\]"
_CONSTANT = re.compile(_VARIABLE + r"\.(torch\.)?\w+(\[[^.]*\])?")
"""A variable of a module of the backends, or an item of it. An attribute may change, as in `_STATE.on`."""
_TABLE = re.compile(r".*" + _VARIABLE + r"\.(promotion|DTYPES|torch_dtypes)\b.*")
"""A table of dtypes. It is a cache that grows, but what a key stands for stays the same."""
_HELD = re.compile(r".*\._held")
"""The pair that a cell holds. It is replaced as a whole, and its items are guarded."""


def changing(guards: Sequence[Any]) -> list[bool]:
    """Returns for each guard whether it is needed, as the option `guard_filter_fn` of `torch.compile` asks."""
    modules = {guard.name for guard in guards if isinstance(guard.value, ModuleType) and _is_own(guard.value.__name__)}
    functions = {
        guard.name
        for guard in guards
        if isinstance(guard.value, FunctionType)
        and _is_own(guard.value.__module__)
        and (guard.name.rpartition(".")[0] in modules or guard.name.startswith("type("))
    }
    return [not _is_constant(guard, functions.__contains__) for guard in guards]


def _is_constant(guard: Any, is_own_function: Callable[[str], bool]) -> bool:
    name, kind = guard.name, guard.guard_type
    if kind in _DEFINITIONS:
        return _OWN in name or is_own_function(name)
    if ".__defaults__" in name or ".__kwdefaults__" in name:
        return is_own_function(re.split(r"\.__(?:kw)?defaults__", name)[0])
    if kind == "DUPLICATE_INPUT" and name.endswith(".__class__"):
        return True  # two names of one class
    if _TABLE.fullmatch(name) or _HELD.fullmatch(name):
        return True
    return _CONSTANT.fullmatch(name) is not None and not isinstance(guard.value, (list, dict, set))


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "emberharmony"
