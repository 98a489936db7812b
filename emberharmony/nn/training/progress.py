"""Shows the progress of a training: a bar in notebooks and terminals, elsewhere a line now and then."""

import importlib.util
import sys
import time
from typing import Any, NamedTuple

_SECONDS = 10.0
"""The seconds between two printed lines where no bar can be drawn."""

_REDRAWN = 0.1
"""The least seconds between two updates of the bar in a notebook."""


class Step(NamedTuple):
    """The record of one training step of `fit`: loss, learning rate, gradient norm and time.

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


class _NotebookBar:
    """A progress bar that a notebook shows below the cell.

    Args:
        total: how many steps there will be; None if this is unknown.
        display: `IPython.display.display`.
        html: `IPython.display.HTML`.
    """

    def __init__(self, total: int | None, display: Any, html: Any) -> None:
        self._total, self._html, self._shown = total, html, 0.0
        self._last: tuple[int, str] | None = None
        self._handle = display(html(""), display_id=True)

    def update(self, step: int, text: str) -> None:
        """Shows a step in the notebook, at most ten times in a second."""
        current_time = time.monotonic()
        self._last = step, text
        if current_time - self._shown >= _REDRAWN:
            self._shown = current_time
            self.stop()

    def stop(self) -> None:
        """Shows the last step in the notebook, if it is not shown yet."""
        if self._last is not None:
            step, text = self._last
            self._last = None
            steps_text = f"{step}" if self._total is None else f"{step}/{self._total}"
            length_html = "" if self._total is None else f' value="{step}" max="{self._total}"'
            self._handle.update(self._html(f"<div><progress{length_html}></progress> {steps_text} {text}</div>"))


class _TerminalBar:
    """A progress bar of the library rich on the standard error stream.

    Args:
        total: how many steps there will be; None if this is unknown.
    """

    def __init__(self, total: int | None) -> None:
        # The library rich is imported only here, because `fit` also works without it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._bar.start()
        self._task = self._bar.add_task("", total=total)

    def update(self, step: int, text: str) -> None:
        """Shows a step in the bar of the terminal."""
        self._bar.update(self._task, completed=step, description=text)

    def stop(self) -> None:
        """Stops the drawing of the bar in the terminal."""
        self._bar.stop()


def _make_bar(step_count: int | None) -> Any:
    """Returns a progress bar for the present notebook or terminal; None if the program runs in neither."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if hasattr(shell, "kernel"):
        # IPython is imported only here, because only notebooks have it.
        from IPython.display import HTML, display

        return _NotebookBar(step_count, display, HTML)
    if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
        return _TerminalBar(step_count)
    return None


class Progress:
    """A context manager that shows the steps of a training.

    Args:
        total: how many steps there will be; None if this is unknown.
        shown: whether anything is written.
    """

    def __init__(self, total: int | None, shown: bool) -> None:
        self._total, self._shown = total, shown
        self._bar: Any = None
        self._written = self._began = time.monotonic()

    def __enter__(self) -> "Progress":
        if self._shown:
            self._bar = _make_bar(self._total)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, step: Step) -> None:
        """Shows a step: in the bar, or where there is none by a printed line now and then."""
        if not self._shown:
            return
        current_time = time.monotonic()
        steps_per_second = step.step / max(current_time - self._began, 1e-9)
        text = (
            f"loss {step.loss:.4g}  {steps_per_second:.3g} steps/s  learning rate {step.learning_rate:.3g}  "
            f"gradient norm {step.gradient_norm:.3g}"
        )
        if step.validation is not None:
            text += f"  validation {step.validation:.4g}"
        if self._bar is not None:
            self._bar.update(step.step, text)
        elif current_time - self._written >= _SECONDS or step.step == self._total:
            self._written = current_time
            total_text = "" if self._total is None else f" of {self._total}"
            print(f"step {step.step}{total_text}: {text}", file=sys.stderr, flush=True)  # noqa: T201
