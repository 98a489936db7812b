"""Batching rules of `ops/reduction.py`."""

from typing import Any

from emberharmony.rules.batching.forms import Rule, along, flat, shifted
from emberharmony.transforms.batch import Mapped, Rows

T = Any


def _reduced(m: Mapped, x: Any, axis: Any, keepdims: Any = False, *options: Any) -> T:
    if x.__class__ is not Rows or Rows in map(type, options):
        return NotImplemented
    if axis is not None and not x.shape:
        return NotImplemented
    if axis is not None:
        return m(x.whole, shifted(axis, len(x.shape)), keepdims, *options)
    found = m(flat(m, x), 1, False, *options)
    return m.bound.reshape(found, (m.size, *(1,) * len(x.shape))) if keepdims else found


RULES: dict[str, Rule] = {
    **dict.fromkeys(("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"), _reduced),
    "logsumexp": _reduced,
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "softmax", "log_softmax"), along),
}
