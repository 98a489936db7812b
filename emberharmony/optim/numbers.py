"""Arithmetic on numbers that are Python numbers or tensors, for rules and schedules, such as a bias correction.

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


def _host_or_op_function(host: Callable[..., Any], op: Callable[..., Any]) -> Callable[..., Number]:
    def compute_by_host_or_op(*numbers: Number) -> Number:
        for number in numbers:  # a loop takes half the time of `all`
            if not isinstance(number, _PYTHON):
                return op(*numbers)
        return host(*numbers)

    return compute_by_host_or_op


add = _host_or_op_function(HOST["add"], ops.add)
subtract = _host_or_op_function(HOST["subtract"], ops.subtract)
multiply = _host_or_op_function(HOST["multiply"], ops.multiply)
divide = _host_or_op_function(HOST["divide"], ops.divide)
power = _host_or_op_function(HOST["power"], ops.power)
sqrt = _host_or_op_function(HOST["sqrt"], ops.sqrt)
cos = _host_or_op_function(HOST["cos"], ops.cos)
exp = _host_or_op_function(HOST["exp"], ops.exp)
log = _host_or_op_function(HOST["log"], ops.log)
floor = _host_or_op_function(HOST["floor"], ops.floor)
minimum = _host_or_op_function(HOST["minimum"], ops.minimum)
maximum = _host_or_op_function(HOST["maximum"], ops.maximum)
less = _host_or_op_function(HOST["less"], ops.less)
where = _host_or_op_function(HOST["where"], ops.where)


def one_minus_power(base: float, exponent: Number) -> Number:
    """Returns `1 - base ** exponent` for a Python number `base` in [0, 1) and a positive exponent.

    It has the precision of the exponent's dtype.
    """
    if not base:
        return 1.0
    if is_python(exponent):  # avoids cancellation, as the power is near 1
        return -math.expm1(exponent * math.log(base))
    return ops.multiply(-1.0, ops.expm1(ops.multiply(exponent, math.log(base))))
