"""Batching rules of `ops/sorting.py`."""

from typing import Any

from emberharmony.rules.batching.forms import Rule, along, last
from emberharmony.transforms.batch import Mapped, Rows

T = Any


def _searchsorted(m: Mapped, sequence: Any, values: Any, side: Any, sorter: Any) -> T:
    alone = values.__class__ is Rows and sequence.__class__ is not Rows and sorter.__class__ is not Rows
    return m(sequence, values.whole, side, sorter) if alone else NotImplemented


RULES: dict[str, Rule] = {
    "sort": along,
    "argsort": along,
    "top_k": last(1),
    "searchsorted": _searchsorted,
    "isin": last(0),
}
