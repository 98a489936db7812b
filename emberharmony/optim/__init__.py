"""Optimizers and schedules of the learning rate, with the names, defaults and formulas of `torch.optim`."""

from emberharmony.optim import schedules as schedules
from emberharmony.optim.accumulate import Accumulate as Accumulate
from emberharmony.optim.adafactor import Adafactor as Adafactor
from emberharmony.optim.adam import Adam as Adam
from emberharmony.optim.adam import Adamax as Adamax
from emberharmony.optim.adam import AdamW as AdamW
from emberharmony.optim.adam import NAdam as NAdam
from emberharmony.optim.adam import RAdam as RAdam
from emberharmony.optim.adaptive import ASGD as ASGD
from emberharmony.optim.adaptive import Adadelta as Adadelta
from emberharmony.optim.adaptive import Adagrad as Adagrad
from emberharmony.optim.adaptive import RMSprop as RMSprop
from emberharmony.optim.adaptive import Rprop as Rprop
from emberharmony.optim.averaging import EMA as EMA
from emberharmony.optim.averaging import SWA as SWA
from emberharmony.optim.clipping import NonFiniteGradientError as NonFiniteGradientError
from emberharmony.optim.clipping import clip_by_global_norm as clip_by_global_norm
from emberharmony.optim.clipping import clip_by_norm as clip_by_norm
from emberharmony.optim.clipping import clip_by_value as clip_by_value
from emberharmony.optim.lamb import LAMB as LAMB
from emberharmony.optim.lbfgs import LBFGS as LBFGS
from emberharmony.optim.lion import Lion as Lion
from emberharmony.optim.lookahead import Lookahead as Lookahead
from emberharmony.optim.muon import Muon as Muon
from emberharmony.optim.nonfinite import SkipNonfinite as SkipNonfinite
from emberharmony.optim.optimizer import Optimizer as Optimizer
from emberharmony.optim.plateau import ReduceOnPlateau as ReduceOnPlateau
from emberharmony.optim.scaling import LossScaler as LossScaler
from emberharmony.optim.sgd import SGD as SGD
from emberharmony.optim.vectors import elementwise as elementwise

__all__ = [
    *("Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
    *("ASGD", "Adadelta", "Adagrad", "RMSprop", "Rprop"),
    *("Adafactor", "LAMB", "LBFGS", "Lion", "Muon"),
    *("NonFiniteGradientError", "clip_by_global_norm", "clip_by_norm", "clip_by_value"),
    *("Accumulate", "Lookahead", "SkipNonfinite"),
    *("EMA", "LossScaler", "SWA"),
    *("Optimizer", "ReduceOnPlateau", "SGD", "elementwise", "schedules"),
]
