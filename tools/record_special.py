"""Writes values of special functions by mpmath: `python tools/record_special.py`.

The file is `tests/ops/elementwise/special_values.csv.gz`. Each line has the name of an op, its arguments and the value.
The numbers are float64 in hexadecimal; the values are computed with 60 digits and rounded.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from emberharmony import ops

FILE = Path(__file__).resolve().parent.parent / "tests" / "ops" / "elementwise" / "special_values.csv.gz"
COUNT = 265
Array = np.ndarray[Any, Any]
_RNG = np.random.default_rng(0)


def _spread_numbers(*parts: Any) -> Array:
    """Returns `COUNT` numbers, spread evenly over the given ones."""
    pool = np.concatenate([np.atleast_1d(np.asarray(part, np.float64)) for part in parts])
    chosen_numbers: Array = pool[np.unique(np.linspace(0, len(pool) - 1, COUNT).round().astype(int))]
    return chosen_numbers


def _random_powers(low: float, high: float) -> Array:
    powers: Array = 10.0 ** _RNG.uniform(low, high, COUNT)
    return powers


_TINY, _NEAR = np.logspace(-300, -1, 40), np.logspace(-15, -1, 20)
_GAMMA = _spread_numbers(
    *(np.logspace(-300, 300, 61), np.linspace(0.01, 30, 80), 1 + _NEAR, 1 - _NEAR, 2 + _NEAR, 2 - _NEAR),
    *(-_TINY[::2], -np.linspace(0.03, 30.01, 60), 1.4616321449683622, 1.46, 1.47),
)
_REAL = _spread_numbers(
    np.linspace(-38, 38, 200), _TINY[::2], -_TINY[::2], np.logspace(1, 15, 15), -np.logspace(1, 7, 15)
)
_BESSEL = _spread_numbers(np.linspace(-700, 700, 100), np.linspace(-20, 20, 121), _TINY, [709.9, 712.0, 713.9, -713.9])
_INSIDE = _spread_numbers(np.logspace(-300, -1, 80), np.linspace(0.01, 0.99, 140), 1 - _NEAR, 0.5 + _NEAR, 0.5 - _NEAR)
_A, _B = _random_powers(-3, 3), _random_powers(-3, 3)
_SPREAD = np.abs(_A * (1 + _RNG.normal(size=COUNT) * 2 / np.sqrt(_A + 1))) + 1e-6
_ORDERS = np.where(_RNG.uniform(size=COUNT) < 0.7, _RNG.integers(0, 10, COUNT), _RNG.integers(10, 200, COUNT)) * 1.0
_LEFT = _RNG.uniform(size=COUNT) < 0.3
_MEAN = _A / (_A + _B)
_SIDES = np.where(
    _LEFT, _RNG.uniform(size=COUNT), _MEAN + _RNG.normal(size=COUNT) * np.sqrt(_MEAN * (1 - _MEAN) / (_A + _B + 1))
)
_EI_ROOT = 0.3725074107813666 + np.array([0.0, 1e-15, 1e-9, -1e-6, 0.1, -0.1])
_LAMBERT = np.concatenate([np.linspace(-0.36, 1, 80), _NEAR - 0.36787944117144228])
_BESSEL_ORDERS = np.where(np.arange(COUNT) % 3 == 0, np.arange(COUNT) % 40, np.logspace(-2, 2, COUNT))
_PROBABILITIES = np.where(np.arange(COUNT) % 3 == 0, np.logspace(-25, -1, COUNT), np.linspace(0.01, 0.99, COUNT))

POINTS: dict[str, tuple[Array, ...]] = {
    **dict.fromkeys(("gammaln", "digamma"), (_GAMMA,)),
    "polygamma": (
        np.where(_LEFT, _ORDERS % 6, _ORDERS),
        np.where(_LEFT, -_RNG.uniform(0, 12, COUNT), _random_powers(-2, 4)),
    ),
    "zeta": (
        np.where(_LEFT, _RNG.integers(2, 9, COUNT), 1 + _random_powers(-8, 2.2)),
        np.where(_LEFT, -_RNG.uniform(0, 12, COUNT), _random_powers(-2, 4)),
    ),
    **dict.fromkeys(("gammainc", "gammaincc"), (_A, np.where(_LEFT, _random_powers(-8, 3), _SPREAD))),
    **dict.fromkeys(("beta", "betaln"), (_random_powers(-10, 3), _random_powers(-10, 5))),
    "betainc": (_A, _B, np.clip(_SIDES, 1e-12, 1 - 1e-9)),
    "xlogy": (_RNG.normal(size=COUNT), _random_powers(-300, 300)),
    "xlog1py": (_RNG.normal(size=COUNT), np.where(_LEFT, _RNG.uniform(-1, 0, COUNT), _random_powers(-300, 300))),
    "entr": (_spread_numbers(np.logspace(-300, 100, 200), 1 + _NEAR, 1 - _NEAR, np.linspace(0.01, 3, 60)),),
    "erfcx": (_spread_numbers(np.linspace(-26, 30, 200), _TINY, -_TINY, np.logspace(1, 300, 40)),),
    **dict.fromkeys(("ndtr", "log_ndtr"), (_REAL,)),
    **dict.fromkeys(("ndtri", "logit"), (_INSIDE,)),
    **dict.fromkeys(("i0e", "i1e"), (_BESSEL,)),
    "i1": (_BESSEL,),
    "gamma": (
        _spread_numbers(
            np.logspace(-300, 0, 40), np.linspace(0.1, 171.5, 140), -np.linspace(0.013, 170.3, 140), -_TINY
        ),
    ),
    "expi": (
        _spread_numbers(np.logspace(-300, 2.85, 140), -np.logspace(-300, 2.8, 60), np.linspace(0.01, 40, 80), _EI_ROOT),
    ),
    "exp1": (_spread_numbers(np.logspace(-300, 2.8, 160), np.linspace(0.01, 40, 120)),),
    "lambertw": (
        np.where(
            _LEFT,
            -_random_powers(-300, -0.5),
            _spread_numbers(_LAMBERT, np.logspace(-300, 300, 150), -np.logspace(-300, -0.5, 60)),
        ),
        np.where(_LEFT, -1.0, 0.0),
    ),
    **dict.fromkeys(("rel_entr", "kl_div"), (_A, np.where(_LEFT, _A * (1 + _random_powers(-12, -1)), _B))),
    **dict.fromkeys(
        ("j0", "j1"), (_spread_numbers(np.linspace(-8, 8, 200), _TINY, np.linspace(8, 300, 60), np.logspace(2, 5, 20)),)
    ),
    "stdtr": (_random_powers(-1.5, 3), _RNG.normal(size=COUNT) * _random_powers(-3, 1.5)),
    "stdtrit": (_random_powers(-1, 3), _PROBABILITIES),
    "gammaincinv": (_random_powers(-1, 3), _PROBABILITIES),
    "betaincinv": (_random_powers(-1, 2.3), _random_powers(-1, 2.3), _PROBABILITIES),
    "iv": (_BESSEL_ORDERS, _random_powers(-4, 2.5)),
    "kv": (_BESSEL_ORDERS, _random_powers(-4, 2.5)),
}


def _hurwitz(s: Any, q: Any) -> Any:
    """Returns the zeta function for q > 0, by the formula of Euler and Maclaurin after 400 terms.

    The error of mpmath 1.3's own function is absolute: with 60 digits, `mp.zeta(65.4, 1108)`, which is 1e-198, has 10
    digits. With 300 digits it agrees with this function.
    """
    zeta_sum = mp.fsum((q + k) ** -s for k in range(400))
    a = q + 400
    zeta_sum += a ** (1 - s) / (s - 1) + a**-s / 2
    factor = s * a ** (-s - 1)
    for j in range(1, 25):
        zeta_sum += mp.bernoulli(2 * j) / mp.factorial(2 * j) * factor
        factor *= (s + 2 * j - 1) * (s + 2 * j) / a**2
    return zeta_sum


def _polygamma(n: Any, x: Any) -> Any:
    n = int(n)
    return mp.polygamma(n, x) if x < 0 or n == 0 else (-1) ** (n + 1) * mp.factorial(n) * _hurwitz(n + 1, x)


def _zeta(s: Any, q: Any) -> Any:
    return _hurwitz(s, q) if q > 0 else (-1) ** int(s) * mp.polygamma(int(s) - 1, q) / mp.factorial(int(s) - 1)


def _betainc(a: Any, b: Any, x: Any) -> Any:
    if x * (a + b) > a:
        return 1 - mp.betainc(b, a, 0, 1 - x, regularized=True)
    return mp.betainc(a, b, 0, x, regularized=True)


def _ndtri(p: Any) -> Any:
    """Returns the quantile by Newton's method for the logarithm of the probability, on the side of the smaller tail."""
    if p > 0.5:
        return -_ndtri(1 - p)
    y = -mp.sqrt(-2 * mp.log(p)) if p < 0.02 else (p - 0.5) * 2.5
    for _ in range(60):
        step = (mp.log(mp.ncdf(y)) - mp.log(p)) * mp.ncdf(y) / mp.npdf(y)
        y -= step
        if abs(step) <= abs(y) * mp.mpf(10) ** -40:
            break
    return y


