"""The progress of a training on the standard error stream: a bar of rich, or a line now and then without rich."""

import importlib.util
import sys
import time
from typing import Any, NamedTuple

_SECONDS = 10.0
"""How often a line is written where no bar can be drawn."""


class Step(NamedTuple):
    """What `fit` notes of a step.

    Attributes:
        step: its number, from 1 on.
        loss: the loss before the step.
        learning_rate: the learning rate of the first group of parameters.
        gradient_norm: the Euclidean norm of all gradients, before clipping.
        seconds: how long it took.
        validation: the validation loss; None if it was not computed after this step.
    """

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    validation: float | None = None


class Progress:
    """A context in which the steps of a training are shown.

    Args:
        total: how many steps there will be; None if this is unknown.
        shown: whether anything is written.
    """

    def __init__(self, total: int | None, shown: bool) -> None:
        self._total, self._shown = total, shown
        self._bar: Any = None
        self._written = self._began = time.monotonic()

    def __enter__(self) -> "Progress":
        if self._shown and sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
            # Imported here, because `fit` works without rich.
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, step: Step) -> None:
        """Shows a step."""
        if not self._shown:
            return
        now = time.monotonic()
        speed = step.step / max(now - self._began, 1e-9)
        text = (
            f"loss {step.loss:.4g}  {speed:.3g} steps/s  learning rate {step.learning_rate:.3g}  "
            f"gradient norm {step.gradient_norm:.3g}"
        )
        if step.validation is not None:
            text += f"  validation {step.validation:.4g}"
        if self._bar is not None:
            self._bar.update(self._task, completed=step.step, description=text)
        elif now - self._written >= _SECONDS or step.step == self._total:
            self._written = now
            total = "" if self._total is None else f" of {self._total}"
            print(f"step {step.step}{total}: {text}", file=sys.stderr, flush=True)  # noqa: T201
