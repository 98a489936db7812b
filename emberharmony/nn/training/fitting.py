"""`fit`, a ready training loop."""

import contextlib
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Protocol

from emberharmony import ops
from emberharmony.core.errors import ArgumentError
from emberharmony.nn.module import Module
from emberharmony.nn.training import arguments
from emberharmony.nn.training.first_batch import watch_first_step
from emberharmony.nn.training.history import History
from emberharmony.nn.training.progress import Progress, Step
from emberharmony.nn.training.resuming import Position, Saver, Saves
from emberharmony.optim import clipping


class Trainer(Protocol):
    """The protocol of an optimizer for `fit`, which the optimizers of `emberharmony.optim` follow."""

    def step(self) -> None:
        """Updates the parameters by their gradients, and clears the gradients."""

    def zero_grad(self) -> None:
        """Clears the gradients of all parameters."""

    def learning_rates(self) -> list[float]:
        """Returns the learning rate of each group of parameters."""


class NonFiniteLossWarning(UserWarning):
    """Issued by `fit` when it stops because a loss or a gradient is NaN or infinite."""


def fit(
    module: Module,
    loss_fn: Callable[..., Any],
    optimizer: Trainer,
    batches: Iterable[Any],
    *,
    steps: int | None = None,
    epochs: int | None = None,
    validation: Callable[[], Any] | None = None,
    validate_every: int | None = None,
    clip: float | None = None,
    callbacks: Sequence[Callable[[Step], Any]] = (),
    progress: bool = True,
    checkpoint: Saver | None = None,
    checkpoint_every: int | None = None,
    random: Any = None,
) -> History:
    """Trains a module on batches, and returns the history of the steps: losses, gradient norms and times.

    Each step computes the loss of a batch and its gradients, and calls `optimizer.step()`. Ctrl-C ends the training
    after a whole step: module, optimizer and history are as after that step. If a loss or a gradient is NaN or
    infinite, the training ends before anything is changed by it, and a warning names the parameters. The first step
    runs in `ops.checked("bounds")`, uncompiled, so that a label that is no class raises an error on every backend.

    With a checkpoint, the training goes on where the newest one was saved, if there is one: `steps` and `epochs` count
    from the very beginning, and the history has the steps of this call. Module, optimizer, the position in the data and
    random generators are saved after each epoch or each `checkpoint_every` steps, at the end, and after Ctrl-C. On the
    same backend the losses are those of a training without a break, to the last digit, if all random numbers come from
    these generators: the default streams (`ops.random.normal(shape)`) are neither saved nor set back after Ctrl-C.

    Several ranks train together if the module is an `nn.DataParallel`, the batches have `shard=True`, and a checkpoint
    is an `io.RankCheckpoint`; the loss is then the mean of all ranks.

    Args:
        module: the module to train; it is set to training, and back to what it was at the end.
        loss_fn: returns the scalar loss for a batch; a batch that is a tuple becomes several arguments.
        optimizer: one of `emberharmony.optim` for parameters of the module; each step calls its `step`.
        batches: batches of one epoch each time it is iterated, such as `nn.data.batches`; arrays of NumPy become
            tensors.
        steps: how many steps are made; None leaves it to `epochs`.
        epochs: how many times `batches` is iterated; None, and no `steps`, is once.
        validation: returns the validation loss; it runs with the module in evaluation. None computes none.
        validate_every: after how many steps `validation` runs; it also runs after the last. None is after each epoch,
            or every 100 steps if `steps` are given or `batches` has no length.
        clip: the greatest norm of all gradients together; greater ones are scaled down to it, as by
            `optim.clip_by_global_norm`. None clips nothing.
        callbacks: called with each `Step`; one that returns a text ends the training for this reason.
        progress: whether loss, speed, learning rate and gradient norm are shown on the standard error stream.
        checkpoint: where the training is saved, an `emberharmony.io.Checkpoint`. Batches that have no `state_dict` are
            iterated anew when the training goes on, and those that were used before are left out. None saves nothing.
        checkpoint_every: after how many steps it is saved; None is after each epoch.
        random: random generators outside of the module, which checkpoints save too; None if there are none.

    Raises:
        ArgumentError: if a number is not positive, both `steps` and `epochs` are given, or there is no batch.
        ArgumentTypeError: if `module` is not a module, or `checkpoint` no checkpoint.

    Example:
        >>> layer = nn.Linear(1, 1)
        >>> x = ops.linspace(-1.0, 1.0, 16)[:, None]
        >>> loss = lambda x: ops.mean(ops.square(layer(x) - 2.0 * x))
        >>> history = nn.fit(
        ...     layer, loss, optim.Adam(layer, lr=0.1), nn.data.batches(x, batch_size=8), steps=100, progress=False
        ... )
        >>> len(history), history[-1].loss < 0.01
        (100, True)
    """
    arguments.require_fit_arguments(module, loss_fn, optimizer, batches, validation)
    number_by_option = {"steps": steps, "epochs": epochs, "validate_every": validate_every, "clip": clip}
    arguments.require_positive_numbers(number_by_option, callbacks)
    arguments.warn_of_missing_parameters(module, optimizer)
    position = Position(batches)
    saves = None
    if checkpoint is not None:
        saves = Saves(checkpoint, checkpoint_every, module, optimizer, position, random)
    batches_per_epoch = len(batches) if steps is None and isinstance(batches, Sized) else None
    training_run = _Run(
        module, loss_fn, optimizer, clip, saves, validation, validate_every or batches_per_epoch or 100, callbacks
    )
    training_run.total = steps if batches_per_epoch is None else batches_per_epoch * (epochs or 1)
    modules_and_modes = [(submodule, submodule.training) for _, submodule in module.named_modules()]
    try:
        module.train()
        optimizer.zero_grad()
        with Progress(training_run.total, shown=progress) as training_run.shown:
            training_run.train(position, steps, None if steps is not None else epochs or 1)
    except KeyboardInterrupt:
        training_run.record_interruption()
    finally:
        for submodule, was_training in modules_and_modes:
            submodule.training = was_training
    if not training_run.steps_made and not training_run.history.stopped:
        raise ArgumentError("fit() got no batch")
    training_run.save()
    return training_run.history


