"""Arithmetic of the numbers that a rule or a schedule computes once a step, such as a bias correction.

In `Optimizer.step` the count of steps is a Python number, and so is all that follows from it, in double precision. In
`Optimizer.update` the count is a tensor, which may be traced. The functions here take both.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from emberharmony import ops
from emberharmony.backend.shared import optimizers

Number: TypeAlias = Any
"""A Python number, or a tensor without axes."""

_PYTHON = (int, float)


def is_python(number: Number) -> bool:
    """Returns whether a number is one of Python rather than a tensor."""
    return isinstance(number, _PYTHON)


def _either(host: Callable[..., Any], op: Callable[..., Any]) -> Callable[..., Number]:
    def called(*numbers: Number) -> Number:
        for number in numbers:  # `all` takes twice as long, which each step of an optimizer would pay
            if not isinstance(number, _PYTHON):
                return op(*numbers)
        return host(*numbers)

    return called


def _chosen(condition: bool, x: Number, y: Number) -> Number:
    return x if condition else y


add = _either(operator.add, ops.add)
subtract = _either(operator.sub, ops.subtract)
multiply = _either(operator.mul, ops.multiply)
divide = _either(operator.truediv, ops.divide)
power = _either(math.pow, ops.power)
sqrt = _either(math.sqrt, ops.sqrt)
cos = _either(math.cos, ops.cos)
exp = _either(math.exp, ops.exp)
log = _either(math.log, ops.log)
floor = _either(math.floor, ops.floor)
minimum = _either(min, ops.minimum)
maximum = _either(max, ops.maximum)
less = _either(operator.lt, ops.less)
where = _either(_chosen, ops.where)


def one_minus_power(base: float, exponent: Number) -> Number:
    """Returns `1 - base ** exponent` for a Python number `base` in [0, 1) and a positive exponent.

    It has the precision of the exponent's dtype.
    """
    if not base or is_python(exponent):
        return optimizers.one_minus_power(base, exponent)
    return ops.multiply(-1.0, ops.expm1(ops.multiply(exponent, math.log(base))))
