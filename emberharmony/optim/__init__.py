"""Optimizers and schedules of the learning rate, with the names, defaults and formulas of `torch.optim`."""

from emberharmony.optim import schedules as schedules
from emberharmony.optim.adam import Adam as Adam
from emberharmony.optim.adam import AdamW as AdamW
from emberharmony.optim.optimizer import Optimizer as Optimizer
from emberharmony.optim.plateau import ReduceOnPlateau as ReduceOnPlateau
from emberharmony.optim.sgd import SGD as SGD

__all__ = ["Adam", "AdamW", "Optimizer", "ReduceOnPlateau", "SGD", "schedules"]