def _kv(v: Any, x: Any) -> Any:
    """Returns kv with as many digits as the difference of two functions of the first kind cancels."""
    with mp.workdps(60 + int(x)):
        return mp.besselk(v, x, maxprec=20000)


def _stdtr(n: Any, t: Any) -> Any:
    tail = mp.betainc(n / 2, mp.mpf(0.5), 0, n / (n + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _inverse(function: Callable[..., Any], start: Callable[..., Any], y: Any, *parameters: Any) -> Any:
    """Returns the solution of `function(*parameters, x) = y` by the secant method, from the op's own value."""
    x = mp.mpf(float(ops.to_numpy(start(*(np.array(float(z)) for z in (*parameters, y))))))
    return mp.findroot(lambda x: function(*parameters, x) / y - 1, (x, x * (1 + mp.mpf(10) ** -12)), tol=1e-40)


VALUES: dict[str, Callable[..., Any]] = {
    "gammaln": lambda x: mp.re(mp.loggamma(x)),
    "digamma": mp.digamma,
    "polygamma": _polygamma,
    "zeta": _zeta,
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "beta": lambda a, b: mp.exp(mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)),
    "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
    "betainc": _betainc,
    "xlogy": lambda x, y: x * mp.log(y),
    "xlog1py": lambda x, y: x * mp.log1p(y),
    "entr": lambda x: -x * mp.log(x),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x) if x < 1e4 else (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi)),
    "ndtr": mp.ncdf,
    "log_ndtr": lambda x: mp.log1p(-mp.ncdf(-x)) if x > 0 else mp.log(mp.ncdf(x)),
    "ndtri": _ndtri,
    "logit": lambda p: mp.log(p / (1 - p)),
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1": lambda x: mp.besseli(1, x),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "gamma": mp.gamma,
    "expi": mp.ei,
    "exp1": mp.e1,
    "lambertw": lambda z, k: mp.lambertw(z, int(k)).real,
    "rel_entr": lambda x, y: x * mp.log(x / y),
    "kl_div": lambda x, y: x * mp.log(x / y) - x + y,
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "stdtr": _stdtr,
    "iv": mp.besseli,
    "kv": _kv,
    "stdtrit": lambda n, p: _inverse(_stdtr, ops.stdtrit, p, n),
    "gammaincinv": lambda a, y: _inverse(lambda a, x: mp.gammainc(a, 0, x, regularized=True), ops.gammaincinv, y, a),
    "betaincinv": lambda a, b, y: _inverse(_betainc, ops.betaincinv, y, a, b),
}


def file_lines() -> Iterator[str]:
    """Yields the lines of the file."""
    mp.mp.dps = 60
    for op, points in POINTS.items():
        for arguments in zip(*points, strict=True):
            value = VALUES[op](*(mp.mpf(float(x)) for x in arguments))
            yield ",".join((op, *(float(x).hex() for x in (*arguments, value))))


if __name__ == "__main__":
    FILE.write_bytes(gzip.compress("\n".join(file_lines()).encode() + b"\n", mtime=0))
