"""Arithmetic of the numbers that a rule or a schedule computes once a step, such as a bias correction.

In `Optimizer.step` the count of steps is a Python number, and so is all that follows from it, in double precision. In
`Optimizer.update` the count is a tensor, which may be traced. The functions here take both.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from emberharmony import ops
from emberharmony.transforms.program import HOST

Number: TypeAlias = Any
"""A Python number, or a tensor without axes."""

_PYTHON = (int, float)


def is_python(number: Number) -> bool:
    """Returns whether a number is one of Python rather than a tensor."""
    return isinstance(number, _PYTHON)


def _either(host: Callable[..., Any], op: Callable[..., Any]) -> Callable[..., Number]:
    def either(*numbers: Number) -> Number:
        for number in numbers:  # `all` takes twice as long, which each step of an optimizer would pay
            if not isinstance(number, _PYTHON):
                return op(*numbers)
        return host(*numbers)

    return either


add = _either(HOST["add"], ops.add)
subtract = _either(HOST["subtract"], ops.subtract)
multiply = _either(HOST["multiply"], ops.multiply)
divide = _either(HOST["divide"], ops.divide)
power = _either(HOST["power"], ops.power)
sqrt = _either(HOST["sqrt"], ops.sqrt)
cos = _either(HOST["cos"], ops.cos)
exp = _either(HOST["exp"], ops.exp)
log = _either(HOST["log"], ops.log)
floor = _either(HOST["floor"], ops.floor)
minimum = _either(HOST["minimum"], ops.minimum)
maximum = _either(HOST["maximum"], ops.maximum)
less = _either(HOST["less"], ops.less)
where = _either(HOST["where"], ops.where)


def one_minus_power(base: float, exponent: Number) -> Number:
    """Returns `1 - base ** exponent` for a Python number `base` in [0, 1) and a positive exponent.

    It has the precision of the exponent's dtype.
    """
    if not base:
        return 1.0
    if is_python(exponent):  # the difference itself would lose digits, because the power is near 1
        return -math.expm1(exponent * math.log(base))
    return ops.multiply(-1.0, ops.expm1(ops.multiply(exponent, math.log(base))))
