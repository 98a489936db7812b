"""Collects the states of the parts of a training, such as model and optimizer, for a checkpoint."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, UnsupportedOpError, brief
from emberharmony.core.trees.objects import held_leaves
from emberharmony.io.checkpoints.packing import pack_state
from emberharmony.version import __version__

KINDS = ("model", "optimizer", "schedule", "random", "data")
"""The kinds of parts, by the names of the arguments of `Checkpoint.save`."""


def parts_of(kind: str, value: Any) -> dict[str, Any]:
    """Returns the parts given for one argument of a checkpoint by name: those of a dict or list, or one named "".

    Raises:
        ArgumentTypeError: if a part has no state that can be saved and loaded.
    """
    if value is None:
        return {}
    if isinstance(value, (list, tuple)):
        value = {str(i): part for i, part in enumerate(value)}
    parts_by_name = dict(value) if type(value) is dict else {"": value}
    for name, part in parts_by_name.items():
        label = label_of(kind, name)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"the name of {kind}[{brief(name)}] must be text")
        is_stateful = hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
        if not is_stateful and not (kind == "schedule" and callable(part)):
            raise ArgumentTypeError(
                f"{label} is {brief(part)} of type {type(part).__name__}, which has no state_dict() and "
                f"load_state_dict(); a dict of parts that have them may be given too"
            )
    return parts_by_name


def label_of(kind: str, name: str) -> str:
    """Returns the name of a part of a training for messages, such as `model` or `optimizer['critic']`."""
    return f"{kind}[{name!r}]" if name else kind


class Collected:
    """The states of the parts of a training: descriptions for JSON, and the tensors of each file.

    Args:
        given: what was given for each of `KINDS`.

    Attributes:
        parts: the description of each part, by kind and name.
        tensors: the tensors by name, by the file that holds them.

    Raises:
        ArgumentError: if a model has no parameters.
        ArgumentTypeError: if a part cannot be saved.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.tensors: dict[str, dict[str, Any]] = {"model": {}, "optimizer": {}, "state": {}}
        self.parts: dict[str, dict[str, Any]] = {}
        for kind in KINDS:
            for name, part in parts_of(kind, given.get(kind)).items():
                self.parts.setdefault(kind, {})[name] = self._describe(kind, name, part)

    def _describe(self, kind: str, name: str, part: Any) -> dict[str, Any]:
        description: dict[str, Any] = {"class": class_name_of(part)}
        if kind == "schedule":
            description["schedule"] = option_description(part)
        if kind == "optimizer":
            description["groups"] = groups_of(part)
            indexed_rates = enumerate(stateful_rates(part))
            description["rates"] = {
                str(i): pack_state(rate.state_dict(), "lr", {}) for i, rate in indexed_rates if rate is not None
            }
        if not hasattr(part, "state_dict"):
            return description
        state = part.state_dict()
        label = label_of(kind, name)
        if kind == "model":
            if not state:
                raise ArgumentError(
                    f"{label} is a {type(part).__name__} without parameters and buffers: nothing to save"
                )
            description["ties"] = ties_of(state)
            description["generators"] = [
                {"places": names, "state": generator.state_dict()} for names, generator in generators_of(part)
            ]
        tensors_of_file = self.tensors[kind if kind in self.tensors else "state"]
        prefix = name if kind in self.tensors else ".".join(filter(None, (kind, name)))
        try:
            description["state"] = pack_state(state, prefix, tensors_of_file)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(f"{label}: {error}") from error
        return description


def class_name_of(part: Any) -> str:
    """Returns the name of the class of a part; for a wrapper of an optimizer also that of the wrapped one."""
    wrapped_optimizer = getattr(part, "optimizer", None)
    return (
        type(part).__name__
        if wrapped_optimizer is None
        else f"{type(part).__name__}({class_name_of(wrapped_optimizer)})"
    )


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """Returns the options of each group of parameters, as JSON; a schedule is described."""
    param_groups = getattr(optimizer, "param_groups", [])
    parameter_keys = ("params", "param_names")
    return [
        {name: option_description(value) for name, value in group.items() if name not in parameter_keys}
        for group in param_groups
    ]


