"""Sample rows of `ops/elementwise/special.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.gradient_row import FAR_OUT, GradientRow
from emberharmony.testing.left_out import BEYOND_SCIPY
from emberharmony.testing.sample import FLOATS, HALVES, Sample, binary, case, grid, unary

D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES,
    "integers": ("int32", "uint8"),
    "result": "float",
    "differentiable": True,
    "floor": 0,
}
ABSOLUTE = D | {"floor": 1}


def _function_with_limits(function: Any, *limits: float) -> Any:
    """Returns a function of SciPy with its limits at -inf and inf, where SciPy returns NaN."""
    limit_at_minus_infinity, limit_at_infinity = limits
    return lambda x: np.where(
        x == -np.inf, limit_at_minus_infinity, np.where(x == np.inf, limit_at_infinity, function(x))
    )


def _function_with_nan(function: Any) -> Any:
    """Returns a function of SciPy that is NaN where an argument is NaN; SciPy returns infinity at a pole."""
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, function(a, b))


def _polygamma_oracle(n: Any, x: Any) -> Any:
    return np.where(np.isinf(n), np.nan, special.polygamma(np.where(np.isinf(n), 0, n), x))


def _beta_cases() -> tuple[Any, ...]:
    a, b, x = grid(0.2, 20, 24), grid(0.3, 15, 24)[::-1].copy(), grid(0.05, 0.95, 24)
    return (case(a, b, x), case(a.reshape(2, 3, 4), b[:4], x[:3].reshape(3, 1)))


_WHOLE = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 1.0] * 4)
_POSITIVE = grid(0.8, 9.0, 24)

SAMPLES = [
    unary("gammaln", _function_with_limits(special.gammaln, np.inf, np.inf), 0.1, 30, tolerance=4, **ABSOLUTE),
    unary("digamma", special.digamma, 0.1, 30, tolerance=8, **ABSOLUTE),
    Sample(
        "polygamma",
        _polygamma_oracle,
        (case(_WHOLE, _POSITIVE), case(_WHOLE[:6].reshape(6, 1), _POSITIVE[:4])),
        tolerance=16,
        fixed=True,
        **ABSOLUTE,
        left_out={"extremes": BEYOND_SCIPY},
        gradient=GradientRow(host=(0,)),
    ),
    binary(
        "zeta", _function_with_nan(special.zeta), 1.2, 9, (0.5, 9), tolerance=8, **D, gradient=GradientRow(host=(0,))
    ),
    binary(
        "gammainc",
        special.gammainc,
        0.3,
        20,
        (0.1, 25),
        tolerance=60,
        **D,
        gradient=GradientRow(once={2: FAR_OUT}),
    ),
    binary(
        "gammaincc",
        special.gammaincc,
        0.3,
        20,
        (0.1, 25),
        tolerance=60,
        **D,
        gradient=GradientRow(once={2: FAR_OUT}),
    ),
    binary(
        "beta",
        _function_with_nan(special.beta),
        0.2,
        9,
        (0.3, 12),
        tolerance=40,
        **D,
        left_out={"extremes": BEYOND_SCIPY},
    ),
    binary(
        "betaln",
        _function_with_nan(special.betaln),
        0.2,
        20,
        (0.3, 30),
        tolerance=16,
        **ABSOLUTE,
        left_out={"extremes": BEYOND_SCIPY},
    ),
    Sample(
        "betainc",
        special.betainc,
        _beta_cases(),
        fixed=True,
        tolerance=64,
        **D,
    ),
    binary("xlogy", special.xlogy, -5, 5, (0.1, 9), tolerance=4, **D),
    binary("xlog1py", special.xlog1py, -5, 5, (-0.9, 9), tolerance=4, **D),
    unary("entr", special.entr, 0.01, 9, tolerance=4, **D),
    unary("erfcx", special.erfcx, -3, 30, tolerance=8, **D),
    unary("ndtr", special.ndtr, -5, 5, tolerance=16, **D),
    unary("log_ndtr", special.log_ndtr, -20, 5, tolerance=16, **D),
    unary("ndtri", special.ndtri, 0.01, 0.99, tolerance=8, **D),
    unary("logit", special.logit, 0.02, 0.98, tolerance=6, **D),
    unary("i0e", _function_with_limits(special.i0e, 0.0, 0.0), -12, 12, tolerance=6, **D),
    unary("i1", _function_with_limits(special.i1, -np.inf, np.inf), -12, 12, tolerance=10, **D),
    unary("i1e", _function_with_limits(special.i1e, 0.0, 0.0), -12, 12, tolerance=10, **D),
]
