"""Gradients of ops that only select elements: each cotangent is added at the place its element came from."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.ops.arrays.creation import arange
from emberharmony.ops.arrays.shape import reshape
from emberharmony.ops.reductions.segments import segment_sum

T = Any


def scatter_add(g: T, places: T, shape: Any) -> T:
    """Returns zeros of a shape, with the elements of `g` added at `places`, which index the flattened tensor."""
    size = math.prod(shape)
    return reshape(segment_sum(reshape(g, (-1,)), reshape(places, (-1,)), size), shape)


def cotangent_of_pick(g: T, x: T, pick: Callable[[T], T]) -> T:
    """Returns the cotangent of `x` for `y = pick(x)`, where `pick` moves, repeats or drops elements."""
    return scatter_add(g, pick(reshape(arange(math.prod(x.shape)), x.shape)), x.shape)
