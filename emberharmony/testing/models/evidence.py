"""Which of two modules is wrong whose formulas differ: their options, and the modules of the same class beside them."""

import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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
"""The names of options by which another library calls them, without underscores."""

_BY_MODE = re.compile("BatchNorm|InstanceNorm|Dropout")
"""The layers for which it matters whether the model is in training."""

_UNLIKE = 1e-7
"""Two modules compute the same formula if their results in float64 differ by no more than this share."""


class Evidence(NamedTuple):
    """What tells which side is wrong.

    Attributes:
        side: 0 or 1, or None if nothing tells.
        why: what tells.
        options: the options that differ, as pairs of values.
    """

    side: int | None
    why: str
    options: dict[str, tuple[Any, Any]]


def evidence(pair: tuple[Side, Side], models: tuple[Model, Model], names: Mapping[str, str], blamed: Event) -> Evidence:
    """Returns what tells which of two modules is wrong that differ in float64.

    Args:
        pair: the models with their modules.
        models: the models with their inputs.
        names: the names in the second model by those in the first.
        blamed: the call in the first model.
    """
    paths = blamed.path, names[blamed.path]
    options = [_options(side, path) for side, path in zip(pair, paths, strict=True)]
    differing = {
        name: (options[0][name], options[1][name])
        for name in options[0]
        if name in options[1] and not _equal(options[0][name], options[1][name])
    }
    odd = [_odd_option(side, path, differing) for side, path in zip(pair, paths, strict=True)]
    for side in (0, 1):
        name = odd[side]
        if name is not None and odd[1 - side] is None:
            only = {name: differing[name]} if name in differing else {}
            return Evidence(side, f"the other modules of its class, whose {name} is another", only or differing)
    unlike = [
        _unlike_others(side, model, blamed._replace(path=path))
        for side, model, path in zip(pair, models, paths, strict=True)
    ]
    for side in (0, 1):
        if unlike[side] and unlike[1 - side] is False:
            return Evidence(side, "the other modules of its class, which compute another formula", differing)
    return Evidence(None, "", differing)


def _options(side: Side, path: str) -> dict[str, Any]:
    options = side.adapter.options(side.modules[path])
    made: dict[str, Any] = {}
    for name, value in options.items():
        made[_plain_name(name)] = value
    if not _BY_MODE.search(side.kind(path)):
        made.pop("training", None)
    return made


def _plain_name(name: str) -> str:
    plain = re.sub(r"[_\s]", "", name).lower()
    return _OTHER_NAMES.get(plain, plain)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        items = [list(x) if isinstance(x, (tuple, list)) else [x] for x in (a, b)]
        length = max(map(len, items))
        first, second = (x * length if len(x) == 1 else x for x in items)
        return first == second
    return bool(a == b) or {str(a).lower(), str(b).lower()} in ({"none", "false"}, {"none"}, {"false"})


def _beside(side: Side, path: str) -> Iterator[str]:
    """Yields the other modules of the class of one."""
    kind = type(side.modules[path])
    yield from (name for name, module in side.modules.items() if type(module) is kind and name != path)


def _odd_option(side: Side, path: str, differing: Mapping[str, Any]) -> str | None:
    """Returns an option in which a module differs from all others of its class, which agree; or None."""
    own = _options(side, path)
    others = [_options(side, name) for name in _beside(side, path)]
    if not others:
        return None
    names = [*differing, *(name for name in own if name not in differing)]
    for name in names:
        values = [options[name] for options in others if name in options]
        if name not in own or len(values) != len(others):
            continue
        agree = all(_equal(value, values[0]) for value in values)
        if not agree or _equal(own[name], values[0]):
            continue
        if name in differing or len(values) > 1 or _is_default(side.modules[path], name, values[0]):
            return name
    return None


def _is_default(module: Any, name: str, value: Any) -> bool:
    """Returns whether the class of a module has a value for an option where none is given."""
    try:
        parameters = inspect.signature(type(module).__init__).parameters
    except (TypeError, ValueError):
        return False
    defaults = {_plain_name(each): parameter.default for each, parameter in parameters.items()}
    return name in defaults and _equal(defaults[name], value)


def _unlike_others(side: Side, model: Model, event: Event) -> bool | None:
    """Returns whether a module computes another formula than others of its class with its tensors; None if unknown."""
    adapter, module = side.adapter, side.modules[event.path]
    tensors = {name: adapter.own(part) for name, part in [("", module), *side.below(event.path).items()]}
    shapes = {name: {key: tuple(x.shape) for key, x in own.items()} for name, own in tensors.items()}
    for other in _beside(side, event.path):
        parts = {"": side.modules[other], **side.below(other)}
        if {n: {k: tuple(x.shape) for k, x in adapter.own(p).items()} for n, p in parts.items()} != shapes:
            continue
        captured = Captured(adapter, model.wide, event._replace(place=ENTER))
        with contextlib.suppress(Stopped):
            model.run(captured, model.wide)
        if captured.arguments is None:
            return None
        try:
            results = _results(model, captured.arguments, module, parts, tensors)
        except Exception:  # noqa: BLE001  (a module that cannot be called alone tells nothing)
            return None
        best = best_fit(*results)
        return best is None or best[0] > _UNLIKE
    return None


def _results(model: Model, arguments: Any, module: Any, parts: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    """Returns the results of a module, and of another one with the tensors of the first."""
    adapter = model.adapter
    args, kwargs = arguments
    before = {name: adapter.own(part) for name, part in parts.items()}
    around = adapter.wide(model.model) if model.wide else contextlib.nullcontext()
    with adapter.keep_state(model.model), around:
        one = adapter.call(module, args, kwargs)
        hosts = [adapter.host(next(arrays_in(one, adapter.is_array)))]
        try:
            for name, part in parts.items():
                adapter.put(part, tensors[name])
            two = adapter.call(parts[""], args, kwargs)
            hosts.append(adapter.host(next(arrays_in(two, adapter.is_array))))
        finally:
            for name, part in parts.items():
                adapter.put(part, before[name])
    return hosts
