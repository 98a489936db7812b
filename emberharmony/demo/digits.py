"""Softmax regression on handwritten digits, on several backends in turn and on NumPy alone."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony import ops
from emberharmony.core.types import BackendName
from emberharmony.data import digits
from emberharmony.demo.programs import load_example

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
        """Whether the weights of both trainings agree within `TOLERANCE`."""
        return self.difference <= TOLERANCE


def run(backends: Sequence[str], seed: int = 0, steps: int = 60, advance: Callable[[], None] = lambda: None) -> Result:
    """Trains `steps` steps on each backend in turn, then as many steps on NumPy alone; restores the active backend.

    Raises:
        BackendNotFoundError: if a backend is unknown.
        BackendUnavailableError: if a backend cannot be loaded.
    """
    former_backend = ops.get_backend()
    try:
        # Load all backends first, so that a wrong name fails before any training.
        for name in backends:
            ops.set_backend(BackendName(name))
        legs, state = _train(backends, seed, steps, advance)
        reference_legs, reference_state = _train(["numpy"], seed, steps * len(backends), advance)
    finally:
        ops.set_backend(former_backend)
    largest_difference = max(float(np.abs(a - b).max()) for a, b in zip(state[:2], reference_state[:2], strict=True))
    return Result(
        len(digits().train_labels), legs, reference_legs[0]._replace(backend="numpy alone"), largest_difference
    )


def _train(
    backends: Sequence[str], seed: int, steps: int, advance: Callable[[], None]
) -> tuple[list[Leg], Sequence[np.ndarray[Any, Any]]]:
    """Trains on backends in turn, and returns the legs of the training and the final state as NumPy arrays."""
    example_program = load_example("softmax_regression")
    digit_data = digits(seed=seed)
    ops.set_backend(BackendName(backends[0]))
    state = example_program.initial_state(64, 10, seed)  # the state follows each switch of the backend
    legs = []
    for leg_index, name in enumerate(backends):
        ops.set_backend(BackendName(name))
        images, labels = ops.convert_to_tensor(digit_data.train_images), ops.convert_to_tensor(digit_data.train_labels)
        targets = ops.one_hot(labels, 10)
        losses = []
        start_time = time.perf_counter()
        for _ in range(steps):
            example_program.step(state, images, targets)
            losses.append(float(example_program.loss(state, images, targets)))
            advance()
        seconds = time.perf_counter() - start_time
        accuracy = example_program.accuracy(
            state, ops.convert_to_tensor(digit_data.test_images), ops.convert_to_tensor(digit_data.test_labels)
        )
        span_text = f"{leg_index * steps + 1} to {(leg_index + 1) * steps}"
        legs.append(Leg(name, span_text, losses[-1], float(accuracy), seconds, losses))
    return legs, [np.array(ops.to_numpy(tensor)) for tensor in state]
