"""Holds our constructors against those of `torch.nn`: each parameter is in a row of a test, or omitted for a reason."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from emberharmony import nn

torch: Any = pytest.importorskip("torch")

OMITTED: Mapping[str, str] = {
    "device": "tensors are made on the default device, and `Module.to` moves them",
    "inplace": "no function of ours changes its argument",
    "size_average": "torch deprecates it in favour of `reduction`",
    "reduce": "torch deprecates it in favour of `reduction`",
}
"""The parameters that no class of ours has, with the reason."""


def parameters(kind: type) -> dict[str, Any]:
    """Returns the parameters of a constructor by name, with their defaults; those like `*args` are left out."""
    found = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}


def given(name: str, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None) -> set[str]:
    """Returns the names of the parameters of a class of `torch.nn` to which a call gives a value."""
    return set(inspect.signature(getattr(torch.nn, name)).bind(*args, **(kwargs or {})).arguments)


def require_parameters(
    name: str,
    in_rows: Iterable[str],
    omitted: Mapping[str, str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Checks that a class of ours has the parameters of its namesake in `torch.nn`, and that tests give each a value.

    Args:
        name: of both classes.
        in_rows: the names of the parameters that rows of tests give; see `given`.
        omitted: the parameters of torch that ours lacks, with the reasons, besides `OMITTED`.
        defaults: those of our defaults that are not torch's.
    """
    theirs, ours = parameters(getattr(torch.nn, name)), parameters(getattr(nn, name))
    left_out, changed = {**OMITTED, **(omitted or {})}, defaults or {}
    assert not (set(omitted or {}) - set(theirs)), f"{name}: torch has no such parameters"
    assert all(left_out.values()), f"{name}: an omission needs a reason"
    assert not (set(left_out) & set(ours)), f"{name}: these are not omitted"
    wanted = [each for each in theirs if each not in left_out]
    assert [each for each in wanted if each not in ours] == [], f"{name}: ours lacks these parameters"
    assert [each for each in wanted if each not in set(in_rows)] == [], f"{name}: no row gives these parameters"
    for each in wanted:
        assert ours[each] == changed.get(each, theirs[each]), f"{name}: the default of {each}"
    assert [each for each in wanted if each in ours and theirs[each] is inspect.Parameter.empty] == [
        each for each in ours if ours[each] is inspect.Parameter.empty
    ], f"{name}: the parameters without defaults"
