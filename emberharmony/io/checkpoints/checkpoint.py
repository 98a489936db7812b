"""`io.Checkpoint`: the whole state of a training in one folder for each step."""

import math
import os
import warnings
from typing import Any

from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    CheckpointWarning,
    WeightFileError,
    brief,
    suggest,
)
from emberharmony.io.checkpoints import folders
from emberharmony.io.checkpoints.collecting import Collected, random_stream_state, versions_of_writer
from emberharmony.io.checkpoints.packing import pack_state, unpack_state
from emberharmony.io.checkpoints.records import VERSION, Record, read_record, write_record
from emberharmony.io.checkpoints.restoring import Restoring
from emberharmony.io.saving import save_tensors


class Checkpoint:
    """Checkpoints of a training: one call saves all of its state, and one restores it, on any backend.

    Each checkpoint is a folder, `step-000120`, with `model.safetensors`, `optimizer.safetensors` and `state.json`. It
    is written beside the others and gets its name when all of it is on the disk. So an error, a full disk or the end of
    the process leaves the old checkpoint or the new one.

    Args:
        folder: where the folders of the steps are; the first `save` makes it.
        keep: how many of the newest checkpoints stay; None keeps all.
        keep_best: the name of a number in `extra`; the checkpoint with the best one stays as well. None keeps the last
            ones only.
        mode: "min" if the best number is the smallest, "max" if it is the largest.

    Raises:
        ArgumentError: if `keep` is no positive integer, or the mode is another one.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn, ops, optim
        >>> folder = tempfile.TemporaryDirectory()
        >>> def training():
        ...     layer = nn.Linear(2, 1, rng=ops.random.Generator(0))
        ...     return {"model": layer, "optimizer": optim.AdamW(layer), "random": ops.random.Generator(1)}
        >>> checkpoint = io.Checkpoint(folder.name, keep=2, keep_best="loss")
        >>> for step, loss in enumerate([0.5, 0.1, 0.4, 0.3]):
        ...     path = checkpoint.save(step, **training(), extra={"loss": loss})
        >>> checkpoint.steps(), checkpoint.latest(), checkpoint.best()
        ([1, 2, 3], 3, 1)
        >>> checkpoint.restore(**training()), checkpoint.restore(step=1, model=training()["model"])
        (3, 1)
        >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        keep: int | None = 3,
        keep_best: str | None = None,
        mode: str = "min",
    ) -> None:
        if keep is not None and (type(keep) is not int or keep < 1):
            raise ArgumentError(f"Checkpoint(): keep is {brief(keep)}, expected an integer >= 1, or None to keep all")
        if mode not in ("min", "max"):
            raise ArgumentError(f"Checkpoint(): mode is {brief(mode)}, expected 'min' or 'max'")
        self.folder = os.fspath(folder)
        self.keep, self.keep_best, self.mode = keep, keep_best, mode

    def __repr__(self) -> str:
        best_text = "" if self.keep_best is None else f", keep_best={self.keep_best!r}, mode={self.mode!r}"
        return f"Checkpoint({self.folder!r}, keep={self.keep}{best_text})"

    def save(
        self,
        step: int,
        model: Any = None,
        optimizer: Any = None,
        *,
        schedule: Any = None,
        random: Any = None,
        data: Any = None,
        extra: dict[str, Any] | None = None,
    ) -> str:
        """Saves the state of a training after a step, and returns the folder.

        Each part is an object with `state_dict` and `load_state_dict`, or a dict or list of such objects. Random
        generators in the model, schedules with a state in the optimizer, and the default random streams of the active
        backend are saved too.

        Args:
            step: how many steps have been made.
            model: a module; None saves none.
            optimizer: an optimizer; in a dict also what belongs to it, such as an `EMA` or a `LossScaler`. None saves
                none.
            schedule: a schedule that the optimizer does not hold; None saves none.
            random: random generators, or `nn.Rngs`, outside of the model; None saves none.
            data: what knows its position in the data, such as `nn.data.batches`; None saves none.
            extra: numbers, text, and lists and dicts of these; a tensor with one element is saved as a number. None
                saves none.

        Raises:
            ArgumentError: if the step is no natural number, there is nothing to save, the model has no parameters, or
                `extra` lacks the number for `keep_best`.
            ArgumentTypeError: if a part has no state, or one that cannot be saved.
            CheckpointError: if the folder cannot be written; the older checkpoints stay.
            DTypeError: if a file of tensors cannot hold a dtype.
        """
        if type(step) is not int or step < 0:
            raise ArgumentError(
                f"save(): step is {brief(step)}, expected an integer >= 0; the order is save(step, model, optimizer)"
            )
        values_by_kind = {"model": model, "optimizer": optimizer, "schedule": schedule, "random": random, "data": data}
        collected_parts = Collected(values_by_kind)
        packed_extra = self._extra_as_json(extra or {})
        if not collected_parts.parts and not packed_extra:
            raise ArgumentError("save() was given nothing to save: pass model=, optimizer=, random=, data=")
        content_of_record = {
            "version": VERSION,
            "step": step,
            "written": versions_of_writer(),
            "parts": collected_parts.parts,
            "streams": random_stream_state(),
            "extra": packed_extra,
        }
        try:
            records = self._records()
            content_of_record["serial"] = 1 + max((record.serial for record in records), default=0)

            def fill_folder(folder: str) -> None:
                for name, tensors in collected_parts.tensors.items():
                    if tensors:
                        save_tensors(tensors, os.path.join(folder, f"{name}.safetensors"))
                write_record(folder, content_of_record)

            path = folders.write_folder(self.folder, step, fill_folder)
        except (OSError, WeightFileError) as error:
            if isinstance(error, WeightFileError) and error.kind != "unwritable":
                raise
            raise CheckpointError(
                "unwritable", self.folder, f"step {step} could not be saved, the older checkpoints stay: {error}"
            ) from error
        self._remove_old_checkpoints([*records, Record(path, content_of_record)])
        return path

    def restore(
        self,
        model: Any = None,
        optimizer: Any = None,
        *,
        schedule: Any = None,
        random: Any = None,
        data: Any = None,
        step: int | None = None,
    ) -> int:
        """Puts the state of a checkpoint into the parts of a training, on the active backend, and returns its step.

        Everything is read, checked and compared first; then all parts change at once. One error names all names that
        are missing on either side. A `CheckpointWarning` names the differences that do not prevent the restoring:
        options, dtypes, versions, and default random streams, which only the backend that wrote them continues. These
        streams are restored with an optimizer, generators or data, and not with a model alone.

        Args:
            model: the module that gets the state; None leaves it out.
            optimizer: the optimizer, or the dict, that gets the state; None leaves it out.
            schedule: the schedule that gets the state; None leaves it out.
            random: the generators that get the state; None leaves them out.
            data: what gets the position in the data; None leaves it out.
            step: which checkpoint; by default the one that was saved last.

        Raises:
            ArgumentError: if no part was given.
            ArgumentTypeError: if a part has no state.
            CheckpointError: if there is no such checkpoint, it is damaged, or it does not fit; nothing is changed then.
        """
        values_by_kind = {"model": model, "optimizer": optimizer, "schedule": schedule, "random": random, "data": data}
        if all(value is None for value in values_by_kind.values()):
            raise ArgumentError("restore() was given nothing to restore into: pass model=, optimizer=, random=, data=")
        record = self._record(step)
        try:
            restoring = Restoring(record, values_by_kind)
        except (WeightFileError, OSError) as error:
            raise CheckpointError("damaged", record.path, str(error)) from error
        restoring.require_no_faults()
        if step is None:
            restoring.notes += self._notes_on_incomplete_steps(record)
        if restoring.notes:
            notes_text = "".join(f"\n  {note}" for note in restoring.notes)
            # The warning comes before any change, because a filter can turn it into an error.
            warnings.warn(f"{record.path}: step {record.step} differs:{notes_text}", CheckpointWarning, stacklevel=2)
        restoring.load_states()
        return record.step

    def steps(self) -> list[int]:
        """Returns the steps that have a whole checkpoint, in increasing order."""
        return sorted({record.step for record in self._records()})

    def latest(self) -> int | None:
        """Returns the step of the checkpoint that was saved last, or None if there is none."""
        records = self._records()
        return max(records, key=_serial_number).step if records else None

    def best(self) -> int | None:
        """Returns the step with the best number of `keep_best`, the first of several; None if none has it.

        Raises:
            ArgumentError: if `keep_best` was not given.
        """
        if self.keep_best is None:
            raise ArgumentError("best() needs the name of a number in extra: Checkpoint(folder, keep_best='loss')")
        best_record = self._best_record(self._records())
        return None if best_record is None else best_record.step

    def extra(self, step: int | None = None) -> dict[str, Any]:
        """Returns the dict `extra` that was saved with a checkpoint.

        Args:
            step: which checkpoint; by default the one that was saved last.

        Raises:
            CheckpointError: if there is no such checkpoint, or it is damaged.
        """
        extra: dict[str, Any] = unpack_state(self._record(step).content["extra"], {})
        return extra

    def _extra_as_json(self, extra: dict[str, Any]) -> dict[str, Any]:
        """Returns the option `extra` of `save` in a form that JSON can write."""
        if type(extra) is not dict or not all(type(name) is str for name in extra):
            raise ArgumentTypeError(f"save(): extra is a dict with names as keys, not {brief(extra)}")
        if self.keep_best is not None and self.keep_best not in extra:
            hint = suggest(self.keep_best, extra)
            raise ArgumentError(
                f"save(): extra lacks {self.keep_best!r}, the number for keep_best{hint}; give None where there is none"
            )
        tensor_by_name: dict[str, Any] = {}
        packed_by_name = {
            name: pack_state(_as_number(value), f"extra[{name!r}]", tensor_by_name) for name, value in extra.items()
        }
        if tensor_by_name:
            raise ArgumentTypeError(
                f"save(): {next(iter(tensor_by_name))} is a tensor of several elements; keep it in a Buffer of the "
                f"model, or write it with io.save"
            )
        return packed_by_name

    def _records(self) -> list[Record]:
        """Returns the records of all complete checkpoints; of several of one step that of the last one saved."""
        record_by_step: dict[int, Record] = {}
        for step, path in folders.step_folders(self.folder):
            try:
                record = read_record(path)
            except CheckpointError:  # damaged checkpoints are named by `restore`
                continue
            if record.step == step and (step not in record_by_step or record_by_step[step].serial < record.serial):
                record_by_step[step] = record
        return list(record_by_step.values())

    def _record(self, step: int | None) -> Record:
        """Returns the record of the checkpoint of a step; of the last one saved if the step is None.

        Raises:
            CheckpointError: if there is none, or it is damaged.
        """
        if os.path.isfile(self.folder):
            reason = "is a file, and not the folder of checkpoints; io.load_model(model, path) reads a file of weights"
            raise CheckpointError("missing", self.folder, reason)
        records = self._records()
        fitting_records = [record for record in records if step in (None, record.step)]
        if fitting_records:
            return max(fitting_records, key=_serial_number)
        for step_of_folder, path in reversed(folders.step_folders(self.folder)):
            if step in (None, step_of_folder):
                read_record(path)  # raises the error that says what is wrong
        checkpoint_text = "a checkpoint" if step is None else f"a checkpoint of step {step}"
        steps_text = f"there are those of {sorted(record.step for record in records)}"
        if not records:
            steps_text = "nothing was saved there; ask latest() first, which is None then, and begin without restore()"
        raise CheckpointError("missing", self.folder, f"has not {checkpoint_text}: {steps_text}")

    def _notes_on_incomplete_steps(self, record: Record) -> list[str]:
        """Returns a note on each folder of a step later than a record's that is no complete checkpoint."""
        complete_steps = {record_of_step.step for record_of_step in self._records()}
        newer_steps = {step for step, _ in folders.step_folders(self.folder) if step > record.step} - complete_steps
        return [f"the folder of step {step} is no whole checkpoint and is ignored" for step in sorted(newer_steps)]

    def _best_record(self, records: list[Record]) -> Record | None:
        numbers_and_records = [(self._number_to_compare(record), -record.serial, record) for record in records]
        comparable_entries = [
            (number, serial, record) for number, serial, record in numbers_and_records if number is not None
        ]
        sign = -1.0 if self.mode == "min" else 1.0
        return max(comparable_entries, key=lambda each: (sign * each[0], each[1]))[2] if comparable_entries else None

    def _number_to_compare(self, record: Record) -> float | None:
        """Returns the number in a record by which `keep_best` ranks checkpoints; None if it is missing or NaN."""
        saved_number = unpack_state(record.content["extra"], {}).get(self.keep_best)
        is_comparable = isinstance(saved_number, (int, float)) and not math.isnan(saved_number)
        return float(saved_number) if is_comparable else None

    def _remove_old_checkpoints(self, records: list[Record]) -> None:
        """Removes old checkpoints beyond the number to keep, except the best one, and those of steps saved again."""
        newest_first = sorted(records, key=_serial_number, reverse=True)
        newest_by_step = {record.step: record for record in reversed(newest_first)}
        current_records = [record for record in newest_first if newest_by_step[record.step] is record]
        kept_paths = {
            record.path for record in (current_records if self.keep is None else current_records[: self.keep])
        }
        if self.keep_best is not None and (best_record := self._best_record(current_records)) is not None:
            kept_paths.add(best_record.path)
        for record in newest_first:
            if record.path not in kept_paths:
                try:
                    folders.discard_folder(record.path, record.step)
                except FileNotFoundError:  # another process has removed the folder
                    continue
                except OSError as error:
                    warnings.warn(f"{record.path} could not be removed: {error}", CheckpointWarning, stacklevel=3)


def _as_number(value: Any) -> Any:
    """Returns a tensor with one element as a number; everything else as it is."""
    has_one_element = hasattr(value, "item") and math.prod(getattr(value, "shape", (2,))) == 1
    return value.item() if has_one_element else value


def _serial_number(record: Record) -> int:
    return record.serial
