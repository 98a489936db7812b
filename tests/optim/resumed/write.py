"""Writes a checkpoint after two steps, and the parameters after two more: `python write.py BACKEND`.

It runs with the version whose files are to be kept: `PYTHONPATH=CHECKOUT python tests/optim/resumed/write.py numpy`.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import Parameter, io, nn, ops, optim

FOLDER = Path(__file__).parent
STEPS = 2
ROWS = np.arange(6).reshape(2, 3)

Kind = Callable[[Any], Any]
KINDS: dict[str, Kind] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, maximize=True),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=optim.schedules.cosine(0.1, T_max=10)),
    "Adamax": lambda p: optim.Adamax(p, lr=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: optim.RAdam(p, lr=0.1, betas=(0.9, 0.9)),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.9),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1, t0=1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.1),
    "Lion": lambda p: optim.Lion(p, lr=0.1, weight_decay=0.1),
    "LAMB": lambda p: optim.LAMB(p, lr=0.1),
    "Adafactor": lambda p: optim.Adafactor(p, lr=0.1),
    "Muon": lambda p: optim.Muon(p, lr=0.1),
    "LBFGS": lambda p: optim.LBFGS(p, lr=0.1, max_iter=2),
    "plateau": lambda p: optim.SGD(p, lr=optim.ReduceOnPlateau(0.1, patience=1)),
    "Accumulate": lambda p: optim.Accumulate(optim.Adam(p, lr=0.1), 3),
    "Lookahead": lambda p: optim.Lookahead(optim.SGD(p, lr=0.1, momentum=0.9), k=3),
    "SkipNonfinite": lambda p: optim.SkipNonfinite(optim.RMSprop(p, lr=0.1)),
    "Sharded": lambda p: optim.Sharded(optim.AdamW(p, lr=0.1)),
    "nested": lambda p: optim.SkipNonfinite(optim.Accumulate(optim.Lookahead(optim.AdamW(p, lr=0.1), k=2), 2)),
    "EMA": lambda p: optim.EMA(p, decay=0.5),
    "SWA": lambda p: optim.SWA(p),
}


class Weight(nn.Module):
    """A module with one parameter."""

    def __init__(self) -> None:
        self.weight = Parameter((ROWS - 2.0).astype("f4"))


class Training:
    """One parameter for each optimizer, with gradients that are exact in float32."""

    def __init__(self) -> None:
        self.model = {name: Weight() for name in KINDS}
        self.optimizer = {name: kind(self.model[name]) for name, kind in KINDS.items()}

    def train(self, first: int, steps: int = STEPS) -> dict[str, Any]:
        """Makes steps, and returns the parameters, or averages, after each of them.

        Args:
            first: how many steps were made before.
            steps: how many to make.
        """
        found = {}
        for i in range(first, first + steps):
            gradient = (((ROWS * 7 + i * 5) % 11 - 5) / 8).astype("f4")
            for name, optimizer in self.optimizer.items():
                weight = self.model[name].weight
                _step(optimizer, weight, gradient, i)
                shown = optimizer.averages[0] if isinstance(optimizer, optim.EMA | optim.SWA) else weight
                found[f"{name}.{i}"] = shown.value
        return found


def _step(optimizer: Any, weight: Parameter, gradient: Any, i: int) -> None:
    if isinstance(optimizer, optim.LBFGS):
        optimizer.step(lambda: ops.backward(lambda: ops.sum(ops.square(ops.subtract(weight, gradient))), weight))
    elif isinstance(optimizer, optim.EMA | optim.SWA):
        weight.value = ops.subtract(weight.value, ops.convert_to_tensor(gradient))
        optimizer.update()
    else:
        if isinstance(rate := optimizer.param_groups[0]["lr"], optim.ReduceOnPlateau):
            rate.observe(float(i))
        optimizer.step({weight: ops.convert_to_tensor(gradient)})


def main(backend: str) -> None:
    """Writes the files of a backend."""
    ops.set_backend(backend)
    shutil.rmtree(FOLDER / backend, ignore_errors=True)
    training = Training()
    training.train(0)
    io.Checkpoint(FOLDER / backend).save(STEPS, model=training.model, optimizer=training.optimizer)
    io.save(training.train(STEPS), FOLDER / backend / "next.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
