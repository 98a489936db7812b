"""Gradient rules of the ops in `ops/neural/layers.py`.

The op is a composite, which needs no rule. It has one because training calls it for each layer, and the tape then
records one node in place of three; the gradient of the body takes 1.3 times as long, for few elements.
"""

import math
from typing import Any

from emberharmony.ops.arrays.shape import matrix_transpose, reshape
from emberharmony.ops.neural.layers import linear
from emberharmony.ops.reductions.reduction import sum as sum_

T = Any


def _as_rows(x: T) -> T:
    """Returns a tensor as a matrix of the vectors along its last axis."""
    shape = x.shape
    return x if len(shape) == 2 else reshape(x, (math.prod(shape[:-1]), shape[-1]))


def _x_gradient(g: T, _y: T, _x: T, weight: T, _bias: T = None, transposed: bool = False) -> T:
    return linear(g, weight, None, not transposed)


def _weight_gradient(g: T, _y: T, x: T, _weight: T, _bias: T = None, transposed: bool = False) -> T:
    left_operand, right_operand = (g, x) if transposed else (x, g)
    return linear(matrix_transpose(_as_rows(left_operand)), _as_rows(right_operand))


def _bias_gradient(g: T, _y: T, _x: T, _weight: T, _bias: T = None, transposed: bool = False) -> T:
    return sum_(_as_rows(g), 0)


RULES: dict[str, Any] = {"linear": (_x_gradient, _weight_gradient, _bias_gradient)}
