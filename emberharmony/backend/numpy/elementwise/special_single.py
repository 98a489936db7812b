"""Special functions of usual arguments, on NumPy, for results that become float32.

The functions of `backend.shared` have all digits of float64 for all arguments, for which NumPy needs hundreds of calls.
These take vectors of float64 too, but compute fewer digits. They return None if they do not take the arguments.

A call of a ufunc takes 0.4 to 1 µs, so 32 elements take 3 to 80 µs in place of 180 to 490: `digamma` takes 25 calls,
`gammaincc` and `betainc` 50. The errors are at most 1.3 units in the last place. Results of float64 come from the
shared functions. SciPy has one loop in C for each, but is no dependency, and its results differ from those of the other
backends.

Source: DLMF 5.5.1 leads from the gamma function at `x + 8` to that at `x`; DLMF 8.7.1 is the series of the incomplete
one.
"""

import math

import numpy as np

from emberharmony.backend.numpy.elementwise.elementary_ops import FEW, map_numbers
from emberharmony.backend.numpy.elementwise.special_space import SINGLE
from emberharmony.backend.shared.elementwise.special import DIGAMMA_FAR, log_gamma_far
from emberharmony.backend.shared.elementwise.special_integrals import betainc_inside, gammainc_far

Vector = np.ndarray
_ORDERS = 1e-6, 1e5
"""Between which numbers the first argument of an incomplete gamma function is usual."""
_LARGEST = 1e3
"""Up to which sum of arguments the logarithms of gamma functions cancel no digits that a beta function needs."""
_TERMS = 7
"""How many terms of the asymptotic series at `x + 8` have all digits at the positive roots; elsewhere fewer suffice."""
_EIGHT = np.arange(8.0)[:, None]
_SHIFT, _HALF = np.asarray(8.0), np.asarray(0.5)
_SERIES = [np.asarray(coefficient) for coefficient in DIGAMMA_FAR[-_TERMS:]]
"""Numbers as arrays: with few elements, a number of Python takes twice as long."""
_SMALL = 30.0
"""Up to this argument 80 terms of the series suffice for the lower incomplete gamma function of any parameter."""
_ALL_STEPS = np.arange(1.0, 81.0)[:, None]
_STEPS = np.arange(1.0, SINGLE.digits.near)[:, None]


def _smallest_element(x: Vector) -> float:
    """Returns the smallest element, or NaN if there is one; a reduction of few elements takes three times as long."""
    return float(x[x.argmin()])


def _greatest_element(x: Vector) -> float:
    """Returns the largest element, or NaN if there is one."""
    return float(x[x.argmax()])


def _log_gamma(x: Vector) -> Vector:
    """Returns `gammaln(x)` for x > 0: `gammaln(x + 8)` less the logarithm of the product x (x + 1) ... (x + 7)."""
    if x.size <= FEW:
        return map_numbers(math.lgamma, x)
    # The product may overflow for large numbers, whose result it does not change, so limit it.
    product = np.minimum(np.multiply.reduce(_EIGHT + x, 0), 1e300)
    return log_gamma_far(np, x + 8.0, _TERMS) - np.log(product, out=product)


def _set_roots_to_zero(result: Vector) -> Vector:
    """Returns a result in which tiny numbers become 0, because only at an exact zero can float32 give such a result."""
    result[np.absolute(result) < 2e-14] = 0.0
    return result


def gammaln(x: Vector) -> Vector | None:
    """Returns the logarithm of the gamma function of positive numbers."""
    return _set_roots_to_zero(_log_gamma(x)) if _smallest_element(x) > 0.0 else None


def digamma(x: Vector) -> Vector | None:
    """Returns the derivative of `gammaln` of positive numbers."""
    if not _smallest_element(x) > 0.0:
        return None
    shifted_x = x + _SHIFT
    inverse = np.reciprocal(shifted_x)
    inverse_square = inverse * inverse
    tail_sum = inverse_square * _SERIES[0]
    for coefficient in _SERIES[1:]:
        tail_sum += coefficient
        tail_sum *= inverse_square
    inverse *= _HALF
    tail_sum += inverse
    x_plus_steps = _EIGHT + x
    tail_sum += np.add.reduce(np.reciprocal(x_plus_steps, x_plus_steps), 0)
    return np.subtract(np.log(shifted_x, shifted_x), tail_sum, tail_sum)


