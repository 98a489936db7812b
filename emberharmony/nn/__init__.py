"""Layers, losses and initial values with the names and formulas of `torch.nn`; they run on every backend."""

from emberharmony import Buffer as Buffer
from emberharmony import Parameter as Parameter
from emberharmony.nn import data as data
from emberharmony.nn import nodes as _nodes  # noqa: F401  (makes modules nodes of trees)
from emberharmony.nn.containers import Lambda as Lambda
from emberharmony.nn.containers import ModuleDict as ModuleDict
from emberharmony.nn.containers import ModuleList as ModuleList
from emberharmony.nn.containers import ParameterDict as ParameterDict
from emberharmony.nn.containers import ParameterList as ParameterList
from emberharmony.nn.containers import Remat as Remat
from emberharmony.nn.containers import Repeat as Repeat
from emberharmony.nn.containers import Residual as Residual
from emberharmony.nn.containers import Sequential as Sequential
from emberharmony.nn.fit import History as History
from emberharmony.nn.fit import NonFiniteLossWarning as NonFiniteLossWarning
from emberharmony.nn.fit import Step as Step
from emberharmony.nn.fit import fit as fit
from emberharmony.nn.functional import functional_call as functional_call
from emberharmony.nn.functional import merge as merge
from emberharmony.nn.functional import split as split
from emberharmony.nn.functional import value_and_grad as value_and_grad
from emberharmony.nn.lazy import build as build
from emberharmony.nn.linear import Bilinear as Bilinear
from emberharmony.nn.linear import Identity as Identity
from emberharmony.nn.linear import Linear as Linear
from emberharmony.nn.module import Module as Module
from emberharmony.nn.rngs import Rngs as Rngs
from emberharmony.nn.state import Loaded as Loaded

__all__ = [
    *("Buffer", "Loaded", "Module", "Parameter", "Rngs"),
    *("History", "NonFiniteLossWarning", "Step", "data", "fit"),
    *("build", "functional_call", "merge", "split", "value_and_grad"),
    *("Lambda", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Remat", "Repeat", "Residual"),
    "Sequential",
    *("Bilinear", "Identity", "Linear"),
]