def stateful_rates(optimizer: Any) -> list[Any]:
    """Returns the learning rate of each group that has a state, such as `ReduceOnPlateau`; None for the others."""
    rates = [group.get("lr") for group in getattr(optimizer, "param_groups", [])]
    return [rate if hasattr(rate, "state_dict") else None for rate in rates]


def option_description(value: Any) -> Any:
    """Returns the description of a schedule or another option as JSON, so that two of them can be compared."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return pack_state(value, "", {})
    if isinstance(value, (list, tuple)):
        return [option_description(x) for x in value]
    if isinstance(value, partial):
        options = {name: option_description(x) for name, x in value.keywords.items()}
        # Checkpoints are compared by this name, so a formula of `optim.schedules` that is renamed makes them differ.
        return {
            "schedule": value.func.__name__.removeprefix("_").removesuffix("_rate"),
            "arguments": option_description(value.args),
            "options": options,
        }
    return {"schedule": getattr(value, "__qualname__", type(value).__qualname__)}


def ties_of(state: Mapping[str, Any]) -> list[list[str]]:
    """Returns the names of each tensor that has several in a state dict."""
    names_by_tensor: dict[int, list[str]] = {}
    for name, tensor in state.items():
        names_by_tensor.setdefault(id(tensor), []).append(name)
    return sorted(sorted(names) for names in names_by_tensor.values() if len(names) > 1)


def generators_of(part: Any) -> list[tuple[list[str], Any]]:
    """Returns the random generators in a model, each with its places; named streams (`nn.Rngs`) count as one."""
    places_and_generator_by_id: dict[int, tuple[list[str], Any]] = {}
    for path, generator in _generators_in(part):
        places_and_generator_by_id.setdefault(id(generator), ([], generator))[0].append(path)
    return list(places_and_generator_by_id.values())


def _generators_in(part: Any) -> Iterator[tuple[str, Any]]:
    """Yields (place, generator) for each random generator in a model; named streams count as one generator."""
    module_name_by_id = (
        {id(module): name for name, module in part.named_modules()} if hasattr(part, "named_modules") else {}
    )
    streams_by_path: dict[tuple[Any, ...], Any] = {}
    for place_of_generator in held_leaves(part):
        if isinstance(place_of_generator.value, ops.random.Generator):
            path_of_streams = next(
                (path for path in streams_by_path if place_of_generator.path[: len(path)] == path), None
            )
            if path_of_streams is not None:
                continue
            # Named streams are created when they are first asked for, so only the object that owns them has all.
            if (
                place_of_generator.holder is not part
                and hasattr(place_of_generator.holder, "loading_steps")
                and place_of_generator.path[-1] == "_default"
            ):
                streams_by_path[tuple(place_of_generator.path[:-1])] = place_of_generator.holder
                yield ".".join(map(str, place_of_generator.path[:-1])), place_of_generator.holder
            else:
                module_name = module_name_by_id.get(id(place_of_generator.holder))
                yield (
                    (f"{module_name}.{place_of_generator.path[-1]}" if module_name else str(place_of_generator.path)),
                    place_of_generator.value,
                )


def versions_of_writer() -> dict[str, Any]:
    """Returns the backend, the versions and the precision by which a checkpoint is written, by name."""
    backend = selection.active().backend
    return {
        "backend": backend.name,
        "version": backend.version,
        "numpy": np.__version__,
        "emberharmony": __version__,
        "default_float": str(ops.default_float()),
        "precision": backend.product_precision(),
    }


def random_stream_state() -> dict[str, Any]:
    """Returns the state of the active backend's default random streams, or the reason why it cannot be saved."""
    try:
        return {"state": ops.random.get_state()}
    except UnsupportedOpError as error:
        return {"reason": str(error)}
