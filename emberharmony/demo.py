"""The training runs of `emberharmony demo`: the example program on several backends in turn, and on NumPy alone."""

import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, BackendUnavailableError
from emberharmony.core.types import BackendName
from emberharmony.data import digits

TOLERANCE = 1e-4
"""The largest difference of the weights that counts as agreement.

The weights are float32 and of magnitude 1. Rounding alone causes a difference of about 1e-6 after some hundred steps.
"""


class Leg(NamedTuple):
    """A part of the training, on one backend: its last loss and accuracy, its duration, and the loss of each step."""

    backend: str
    steps: str
    loss: float
    accuracy: float
    seconds: float
    losses: list[float]


class Result(NamedTuple):
    """The result of a demo: its legs, the same training on NumPy alone, and the largest difference of the weights."""

    images: int
    legs: list[Leg]
    reference: Leg
    difference: float

    @property
    def agrees(self) -> bool:
        """Whether the weights agree within `TOLERANCE`."""
        return self.difference <= TOLERANCE


def example() -> ModuleType:
    """Returns the program `examples/softmax_regression.py` as a module, from the wheel or from the checkout."""
    here = Path(__file__).resolve().parent
    places = (here / "examples" / "softmax_regression.py", here.parent / "examples" / "softmax_regression.py")
    path = next(place for place in places if place.exists())
    spec = importlib.util.spec_from_file_location("softmax_regression", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(backends: Sequence[str], seed: int = 0, steps: int = 60, advance: Callable[[], None] = lambda: None) -> Result:
    """Trains `steps` steps on each backend in turn, then as many steps on NumPy alone; restores the active backend.

    Raises:
        BackendNotFoundError: if a backend is unknown.
        BackendUnavailableError: if a backend cannot be loaded.
    """
    before = ops.get_backend()
    try:
        # Load all backends first, so that a wrong name fails before any training.
        for name in backends:
            ops.set_backend(BackendName(name))
        legs, state = _train(backends, seed, steps, advance)
        reference, wanted = _train(["numpy"], seed, steps * len(backends), advance)
    finally:
        ops.set_backend(before)
    difference = max(float(np.abs(a - b).max()) for a, b in zip(state[:2], wanted[:2], strict=True))
    return Result(len(digits().train_labels), legs, reference[0]._replace(backend="numpy alone"), difference)


def _train(
    backends: Sequence[str], seed: int, steps: int, advance: Callable[[], None]
) -> tuple[list[Leg], Sequence[np.ndarray[Any, Any]]]:
    """Returns the legs, and the final state as NumPy arrays."""
    program = example()
    data = digits(seed=seed)
    ops.set_backend(BackendName(backends[0]))
    state = program.initial_state(64, 10, seed)  # its cells follow each switch of the backend
    legs = []
    for leg, name in enumerate(backends):
        ops.set_backend(BackendName(name))
        images, labels = ops.convert_to_tensor(data.train_images), ops.convert_to_tensor(data.train_labels)
        targets = ops.one_hot(labels, 10)
        losses = []
        started = time.perf_counter()
        for _ in range(steps):
            program.step(state, images, targets)
            losses.append(float(program.loss(state, images, targets)))
            advance()
        seconds = time.perf_counter() - started
        hits = program.accuracy(state, ops.convert_to_tensor(data.test_images), ops.convert_to_tensor(data.test_labels))
        span = f"{leg * steps + 1} to {(leg + 1) * steps}"
        legs.append(Leg(name, span, losses[-1], float(hits), seconds, losses))
    return legs, [np.array(ops.to_numpy(part)) for part in state]


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
    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in kinds:
        raise ArgumentError(
            f"matplotlib cannot write the kind of picture of {file}: end the name with one of .{', .'.join(kinds)}"
        )


def draw(result: Result, file: str) -> None:
    """Draws the loss of each step, with one colour for each backend, and writes the picture to a file."""
    from matplotlib.figure import Figure

    axes = (figure := Figure(figsize=(7, 4), layout="constrained")).subplots()
    axes.plot(range(1, 1 + len(result.reference.losses)), result.reference.losses, "k:", label="numpy alone")
    at = 1
    for leg in result.legs:
        axes.plot(range(at, at + len(leg.losses)), leg.losses, label=leg.backend)
        at += len(leg.losses)
    axes.set(xlabel="step", ylabel="mean cross-entropy (nats)", yscale="log")
    axes.legend()
    figure.savefig(file)
