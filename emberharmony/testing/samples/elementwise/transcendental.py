"""Sample rows of `ops/elementwise/transcendental.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.gradient_row import GradientRow
from emberharmony.testing.left_out import BEYOND_SCIPY
from emberharmony.testing.sample import FLOATS, HALVES, Sample, binary, case, grid, unary

D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES,
    "integers": ("int32", "uint8"),
    "result": "float",
    "differentiable": True,
    "floor": 0,
}
IMPLICIT = "the derivatives are quotients of those of the distribution function, whose second ones are checked"
ABSOLUTE = D | {"floor": 1}


def _function_zero_at_infinity(function: Any) -> Any:
    """Returns a function of SciPy that is 0 at infinity, where SciPy returns NaN."""
    return lambda x: np.where(np.isinf(x), 0.0, function(x))


def _lambertw_oracle(z: Any, k: Any = 0) -> Any:
    branch_values = special.lambertw(z, np.where(np.isfinite(k), k, 5).astype(int))
    is_real = (branch_values.imag == 0) & ((k == 0) | (k == -1)) & (np.abs(z) < np.inf)
    return np.where(is_real, branch_values.real, np.where((z == np.inf) & (k == 0), np.inf, np.nan))


def _multigammaln_oracle(a: Any, d: int) -> Any:
    is_in_domain = a > 0.5 * (d - 1)
    return np.where(is_in_domain, special.multigammaln(np.where(is_in_domain, a, d), d), np.nan)


def _stdtrit_oracle(df: Any, p: Any) -> Any:
    """Returns SciPy's quantile of Student's t, with -inf at 0 and inf at 1."""
    return np.where((p == 0) & (df > 0), -np.inf, special.stdtrit(df, p))


SAMPLES = [
    unary("gamma", special.gamma, 0.1, 8, tolerance=6, **D),
    Sample(
        "multigammaln",
        _multigammaln_oracle,
        (case(grid(2.1, 30), 3), case(grid(0.2, 9, 12).reshape(3, 4), d=1), case(grid(5.1, 9, 6).reshape(2, 3), 11)),
        refuses=((ArgumentError, case(grid(1, 2, 3), 0)),),
        tolerance=8,
        **ABSOLUTE,
        left_out={"extremes": BEYOND_SCIPY},
    ),
    unary("expi", special.expi, 0.5, 12, tolerance=6, **ABSOLUTE),
    unary("exp1", special.exp1, 0.05, 30, tolerance=6, **D),
    Sample(
        "lambertw",
        _lambertw_oracle,
        (
            case(grid(-0.3, 9, 24), np.zeros(24)),
            case(grid(-0.3, -0.02, 12).reshape(3, 4), -1),
            case(grid(0.1, 30, 6), np.zeros(6)),
        ),
        tolerance=6,
        **D,
        gradient=GradientRow(host=(1,)),
    ),
    binary(
        "rel_entr", special.rel_entr, 0.1, 9, (0.2, 12), tolerance=4, **ABSOLUTE, left_out={"extremes": BEYOND_SCIPY}
    ),
    binary("kl_div", special.kl_div, 0.1, 9, (0.2, 12), tolerance=6, **ABSOLUTE, left_out={"extremes": BEYOND_SCIPY}),
    unary("j0", _function_zero_at_infinity(special.j0), -12, 12, tolerance=6, **ABSOLUTE),
    unary("j1", _function_zero_at_infinity(special.j1), -12, 12, tolerance=6, **ABSOLUTE),
    Sample(
        "iv",
        special.iv,
        (case(np.array([0.0, 1.0, 2.5, -0.5, 3.0, 0.3] * 2), grid(0.1, 9, 12)),),
        fixed=True,
        tolerance=32,
        **D,
        left_out={"extremes": BEYOND_SCIPY, "special values": BEYOND_SCIPY},
        gradient=GradientRow(host=(0,)),
    ),
    Sample(
        "kv",
        special.kv,
        (case(np.array([0.0, 1.0, 2.5, -0.5, 3.0, 0.3] * 2), grid(0.3, 9, 12)),),
        fixed=True,
        tolerance=48,
        **D,
        left_out={"extremes": BEYOND_SCIPY, "special values": BEYOND_SCIPY},
        gradient=GradientRow(host=(0,)),
    ),
    Sample(
        "stdtr",
        special.stdtr,
        (case(grid(0.4, 20, 24), grid(-4, 4, 24)[::-1].copy()), case(grid(0.4, 9, 6).reshape(6, 1), grid(-4, 4, 4))),
        fixed=True,
        tolerance=64,
        **D,
        left_out={"extremes": BEYOND_SCIPY},
    ),
    Sample(
        "stdtrit",
        _stdtrit_oracle,
        (case(grid(1, 20, 24), grid(0.1, 0.94, 24)[::-1].copy()),),
        fixed=True,
        tolerance=64,
        **ABSOLUTE,
        left_out={"extremes": BEYOND_SCIPY},
    ),
    Sample(
        "gammaincinv",
        special.gammaincinv,
        (case(grid(0.5, 20, 24), grid(0.05, 0.95, 24)[::-1].copy()),),
        fixed=True,
        tolerance=64,
        **D,
        left_out={"extremes": BEYOND_SCIPY, "special values": BEYOND_SCIPY},
        gradient=GradientRow(once={0: IMPLICIT}),
    ),
    Sample(
        "betaincinv",
        special.betaincinv,
        (case(grid(0.5, 20, 24), grid(0.6, 15, 24)[::-1].copy(), grid(0.05, 0.95, 24)),),
        fixed=True,
        tolerance=64,
        **D,
        left_out={"extremes": BEYOND_SCIPY, "special values": BEYOND_SCIPY},
        gradient=GradientRow(once={0: IMPLICIT}),
    ),
]
