"""Quantiles beyond the sample rows: positions, infinities, half precision, errors."""

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
