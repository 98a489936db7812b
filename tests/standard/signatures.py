"""Checks that parameters are accepted by position or keyword as in the standard, with the same defaults."""

import inspect
import math
from collections.abc import Iterator
from typing import Any

from emberharmony import ops
from tests.standard.harness import Check, functions, resolve

CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}


def checks() -> Iterator[Check]:
    """Yields a check for each function and constant of the array API standard."""
    for function in functions():
        if function.category == "constants":
            yield Check(function.name, "value", lambda name=function.name: _constant(name))
        elif function.category == "dtypes":
            yield Check(function.name, "is supported", lambda name=function.name: _dtype(name))
        elif function.category != "array object":
            yield Check(function.name, "signature", lambda row=function: _compare(row.name, row.signature))


def _constant(name: str) -> None:
    value, wanted = resolve(name), CONSTANTS[name]
    assert value == wanted or (value != value and wanted != wanted)


def _dtype(name: str) -> None:
    dtypes = ops.__array_namespace_info__().dtypes()
    assert dtypes.get(name) == getattr(ops, name), f"{name} is not among {', '.join(dtypes)}"
    assert ops.dtype(ops.zeros(2, dtype=dtypes[name])) == dtypes[name]


def _compare(name: str, parameters: str) -> None:
    wanted = inspect.signature(eval(f"lambda {parameters}: None")).parameters.values()
    has = inspect.signature(resolve(name)).parameters
    places = [p for p in has.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken: set[str] = set()
    for place, parameter in enumerate(wanted):
        mine = _counterpart(parameter, place, places, has)
        taken.add(mine.name)
        if parameter.default is not parameter.empty:
            assert mine.default == parameter.default, f"{parameter} is wanted, not {mine}"
    rest = [p for p in has.values() if p.name not in taken and p.kind is not p.VAR_POSITIONAL]
    missing = [p.name for p in rest if p.default is p.empty]
    assert not missing, f"{', '.join(missing)} must have defaults"


def _counterpart(parameter: Any, place: int, places: list[Any], has: Any) -> Any:
    """Returns the parameter of `ops` that corresponds to one of the standard."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return next(p for p in has.values() if p.kind is p.VAR_POSITIONAL)
    if parameter.kind is parameter.KEYWORD_ONLY:
        assert parameter.name in has, f"there is no keyword {parameter.name}"
        return has[parameter.name]
    assert place < len(places), f"there is no parameter for {parameter.name} at place {place}"
    if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        assert parameter.name in has, f"{parameter.name} is not accepted as a keyword"
    return places[place]
