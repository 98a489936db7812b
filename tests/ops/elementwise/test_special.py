"""Special functions: their precision by values of mpmath, their conventions, and the gradients that they refuse."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import DTypeError
from tests.together import together

INF, NAN = math.inf, math.nan
Array = np.ndarray[Any, Any]


def recorded() -> dict[str, tuple[list[Array], Array]]:
    """Returns, by op, the arguments and the values of `tools/record_special.py`."""
    rows: dict[str, list[list[float]]] = {}
    for line in gzip.decompress((Path(__file__).parent / "special_values.csv.gz").read_bytes()).decode().splitlines():
        op, *numbers = line.split(",")
        rows.setdefault(op, []).append([float.fromhex(number) for number in numbers])
    return {op: (list(np.array(lines).T[:-1]), np.array(lines).T[-1]) for op, lines in rows.items()}


VALUES = recorded()


def _steady(arguments: list[Array], y: Array) -> Any:
    return 16.0


def _in_exponent(arguments: list[Array], y: Array) -> Any:
    """Returns the bound of a function that is computed as the exponential of a possibly large number."""
    return 16.0 + 4.0 * np.abs(np.log(np.abs(y)))


def _near_roots(arguments: list[Array], y: Array) -> Any:
    """Returns the bound of a function whose absolute error is small near its roots; elsewhere it is 16."""
    return 16.0 * np.maximum(1.0, 1.0 / np.abs(y))


def _gammaln(arguments: list[Array], y: Array) -> Any:
    return np.where(arguments[0] > 0, 16.0, _near_roots(arguments, y))


def _polygamma(arguments: list[Array], y: Array) -> Any:
    n, x = arguments
    bound = np.where(n > 170, 2 * n, 16.0)
    # The largest terms of the sum for x < 0 are at least 1.
    return np.where((x < 0) & (n % 2 == 0), bound * np.maximum(1.0, math.e * 50 / np.abs(y)), bound)


def _zeta(arguments: list[Array], y: Array) -> Any:
    return np.where((arguments[1] < 0) & (arguments[0] % 2 == 1), _near_roots(arguments, y), 16.0)


def _betainc(arguments: list[Array], y: Array) -> Any:
    b = arguments[1]
    return _in_exponent(arguments, y) * np.where(b < 0.1, 1 / b, 1.0)


def _inverse(arguments: list[Array], y: Array) -> Any:
    """Returns the bound of an inverse, whose relative error is larger where a parameter is below 1."""
    *parameters, p = arguments
    return (16.0 + 4.0 * np.abs(np.log(np.minimum(p, 1 - p)))) / np.minimum(1.0, np.min(parameters, 0))


def _oscillating(arguments: list[Array], y: Array) -> Any:
    """Returns the bound of a function whose error is relative to its amplitude beyond 8."""
    amplitude = np.minimum(1.0, np.sqrt(2 / (math.pi * np.abs(arguments[0]))))
    return np.where(np.abs(arguments[0]) < 8, 8.0, 8.0 * np.maximum(1.0, amplitude / np.abs(y)))


BOUNDS: dict[str, Callable[[list[Array], Array], Any]] = dict.fromkeys(VALUES, _steady) | {
    "gammaln": _gammaln,
    "digamma": _gammaln,
    "polygamma": _polygamma,
    "zeta": _zeta,
    "gammainc": _in_exponent,
    "gammaincc": _in_exponent,
    "beta": _in_exponent,
    "betaln": _near_roots,
    "betainc": _betainc,
    **dict.fromkeys(("gamma", "expi", "exp1", "lambertw", "rel_entr", "kl_div"), lambda _, y: 8.0),
    **dict.fromkeys(("j0", "j1"), _oscillating),
    "stdtr": _in_exponent,
    **dict.fromkeys(("iv", "kv"), lambda arguments, y: _in_exponent(arguments, y) + 4.0 * np.abs(arguments[0])),
    **dict.fromkeys(("stdtrit", "gammaincinv", "betaincinv"), _inverse),
}
"""The largest allowed error of each op in float64, in units in the last place."""


@pytest.mark.parametrize("op", sorted(VALUES))
def test_values_in_float64_are_as_precise_as_the_docstrings_say(op: str, backend: str) -> None:
    arguments, wanted = VALUES[op]
    assert len(wanted) == 265
    got = ops.to_numpy(getattr(ops, op)(*arguments))
    assert got.dtype == np.float64
    assert not np.isnan(got).any()
    infinite = np.isinf(wanted)
    assert (got[infinite] == wanted[infinite]).all()
    with np.errstate(all="ignore"):
        error = np.abs(got - wanted) / np.spacing(np.abs(wanted))
        # MLX replaces subnormal numbers by 0.
        lost = (got == 0) & (np.abs(wanted) < 2.0**-1022)
        ratio = np.where(infinite | lost | (got == wanted), 0.0, error / BOUNDS[op](arguments, wanted))
    worst = int(np.argmax(ratio))
    assert ratio[worst] <= 1, (error[worst], [x[worst] for x in arguments], got[worst], wanted[worst])


# The arguments, then the value.
POINTS: dict[str, list[tuple[float, ...]]] = {
    "gammaln": [(0.0, INF), (-1.0, INF), (1.0, 0.0), (2.0, 0.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "polygamma": [
        (1.0, 0.0, INF),
        (2.0, 0.0, -INF),
        (2.0, -0.0, INF),
        (0.0, -1.0, NAN),
        (1.0, -1.0, INF),
        (1.5, 2.0, NAN),
        (-1.0, 2.0, NAN),
        (1.0, INF, 0.0),
        (2.0, -0.5, -0.8287966442),
    ],
    "zeta": [
        (1.0, 2.0, INF),
        (0.5, 2.0, NAN),
        (2.0, -1.0, INF),
        (2.5, -0.5, NAN),
        (3.0, -0.5, 0.41439832),
        (INF, 2.0, 0.0),
        (2.0, INF, 0.0),
    ],
    "gammainc": [
        (0.0, 0.0, NAN),
        (0.0, 1.0, 1.0),
        (1.0, 0.0, 0.0),
        (-1.0, 1.0, NAN),
        (1.0, -1.0, NAN),
        (1.0, INF, 1.0),
        (INF, 1.0, 0.0),
        (INF, INF, NAN),
    ],
    "gammaincc": [
        (0.0, 0.0, NAN),
        (0.0, 1.0, 0.0),
        (1.0, 0.0, 1.0),
        (-1.0, 1.0, NAN),
        (1.0, INF, 0.0),
        (INF, 1.0, 1.0),
    ],
    "beta": [
        (0.0, 1.0, INF),
        (-3.0, 2.0, 1 / 6),
        (-1.0, 2.0, INF),
        (-2.5, 1.2, -0.26077597),
        (INF, 1.0, 0.0),
        (NAN, 1.0, NAN),
    ],
    "betaln": [(0.0, 1.0, INF), (-3.0, 2.0, -math.log(6)), (INF, 1.0, -INF)],
    "betainc": [
        (1.0, 1.0, 0.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
        (0.0, 1.0, 0.5, 1.0),
        (1.0, 0.0, 0.5, 0.0),
        (0.0, 0.0, 0.5, NAN),
        (-1.0, 1.0, 0.5, NAN),
        (1.0, 1.0, 1.5, NAN),
        (INF, 1.0, 0.5, 0.0),
        (1.0, INF, 0.5, 1.0),
        (1.0, 1.0, NAN, NAN),
    ],
    "xlogy": [(0.0, 0.0, 0.0), (0.0, INF, 0.0), (0.0, -1.0, 0.0), (0.0, NAN, NAN), (1.0, 0.0, -INF), (NAN, 1.0, NAN)],
    "xlog1py": [(0.0, -1.0, 0.0), (0.0, INF, 0.0), (0.0, -2.0, 0.0), (0.0, NAN, NAN), (1.0, -1.0, -INF)],
    "entr": [(0.0, 0.0), (-1.0, -INF), (INF, -INF), (1.0, 0.0), (NAN, NAN)],
    "erfcx": [(-INF, INF), (INF, 0.0), (0.0, 1.0), (-30.0, INF), (NAN, NAN)],
    "ndtr": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (NAN, NAN)],
    "log_ndtr": [(-INF, -INF), (INF, 0.0), (0.0, -math.log(2)), (NAN, NAN)],
    "ndtri": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.5, NAN), (1.5, NAN), (NAN, NAN)],
    "logit": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.5, NAN), (1.5, NAN), (NAN, NAN)],
    "i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "i1": [(0.0, 0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "i1e": [(0.0, 0.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "gamma": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (172.0, INF), (5.0, 24.0), (NAN, NAN)],
    "expi": [(0.0, -INF), (-0.0, -INF), (-INF, 0.0), (INF, INF), (720.0, INF), (NAN, NAN)],
    "exp1": [(0.0, INF), (-1.0, NAN), (-INF, NAN), (INF, 0.0), (800.0, 0.0), (NAN, NAN)],
    "lambertw": [
        (0.0, 0.0, 0.0),
        (-0.5, 0.0, NAN),
        (INF, 0.0, INF),
        (-INF, 0.0, NAN),
        (0.0, -1.0, -INF),
        (1.0, -1.0, NAN),
        (-0.2, -1.0, -2.5426413577735),
        (1.0, 1.0, NAN),
        (1.0, NAN, NAN),
        (NAN, 0.0, NAN),
    ],
    "rel_entr": [
        (0.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, -1.0, INF),
        (1.0, 0.0, INF),
        (-1.0, 1.0, INF),
        (1.0, INF, -INF),
        (NAN, 1.0, NAN),
        (0.0, NAN, NAN),
    ],
    "kl_div": [
        (0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0),
        (0.0, -1.0, INF),
        (1.0, 0.0, INF),
        (-1.0, 1.0, INF),
        (1.0, 1.0, 0.0),
        (NAN, 1.0, NAN),
        (0.0, NAN, NAN),
    ],
    "iv": [
        (0.0, 0.0, 1.0),
        (1.0, 0.0, 0.0),
        (-0.5, 0.0, INF),
        (-1.0, 1.0, 0.565159103992485),
        (-0.5, 1.0, 1.2312002142153),
        (1.0, -1.0, -0.565159103992485),
        (0.5, -1.0, NAN),
        (1.0, INF, INF),
        (3.0, 800.0, INF),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "kv": [
        (0.0, 0.0, INF),
        (1.0, -1.0, NAN),
        (-2.0, 1.0, 1.62483888986351),
        (1.0, INF, 0.0),
        (1.0, 800.0, 0.0),
        (200.0, 1e-3, INF),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "stdtr": [
        (1.0, INF, 1.0),
        (1.0, -INF, 0.0),
        (2.0, 0.0, 0.5),
        (INF, 0.5, 0.6914624612740131),
        (INF, -INF, 0.0),
        (0.0, 0.5, NAN),
        (-1.0, 0.5, NAN),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
    ],
    "stdtrit": [
        (2.0, 0.0, -INF),
        (2.0, 1.0, INF),
        (2.0, 0.5, 0.0),
        (INF, 0.25, -0.6744897501960817),
        (2.0, 1.5, NAN),
        (-1.0, 0.5, NAN),
        (0.01, 1e-30, -INF),
        (NAN, 0.5, NAN),
        (2.0, NAN, NAN),
    ],
    "gammaincinv": [
        (2.0, 0.0, 0.0),
        (2.0, 1.0, INF),
        (2.0, 1.5, NAN),
        (0.0, 0.5, NAN),
        (-1.0, 0.5, NAN),
        (0.001, 1e-30, 0.0),
        (NAN, 0.5, NAN),
        (2.0, NAN, NAN),
    ],
    "betaincinv": [
        (2.0, 3.0, 0.0, 0.0),
        (2.0, 3.0, 1.0, 1.0),
        (2.0, 3.0, -0.5, NAN),
        (INF, 1.0, 0.5, 1.0),
        (1.0, INF, 0.5, 0.0),
        (INF, INF, 0.5, NAN),
        (-1.0, 1.0, 0.5, NAN),
        (0.001, 1.0, 1e-30, 0.0),
        (1.0, 1.0, NAN, NAN),
    ],
    "j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (-2.0, 0.22389077914123567), (NAN, NAN)],
    "j1": [(0.0, 0.0), (INF, 0.0), (-INF, 0.0), (-2.0, -0.5767248077568734), (NAN, NAN)],
}


@together("op", sorted(POINTS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_at_special_points_are_those_of_scipy(op: str, dtype: str, backend: str) -> None:
    *arguments, wanted = np.array(POINTS[op]).T
    got = getattr(ops, op)(*(ops.cast(x, dtype) for x in arguments))
    assert ops.dtype(got).name == dtype
    np.testing.assert_allclose(ops.to_numpy(got), wanted, rtol=1e-5 if dtype == "float32" else 1e-7)


def _magnitudes(*ends: tuple[float, float], count: int) -> list[Array]:
    """Returns arguments of float32 whose logarithms are uniform between the ends, the same at each call."""
    random = np.random.default_rng(count)
    return [np.exp(random.uniform(*np.log(pair), count)).astype(np.float32) for pair in ends]


USUAL: dict[str, list[tuple[float, float]]] = {
    "gammaln": [(1e-4, 1e6)],
    "digamma": [(1e-4, 1e6)],
    "gammainc": [(1e-5, 1e4), (1e-3, 1e4)],
    "gammaincc": [(1e-5, 1e4), (1e-3, 1e4)],
    "beta": [(1e-3, 300), (1e-3, 300)],
    "betaln": [(1e-3, 300), (1e-3, 300)],
    "betainc": [(1e-3, 300), (1e-3, 300), (1e-4, 0.999)],
}
"""The arguments that backends may compute by shorter formulas if the result becomes float32."""


@together("op", sorted(USUAL))
@pytest.mark.parametrize("count", [20, 300])
@pytest.mark.parametrize("ends", [(), (-0.5, INF, NAN, 1e30), (0.0, 1.0, 2.0)])
def test_values_in_float32_are_those_in_float64(op: str, count: int, ends: tuple[float, ...], backend: str) -> None:
    arguments = _magnitudes(*USUAL[op], count=count)
    for place, end in enumerate(ends):
        arguments[0][place] = end
    wanted = ops.to_numpy(getattr(ops, op)(*(x.astype(np.float64) for x in arguments)))
    got = ops.to_numpy(getattr(ops, op)(*arguments))
    assert got.dtype == np.float32
    # MLX replaces subnormal numbers by 0.
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(got, wanted.astype(np.float32), rtol=3e-7, atol=1.2e-38)


def test_many_usual_arguments_do_not_hide_others(backend: str) -> None:
    x = np.full(20_000, 3.5, np.float32)
    x[17_000] = -1.5
    got = ops.to_numpy(ops.digamma(x))
    np.testing.assert_allclose(got[[0, 17_000]], [1.1031566, 0.7031566], rtol=3e-7)


@pytest.mark.parametrize("op", sorted(POINTS))
def test_integers_become_the_default_float_and_complex_numbers_are_refused(op: str, backend: str) -> None:
    count = len(POINTS[op][0]) - 1
    assert ops.dtype(getattr(ops, op)(*[[1, 2]] * count)) == ops.default_float()
    with pytest.raises(DTypeError):
        getattr(ops, op)(*[[1j]] * count)


def test_lgamma_is_another_name_of_gammaln() -> None:
    assert ops.lgamma is ops.gammaln


def test_python_numbers_take_the_dtype_of_the_tensor(backend: str) -> None:
    x = np.array([0.5, 2.0])
    for got in (ops.polygamma(1, x), ops.zeta(2, x), ops.gammainc(x, 0.1), ops.betainc(0.1, 2, x), ops.xlogy(0.1, x)):
        assert ops.dtype(got).name == "float64"
    assert ops.to_numpy(ops.xlogy(0.1, x))[1] == pytest.approx(0.1 * math.log(2), rel=1e-15)


BETAINC_OF_LARGE = [
    *(0.013684567589487596, 0.5001716775105407, 0.9291103229655959),
    *(0.013741322928813303, 0.5000054289165304, 0.9291755165324781),
    *(0.013743149602451758, 0.5000000542620451, 0.9291776334628002),
]
"""From mpmath, by quadrature with 50 digits; SciPy 1.16 has an error of 2e-5 in the last row."""


def test_large_parameters_keep_their_digits(backend: str) -> None:
    special = pytest.importorskip("scipy.special")
    a = np.repeat([1e5, 1e8, 1e12], 3)
    x = a + np.tile([-3.0, 0.0, 2.0], 3) * np.sqrt(a)
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_allclose(ops.to_numpy(getattr(ops, name)(a, x)), getattr(special, name)(a, x), rtol=1e-13)
    b, p = 2 * a, 1 / 3 + np.tile([-3.0, 0.0, 2.0], 3) / np.sqrt(a) / 5
    np.testing.assert_allclose(ops.to_numpy(ops.betainc(a, b, p)), BETAINC_OF_LARGE, rtol=1e-9)
