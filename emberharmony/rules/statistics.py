"""Rules of `ops/statistics.py`."""

from typing import Any

from emberharmony.ops.indexing import take

RULES: dict[str, Any] = {"bincount": (None, lambda g, y, x, weights=None, minlength=0: take(g, x))}
