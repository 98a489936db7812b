"""Statistics beyond the sample rows: empty data, NaN, precision of quantiles, errors."""

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
    assert host(ops.bincount(ops.zeros((0,), "int64"), minlength=2)) == [0, 0]
    with pytest.raises(errors.ShapeError):
        ops.nanmax(ops.zeros((0,)))


def test_nan_reductions_of_a_row_of_nan_are_nan(backend: str) -> None:
    x = [[NAN, NAN], [NAN, -INF]]
    for op in (ops.nanmean, ops.nanmax, ops.nanmin, ops.nanmedian):
        assert np.isnan(host(op(x, axis=1))[0])
    assert host(ops.nanargmax(x, axis=1)) == [-1, 1]
    assert host(ops.nanargmin(x, axis=1)) == [-1, 1]
    assert host(ops.nanmax(x, axis=1))[1] == -INF


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


def test_weighted_counts_are_added_in_float64(backend: str) -> None:
    n = 100_000
    counts = ops.bincount(np.zeros(n, np.int64), np.full(n, 0.1, np.float32))
    assert ops.dtype(counts) == "float32"
    assert host(counts)[0] == pytest.approx(n * float(np.float32(0.1)), rel=1e-6)
    exact = np.array([1 / 3, 0.5])
    assert host(ops.bincount([0, 1], exact)) == exact.tolist()


def test_histogram_ignores_nan_and_refuses_wrong_bins(backend: str) -> None:
    assert host(ops.histogram([0.0, 0.5, NAN, 1.0, 7.0], 2, (0.0, 1.0))[0]) == [1, 2]
    assert host(ops.histogram(ops.cast([0.0, 1.0], "bfloat16"), 2)[0]) == [1, 1]
    for bins, limits in ((0, None), (2, (1.0, 0.0)), (2, (0.0, INF))):
        with pytest.raises(errors.ArgumentError, match="histogram"):
            ops.histogram([1.0], bins, limits)


def test_cov_of_numbers_far_from_zero_is_precise(backend: str) -> None:
    x = (1e4 + np.random.default_rng(0).standard_normal((2, 2000))).astype(np.float32)
    assert host(ops.cov(x)) == pytest.approx(np.cov(x.astype(np.float64)), abs=1e-5)


def test_correlate_of_integers_gives_integers(backend: str) -> None:
    found = ops.correlate(np.array([1, 2, 3], np.int32), np.array([2, 1], np.int32), "full")
    assert host(found) == np.correlate([1, 2, 3], [2, 1], "full").tolist()
    assert ops.dtype(found) == "int32"


def test_wrong_options_dtypes_and_axes_are_refused(backend: str) -> None:
    x = [1.0, 2.0]
    for call in (
        lambda: ops.quantile(x, 1.5),
        lambda: ops.quantile(x, NAN),
        lambda: ops.quantile(x, 0.5, method="cubic"),  # type: ignore[arg-type]
        lambda: ops.diff(x, -1),
        lambda: ops.bincount([-1, 2]),
        lambda: ops.correlate(x, x, "some"),  # type: ignore[arg-type]
    ):
        with pytest.raises(errors.ArgumentError):
            call()
    with pytest.raises(errors.DTypeError):
        ops.bincount([0.5])
    for call in (lambda: ops.bincount([[1]]), lambda: ops.correlate([x], x), lambda: ops.cov([[x]])):
        with pytest.raises(errors.ShapeError):
            call()
    with pytest.raises(errors.AxisError, match="median"):
        ops.median(x, axis=1)
    with pytest.raises(errors.AxisError):
        ops.diff(x, axis=1)


@pytest.mark.parametrize("shape", [(3, 0), (0,), (2, 1)])
def test_cov_of_too_few_observations_is_nan(shape: tuple[int, ...], backend: str) -> None:
    assert np.isnan(ops.to_numpy(ops.cov(np.ones(shape)))).all()
    assert np.isnan(ops.to_numpy(ops.cov(np.ones((2, 3)), correction=4))).all()


def test_more_differences_than_elements_are_none(backend: str) -> None:
    squares = ops.square(ops.arange(4))
    for n in range(6):
        assert host(ops.diff(squares, n)) == np.diff(np.arange(4) ** 2, n).tolist()
    assert ops.shape(ops.diff(ops.ones((2, 4)), 2**70, 0)) == (0, 4)
    assert ops.shape(ops.diff(ops.ones((2, 0)), 2**40)) == (2, 0)
    with pytest.raises(errors.ArgumentTypeError, match="diff"):
        ops.diff(squares, 7.5)  # type: ignore[arg-type]
    with pytest.raises(errors.AxisError, match="diff"):
        ops.diff(squares, 2**40, 1)
