"""Gradient rules of the ops in `ops/reductions/histograms.py`.

The bodies compute on the host, where the tape cannot follow.
"""

import math
from typing import Any

from emberharmony.ops.arrays.creation import linspace
from emberharmony.ops.arrays.indexing import take
from emberharmony.ops.dtype import dtype
from emberharmony.ops.math import add, multiply, subtract
from emberharmony.ops.reductions.reduction import max as max_
from emberharmony.ops.reductions.reduction import min as min_
from emberharmony.ops.reductions.reduction import sum as sum_
from emberharmony.rules.reductions.reduction import extreme_gradient

T = Any


def _histogram_gradient(g: list[T], y: list[T], x: T, bins: int = 10, range: tuple[float, float] | None = None) -> T:
    """Returns the gradient of the bin edges, which are evenly spaced from the smallest to the largest element.

    The counts have no gradient, and neither have the edges if `range` gives them.
    """
    if range is not None or not math.prod(x.shape):
        return None
    unit_edges = linspace(0.0, 1.0, bins + 1, dtype=dtype(g[1]))
    low_gradient, high_gradient = sum_(multiply(g[1], subtract(1.0, unit_edges))), sum_(multiply(g[1], unit_edges))
    return add(extreme_gradient(low_gradient, min_(x), x), extreme_gradient(high_gradient, max_(x), x))


RULES: dict[str, Any] = {
    "bincount": (None, lambda g, y, x, weights=None, minlength=0, sparse=False: take(g, x)),
    "histogram": (_histogram_gradient,),
}
