"""The functions of a namespace have the names and the signatures of the array API standard."""

import csv
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony.xp import namespace

with (Path(__file__).parents[1] / "standard" / "functions.csv").open(newline="") as file:
    ROWS = [row for row in csv.DictReader(file) if row["category"] not in ("array object", "dtypes", "inspection")]
FUNCTIONS = [row for row in ROWS if row["category"] != "constants"]


def resolved(xp: Any, name: str) -> Any:
    for part in name.split("."):
        xp = getattr(xp, part)
    return xp


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row["name"])
def test_a_function_passes_its_parameters_as_the_standard_does(row: dict[str, str]) -> None:
    has = inspect.signature(resolved(namespace("numpy"), row["name"])).parameters
    wanted = inspect.signature(eval(f"lambda {row['signature']}: None")).parameters.values()
    for place, parameter in enumerate(wanted):
        if parameter.kind is parameter.POSITIONAL_ONLY:
            mine = list(has.values())[place]
            assert mine.kind in (mine.POSITIONAL_ONLY, mine.POSITIONAL_OR_KEYWORD)
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            assert parameter.name in has
            assert has[parameter.name].kind is parameter.kind
        if parameter.default is not parameter.empty and parameter.name in has:
            assert has[parameter.name].default == parameter.default


def test_options_are_passed_by_keyword_alone() -> None:
    xp = namespace("numpy")
    with pytest.raises(TypeError, match="positional"):
        xp.sum(xp.ones((2, 2)), 0)
    assert xp.max(xp.ones((2,)), initial=5.0).tolist() == 5.0


def test_each_backend_has_every_name(xp: Any) -> None:
    for row in ROWS:
        assert resolved(xp, row["name"]) is resolved(xp, row["name"])


def test_a_clip_takes_its_bounds_by_name_and_by_position(xp: Any) -> None:
    x = xp.asarray([1.0, 5.0, 9.0])
    assert xp.clip(x, min=2.0).tolist() == xp.clip(x, 2.0).tolist() == [2.0, 5.0, 9.0]
    assert xp.clip(x, max=xp.asarray(6.0)).tolist() == [1.0, 5.0, 6.0]


def test_variances_take_the_name_of_numpy_for_their_correction(xp: Any) -> None:
    x = xp.asarray([[1.0, 3.0, float("nan")], [2.0, 6.0, 4.0]])
    assert xp.nanvar(x, axis=1, ddof=1).tolist() == [2.0, 4.0] == xp.nanvar(x, axis=1, correction=1).tolist()
    assert xp.nanstd(x, axis=1, dtype=None, ddof=0)[0].item() == 1.0
    assert x[1, :].var(ddof=1).item() == 4.0 == xp.var(x[1, :], correction=1).item()


def test_functions_of_numpy_call_the_methods(xp: Any) -> None:
    x = xp.asarray([1, 2, 6])
    for function in (np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std):
        assert isinstance(function(x), xp.Array)
        assert float(function(x)) == pytest.approx(float(function(np.asarray([1, 2, 6]))))
    assert xp.mean(x, dtype=xp.float64).dtype is xp.float64
    assert xp.float32.type is np.float32
    for name in ("sum", "prod", "mean", "std", "var", "max", "min"):
        with pytest.raises(TypeError, match="out is not supported"):
            getattr(x, name)(out=np.zeros(()))
