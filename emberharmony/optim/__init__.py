"""Optimizers and schedules of the learning rate, with the names, defaults and formulas of `torch.optim`."""

from typing import TYPE_CHECKING

from emberharmony.core.docstrings.docstring import document_all
from emberharmony.core.names.lazy import lazy_getattr_and_dir
from emberharmony.optim import schedules as schedules
from emberharmony.optim.clipping import NonFiniteGradientError as NonFiniteGradientError
from emberharmony.optim.clipping import clip_by_global_norm as clip_by_global_norm
from emberharmony.optim.clipping import clip_by_norm as clip_by_norm
from emberharmony.optim.clipping import clip_by_value as clip_by_value
from emberharmony.optim.declarations import elementwise as elementwise
from emberharmony.optim.optimizer import Optimizer as Optimizer
from emberharmony.optim.plateau import ReduceOnPlateau as ReduceOnPlateau
from emberharmony.optim.rules.adafactor import Adafactor as Adafactor
from emberharmony.optim.rules.adam import Adam as Adam
from emberharmony.optim.rules.adam import Adamax as Adamax
from emberharmony.optim.rules.adam import AdamW as AdamW
from emberharmony.optim.rules.adam import NAdam as NAdam
from emberharmony.optim.rules.adam import RAdam as RAdam
from emberharmony.optim.rules.adaptive import ASGD as ASGD
from emberharmony.optim.rules.adaptive import Adadelta as Adadelta
from emberharmony.optim.rules.adaptive import Adagrad as Adagrad
from emberharmony.optim.rules.adaptive import RMSprop as RMSprop
from emberharmony.optim.rules.adaptive import Rprop as Rprop
from emberharmony.optim.rules.lamb import LAMB as LAMB
from emberharmony.optim.rules.lbfgs import LBFGS as LBFGS
from emberharmony.optim.rules.lion import Lion as Lion
from emberharmony.optim.rules.muon import Muon as Muon
from emberharmony.optim.rules.sgd import SGD as SGD
from emberharmony.optim.scaling import LossScaler as LossScaler
from emberharmony.optim.wrappers.accumulate import Accumulate as Accumulate
from emberharmony.optim.wrappers.averaging import EMA as EMA
from emberharmony.optim.wrappers.averaging import SWA as SWA
from emberharmony.optim.wrappers.lookahead import Lookahead as Lookahead
from emberharmony.optim.wrappers.nonfinite import SkipNonfinite as SkipNonfinite

if TYPE_CHECKING:
    from emberharmony.optim.wrappers.sharded import Sharded as Sharded

__all__ = [
    *("Adam", "AdamW", "Adamax", "NAdam", "RAdam"),
    *("ASGD", "Adadelta", "Adagrad", "RMSprop", "Rprop"),
    *("Adafactor", "LAMB", "LBFGS", "Lion", "Muon"),
    *("NonFiniteGradientError", "clip_by_global_norm", "clip_by_norm", "clip_by_value"),
    *("Accumulate", "Lookahead", "SkipNonfinite"),
    *("EMA", "LossScaler", "SWA"),
    *("Optimizer", "ReduceOnPlateau", "SGD", "Sharded", "elementwise", "schedules"),
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_getattr_and_dir(__name__, {"Sharded": "emberharmony.optim.wrappers.sharded"})
    document_all(__all__, globals())
