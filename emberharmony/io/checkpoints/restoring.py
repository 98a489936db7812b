"""Compares a checkpoint with the parts of a training, and puts its states into them: all or none."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.shared.random_streams import restore_host_stream
from emberharmony.core import selection
from emberharmony.core.errors import CheckpointError, EmberError, StateDictError, brief, suggest
from emberharmony.core.state.commits import Step, commit
from emberharmony.io.checkpoints.collecting import (
    KINDS,
    class_name_of,
    generators_of,
    groups_of,
    label_of,
    option_description,
    parts_of,
    stateful_rates,
    ties_of,
    versions_of_writer,
)
from emberharmony.io.checkpoints.packing import unpack_state
from emberharmony.io.checkpoints.records import Record, checked_file_path
from emberharmony.io.loading import load


class Restoring:
    """The restoring of one checkpoint: compares it with the parts of a training, and collects what to load.

    Args:
        record: the checkpoint.
        given: what was given for each of `KINDS`.

    Attributes:
        faults: what is missing or differs, so that nothing can be restored.
        notes: what differs and does not prevent that.

    Raises:
        ArgumentTypeError: if a part has no state.
        CheckpointError: if a file is damaged.
        WeightFileError: if a file of tensors is none.
    """

    def __init__(self, record: Record, given: Mapping[str, Any]) -> None:
        self.faults: list[str] = []
        self.notes: list[str] = []
        self._record = record
        self._steps: list[Step] = []
        self._foreign_states: list[tuple[str, Any, Any]] = []
        self._tensors_by_kind: dict[str, dict[str, Any]] = {}
        self._given_parts = {part_kind: parts_of(part_kind, given.get(part_kind)) for part_kind in KINDS}
        self.resumes = any(self._given_parts[part_kind] for part_kind in ("optimizer", "random", "data"))
        for kind in KINDS:
            self._match_kind(kind, record.content["parts"].get(kind, {}))
        if self.resumes:
            self._compare_writers()

    def load_states(self) -> None:
        """Loads all matched states into the parts of a training; after an error all of them are as before.

        Raises:
            CheckpointError: if a part of another library refuses its state; all parts are as before then.
        """
        parts_and_old_states: list[tuple[Any, Any]] = []
        try:
            for label, part, state in self._foreign_states:
                parts_and_old_states.append((part, copy.deepcopy(part.state_dict())))
                try:
                    part.load_state_dict(state)
                except Exception as error:
                    raise self._difference_error([f"{label}: {error}"]) from error
            if self.resumes and self._streams_fit():
                ops.random.set_state(self._record.content["streams"]["state"])
            elif self.resumes and self._only_host_drew():
                restore_host_stream(self._record.content["streams"]["state"])
            commit(self._steps)
        except BaseException:
            for part, old_state in reversed(parts_and_old_states):
                part.load_state_dict(old_state)
            raise

    def require_no_faults(self) -> None:
        """Checks that no fault was found that prevents the restoring.

        Raises:
            CheckpointError: if there is a fault; the message has all of them.
        """
        if self.faults:
            raise self._difference_error(self.faults)

    def _difference_error(self, faults: list[str]) -> CheckpointError:
        reason = f"step {self._record.step} does not fit, so nothing was restored:"
        return CheckpointError("different", self._record.path, reason, faults)

    def _match_kind(self, kind: str, saved_parts: Mapping[str, Any]) -> None:
        parts_by_name = self._given_parts[kind]
        unmatched_names = [label_of(kind, name) for name in saved_parts if name not in parts_by_name]
        if parts_by_name:
            self.faults += [f"unexpected: {label}{suggest(label, parts_by_name)}" for label in unmatched_names]
        elif unmatched_names and self._given_parts["optimizer"]:
            self.notes.append(f"the checkpoint has {', '.join(unmatched_names)}, for which restore() was given nothing")
        for name, part in parts_by_name.items():
            label = label_of(kind, name)
            if name not in saved_parts:
                self.faults.append(f"missing: {label}, which the checkpoint does not have")
                continue
            self._match_noting_faults(label, lambda n=name, p=part: self._match_part(kind, n, p, saved_parts[n]))  # type: ignore[misc]

    def _match_noting_faults(self, label: str, match: Callable[[], None]) -> None:
        """Calls a function that matches a part, and collects its error, so that the other parts are checked too."""
        try:
            match()
        except (CheckpointError, OSError):
            raise
        except EmberError as error:
            message_lines = str(error).splitlines()
            self.faults += [f"{label}: {line.strip()}" for line in message_lines[1:] or message_lines]
        except Exception as error:  # noqa: BLE001  (whatever a damaged state or a foreign part raises is a fault)
            self.faults.append(f"{label}: the state does not fit: {type(error).__name__}: {error}")

    def _match_part(self, kind: str, name: str, part: Any, saved_part: Mapping[str, Any]) -> None:
        label = label_of(kind, name)
        if saved_part["class"] != class_name_of(part):
            self.notes.append(f"{label} is a {saved_part['class']} in the checkpoint and a {class_name_of(part)} here")
        if kind == "optimizer":
            self._match_groups(label, part, saved_part)
        if kind == "schedule" and saved_part["schedule"] != option_description(part):
            self.notes.append(
                _change_text(label, saved_part["schedule"], option_description(part), "the one here is used")
            )
        if "state" not in saved_part or not hasattr(part, "state_dict"):
            if ("state" in saved_part) is not hasattr(part, "state_dict"):
                self.faults.append(f"{label}: one of the two sides has a state and the other has none")
            return
        tensors = self._load_tensors(kind if kind in ("model", "optimizer") else "state")
        state = unpack_state(saved_part["state"], tensors)
        if kind == "model":
            self._compare_model(label, part, saved_part, state)
        self._add_loading_steps(label, part, state)

    def _add_loading_steps(self, label: str, part: Any, state: Any) -> None:
        if hasattr(part, "loading_steps"):
            self._steps += part.loading_steps(state)
        else:
            self._foreign_states.append((label, part, state))

    def _load_tensors(self, kind: str) -> dict[str, Any]:
        """Returns the tensors of a checkpoint's file of one kind, such as "model", on the active backend."""
        if kind not in self._tensors_by_kind:
            file_name = f"{kind}.safetensors"
            has_file = file_name in self._record.content["files"]
            self._tensors_by_kind[kind] = load(checked_file_path(self._record, file_name)) if has_file else {}
        return self._tensors_by_kind[kind]

    def _compare_model(self, label: str, part: Any, saved_part: Mapping[str, Any], state: Any) -> None:
        """Notes how a model differs from the saved one, and adds the steps that restore its random generators."""
        own_state = part.state_dict()
        if not own_state.keys() & state.keys():
            raise StateDictError(
                f"none of the {len(state)} names in the checkpoint, {brief(list(state))}, is in "
                f"{type(part).__name__}, which has {brief(list(own_state))}"
            )
        own_ties, saved_ties = ties_of(own_state), saved_part["ties"]
        for ties_on_one_side, ties_on_other_side, side_text in (
            (saved_ties, own_ties, "in the checkpoint"),
            (own_ties, saved_ties, "here"),
        ):
            self.faults += [
                f"{label}: {', '.join(x)} are one tensor only {side_text}"
                for x in ties_on_one_side
                if x not in ties_on_other_side
            ]
        names_by_cast_text: dict[str, list[str]] = {}
        for name in own_state.keys() & state.keys():
            saved_dtype, own_dtype = ops.dtype(state[name]).name, ops.dtype(own_state[name]).name
            if saved_dtype != own_dtype:
                names_by_cast_text.setdefault(f"{saved_dtype} in the checkpoint and {own_dtype} here", []).append(name)
        self.notes += [
            f"{label}: {_names_text(sorted(names))} are {text}, so they are cast"
            for text, names in names_by_cast_text.items()
        ]
        self._match_generators(label, part, saved_part["generators"])

    def _match_generators(self, label: str, part: Any, saved_generators: list[Any]) -> None:
        """Adds the steps that restore the random generators in a model, and notes generators that do not match."""
        generator_by_place = {name: generator for names, generator in generators_of(part) for name in names}
        messages = self.faults if self.resumes else self.notes
        unmatched_generator_by_place = dict(generator_by_place)
        for saved_generator in saved_generators:
            saved_places = saved_generator["places"]
            for place in saved_places:
                unmatched_generator_by_place.pop(place, None)
            missing_places = [place for place in saved_places if place not in generator_by_place]
            messages += [
                f"{label}: missing random generator {place}, which the checkpoint has" for place in missing_places
            ]
            if len({id(generator_by_place[place]) for place in saved_places if place in generator_by_place}) > 1:
                messages.append(
                    f"{label}: {_names_text(saved_places)} share a random generator in the checkpoint and not here"
                )
            elif not missing_places:
                self._steps += generator_by_place[saved_places[0]].loading_steps(saved_generator["state"])
        messages += [
            f"{label}: the checkpoint lacks the random generator {place}" for place in unmatched_generator_by_place
        ]
        shared_places = [places for places, _ in generators_of(part) if len(places) > 1]
        for places_here in shared_places:
            overlapping_generators = [
                saved_generator
                for saved_generator in saved_generators
                if set(saved_generator["places"]) & set(places_here)
            ]
            if len(overlapping_generators) > 1:
                messages.append(
                    f"{label}: {_names_text(places_here)} share a random generator here and not in the checkpoint"
                )

    def _match_groups(self, label: str, part: Any, saved_part: Mapping[str, Any]) -> None:
        """Notes which options of an optimizer differ from the saved ones, and adds steps that restore its schedules."""
        own_groups = groups_of(part)
        for i, (saved_group, own_group) in enumerate(zip(saved_part["groups"], own_groups, strict=False)):
            for name in sorted(saved_group.keys() & own_group.keys()):
                if saved_group[name] != own_group[name]:
                    is_scheduled = name == "lr" and isinstance(own_group[name], dict)
                    used_text = "the one here is used" if is_scheduled else "the one of the checkpoint is used"
                    self.notes.append(
                        _change_text(f"{label}: {name} of group {i}", saved_group[name], own_group[name], used_text)
                    )
        for i, rate in enumerate(stateful_rates(part)):
            state = saved_part["rates"].get(str(i))
            if rate is not None and state is not None:
                self._add_loading_steps(f"{label}: lr of group {i}", rate, unpack_state(state, {}))

    def _compare_writers(self) -> None:
        """Notes differences between the backend and versions that wrote a checkpoint and those that restore it."""
        saved_versions, current_versions = self._record.content["written"], versions_of_writer()
        if saved_versions.get("default_float") != current_versions["default_float"]:
            self.notes.append(
                _change_text(
                    "the default float", saved_versions.get("default_float"), current_versions["default_float"], ""
                )
            )
        if saved_versions.get("numpy") != np.__version__:
            self.notes.append(
                f"NumPy {saved_versions.get('numpy')} wrote it and {np.__version__} reads it, so random generators "
                "may continue "
                f"with other numbers"
            )
        if not self._streams_fit() and not self._only_host_drew():
            reason = self._record.content.get("streams", {}).get("reason")
            writer_text, reader_text = (
                f"{versions.get('backend')} {versions.get('version')}"
                for versions in (saved_versions, current_versions)
            )
            reason_text = reason or f"{writer_text} wrote them and {reader_text} is active"
            self.notes.append(
                f"the default random streams (numbers drawn without a generator) are not restored: {reason_text}; "
                f"draw from an ops.random.Generator, which every backend continues"
            )

    def _only_host_drew(self) -> bool:
        """Returns whether random numbers were drawn only from the host's stream, which every backend can restore."""
        return self._record.content.get("streams", {}).get("state", {}).get("drawn") is False

    def _streams_fit(self) -> bool:
        """Returns whether the default streams can be restored: only the backend and version that wrote them can."""
        saved_versions, backend = self._record.content["written"], selection.active().backend
        has_state = "state" in self._record.content.get("streams", {})
        return has_state and (saved_versions.get("backend"), saved_versions.get("version")) == (
            backend.name,
            backend.version,
        )


def _change_text(what: str, old: Any, new: Any, used_text: str) -> str:
    change_text = f"{what} is {_option_text(old)} in the checkpoint and {_option_text(new)} here"
    return f"{change_text}; {used_text}" if used_text else change_text


def _option_text(value: Any) -> str:
    """Returns the text of an option of an optimizer for messages; a schedule is written as the call that makes it."""
    if isinstance(value, dict) and "arguments" in value:
        return f"{value['schedule']}({', '.join(map(_option_text, value['arguments']))})"
    return str(value["schedule"]) if isinstance(value, dict) and "schedule" in value else brief(value)


def _names_text(names: list[str]) -> str:
    names_text = ", ".join(names[:5])
    return names_text if len(names) <= 5 else f"{names_text} and {len(names) - 5} more"
