"""Evidence for which of two modules with different formulas is wrong: their options, and modules of their class."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from emberharmony.testing.differences.records import Host
from emberharmony.testing.differences.runs import Stopped
from emberharmony.testing.models.alignment import Side
from emberharmony.testing.models.arrays import arrays_in, best_fit
from emberharmony.testing.models.runs import Model
from emberharmony.testing.models.watching import ENTER, Captured, Event

_OTHER_NAMES = {
    "epsilon": "eps",
    "varianceepsilon": "eps",
    "layernormeps": "eps",
    "rmsnormeps": "eps",
    "nheads": "numheads",
    "heads": "numheads",
    "ropetheta": "base",
    "ropebase": "base",
    "theta": "base",
    "approximate": "approximate",
    "approx": "approximate",
    "rate": "p",
    "kernelsize": "kernelsize",
    "strides": "stride",
    "dilationrate": "dilation",
}
"""The usual names of options that another library names differently, by its names without underscores."""

_BY_MODE = re.compile("BatchNorm|InstanceNorm|Dropout")
"""The layers for which it matters whether the model is in training."""

_UNLIKE = 1e-7
"""Two modules compute the same formula if their results in float64 differ by no more than this share."""


_MATES = 3
"""The largest number of other modules of a class that are tried."""

_TELLING = (("unlike", "equal"), ("odd", "equal"), ("odd", ""))
"""The findings about a wrong module and its counterpart, each compared with other modules of its class."""


class Evidence(NamedTuple):
    """The evidence that a side is wrong: the module, the side, the options that differ, and the reason.

    Attributes:
        blamed: the call that is wrong.
        side: 0 or 1, or None if nothing tells.
        why: what tells.
        options: the options that differ, as pairs of values.
        inner: the module of the side that is wrong and runs before the call, if it has no counterpart; or "".
    """

    blamed: Event
    side: int | None
    why: str
    options: dict[str, tuple[Any, Any]]
    inner: str = ""


def evidence(
    pair: tuple[Side, Side],
    models: tuple[Model, Model],
    names: Mapping[str, str],
    calls: Sequence[Event],
    calls_between: Sequence[Sequence[str]],
) -> Evidence:
    """Returns the evidence for which of two corresponding modules that differ in float64 is wrong.

    Args:
        pair: the models with their modules.
        models: the models with their inputs.
        names: the names in the second model by those in the first.
        calls: the calls in the first model that may be wrong, the likeliest first.
        calls_between: of each model, the modules without a counterpart that may be wrong too.
    """
    options_by_call = {call: _differing_options(pair, (call.path, names[call.path])) for call in calls}
    for call in calls:
        odd_options = [
            _odd_option(side, path, options_by_call[call])
            for side, path in zip(pair, (call.path, names[call.path]), strict=True)
        ]
        for side in (0, 1):
            name = odd_options[side]
            if name is not None and odd_options[1 - side] is None:
                option_by_name = {name: options_by_call[call][name]} if name in options_by_call[call] else {}
                reason = f"the other modules of its class, whose {name} is another"
                return Evidence(call, side, reason, option_by_name or options_by_call[call])
    for side in (0, 1):
        for path in calls_between[side]:
            name = _odd_option(pair[side], path, {})
            if name is not None:
                return Evidence(calls[0], side, f"the other modules of its class, whose {name} is another", {}, path)
    for call in calls:
        formula_differences = [
            _formula_finding(side, model, call._replace(path=path))
            for side, model, path in zip(pair, models, (call.path, names[call.path]), strict=True)
        ]
        for side in (0, 1):
            if (formula_differences[side], formula_differences[1 - side]) in _TELLING:
                reason = "the other modules of its class, which compute another formula"
                return Evidence(call, side, reason, options_by_call[call])
    return Evidence(calls[0], None, "", options_by_call[calls[0]])


def _differing_options(pair: tuple[Side, Side], paths: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Returns the options that differ of two modules, as pairs of values."""
    first_options, second_options = (_normalized_options(side, path) for side, path in zip(pair, paths, strict=True))
    return {
        name: (value, second_options[name])
        for name, value in first_options.items()
        if name in second_options and not _are_options_equal(value, second_options[name])
    }


def _normalized_options(side: Side, path: str) -> dict[str, Any]:
    options = side.adapter.options(side.modules[path])
    value_by_name: dict[str, Any] = {}
    for name, value in options.items():
        value_by_name[_normalized_name(name)] = value
    if not _BY_MODE.search(side.kind(path)):
        value_by_name.pop("training", None)
    return value_by_name


def _normalized_name(name: str) -> str:
    normalized_name = re.sub(r"[_\s]", "", name).lower()
    return _OTHER_NAMES.get(normalized_name, normalized_name)


