"""Holds our constructors against those of `torch.nn`: each parameter is in a row of a test, or omitted for a reason."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from emberharmony import nn
from tests.nn.omissions import EVERYWHERE, OPTIONS

torch: Any = pytest.importorskip("torch")


def parameters(kind: Any) -> dict[str, Any]:
    """Returns the parameters of a constructor by name, with their defaults; those like `*args` are left out."""
    found = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def torch_parameters(name: str) -> dict[str, Any]:
    """Returns the parameters of a class of `torch.nn` by name, with their defaults."""
    if name not in ("RNN", "GRU", "LSTM"):
        return parameters(getattr(torch.nn, name))
    # The signatures of these are `*args, **kwargs`; that of their base has the mode too, and lacks the nonlinearity.
    _, *sizes, bias = [*parameters(torch.nn.modules.rnn.RNNBase).items()][:5]
    rest = [*parameters(torch.nn.modules.rnn.RNNBase).items()][5:]
    own = [("nonlinearity", "tanh")] if name == "RNN" else []
    return dict([*sizes, *own, bias, *(each for each in rest if name == "LSTM" or each[0] != "proj_size")])


def given(name: str, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None) -> set[str]:
    """Returns the names of the parameters of a class of `torch.nn` to which a call gives a value."""
    return {*[*torch_parameters(name)][: len([*args])], *(kwargs or {})}


def require_parameters(name: str, in_rows: Iterable[str]) -> None:
    """Checks that a class of ours has the parameters of its namesake in `torch.nn`, and that tests give each a value.

    Args:
        name: of both classes.
        in_rows: the names of the parameters that rows of tests give; see `given`.
    """
    theirs, ours, omitted = torch_parameters(name), parameters(getattr(nn, name)), OPTIONS.get(name, {})
    left_out = {**EVERYWHERE, **omitted}
    assert not (set(omitted) - set(theirs)), f"{name}: torch has no such parameters"
    assert not (set(left_out) & set(ours)), f"{name}: these are not omitted"
    wanted = [each for each in theirs if each not in left_out]
    assert [each for each in wanted if each not in ours] == [], f"{name}: ours lacks these parameters"
    assert [each for each in wanted if each not in set(in_rows)] == [], f"{name}: no row gives these parameters"
    for each in wanted:
        default = "relu" if each == "activation" else theirs[each]  # a function in torch
        assert ours[each] == default, f"{name}: the default of {each}"
    assert [each for each in wanted if theirs[each] is inspect.Parameter.empty] == [
        each for each in ours if ours[each] is inspect.Parameter.empty
    ], f"{name}: the parameters without defaults"
