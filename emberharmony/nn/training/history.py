"""`History`, the record of a training's steps that `fit` returns."""

import math
from typing import TYPE_CHECKING, Any

from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.nn.training.progress import Step


class History(list[Step]):
    """The steps of a training, and why it stopped.

    Attributes:
        stopped: why the training stopped before its end; empty if it did not.

    Args:
        iterable: the steps that it begins with; by default none.
    """

    stopped: str = ""

    @property
    def losses(self) -> list[float]:
        """The loss of each step."""
        return [step.loss for step in self]

    @property
    def validations(self) -> list[tuple[int, float]]:
        """Pairs (step number, validation loss) for the steps after which the validation loss was computed."""
        return [(step.step, step.validation) for step in self if step.validation is not None]

    def plot(self, axes: Any = None) -> Any:
        """Draws the losses of the steps with matplotlib, and returns the axes of the plot.

        Args:
            axes: the axes of matplotlib to draw into; None makes a figure.

        Raises:
            ArgumentTypeError: if `axes` are none of matplotlib.
            BackendUnavailableError: if matplotlib is missing.
        """
        # The modules are imported only here, because only `plot` needs them.
        from emberharmony.core.errors import BackendUnavailableError

        if axes is not None and not hasattr(axes, "plot"):
            raise ArgumentTypeError(
                f"plot() draws all losses, into axes of matplotlib, not {brief(axes)}: write history.plot()"
            )
        if axes is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise BackendUnavailableError("plot() needs matplotlib: pip install matplotlib") from error
            axes = plt.figure(figsize=(6, 3), layout="constrained").subplots()
        axes.plot([step.step for step in self], self.losses, label="loss")
        if self.validations:
            axes.plot(*zip(*self.validations, strict=True), "o-", label="validation loss")
        axes.set_xlabel("step")
        axes.legend()
        return axes

    if not TYPE_CHECKING:  # type checkers use the type of `list`

        def __getitem__(self, key: Any) -> Any:
            """Returns the record of a step, or for a slice a list of records.

            Raises:
                ArgumentTypeError: if the key is the name of a series, as in Keras.
            """
            if isinstance(key, str):
                raise ArgumentTypeError(
                    f"a history is a list of steps, not {key!r}: use history.losses or .validations"
                )
            return super().__getitem__(key)

    def __repr__(self) -> str:
        if not self:
            return f"History(no step{self._reason_text()})"
        watch_first_step, last_step = self[0], self[-1]
        seconds = math.fsum(step.seconds for step in self)
        validation_text = f", validation loss {self.validations[-1][1]:.4g}" if self.validations else ""
        steps_text = "1 step" if len(self) == 1 else f"{len(self)} steps"
        return (
            f"History({steps_text} in {seconds:.3g} s, loss {watch_first_step.loss:.4g} to "
            f"{last_step.loss:.4g}{validation_text}{self._reason_text()})"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Prints the summary in IPython, which would otherwise print all steps as a list."""
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the summary, and a curve of the losses."""
        # The module is imported only here, because only notebooks need it.
        from html import escape

        from emberharmony.core.display.picture import svg_curve

        return f"<div><p>{escape(repr(self))}</p>{svg_curve(self.losses, 'the loss of each step')}</div>"

    def _reason_text(self) -> str:
        return f", stopped: {self.stopped}" if self.stopped else ""
