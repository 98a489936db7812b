"""The choice of the guards of compiled functions, which `torch.compile` checks in each call.

Dynamo guards whatever it reads while it traces. In a model over ops, two thirds of that are this package: its
functions, its classes, the declarations of its ops, the constants of its modules. None of it changes, so looking at it
in each call is only lost time.

Of 752 things that a GPT is guarded by, 587 are left out. The other 165 are what users can change: tensors, attributes
of modules, their own functions, classes and defaults, the default float, the device; each has a test. They take 7.4 µs
where nothing runs between, and the guards of the same model of `torch.nn` 5.4.
"""

import re
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any

from emberharmony.core.registry import OPS

_DEFINITIONS = frozenset({"BUILTIN_MATCH", "CLASS_MATCH", "CLOSURE_MATCH", "FUNCTION_MATCH", "MODULE_MATCH"})
"""The kinds of guards that hold while a function, class or module is the one that was traced."""
_EQUAL = frozenset({"CONSTANT_MATCH", "EQUALS_MATCH"})
"""The kinds of guards that hold while something is equal to what was traced."""
_OWN = "__import_emberharmony_dot_"
_VARIABLE = r"G\['__import_emberharmony_dot_(?:backend_dot_\w+|core_dot_op_globals)'\]"
_CONSTANT = _VARIABLE + r"\.(torch\.)?\w+(\[[^.]*\])?"
"""A variable of a module of the backends, or an item of it. An attribute may change, as in `_STATE.on`."""
_TABLE = r".*" + _VARIABLE + r"\.(promotion|DTYPES|SIGNED|torch_dtypes)\b.*"
"""A table of dtypes. It is a cache that grows, but what a key stands for stays the same."""
_DECLARATION = r"G\['__import_emberharmony_dot_core_dot_dispatch'\]\.OPS(?:\['(\w+)'\].*)?"
"""The declaration of an op, which dispatch reads where it converts arguments."""
_HELD = r".*\._held"
"""The pair that a cell holds. It is replaced as a whole, and its items are guarded."""


def needed_guards(guards: Sequence[Any]) -> list[bool]:
    """Returns for each guard whether it is needed, as the option `guard_filter_fn` of `torch.compile` asks."""
    module_names = {
        guard.name for guard in guards if isinstance(guard.value, ModuleType) and _is_of_package(guard.value.__name__)
    }
    class_names = {
        f"type({guard.name})" for guard in guards if guard.has_value and _is_of_package(type(guard.value).__module__)
    }
    function_names = {
        guard.name
        for guard in guards
        if isinstance(guard.value, FunctionType)
        and _is_of_package(guard.value.__module__)
        and guard.name.rpartition(".")[0] in module_names | class_names
    }
    matched_names = {guard.name for guard in guards if guard.guard_type in ("MODULE_MATCH", "TENSOR_MATCH")}
    equal_names: set[str] = set()
    needed_flags = []
    for guard in guards:
        is_constant = _is_constant(guard, function_names.__contains__) or _is_implied(guard, matched_names)
        if guard.guard_type in _EQUAL:
            is_constant = is_constant or guard.name in equal_names
            equal_names.add(guard.name)
        needed_flags.append(not is_constant)
    return needed_flags


def _is_constant(guard: Any, is_own_function: Callable[[str], bool]) -> bool:
    """Returns whether the object that a guard checks never changes."""
    name, guard_type = guard.name, guard.guard_type
    if guard_type in _DEFINITIONS:
        return _OWN in name or is_own_function(name)
    if ".__defaults__" in name or ".__kwdefaults__" in name:
        return is_own_function(re.split(r"\.__(?:kw)?defaults__", name)[0])
    if guard_type == "NOT_PRESENT_IN_GENERIC_DICT":
        # Python looks for `__call__` in the class alone. No user gives an object a private method of this package.
        attribute = _guard_argument(guard, "attr")
        if attribute == "__call__" or (attribute.startswith("_") and _is_of_package(type(guard.value).__module__)):
            return True
    if guard_type in ("DICT_CONTAINS", "DICT_NOT_CONTAINS") and name.startswith("dict(type("):
        return _is_of_package(str(guard.value.get("__module__")))
    if guard_type == "HASATTR" and isinstance(guard.value, type):
        return _is_of_package(guard.value.__module__)
    declaration_match = re.fullmatch(_DECLARATION, name)
    if declaration_match is not None:
        return declaration_match[1] is None or _is_of_package(OPS[declaration_match[1]].declared.__module__)
    if re.fullmatch(_TABLE, name) or re.fullmatch(_HELD, name):
        return True
    return re.fullmatch(_CONSTANT, name) is not None and not isinstance(guard.value, (list, dict, set))


def _is_implied(guard: Any, known_names: set[str]) -> bool:
    """Returns whether other guards, of modules and tensors of these names, make a guard superfluous."""
    name = guard.name
    if name.endswith("._held[1]"):
        # A parameter's tensor, which is guarded, belongs to all backend objects of the library, whichever made it.
        return f"{name[:-3]}[0]" in known_names
    if guard.guard_type != "DUPLICATE_INPUT":
        return False
    if name.endswith(".__class__"):
        return True  # two names of one class
    first_name = _guard_argument(guard, "source_b").name
    is_own_module = isinstance(guard.value, ModuleType) and name.startswith("G['" + _OWN)
    return is_own_module and (first_name in known_names or first_name.startswith("G['" + _OWN))


def _guard_argument(guard: Any, name: str) -> Any:
    """Returns an argument with which Dynamo makes a guard: an attribute's name, or the source of the same object."""
    create_function = guard.orig_guard.create_fn
    return create_function.keywords[name] if name in create_function.keywords else create_function.args[0]


def _is_of_package(module: str) -> bool:
    return module.partition(".")[0] == "emberharmony"
