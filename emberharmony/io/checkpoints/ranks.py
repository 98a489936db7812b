"""Checkpoints of a training on several ranks."""

import os
from typing import Any

from emberharmony.core.errors import CheckpointError
from emberharmony.distributed import rank, size
from emberharmony.distributed.objects import gather, share
from emberharmony.io.checkpoints.checkpoint import Checkpoint
from emberharmony.io.checkpoints.collecting import Collected


class RankCheckpoint:
    """Checkpoints of a training on several ranks; all ranks call each method together.

    By default rank 0 writes one checkpoint, which any number of ranks, or one process, can restore: all read it. Random
    streams are then those of rank 0. With `sharded` each rank writes one of its own, with its own random streams
    and its own part of what it gives; as many ranks must restore it.

    Args:
        folder: where the checkpoints are; a folder that all ranks see.
        sharded: whether each rank writes its own parts, into a folder such as `rank-2-of-4`.
        options: those of `Checkpoint`: `keep`, `keep_best`, `mode`.

    Raises:
        ArgumentError: if an option is wrong.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn, optim
        >>> folder = tempfile.TemporaryDirectory()
        >>> layer = nn.Linear(2, 1)
        >>> checkpoint = io.RankCheckpoint(folder.name)
        >>> path = checkpoint.save(1, model=layer, optimizer=optim.Sharded(optim.AdamW(layer)))
        >>> checkpoint.restore(model=layer), checkpoint.latest()
        (1, 1)
        >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str], *, sharded: bool = False, **options: Any) -> None:
        self.sharded = sharded
        rank_folder = os.path.join(os.fspath(folder), f"rank-{rank()}-of-{size()}") if sharded else folder
        self.checkpoint = Checkpoint(rank_folder, **options)

    def save(self, step: int, **parts: Any) -> str:
        """Saves the state of a training after a step, and returns the folder; see `Checkpoint.save`.

        Args:
            step: the number of steps so far.
            **parts: the parts of the training by name, as `Checkpoint.save` takes them.

        Raises:
            CheckpointError: on all ranks, if the state cannot be written on one.
        """
        extra_option = {name: parts.pop(name) for name in ("extra",) if name in parts}
        path, error_text = "", ""
        try:
            if self.sharded or rank() == 0:
                path = self.checkpoint.save(step, **parts, **extra_option)
            else:
                Collected(parts)  # a sharded optimizer needs all ranks to collect its state
        except CheckpointError as error:
            error_text = str(error)
        ranks_and_errors = [(i, text) for i, (_, text) in enumerate(gather([path, error_text])) if text]
        if ranks_and_errors:
            fault_lines = [f"rank {i}: {text}" for i, text in ranks_and_errors]
            raise CheckpointError("unwritable", self.checkpoint.folder, f"step {step} could not be saved", fault_lines)
        return path if self.sharded else str(share(path))

    def restore(self, **parts: Any) -> int:
        """Puts the state of a checkpoint into the parts of a training, and returns its step; see `Checkpoint.restore`.

        Args:
            **parts: the parts of the training by name, as `Checkpoint.restore` takes them.

        Raises:
            CheckpointError: on all ranks, if the checkpoint is missing, damaged or different on one.
        """
        if parts.get("step") is None:
            parts["step"] = self.latest()
        step, error_text = 0, ""
        try:
            step = self.checkpoint.restore(**parts)
        except CheckpointError as error:
            error_text = str(error)
        fault_lines = [f"rank {i}: {text}" for i, text in enumerate(gather(error_text)) if text]
        if fault_lines:
            raise CheckpointError(
                "different", self.checkpoint.folder, "could not be restored on all ranks", fault_lines
            )
        return step

    def latest(self) -> int | None:
        """Returns the newest step that all ranks have, or None if there is none."""
        common_steps = set.intersection(*map(set, gather(self.checkpoint.steps())))
        return max(common_steps, default=None)
