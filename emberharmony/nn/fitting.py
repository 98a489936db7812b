"""`fit`: a training loop for those who do not need one of their own."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, NamedTuple, Protocol

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.nn.module import Module
from emberharmony.nn.progress import Progress


class Trainer(Protocol):
    """What `fit` needs of an optimizer; those of `emberharmony.optim` have it."""

    def step(self) -> None:
        """Changes the parameters by their gradients, and clears these."""

    def zero_grad(self) -> None:
        """Clears the gradients."""

    def learning_rates(self) -> list[float]:
        """Returns the learning rate of each group."""


class Step(NamedTuple):
    """What `fit` notes of a step.

    Attributes:
        step: its number, from 1 on.
        loss: the loss before the step.
        learning_rate: the learning rate of the first group of parameters.
        gradient_norm: the Euclidean norm of all gradients, before clipping.
        seconds: how long it took.
        validation: the validation loss, if it was computed after this step.
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    validation: float | None = None


class History(list[Step]):
    """The steps of a training, and why it stopped.

    Attributes:
        stopped: why the training stopped before its end; empty if it did not.
    """

    stopped: str = ""

    @property
    def losses(self) -> list[float]:
        """The loss of each step."""
        return [step.loss for step in self]


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
    validate_every: int = 100,
    clip: float | None = None,
    callbacks: Sequence[Callable[[Step], Any]] = (),
    progress: bool = True,
) -> History:
    """Trains a module, and returns what was noted of each step.

    Each step computes the loss of a batch and its gradients, and calls `optimizer.step()`. Ctrl-C ends the training
    after a whole step: module, optimizer and history are as after that step. If a loss or a gradient is NaN or
    infinite, the training ends before anything is changed by it, and a warning names the parameters.

    Args:
        module: the module to train; it is set to training, and back to what it was at the end.
        loss_fn: returns the scalar loss for a batch; a batch that is a tuple becomes several arguments.
        optimizer: changes the parameters.
        batches: batches of one epoch each time it is iterated, such as `nn.data.batches`.
        steps: how many steps are made; without it `epochs` decides.
        epochs: how many times `batches` is iterated; without it and `steps`, once.
        validation: returns the validation loss; it runs with the module in evaluation.
        validate_every: after how many steps `validation` runs; it also runs after the last.
        clip: the greatest norm of all gradients together; greater ones are scaled down to it.
        callbacks: called with each `Step`; one that returns a text ends the training for this reason.
        progress: whether loss, speed, learning rate and gradient norm are shown on the standard error stream.

    Raises:
        ArgumentError: if a number is not positive, both `steps` and `epochs` are given, or there is no batch.
        ArgumentTypeError: if `module` is not a module.

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
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"fit() trains an nn.Module, not {brief(module)}")
    if steps is not None and epochs is not None:
        raise ArgumentError("fit() takes steps or epochs, not both")
    for name, number in (("steps", steps), ("epochs", epochs), ("validate_every", validate_every), ("clip", clip)):
        if number is not None and not number > 0:
            raise ArgumentError(f"fit(): {name} must be above 0, got {brief(number)}")
    history = History()
    modes = [(part, part.training) for _, part in module.named_modules()]
    total = steps if steps is not None else _epochs_length(batches, epochs or 1)
    try:
        module.train()
        optimizer.zero_grad()
        with Progress(total, shown=progress) as shown:
            for batch in islice(_repeated(batches, epochs, endless=steps is not None), steps):
                taken = _step(module, loss_fn, optimizer, batch, clip, len(history) + 1)
                if isinstance(taken, str):
                    history.stopped = taken
                    warnings.warn(f"fit() stopped: {taken}", NonFiniteLossWarning, stacklevel=2)
                    break
                if validation is not None and (taken.step == total or taken.step % validate_every == 0):
                    taken = taken._replace(validation=_validated(module, validation))
                history.append(taken)
                shown.show(taken)
                history.stopped = next((text for text in [call(taken) for call in callbacks] if text), "")
                if history.stopped:
                    break
    except KeyboardInterrupt:
        history.stopped = "interrupted"
        optimizer.zero_grad()
    finally:
        for part, mode in modes:
            part.training = mode
    if not history and not history.stopped:
        raise ArgumentError("fit() got no batch")
    return history


def _step(
    module: Module, loss_fn: Callable[..., Any], optimizer: Trainer, batch: Any, clip: float | None, number: int
) -> Step | str:
    """Makes one step, and returns its `Step`, or as text why the training must stop."""
    started = time.perf_counter()
    parameters = module.parameters(trainable=True)
    inputs = batch if isinstance(batch, tuple) else (batch,)
    loss = ops.backward(lambda: loss_fn(*inputs), parameters)
    norm, value = (_number(x) for x in (_norm(parameters), loss))
    if not math.isfinite(value) or not math.isfinite(norm):
        named = [
            name for name, cell in module.named_parameters() if cell.grad is not None and not _is_finite(cell.grad)
        ]
        optimizer.zero_grad()
        return f"the loss of step {number} is {value}, and the gradients of these parameters are not finite: {named}"
    if clip is not None and norm > clip:
        for cell in parameters:
            cell.grad = None if cell.grad is None else ops.multiply(cell.grad, clip / norm)
    rate = optimizer.learning_rates()[0]
    optimizer.step()
    return Step(number, value, rate, norm, time.perf_counter() - started)


def _norm(parameters: Sequence[Parameter]) -> Any:
    """Returns the Euclidean norm of all gradients, in float32 or wider."""
    squares = [ops.sum(ops.square(ops.cast(p.grad, "float32"))) for p in parameters if p.grad is not None]
    return ops.sqrt(ops.sum(ops.stack(squares))) if squares else ops.zeros(())


def _validated(module: Module, validation: Callable[[], Any]) -> float:
    module.eval()
    try:
        return _number(validation())
    finally:
        module.train()


def _number(x: Any) -> float:
    return float(x)  # emberlint: ignore[precision-cast] -- the history holds Python numbers


def _is_finite(x: Any) -> bool:
    return bool(ops.all(ops.isfinite(x)))  # emberlint: ignore[precision-cast] -- only after a failed step


def _repeated(batches: Iterable[Any], epochs: int | None, endless: bool) -> Iterator[Any]:
    """Yields the batches of several epochs; it ends if an epoch has none."""
    epoch = 0
    while endless or epoch < (epochs or 1):
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            return
        epoch += 1


def _epochs_length(batches: Iterable[Any], epochs: int) -> int | None:
    return len(batches) * epochs if isinstance(batches, Sized) else None