def _are_options_equal(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        option_lists = [list(x) if isinstance(x, (tuple, list)) else [x] for x in (a, b)]
        length = max(map(len, option_lists))
        first, second = (x * length if len(x) == 1 else x for x in option_lists)
        return first == second
    return bool(a == b) or {str(a).lower(), str(b).lower()} in ({"none", "false"}, {"none"}, {"false"})


def _modules_of_same_class(side: Side, path: str) -> Iterator[str]:
    """Yields the other modules of the class of one that have the same modules in them."""
    module_class, inner_paths = type(side.modules[path]), side.submodules(path).keys()
    paths_of_class = (name for name, module in side.modules.items() if type(module) is module_class and name != path)
    yield from (name for name in paths_of_class if side.submodules(name).keys() == inner_paths)


def _odd_option(side: Side, path: str, differing_options: Mapping[str, Any]) -> str | None:
    """Returns an option in which a module differs from all others of its class, which agree; or None."""
    own_options = _normalized_options(side, path)
    other_options = [_normalized_options(side, name) for name in _modules_of_same_class(side, path)]
    if not other_options:
        return None
    option_names = [*differing_options, *(name for name in own_options if name not in differing_options)]
    for name in option_names:
        sibling_values = [options[name] for options in other_options if name in options]
        if name not in own_options or len(sibling_values) != len(other_options):
            continue
        are_equal = all(_are_options_equal(value, sibling_values[0]) for value in sibling_values)
        if not are_equal or _are_options_equal(own_options[name], sibling_values[0]):
            continue
        if (
            name in differing_options
            or len(sibling_values) > 1
            or _is_default(side.modules[path], name, sibling_values[0])
        ):
            return name
    return None


def _is_default(module: Any, name: str, value: Any) -> bool:
    """Returns whether an option has the value that the module's class takes when the option is not given."""
    try:
        parameters = inspect.signature(type(module).__init__).parameters
    except (TypeError, ValueError):
        return False
    default_by_name = {
        _normalized_name(parameter_name): parameter.default for parameter_name, parameter in parameters.items()
    }
    return name in default_by_name and _are_options_equal(default_by_name[name], value)


def _formula_finding(side: Side, model: Model, event: Event) -> str:
    """Returns how the formula of a module differs from those of others of its class with its tensors.

    It is "equal" to one, "unlike" one, or "odd": unlike several that agree; "" if it is unknown.
    """
    tensors = _tensors_inside(side, event.path)
    captured_call: Captured | None = None
    unlike_results: list[Host] = []
    for alternatives in _similar_modules(side, event.path, tensors):
        if captured_call is None:
            captured_call = Captured(side.adapter, model.wide, event._replace(place=ENTER))
            with contextlib.suppress(Stopped):
                model.run(captured_call, model.wide)
            if captured_call.arguments is None:
                return ""
        try:
            own_results, other_results = _results_of_both(
                model, captured_call.arguments, side.modules[event.path], alternatives, tensors
            )
        except Exception:  # noqa: BLE001  (a module that cannot be called alone, or takes no other sizes, tells nothing)
            continue
        if _are_equal(own_results, other_results):
            return "equal"
        unlike_results.append(other_results)
        if len(unlike_results) == _MATES:
            break
    if any(not _are_equal(unlike_results[0], other) for other in unlike_results):
        return ""
    return "odd" if len(unlike_results) > 1 else "unlike" if unlike_results else ""


def _are_equal(one: Host, other: Host) -> bool:
    best_equal_fit = best_fit(one, other)
    return best_equal_fit is not None and best_equal_fit[0] <= _UNLIKE


def _tensors_inside(side: Side, path: str) -> dict[str, dict[str, Any]]:
    return {
        name: side.adapter.own(submodule)
        for name, submodule in {"": side.modules[path], **side.submodules(path)}.items()
    }


def _similar_modules(side: Side, path: str, tensors: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the parts of modules of the class of one, those with tensors of its shapes first.

    Most layers compute with the tensors that they are given, whatever their sizes are. So modules of other sizes are
    of use too, if their options that are no sizes are equal.
    """
    tensor_names, tensor_shapes = _map_tensors(tensors, lambda _: ()), _map_tensors(tensors, lambda x: tuple(x.shape))
    sibling_tensors = [(name, _tensors_inside(side, name)) for name in _modules_of_same_class(side, path)]
    similar_names = [
        name for name, tensors in sibling_tensors if _map_tensors(tensors, lambda x: tuple(x.shape)) == tensor_shapes
    ]
    replacements = [
        name
        for name, tensors in sibling_tensors
        if name not in similar_names and _map_tensors(tensors, lambda _: ()) == tensor_names
    ]
    for name in [
        *similar_names,
        *(name for name in replacements if _sizeless_options(side, name) == _sizeless_options(side, path)),
    ]:
        yield {"": side.modules[name], **side.submodules(name)}


def _map_tensors(tensors: Mapping[str, Mapping[str, Any]], form: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
    return {name: {key: form(x) for key, x in module_tensors.items()} for name, module_tensors in tensors.items()}


def _sizeless_options(side: Side, path: str) -> dict[str, dict[str, Any]]:
    """Returns the options of a module and of those in it that are no sizes."""
    submodule_by_path = {"": side.modules[path], **side.submodules(path)}
    return {
        name: {
            key: value
            for key, value in side.adapter.options(submodule).items()
            if isinstance(value, (bool, float, str))
        }
        for name, submodule in submodule_by_path.items()
    }


def _results_of_both(
    model: Model, arguments: Any, module: Any, other_modules: Mapping[str, Any], tensors: Mapping[str, Any]
) -> list[Host]:
    """Returns the results of a module, and of another one with the tensors of the first."""
    adapter = model.adapter
    args, kwargs = arguments
    tensors_by_name_before = {name: adapter.own(submodule) for name, submodule in other_modules.items()}
    wide_context = adapter.wide(model.model) if model.wide else contextlib.nullcontext()
    with adapter.keep_state(model.model), wide_context:
        call_result = adapter.call(module, args, kwargs)
        result_hosts = [adapter.host(next(arrays_in(call_result, adapter.is_array)))]
        try:
            for name, part in other_modules.items():
                adapter.put(part, tensors[name])
            other_result = adapter.call(other_modules[""], args, kwargs)
            result_hosts.append(adapter.host(next(arrays_in(other_result, adapter.is_array))))
        finally:
            for name, part in other_modules.items():
                adapter.put(part, tensors_by_name_before[name])
    return result_hosts
