"""The constructors of layers with spatial axes have the parameters of those of PyTorch, each with a row of a test."""

import pytest

from emberharmony import nn
from tests.nn import test_convolution, test_padding, test_pooling, test_shaping, test_upsampling
from tests.nn.signatures import given, require_parameters, torch

NO_INDICES = {"return_indices": "no op gives the indices of adaptive windows"}
OMITTED = {f"AdaptiveMaxPool{n}d": NO_INDICES for n in (1, 2, 3)}
WITHOUT_ROWS = {f"MaxUnpool{n}d": {"kernel_size", "stride", "padding"} for n in (1, 2, 3)}
"""Layers that take the result of another one, which tests of their own call with each parameter."""
MISSING = {
    "FractionalMaxPool2d": "its windows are drawn at random by a rule that only PyTorch has",
    "FractionalMaxPool3d": "its windows are drawn at random by a rule that only PyTorch has",
}
"""The layers of PyTorch that we lack, with the reasons; `None` as number of channels stands for its lazy layers."""
MODULES = (test_convolution, test_padding, test_pooling, test_shaping, test_upsampling)
ROWS = [case for module in MODULES for case in module.CASES]
ALL_DTYPES = {"dtype"}
"""Each row runs in several dtypes."""


@pytest.mark.parametrize("name", sorted({case.name for case in ROWS} | set(WITHOUT_ROWS)))
def test_the_parameters_are_those_of_torch_and_have_rows(name: str) -> None:
    rows = [given(case.name, case.args, case.kwargs) for case in ROWS if case.name == name]
    require_parameters(name, {*ALL_DTYPES, *WITHOUT_ROWS.get(name, ()), *set().union(*rows)}, OMITTED.get(name))


def test_every_such_layer_of_torch_is_there_or_is_missing_for_a_reason() -> None:
    endings = tuple(f"{kind}{n}d" for kind in ("Pool", "Pad", "Conv", "Transpose", "Unpool") for n in (1, 2, 3))
    theirs = {name for name in dir(torch.nn) if name.endswith(endings) and not name.startswith("Lazy")}
    assert theirs == {name for name in theirs if hasattr(nn, name)} | set(MISSING)
    assert not [name for name in MISSING if hasattr(nn, name)]
