"""Statistics beyond the sample rows: empty data, NaN, precision, errors."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

NAN, INF = float("nan"), float("inf")


def host(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def test_statistics_of_empty_tensors_are_nan_or_raise(backend: str) -> None:
    for op in (ops.median, ops.nanmedian, ops.nanmean, ops.nanstd):
        assert np.isnan(host(op(ops.zeros((0,)))))
    assert host(ops.quantile(ops.zeros((2, 0)), [0.1, 0.9], axis=0)) == [[], []]
    assert host(ops.nansum(ops.zeros((0,)))) == 0.0
    assert host(ops.nanprod(ops.zeros((0,)))) == 1.0
    with pytest.raises(errors.ShapeError):
        ops.nanmax(ops.zeros((0,)))


def test_nan_reductions_of_a_row_of_nan_are_nan(backend: str) -> None:
    x = [[NAN, NAN], [NAN, -INF]]
    for op in (ops.nanmean, ops.nanmax, ops.nanmin, ops.nanmedian):
        assert np.isnan(host(op(x, axis=1))[0])
    assert host(ops.nanargmax(x, axis=1)) == [-1, 1]
    assert host(ops.nanargmin(x, axis=1)) == [-1, 1]
    assert host(ops.nanmax(x, axis=1))[1] == -INF


def test_nan_reductions_in_half_precision_do_not_overflow(backend: str) -> None:
    x = ops.cast(ops.full((3000,), 100.0), "float16")
    assert host(ops.nanmean(x)) == 100.0
    assert host(ops.nanstd(x)) == 0.0


def test_nan_reductions_of_integers_are_exact(backend: str) -> None:
    x = np.array([2**62 + 1, 5])
    assert host(ops.nanmax(x)) == 2**62 + 1
    assert host(ops.nansum(x)) == 2**62 + 6
    assert host(ops.nanargmin(x)) == 1
    assert host(ops.nanmedian([1, 2])) == 1.5


def test_a_vector_of_weights_applies_along_its_axis(backend: str) -> None:
    x = [[1.0, 2.0], [3.0, 4.0]]
    assert host(ops.average(x, 0, [1.0, 3.0])) == [2.5, 3.5]
    assert host(ops.average(x, 1, [1.0, 3.0], keepdims=True)) == [[1.75], [3.75]]
    with pytest.raises(errors.ShapeError, match="average"):
        ops.average(x, 0, [1.0, 2.0, 3.0])


def test_infinite_elements_do_not_change_the_sum_of_weights(backend: str) -> None:
    assert host(ops.average([[INF, 1.0]], 0, [[1.0, 3.0]])) == [INF, 1.0]


def test_cov_of_numbers_far_from_zero_is_precise(backend: str) -> None:
    x = (1e4 + np.random.default_rng(0).standard_normal((2, 2000))).astype(np.float32)
    assert host(ops.cov(x)) == pytest.approx(np.cov(x.astype(np.float64)), abs=1e-5)


def test_variables_of_more_than_two_axes_are_refused(backend: str) -> None:
    with pytest.raises(errors.ShapeError):
        ops.cov([[[1.0, 2.0]]])


@pytest.mark.parametrize("shape", [(3, 0), (0,), (2, 1)])
def test_cov_of_too_few_observations_is_nan(shape: tuple[int, ...], backend: str) -> None:
    assert np.isnan(ops.to_numpy(ops.cov(np.ones(shape)))).all()
    assert np.isnan(ops.to_numpy(ops.cov(np.ones((2, 3)), correction=4))).all()


def test_weights_that_broadcast_count_as_often_as_they_are_used(backend: str) -> None:
    x = ops.asarray([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
    assert float(ops.average(x, weights=ops.asarray(2.0))) == 4.0
    assert ops.average(x, 0, ops.asarray([[1.0], [3.0]])).tolist() == [4.0, 5.0, 6.0]
    assert float(ops.average(x, weights=ops.asarray([[1.0, 0.0, 0.0]]))) == 3.0


@pytest.mark.parametrize("op", ["nanvar", "nanstd"])
def test_a_spread_without_degrees_of_freedom_is_nan(op: str, backend: str) -> None:
    x = ops.asarray([[1.0, np.nan, 4.0], [1.0, 2.0, 6.0], [np.nan, np.nan, 2.0]])
    for correction in (2, 3, 2.5):
        found = ops.to_numpy(getattr(ops, op)(x, 1, correction=correction))
        assert np.isnan(found).tolist() == [True, correction >= 3, True]
        assert correction >= 3 or found[1] > 0


@pytest.mark.parametrize("op", ["nanmean", "nanvar", "nanstd"])
def test_a_mean_without_nan_is_computed_in_the_dtype_that_is_asked_for(op: str, backend: str) -> None:
    numbers = [2**24 + 1.0, float("nan"), 1.0]
    x = ops.asarray([2**24 + 1, 1], dtype="int32")
    wanted = getattr(np, op)(np.array(numbers, np.float64))
    assert ops.to_numpy(getattr(ops, op)(x, dtype="float64")) == pytest.approx(wanted, rel=1e-15)
    for dtype in ("float16", "float32", "float64"):
        found = getattr(ops, op)(ops.asarray([1.0, np.nan, 3.0]), 0, True, dtype=dtype)
        assert (ops.dtype(found).name, tuple(found.shape)) == (dtype, (1,))
    with pytest.raises(errors.DTypeError, match="int32"):
        getattr(ops, op)(x, dtype="int32")