def _gammainc(a: Vector, x: Vector, upper: bool) -> Vector | None:
    lowest_order, highest_order = _ORDERS
    if not (_smallest_element(a) >= lowest_order and _greatest_element(a) <= highest_order):
        return None
    x = np.minimum(x, 1e30)
    density = np.log(x)
    density *= a
    density -= x
    density -= _log_gamma(a)
    np.exp(density, out=density)
    if not upper and x.size <= FEW and 0.0 <= (largest_x := _greatest_element(x)) <= _SMALL:
        # The terms are smaller than those of exp(x), whose sum has a standard deviation of sqrt(x) terms.
        density *= _incomplete_gamma_series(a, x, _ALL_STEPS[: int(largest_x + 6.0 * math.sqrt(largest_x)) + 10])
        return density
    is_close = (x <= 1.0) | ((x < a) & (a < 6.0))
    probabilities = np.empty(x.shape)
    indices = is_close.nonzero()[0]
    if indices.size:
        near_value = _incomplete_gamma_series(a[indices], x[indices], _STEPS)
        near_value *= density[indices]
        probabilities[indices] = 1.0 - near_value if upper else near_value
    if indices.size < x.size:
        indices = (~is_close).nonzero()[0]
        probabilities[indices] = gammainc_far(SINGLE, upper, a[indices], x[indices], density[indices])
    return probabilities


def _incomplete_gamma_series(a: Vector, x: Vector, steps: Vector) -> Vector:
    """Returns the sum of the powers of `x`, the k-th divided by a (a + 1) ... (a + k); k is 0 or one of the steps."""
    terms = steps + a
    np.divide(x, terms, out=terms)
    np.multiply.accumulate(terms, 0, out=terms)
    series_sum: Vector = np.add.reduce(terms, 0)
    series_sum += 1.0
    series_sum /= a
    return series_sum


def gammainc(a: Vector, x: Vector) -> Vector | None:
    """Returns the lower regularized incomplete gamma function of usual `a`."""
    return _gammainc(a, x, False)


def gammaincc(a: Vector, x: Vector) -> Vector | None:
    """Returns the upper regularized incomplete gamma function of usual `a`."""
    return _gammainc(a, x, True)


def _log_beta(a: Vector, b: Vector) -> Vector | None:
    """Returns the logarithm of the beta function of positive numbers that are not large."""
    arguments = np.concatenate((a, b, a + b))
    if not (_smallest_element(arguments) > 0.0 and _greatest_element(arguments) <= _LARGEST):
        return None
    log_gamma_of_a, log_gamma_of_b, log_gamma_of_sum = _log_gamma(arguments).reshape(3, -1)
    log_gamma_of_a += log_gamma_of_b
    log_gamma_of_a -= log_gamma_of_sum
    return log_gamma_of_a


def beta(a: Vector, b: Vector) -> Vector | None:
    """Returns the beta function of positive numbers that are not large."""
    log_beta = _log_beta(a, b)
    return None if log_beta is None else np.exp(log_beta, out=log_beta)


def betaln(a: Vector, b: Vector) -> Vector | None:
    """Returns the logarithm of the beta function of positive numbers that are not large."""
    log_beta = _log_beta(a, b)
    return None if log_beta is None else _set_roots_to_zero(log_beta)


def betainc(a: Vector, b: Vector, x: Vector) -> Vector | None:
    """Returns the regularized incomplete beta function of positive numbers that are not large, 0 < x < 1."""
    log_beta = _log_beta(a, b) if _smallest_element(x) > 0.0 and _greatest_element(x) < 1.0 else None
    if log_beta is None:
        return None
    density = a * np.log(x)
    density += b * np.log1p(-x)
    density -= log_beta
    return betainc_inside(SINGLE, a, b, x, np.exp(density, out=density))
