"""Matches a state dict with the parameters of an optimizer."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentError, brief
from emberharmony.optim import numbers

FOREIGN = {
    *("foreach", "fused", "capturable", "differentiable"),  # choose an implementation in torch
    *("initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum"),  # are left by torch's schedulers
}
"""The options in a state dict of torch that have no meaning here."""


class SavedState:
    """The loading of a state dict: matches it with an optimizer, and collects in `wrong` what does not fit."""

    def __init__(self, optimizer: Any, state_dict: Mapping[str, Any]) -> None:
        self.optimizer = optimizer
        self.head = f"{type(optimizer).__name__}.load_state_dict(): "
        self.wrong: list[str] = []
        self.state: dict[Parameter, dict[str, Any]] = {}
        self.options: list[dict[str, Any]] = []
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= state_dict.keys():
            raise ArgumentError(
                f"{self.head}a state dict has 'state' and 'param_groups', but this is {brief(state_dict)}"
            )
        self.groups, self.entries = list(state_dict["param_groups"]), dict(state_dict["state"])
        step_counts = [int(entry["step"]) for entry in self.entries.values() if "step" in entry]
        self.count = int(state_dict.get("count", max(step_counts, default=0)))
        saved_count, expected_count = len(self.groups), len(optimizer.param_groups)
        if saved_count != expected_count:
            raise ArgumentError(f"{self.head}{saved_count} groups of parameters were given, expected {expected_count}")
        self.unread = set(self.entries)

    def match_group(self, position: int, group: dict[str, Any]) -> None:
        """Collects the saved options of a group and the saved states of its parameters."""
        saved_group = self.groups[position]
        saved_options = self._saved_options(position, group, saved_group)
        self.options.append(saved_options)
        hyper = {**group, **saved_options, "lr": 0.0}
        for parameter_number, (parameter, index) in enumerate(self._parameters_and_keys(position, group, saved_group)):
            self.unread.discard(index)
            if self.entries.get(index):
                parameter_text = (
                    f"parameter {parameter_number} of group {position}" if not parameter.name else f"{parameter.name!r}"
                )
                entry = self.state_of_entry(parameter_text, self.entries[index], parameter, hyper)
                if entry:
                    self.state[parameter] = entry

    def require_all_matched(self) -> None:
        """Checks that nothing of the state dict or the optimizer was left unmatched.

        Raises:
            ArgumentError: if not; the message lists all that does not fit.
        """
        self.wrong += [f"unexpected state of parameter {index!r}" for index in self.unread]
        if self.wrong:
            raise ArgumentError(
                f"{self.head}the state dict does not fit: {'; '.join(self.wrong)}; it is that "
                f"of an optimizer of the same class and of the same model"
            )

    def _saved_options(self, position: int, group: dict[str, Any], saved_group: Mapping[str, Any]) -> dict[str, Any]:
        limits = self.optimizer.limits
        saved_options = {name: value for name, value in saved_group.items() if name in limits}
        known_keys = {"params", "param_names", *limits}
        # State dicts of older versions of torch lack some boolean options, so these may be missing.
        missing_names = [name for name in limits if name not in saved_group and not isinstance(group[name], bool)]
        self.wrong += [f"missing option {name!r} of group {position}" for name in missing_names]
        extra_names = [name for name in saved_group if name not in known_keys and name not in FOREIGN]
        self.wrong += [f"unexpected option {name!r} of group {position}" for name in extra_names]
        if callable(group["lr"]):
            saved_options["lr"] = group["lr"]
        checked_options: dict[str, Any] = self.optimizer.allowed_options(
            {**{name: group[name] for name in limits}, **saved_options}
        )
        return checked_options

    def _parameters_and_keys(
        self, position: int, group: dict[str, Any], saved_group: Mapping[str, Any]
    ) -> list[tuple[Parameter, Any]]:
        """Returns (parameter, key) for each parameter of a group: the key of its state in the state dict."""
        saved_names, indices = saved_group.get("param_names"), list(saved_group["params"])
        if saved_names is None or "param_names" not in group:
            saved_count, expected_count = len(indices), len(group["params"])
            if saved_count != expected_count:
                self.wrong.append(f"group {position} has {saved_count} parameters, expected {expected_count}")
                self.unread -= set(indices)
            return list(zip(group["params"], indices, strict=False))
        index_by_name = dict(zip(saved_names, indices, strict=True))
        self.wrong += [f"missing parameter {name!r}" for name in group["param_names"] if name not in index_by_name]
        extra_names = [name for name in saved_names if name not in group["param_names"]]
        self.wrong += [f"unexpected parameter {name!r}" for name in extra_names]
        self.unread -= {index_by_name[name] for name in extra_names}
        named_parameters = zip(group["param_names"], group["params"], strict=True)
        return [(parameter, index_by_name[name]) for name, parameter in named_parameters if name in index_by_name]

    def state_of_entry(
        self, what: str, entry: Mapping[str, Any], parameter: Parameter, hyper: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the saved state of one parameter, checked and converted to new buffers."""
        parameter_tensor = parameter.value
        initial_state = self.optimizer.initial(parameter_tensor, hyper)
        saved_fields = {**self.optimizer.unsaved, **{name: x for name, x in entry.items() if x is not None}}
        if not initial_state or saved_fields.keys() <= self.optimizer.unsaved.keys():
            extra_names = saved_fields.keys() - self.optimizer.unsaved.keys()
            self.wrong += [f"unexpected {name!r} of {what}" for name in sorted(extra_names)]
            return {}
        self.wrong += [f"missing {name!r} of {what}" for name in initial_state if name not in saved_fields]
        self.wrong += [f"unexpected {name!r} of {what}" for name in saved_fields if name not in initial_state]
        state: dict[str, Any] = {}
        for name in initial_state.keys() & saved_fields.keys():
            expected_field, x = initial_state[name], saved_fields[name]
            if numbers.is_python(expected_field):
                state[name] = type(expected_field)(x)
                continue
            tensor = to_active_backend(x)
            if tuple(tensor.shape) != tuple(expected_field.shape):
                self.wrong.append(
                    f"{name!r} of {what} has shape {tuple(tensor.shape)}, expected {tuple(expected_field.shape)}"
                )
                continue
            device = ops.get_device(parameter_tensor)
            cast_tensor = ops.cast(tensor, ops.dtype(expected_field))
            state[name] = Buffer(ops.convert_to_tensor(cast_tensor, device=device, copy=True))
        return {name: state[name] for name in initial_state if name in state}


def to_active_backend(x: Any) -> Any:
    """Converts a tensor of any backend to the active backend without changing its dtype or values."""
    with ops.use_backend(like=x):
        buffer = Buffer(x)
    return buffer.value
