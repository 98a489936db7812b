"""The picture of the demo's losses, drawn with matplotlib."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError, BackendUnavailableError


class Curves(NamedTuple):
    """The losses of a training run.

    Attributes:
        title: what is trained.
        legs: the name of each backend in turn, and the losses there.
        reference: the losses of the same training on NumPy alone.
    """

    title: str
    legs: Sequence[tuple[str, Sequence[float]]]
    reference: Sequence[float]


def check_picture(file: str) -> None:
    """Checks, before any training, that a picture can be drawn and written to a file.

    Raises:
        BackendUnavailableError: if matplotlib is missing; the message has the command that installs it.
        ArgumentError: if the folder does not exist, or matplotlib cannot write this kind of picture.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise BackendUnavailableError('drawing needs matplotlib: pip install "emberharmony[plot]"')
    from matplotlib.backend_bases import FigureCanvasBase

    path = Path(file)
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"the folder of {file} does not exist")
    file_types = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in file_types:
        raise ArgumentError(
            f"matplotlib cannot write the kind of picture of {file}: end the name with one of .{', .'.join(file_types)}"
        )


def draw(runs: Sequence[Curves], file: str) -> None:
    """Draws the loss of each step, with one colour for each backend, and writes the picture to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7 * len(runs), 4), layout="constrained")
    axes: Any
    for axes, curves in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs, strict=True):
        axes.plot(range(1, 1 + len(curves.reference)), curves.reference, "k:", label="numpy alone")
        offset = 1
        for name, losses in curves.legs:
            axes.plot(range(offset, offset + len(losses)), losses, label=name)
            offset += len(losses)
        axes.set(title=curves.title, xlabel="step", ylabel="mean cross-entropy (nats)", yscale="log")
        axes.legend()
    figure.savefig(file)
