"""A small GPT with AdamW and dropout, on several backends in turn and on NumPy alone, compared after each step."""

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony import nn, ops
from emberharmony.core.types import BackendName
from emberharmony.data import sonnets
from emberharmony.demo.programs import load_example

LOSS, WEIGHTS, STATE = 1e-5, 2e-4, 1e-4
"""The largest differences that count as agreement: of a loss, of a weight, and of the state of the optimizer.

The state is compared with the largest element of each tensor. Rounding alone causes differences of about 5e-7 in the
losses. AdamW divides by the root of the mean square of a gradient, so it enlarges differences of weights whose
gradients are near 0.
"""

BATCH = 8


class Leg(NamedTuple):
    """A part of the training, on one backend: its steps, the loss of each, and its duration in seconds."""

    backend: str
    steps: str
    losses: list[float]
    seconds: float


class Comparison(NamedTuple):
    """The largest differences between two trainings, and whether all dropout masks are equal."""

    loss: float
    weights: float
    state: float
    masks: bool

    @property
    def agrees(self) -> bool:
        """Whether the differences are within `LOSS`, `WEIGHTS` and `STATE`, and the masks are equal."""
        return self.masks and self.loss <= LOSS and self.weights <= WEIGHTS and self.state <= STATE


class Result(NamedTuple):
    """The result of a demo: its legs, the same training on NumPy alone, and how they differ."""

    parameters: int
    legs: list[Leg]
    reference: Leg
    differences: Comparison


class Training:
    """A training that can be continued on another backend at any step.

    Args:
        steps: how many steps the learning rate is planned for.
        seed: of the initial weights, the dropout masks and the order of the batches.
    """

    def __init__(self, steps: int, seed: int) -> None:
        self.program = load_example("training/gpt")
        sonnet_text = self.program.Text(sonnets())
        self.model = self.program.GPT(len(sonnet_text.alphabet), seed=seed)
        self.optimizer = self.program.adamw(self.model, steps)
        self.batches = sonnet_text.batches(BATCH, seed=seed + 1).forever()
        self.losses: list[float] = []
        self.masks: list[bytes] = []

    def step(self) -> None:
        """Makes a step on the active backend, and notes its loss and the first dropout mask that it draws."""
        letters, labels = next(self.batches)
        self.masks.append(self._next_dropout_mask())
        loss = ops.backward(lambda: self.program.loss(self.model, letters, labels), self.model)
        self.optimizer.step()
        self.losses.append(float(loss))

    def _next_dropout_mask(self) -> bytes:
        """Returns the next dropout mask, which shows whether all earlier masks were equal."""
        dropout_layer = next(module for _, module in self.model.named_modules() if isinstance(module, nn.Dropout))
        dropout_mask = copy.deepcopy(dropout_layer)(ops.ones((BATCH, 64)))
        return bytes(np.packbits(np.asarray(ops.to_numpy(dropout_mask)) != 0))

    def arrays(self) -> tuple[list[Any], list[Any]]:
        """Returns the weights, and the tensors of the state of the optimizer, as arrays."""
        weight_arrays = [np.array(x) for x in self.model.state_dict(host=True).values()]
        state_rows = self.optimizer.state_dict()["state"].values()
        state_arrays = [np.asarray(ops.to_numpy(x)) for row in state_rows for x in row.values() if ops.is_tensor(x)]
        return weight_arrays, state_arrays


def compare_trainings(training: Training, reference: Training) -> Comparison:
    """Returns the largest differences between two trainings of equal length."""
    largest_loss_gap = max(abs(a - b) for a, b in zip(training.losses, reference.losses, strict=True))
    (weight_arrays, state_arrays), (reference_weights, reference_state) = training.arrays(), reference.arrays()
    weight_gaps = [float(np.abs(a - b).max()) for a, b in zip(weight_arrays, reference_weights, strict=True)]
    relative_state_gaps = [
        float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30))
        for a, b in zip(state_arrays, reference_state, strict=True)
    ]
    return Comparison(largest_loss_gap, max(weight_gaps), max(relative_state_gaps), training.masks == reference.masks)


def run(backends: Sequence[str], seed: int = 0, steps: int = 20, advance: Callable[[], None] = lambda: None) -> Result:
    """Trains `steps` steps on each backend in turn, then as many steps on NumPy alone; restores the active backend.

    Raises:
        BackendNotFoundError: if a backend is unknown.
        BackendUnavailableError: if a backend cannot be loaded.
    """
    former_backend = ops.get_backend()
    total_steps = steps * len(backends)
    try:
        legs = []
        switching_training: Training | None = None
        for leg_index, name in enumerate(backends):
            ops.set_backend(BackendName(name))
            switching_training = switching_training or Training(total_steps, seed)
            legs.append(_run_leg(switching_training, name, leg_index * steps, steps, advance))
        assert switching_training is not None
        ops.set_backend("numpy")
        single_training = Training(total_steps, seed)
        reference = _run_leg(single_training, "numpy alone", 0, total_steps, advance)
        comparison = compare_trainings(switching_training, single_training)
    finally:
        ops.set_backend(former_backend)
    return Result(sum(x.size for x in single_training.arrays()[0]), legs, reference, comparison)


def _run_leg(training: Training, name: str, steps_done: int, steps: int, advance: Callable[[], None]) -> Leg:
    start_time = time.perf_counter()
    for _ in range(steps):
        training.step()
        advance()
    seconds = time.perf_counter() - start_time
    return Leg(name, f"{steps_done + 1} to {steps_done + steps}", training.losses[steps_done:], seconds)
