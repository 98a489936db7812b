"""Host computations for the matrix exponential: Padé coefficients, and the power of 2 that divides each matrix."""

from typing import Any

import numpy as np

PADE = {7: 3.925724783138660, 13: 5.371920351148152}
"""By the degree of the Padé approximant, the largest 1-norm for which it is exact: 7 in float32, 13 in float64."""


def pade_coefficients(degree: int) -> list[float]:
    """Returns the coefficients of the numerator of the Padé approximant of exp, from the constant to the highest."""
    coefficients = [1.0]
    for k in range(1, degree + 1):
        coefficients.append(coefficients[-1] * (degree - k + 1) / (k * (2 * degree - k + 1)))
    return coefficients


def squaring_counts(norms: Any, limit: float) -> np.ndarray:
    """Returns, for each norm, the least s of at least 0 for which `norm / 2**s` does not exceed a limit, as int64."""
    mantissas, exponents = np.frexp(np.asarray(norms, np.float64) / limit)
    return np.maximum(exponents - (mantissas == 0.5), 0).astype(np.int64)


def halving_factors(counts: np.ndarray) -> np.ndarray:
    """Returns `2.0**-counts`, exactly."""
    return np.ldexp(1.0, -counts)
