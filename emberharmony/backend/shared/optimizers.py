"""Numbers that the rules of optimizers compute once a step."""

import math


def one_minus_power(base: float, exponent: float) -> float:
    """Returns `1 - base ** exponent` for a base in [0, 1) and a positive exponent.

    The difference itself would lose digits, because the power is near 1.
    """
    return -math.expm1(exponent * math.log(base)) if base else 1.0