class _Run:
    """The training of one call of `fit`, with its history; see `fit` for the arguments.

    Attributes:
        history: the steps that were made in this call.
        total: how many steps there will be, with those before this call; None if this is unknown.
        shown: the progress that is shown.
    """

    def __init__(
        self,
        module: Module,
        loss_fn: Callable[..., Any],
        optimizer: Trainer,
        clip: float | None,
        saves: Saves | None,
        validation: Callable[[], Any] | None,
        validate_every: int,
        callbacks: Sequence[Callable[[Step], Any]],
    ) -> None:
        self._module, self._loss_fn, self._optimizer, self._clip = module, loss_fn, optimizer, clip
        self._validation, self._validate_every, self._callbacks = validation, validate_every, callbacks
        self._saves = saves
        self._begun = 0
        self._pending: Step | None = None
        self.history = History()
        self.total: int | None = None
        self.shown: Any = None

    @property
    def steps_made(self) -> int:
        """The number of steps made so far, including those before a restored checkpoint."""
        return len(self.history) + (0 if self._saves is None else self._saves.restored)

    def train(self, position: Position, steps: int | None, epochs: int | None) -> None:
        """Makes training steps until the number of steps or epochs is reached, or a fault or callback stops it."""
        while epochs is None or position.epoch < epochs:
            batches = position.remaining_batches()
            while True:
                if steps is not None and self.steps_made >= steps:
                    return
                if self._saves is not None:
                    self._saves.begin_step()
                self._begun = self.steps_made + 1
                batch = next(batches, batches)
                if batch is batches:  # the epoch has no further batch
                    if not position.batch:
                        arguments.warn_of_early_end(position.epoch, epochs or 0)
                        return
                    break
                loss_arguments = batch if isinstance(batch, tuple) else (batch,)
                if not self._make_step(tuple(map(_tensor_of_part, loss_arguments))):
                    return
                if position.is_at_end():
                    break
                self._save_if_due(False)
            position.end_epoch()
            self._save_if_due(True)

    def record_interruption(self) -> None:
        """Records an interruption as the reason of the end, and undoes an unfinished step."""
        self.history.stopped = "interrupted"
        missing_gradient_flags = [cell.grad is None for cell in self._module.parameters(trainable=True)]
        if self._pending is not None and self._pending.step == self.steps_made + 1 and all(missing_gradient_flags):
            self.history.append(self._pending)  # cleared gradients show that the step was made
        elif self._saves is not None and self._begun == self.steps_made + 1:
            self._saves.undo_step()
        self._optimizer.zero_grad()

    def save(self) -> None:
        """Saves a checkpoint of the last step."""
        if self._saves is not None and self.history:
            self._saves.save(self.steps_made, loss=self.history[-1].loss, validation=self.history[-1].validation)

    def _save_if_due(self, epoch_ended: bool) -> None:
        if self._saves is not None and self._saves.is_save_due(self.steps_made, epoch_ended):
            self.save()

    def _make_step(self, inputs: tuple[Any, ...]) -> bool:
        """Makes a training step with validation and callbacks if they are due, and returns whether to continue."""
        nonfinite_text = self._change_parameters(inputs)
        if nonfinite_text:
            if self._saves is not None:
                self._saves.undo_step()
            self.history.stopped = nonfinite_text
            warnings.warn(f"fit() stopped: {nonfinite_text}", NonFiniteLossWarning, stacklevel=4)
            return False
        last_step = self.history[-1]
        if self._validation is not None and (
            last_step.step == self.total or last_step.step % self._validate_every == 0
        ):
            self.history[-1] = last_step = last_step._replace(
                validation=_run_validation(self._module, self._validation)
            )
        self.shown.show(last_step)
        self.history.stopped = next((text for text in [call(last_step) for call in self._callbacks] if text), "")
        return not self.history.stopped

    def _change_parameters(self, inputs: tuple[Any, ...]) -> str:
        """Computes gradients, updates the parameters and records the step; returns why to stop, or an empty text."""
        start_time, step_number = time.perf_counter(), self.steps_made + 1
        parameters = self._module.parameters(trainable=True)
        if step_number == 1:
            arguments.require_loss_of_batch(self._loss_fn, inputs)
        # Only the first step checks indices, such as labels: on MLX a wrong index reads other memory without an error.
        with watch_first_step(self._module) if step_number == 1 else contextlib.nullcontext():
            loss = ops.backward(lambda: self._loss_fn(*inputs), parameters)
        loss = _mean_over_ranks(self._module, loss)
        if step_number == 1:
            arguments.warn_of_double_precision(self._module, self._loss_fn, inputs, loss)
        gradient_norm = clipping.gradient_norm(parameters)
        norm_value, loss_value = _python_number(gradient_norm), _python_number(loss)
        if not math.isfinite(loss_value) or not math.isfinite(norm_value):
            cells = self._module.named_parameters()
            faulty_names = [name for name, cell in cells if cell.grad is not None and not _is_finite(cell.grad)]
            self._optimizer.zero_grad()
            return (
                f"the loss of step {step_number} is {loss_value}, and the gradients of these parameters are not "
                f"finite: {faulty_names}; {_nonfinite_hint(inputs, step_number)}"
            )
        if self._clip is not None:
            clipping.scale_gradients(parameters, gradient_norm, self._clip)
        self._pending = Step(step_number, loss_value, self._optimizer.learning_rates()[0], norm_value, 0.0)
        self._optimizer.step()
        self.history.append(self._pending._replace(seconds=time.perf_counter() - start_time))
        return ""


