"""Quantiles beyond the sample rows: positions, infinities, half precision, errors."""

import itertools
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

INF, NAN = float("inf"), float("nan")


def host(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def test_the_positions_of_quantiles_are_computed_in_double_precision(backend: str) -> None:
    x = np.arange(11.0)
    for share in ([0.7], np.array([0.7])):
        assert host(ops.quantile(x, share, method="lower")) == [7.0]
    assert host(ops.percentile(x, [30, 70], method="lower")) == [3.0, 7.0]
    assert host(ops.percentile(x, ops.convert_to_tensor([30, 70]), method="lower")) == [3.0, 7.0]


def test_quantiles_next_to_infinity_are_not_nan(backend: str) -> None:
    assert host(ops.quantile([1.0, INF], 0.5, method="lower")) == 1.0
    assert host(ops.quantile([-INF, -INF, 2.0], [0.0, 0.5])) == [-INF, -INF]


def test_quantiles_in_half_precision_do_not_overflow(backend: str) -> None:
    x = ops.cast([-60000.0, 60000.0], "float16")
    assert host(ops.median(x)) == 0.0
    assert ops.dtype(ops.median(x)) == "float16"


def test_wrong_quantiles_methods_and_axes_are_refused(backend: str) -> None:
    x = [1.0, 2.0]
    for call in (
        lambda: ops.quantile(x, 1.5),
        lambda: ops.quantile(x, NAN),
        lambda: ops.quantile(x, 0.5, method="cubic"),  # type: ignore[arg-type]
    ):
        with pytest.raises(errors.ArgumentError):
            call()
    with pytest.raises(errors.AxisError, match="median"):
        ops.median(x, axis=1)


def test_the_gradient_by_a_quantile_is_the_slope_of_the_interpolation(backend: str) -> None:
    x = ops.convert_to_tensor([5.0, 0.0, 1.0], "float64")

    def slopes(method: Any) -> Any:
        return ops.grad(lambda q: ops.sum(ops.quantile(x, q, method=method)))(ops.convert_to_tensor(q, "float64"))

    q = [0.0, 0.25, 0.5, 0.75, 1.0]
    assert slopes("linear").tolist() == [2.0, 2.0, 8.0, 8.0, 8.0]
    for method in ("lower", "higher", "midpoint", "nearest"):
        assert slopes(method).tolist() == [0.0] * 5
    with pytest.raises(errors.ArgumentError, match="method"):
        slopes("cubic")


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_the_same_while_q_is_differentiated(method: Any, backend: str) -> None:
    rows = np.array([[3.0, 1.0, 2.0, 7.0], [4.0, INF, -INF, 0.5], [1.0, NAN, 2.0, 5.0]])
    q = np.array([[0.0, 0.1, 1 / 3], [0.5, 0.9, 1.0]])
    for op, x in itertools.product((ops.quantile, ops.nanquantile), (rows, rows[:1, :1], rows[1:, 1:2])):
        for axis, keepdims in ((1, True), (0, False), (None, False)):
            traced = ops.value_and_grad(
                lambda q, op=op, x=x, axis=axis, keepdims=keepdims: (
                    ops.sum(q),
                    op(x, q, axis, method, keepdims),
                ),
                has_aux=True,
            )(ops.convert_to_tensor(q))[0][1]
            np.testing.assert_allclose(ops.to_numpy(traced), ops.to_numpy(op(x, q, axis, method, keepdims)), rtol=1e-12)


def test_a_quantile_outside_its_range_is_nan_while_it_is_differentiated(backend: str) -> None:
    found = ops.jvp(lambda q: ops.quantile([1.0, 2.0], q), ([-0.5, 0.5, 2.0],), ([1.0, 1.0, 1.0],))[0]
    assert np.isnan(ops.to_numpy(found)).tolist() == [True, False, True]
    mixed = ops.grad(ops.grad(lambda q: ops.square(ops.quantile([1.0, 3.0], q))))(0.25)
    assert float(mixed) == 8.0
