"""Derivatives of special functions."""

import math
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.testing import gradcheck

REFUSED = {"polygamma": ("n",), "zeta": ("x",), "iv": ("v",), "kv": ("v",)}
CASES = [(op, i, name) for op, names in REFUSED.items() for i, name in enumerate(names)]


@pytest.mark.parametrize(("op", "at", "name"), CASES)
def test_an_argument_without_gradient_is_refused_by_name(op: str, at: int, name: str, backend: str) -> None:
    tensors = [ops.convert_to_tensor(x) for x in (2.0, 3.0)]
    with pytest.raises(UnsupportedOpError, match=f"no gradient with respect to '{name}'"):
        ops.grad(lambda *xs: ops.sum(getattr(ops, op)(*xs)), argnums=at)(*tensors)
    with pytest.raises(UnsupportedOpError, match=f"no gradient with respect to '{name}'"):
        ops.jvp(lambda x: getattr(ops, op)(*tensors[:at], x, *tensors[at + 1 :]), (tensors[at],), (tensors[at],))
    last = len(tensors) - 1
    slope = ops.to_numpy(ops.grad(getattr(ops, op), argnums=last)(*tensors))
    _, tangent = ops.jvp(lambda x: getattr(ops, op)(*tensors[:-1], x), (tensors[-1],), (ops.ones_like(tensors[-1]),))
    np.testing.assert_allclose(ops.to_numpy(tangent), slope, rtol=1e-6)
    assert np.isfinite(slope)


DERIVATIVES: dict[str, tuple[float, ...]] = {
    "gammaln": (0.3, 2.5, 40.0, -1.3),
    "digamma": (0.3, 2.5, 40.0, -1.3),
    "erfcx": (-2.0, 0.0, 0.3, 5.0),
    "log_ndtr": (-6.0, -0.1, 0.2, 4.0),
    "i1": (0.3, -2.0, 9.0),
    "i1e": (0.3, -2.0, 9.0),
    "entr": (0.3, 2.0),
    "logit": (0.1, 0.45, 0.55, 0.9),
    "gamma": (0.3, 2.5, 12.0, -1.3),
    "expi": (-2.0, 0.3, 5.0, 7.0),
    "exp1": (0.3, 3.0, 6.0),
    "lambertw": (-0.36, -0.1, 0.0, 0.5, 20.0),
    "j0": (-3.0, 0.0, 5.0, 9.0),
    "j1": (-3.0, 0.0, 5.0, 9.0),
}


@pytest.mark.parametrize("op", sorted(DERIVATIVES))
def test_derivatives_are_right_on_both_sides_of_each_piece(op: str, backend: str) -> None:
    gradcheck(getattr(ops, op), (np.array(DERIVATIVES[op]),))


# A function, its arguments, the derivatives by the first two, and the second derivatives by the first argument, by the
# first two, and by the second; from mpmath, by differences with 60 digits.
BY_PARAMETERS: list[tuple[str, tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = [
    (
        "gammainc",
        (0.5, 0.3),
        (-0.7705703513753519, 0.763090578768186),
        (0.6261476558399126, 0.5795956980995894, -2.034908210048496),
    ),
    (
        "gammainc",
        (30.0, 20.0),
        (-0.010205257324989506, 0.012515304368452664),
        (0.004150326116724295, -0.004864772136832032, 0.005631886965803698),
    ),
    (
        "gammaincc",
        (2.5, 9.0),
        (0.004741679548193881, -0.002506554935041461),
        (0.006217598371257099, -0.00374496335999998, 0.002088795779201218),
    ),
    (
        "betainc",
        (0.5, 1.5, 0.7),
        (-0.16836770909454365, 0.11252955262252107),
        (-0.03603694061371703, 0.19962739275186153, -0.17414656058107605),
    ),
    (
        "betainc",
        (20.0, 3.0, 0.8),
        (-0.02271397850889235, 0.1222944440085913),
        (0.002905523041761777, -0.012707936791504441, 0.04685587421547148),
    ),
]


@pytest.mark.parametrize(("op", "arguments", "first", "second"), BY_PARAMETERS)
def test_the_derivatives_by_parameters_have_all_digits(
    op: str, arguments: tuple[float, ...], first: tuple[float, ...], second: tuple[float, ...], backend: str
) -> None:
    tensors = [ops.convert_to_tensor(np.array([x])) for x in arguments]
    function = getattr(ops, op)

    def slope(at: int) -> Any:
        return lambda *xs: ops.sum(ops.grad(lambda *ys: ops.sum(function(*ys)), argnums=at)(*xs))

    found = [float(ops.to_numpy(slope(at)(*tensors))) for at in range(len(first))]
    np.testing.assert_allclose(found, first, rtol=1e-12)
    pairs = ((0, 0), (0, 1), (1, 1))[: len(second)]
    found = [float(ops.to_numpy(ops.grad(slope(a), argnums=b)(*tensors))[0]) for a, b in pairs]
    np.testing.assert_allclose(found, second, rtol=1e-11)
    with pytest.raises(UnsupportedOpError, match="no gradient with respect to 'a'"):
        ops.grad(lambda *xs: ops.sum(ops.grad(slope(0))(*xs)))(*tensors)


def test_derivatives_at_zero_are_the_limits(backend: str) -> None:
    zero = ops.convert_to_tensor(np.array(0.0))
    assert ops.to_numpy(ops.grad(ops.i1)(zero)) == 0.5
    assert ops.to_numpy(ops.grad(ops.i1e)(zero)) == 0.5
    assert ops.to_numpy(ops.grad(ops.i0e)(zero)) == 0.0
    one = ops.convert_to_tensor(np.array(3.0))
    by_x, by_y = ops.grad(ops.xlogy, argnums=(0, 1))(zero, one)
    assert ops.to_numpy(by_x) == pytest.approx(math.log(3))
    assert ops.to_numpy(by_y) == 0.0
    assert [float(ops.to_numpy(g)) for g in ops.grad(ops.xlogy, argnums=(0, 1))(zero, zero)] == [0.0, 0.0]


def test_the_derivative_of_erfcx_keeps_its_digits_far_out(backend: str) -> None:
    x = np.array([99.0, 101.0, 1e4, 1e8])
    z = 1 / x**2
    wanted = -2 / math.sqrt(math.pi) * z * (0.5 - z * (0.75 - z * 1.875))
    got = ops.to_numpy(ops.grad(lambda x: ops.sum(ops.erfcx(x)))(x))
    np.testing.assert_allclose(got, wanted, rtol=1e-10)


@pytest.mark.parametrize("op", ["gammaln", "polygamma", "gammainc", "betainc"])
def test_functions_and_their_gradients_work_under_vmap(op: str, backend: str) -> None:
    given = {"gammaln": (), "polygamma": (1.0,), "gammainc": (2.0,), "betainc": (2.0, 3.0)}[op]
    x = np.linspace(0.1, 0.9, 6).reshape(2, 3)

    def function(x: Any) -> Any:
        return getattr(ops, op)(*given, x)

    wanted = ops.to_numpy(function(x))
    np.testing.assert_allclose(ops.to_numpy(ops.vmap(function)(x)), wanted, rtol=1e-14)
    slopes = ops.to_numpy(ops.grad(lambda x: ops.sum(function(x)))(x))
    np.testing.assert_allclose(ops.to_numpy(ops.vmap(ops.grad(lambda r: ops.sum(function(r))))(x)), slopes, rtol=1e-14)
