"""Whether the arguments of a native call are what the op in its place takes."""

import ast
import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# Native functions and ops whose order of arguments is the same beyond the first optional one, or not even so far.
IN_ORDER = {"arange": 3, "clip": 3, "where": 3, "linspace": 3, "logspace": 3, "geomspace": 3}
SHAPE_ONLY = {"torch.zeros": 1, "torch.ones": 1, "torch.empty": 1}  # they take their dimensions one by one, too


class Parameters(NamedTuple):
    """The parameters of an op: those that must be given, all that may be given by place, and by name."""

    required: tuple[str, ...]
    positional: tuple[str, ...]
    named: frozenset[str]
    variadic: bool


@cache
def parameters() -> Mapping[str, Parameters]:
    """Return the parameters of the ops that stand in for native functions; a constant has none."""
    text = files("emberlint.knowledge").joinpath("parameters.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {row["op"]: _parsed(row["parameters"].split()) for row in rows}


def _parsed(words: list[str]) -> Parameters:
    """Read `x axis= *` and what follows the star: by name alone; `*xs` takes any number."""
    star = next((at for at, word in enumerate(words) if word.startswith("*")), len(words))
    variadic = star < len(words) and words[star] != "*"
    places, names = words[:star], [word for word in words if not word.startswith("*")]
    required = tuple(word for word in names if not word.endswith("="))
    return Parameters(
        required, tuple(word.rstrip("=") for word in places), frozenset(word.rstrip("=") for word in names), variadic
    )


def fits(call: ast.Call, op: str, origin: str) -> bool:
    """Return whether the op takes the arguments of a call as they stand, and means the same by each.

    By place, what an op needs and one option more mean the same as in the native function: further ones are in an order
    of each library's own.
    """
    known = parameters().get(op)
    keywords = [one.arg for one in call.keywords]
    if known is None or None in keywords or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    given = {*known.positional[: len(call.args)], *(name for name in keywords if name is not None)}
    limit = SHAPE_ONLY.get(
        origin, IN_ORDER.get(op, len([one for one in known.required if one in known.positional]) + 1)
    )
    if not known.variadic and len(call.args) > min(limit, len(known.positional)):
        return False
    repeated = set(known.positional[: len(call.args)]) & set(keywords)
    return not repeated and known.named.issuperset(given) and given.issuperset(known.required)