def _mean_over_ranks(module: Module, loss: Any) -> Any:
    """Averages gradients and loss over all ranks for a `DataParallel` module; returns the loss of other modules."""
    parallel_module = sys.modules.get("emberharmony.nn.data_parallel")
    if parallel_module is not None and isinstance(module, parallel_module.DataParallel):
        return module.synchronize(loss)
    return loss


def _run_validation(module: Module, validation: Callable[[], Any]) -> float:
    module.eval()
    try:
        return _python_number(validation())
    finally:
        module.train()


def _python_number(x: Any) -> float:
    return float(x)  # emberlint: ignore[precision-cast] -- the history holds Python numbers


def _nonfinite_hint(inputs: tuple[Any, ...], number: int) -> str:
    """Returns a hint for the message on a loss that is not finite."""
    if not all(map(_is_finite, filter(ops.is_tensor, ops.tree_leaves(inputs)))):
        return "the batch itself has NaN or infinite values: replace them (ops.nan_to_num) or leave their rows out"
    advice = "fit() in \"with ops.checked('nan'):\" names the op that makes the first NaN or infinity"
    if number == 1:
        return f"no step was made before, so the learning rate is not the cause; {advice}"
    return f"take a smaller learning rate or clip=1.0; {advice}"


def _is_finite(x: Any) -> bool:
    return bool(ops.all(ops.isfinite(x)))  # emberlint: ignore[precision-cast] -- only after a failed step


def _tensor_of_part(part: Any) -> Any:
    """Returns a part of a batch, with NumPy arrays converted to tensors."""
    has_memory = hasattr(part, "__array_interface__")  # emberlint: ignore[backend-isinstance] -- data of the user
    is_array = has_memory and part.dtype.kind in "biufc"
    return ops.convert_to_tensor(part) if is_array else part
