"""The checkpoints of `fit`: resumes a training from one, saves new ones, and undoes an interrupted step."""

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import Any, Protocol

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.trees.objects import instances_in
from emberharmony.nn.module import Module


class Saver(Protocol):
    """The protocol of checkpoints for `fit`, which `emberharmony.io.Checkpoint` follows."""

    def save(self, step: int, **parts: Any) -> Any:
        """Saves the parts of a training after a step."""

    def restore(self, **parts: Any) -> int:
        """Restores the parts of a training, and returns the step."""

    def latest(self) -> int | None:
        """Returns the step of the newest checkpoint, or None if there is none."""


class Position:
    """The position of a training in its data: the epoch, and the batch in the epoch.

    Args:
        batches: the batches of an epoch.

    Attributes:
        epoch: how many epochs have ended.
        batch: how many batches of the present one have been used.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches: Any = batches
        self._stateful = hasattr(batches, "state_dict") and hasattr(batches, "load_state_dict")
        self.epoch = self.batch = 0

    def checkpoint_parts(self) -> dict[str, Any]:
        """Returns the parts of a checkpoint on the data: the position, and the batches if they have a state."""
        return {"fit": self, **({"batches": self._batches} if self._stateful else {})}

    def state_dict(self) -> dict[str, int]:
        """Returns the epoch and batch of the position by name."""
        return {"epoch": self.epoch, "batch": self.batch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Sets the position to the epoch and batch in a state dict."""
        commit(self.loading_steps(state))

    def loading_steps(self, state: dict[str, int]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        return [assignment(self, "epoch", int(state["epoch"])), assignment(self, "batch", int(state["batch"]))]

    def rewinding_steps(self) -> list[Step]:
        """Returns assignments that later set the position and the batches back to their present state."""
        steps, batches = self.loading_steps(self.state_dict()), self._batches
        if hasattr(batches, "rewinding_steps"):
            return [*steps, *batches.rewinding_steps()]
        return [*steps, (batches.load_state_dict, batches.state_dict())] if self._stateful else steps

    def remaining_batches(self) -> Iterator[Any]:
        """Yields the batches of the present epoch from the position on.

        Batches that do not know their position are iterated anew, and those that were used are left out.
        """
        for batch in self._batches if self._stateful else islice(self._batches, self.batch, None):
            self.batch += 1
            yield batch

    def is_at_end(self) -> bool:
        """Returns whether all batches of the epoch have been used; False if their number is unknown."""
        return isinstance(self._batches, Sized) and self.batch >= len(self._batches)

    def end_epoch(self) -> None:
        """Sets the position to the beginning of the next epoch."""
        commit([assignment(self, "epoch", self.epoch + 1), assignment(self, "batch", 0)])


class Saves:
    """The checkpoints of one call of `fit`; it restores the newest one at once.

    Args:
        checkpoint: saves and restores.
        every: after how many steps it saves; None after each epoch.
        module: the module that is trained.
        optimizer: its optimizer.
        position: where the training is in its data.
        random: generators outside of the module.

    Attributes:
        restored: how many steps had been made before, by the checkpoint that was restored.

    Raises:
        ArgumentError: if `every` is not positive.
        ArgumentTypeError: if `checkpoint` cannot save and restore.
    """

    def __init__(
        self,
        checkpoint: Saver,
        every: int | None,
        module: Module,
        optimizer: Any,
        position: Position,
        random: Any,
    ) -> None:
        if not all(hasattr(checkpoint, name) for name in ("save", "restore", "latest")):
            raise ArgumentTypeError(
                f"fit(): checkpoint is an emberharmony.io.Checkpoint, not {brief(checkpoint)}: write "
                f"io.Checkpoint('folder')"
            )
        if every is not None and not every > 0:
            raise ArgumentError(f"fit(): checkpoint_every must be above 0, got {brief(every)}")
        self._checkpoint, self._every, self._position = checkpoint, every, position
        self._module = module
        self._parts = {"model": module, "optimizer": optimizer, "data": position.checkpoint_parts()}
        if random is not None:
            self._parts["random"] = random
        self._random = random
        self._back: list[Step] = []
        self.restored = self._saved = 0 if checkpoint.latest() is None else checkpoint.restore(**self._parts)

    def begin_step(self) -> None:
        """Records the state of data, generators and buffers before a step, for `undo_step`."""
        rewinding_changes = [
            *self._position.rewinding_steps(),
            *(buffer.replace_step(buffer.value) for buffer in self._module.buffers()),
        ]
        for generator in instances_in([self._module, self._random], ops.random.Generator):
            rewinding_changes += generator.rewinding_steps()
        self._back = (
            rewinding_changes  # only now, because until here the notes on the step before would be mixed with these
        )

    def undo_step(self) -> None:
        """Restores the state of data, generators and buffers from before the interrupted step."""
        commit(self._back)

    def save(self, step: int, **extra: float | None) -> None:
        """Saves a checkpoint after a step, unless one has been saved after this step."""
        if step > self._saved:
            self._checkpoint.save(step, **self._parts, extra=extra)
            self._saved = step

    def is_save_due(self, step: int, epoch_ended: bool) -> bool:
        """Returns whether a checkpoint is due after a step, by its number or at the end of an epoch."""
        return epoch_ended if self._every is None else step % self._every == 0
