"""The bodies of special functions: values and derivatives are those of the ops, in float64."""

import functools
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS
from emberharmony.backend.shared.elementwise.series import evaluate_series
from emberharmony.backend.shared.elementwise.special_integrals import DOUBLE, SINGLE
from emberharmony.errors import DTypeError, UnsupportedOpError

NUMBERS = np.array([0.07, 0.4, 0.9])
LARGE = np.array([0.3, 2.5, 11.0])
ONE = (
    *("erf", "erfc", "erfinv", "i0", "gammaln", "digamma", "erfcx", "ndtr", "log_ndtr", "ndtri", "i0e", "i1", "i1e"),
    *("expm1", "exp2", "log1p", "log2", "log10", "tan"),
)
TWO = {"polygamma": 2.0, "zeta": 2.5, "gammainc": 1.7, "gammaincc": 1.7, "beta": 0.8, "betaln": 0.8, "xlogy": 2.0}


@pytest.mark.parametrize("name", [*ONE, *TWO, "xlog1py", "betainc", "logaddexp", "logaddexp2"])
def test_a_body_has_the_values_and_derivatives_of_the_op(name: str) -> None:
    first = () if name in ONE else (0.6, 3.0) if name == "betainc" else (TWO.get(name, 2.0),)
    x = NUMBERS if name in ("erfinv", "ndtri", "betainc") else LARGE
    with ops.use_backend("numpy"):
        op, body = (functools.partial(each, *first) for each in (OPS[name].function, OPS[name].composed))
        np.testing.assert_allclose(body(x), op(x), rtol=2e-13)
        slopes = [ops.grad(lambda x, f=f: ops.sum(f(x)))(x) for f in (body, op)]
        np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-11)


@pytest.mark.parametrize("name", ["polygamma", "zeta", "iv", "kv"])
def test_a_parameter_without_a_derivative_is_named(name: str) -> None:
    others: Any = [0.5] * (OPS[name].declared.__code__.co_argcount - 1)
    with ops.use_backend("numpy"), pytest.raises(UnsupportedOpError, match="no gradient with respect to"):
        ops.grad(lambda a: OPS[name].composed(a, *others))(1.0)


@pytest.mark.parametrize(
    ("dtype", "digits"), [("float64", DOUBLE), ("float32", SINGLE), ("float16", SINGLE), ("int32", SINGLE)]
)
def test_series_have_the_terms_that_the_dtype_of_the_result_needs(dtype: Any, digits: Any) -> None:
    seen = []

    def series(xp: Any, x: Any) -> Any:
        seen.append(xp.digits)
        return x

    with ops.use_backend("numpy"):
        result = evaluate_series(series, ops.ones(2, dtype))
        assert ops.dtype(result) == ("float32" if dtype == "int32" else dtype)
    assert seen == [digits]


def test_complex_numbers_are_refused() -> None:
    with ops.use_backend("numpy"), pytest.raises(DTypeError, match="not defined for dtype complex64"):
        OPS["gammaln"].composed(ops.convert_to_tensor([1j]))
