"""Primitives without a batching rule, each with the reason: `vmap` runs them once for each slice."""

_COUNTS = "the length of its result may depend on values"
_RARE = "its function of the library takes one vector, and it is rare under `vmap`"

LOOPED = {
    "nonzero": _COUNTS,
    "bincount": _COUNTS,
    "unique": _COUNTS,
    "histogram": _RARE,
    "array_equal": "it compares shapes, and reads a single value",
    "view": "the length of the last axis changes, and a number has none",
    "view_as_complex": "its last axis is dropped",
    "linspace": _RARE,
    "logspace": _RARE,
    "geomspace": _RARE,
    "vander": _RARE,
    "full": "its value is a tensor only here",
    "unravel_index": _RARE,
    "arange": _COUNTS,
    "kaiser": "its window is computed on the host",
}
