"""Every op refuses numbers that are no integers, where it wants some, with the same class of error on each backend."""

import functools
from collections import defaultdict
from typing import Any

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.errors import EmberError
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.sampling import portion

CALLS = sorted(op for op, row in all_samples().items() if row.cases and not OPS[op].takes_callable)
BY_VALUES = {"max_unpool": "it looks first whether the indices of a list fit the size"}


def refusals(op: str) -> dict[tuple[str, str], str]:
    """Returns the class of the error, or "none", for each option for integers and each odd value."""
    found = {}
    item = all_samples()[op].cases[0]
    args = cast_to_dtype(item.args, "float32")
    for place, parameter in enumerate(OPS[op].parameters):
        if not parameter.whole:
            continue
        for odd in (1.5, (1.5,), [1.0]):
            given, named = list(args), dict(item.kwargs)
            if place < len(given):
                given[place] = odd
            else:
                named[parameter.name] = odd
            try:
                OPS[op].function(*given, **named)
            except EmberError as error:
                found[parameter.name, str(odd)] = type(error).__name__
            else:
                found[parameter.name, str(odd)] = "none"
    return found


@functools.cache
def on_numpy() -> dict[str, Any]:
    with ops.use_backend("numpy"):
        return {op: refusals(op) for op in portion(CALLS, 3)}


def test_an_odd_integer_is_refused_alike(backend: str) -> None:
    wrong = defaultdict(list)
    for op, wanted in on_numpy().items():
        for call, kind in refusals(op).items():
            if kind == "none" or (kind != wanted[call] and op not in BY_VALUES):
                wrong[op].append((call, kind, wanted[call]))
    assert not wrong
    assert sum(map(len, on_numpy().values())) > 100
