"""A reduction has the same digits along every axis, whatever the shape, the layout and the dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS
from tests.backend.fast_paths.comparing import FORMS, differs, made, outcome, spread

SHAPES: list[tuple[tuple[int, ...], list[Any]]] = [
    ((), [None, ()]),
    ((1,), [0, -1, None]),
    ((5,), [0, (0,), None]),
    ((0, 3), [0, 1, (0, 1), None]),
    ((3, 0), [0, -1, None]),
    ((3, 4), [0, 1, -2, (0, 1), [1], (), None]),
    ((1, 4, 1), [0, 1, 2, (0, 2), None]),
    ((2049, 2), [0, 1, None]),
    ((2, 5, 500), [0, 1, 2, (0, 2), (0, 1), [1, 2], (), None]),
    ((2, 170, 600), [0, 1, 2, (1, 2)]),
    ((3, 2**16), [0, 1, None]),
    ((700, 100), [0, -1, (0, 1)]),
    ((2**16, 1), [0, 1]),
]
"""Shapes with the axes to reduce: few and many rows, short and wide ones, and more elements than any block has."""


def _tuple(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _native(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, keepdims: function(x, axis=_tuple(axis), keepdims=keepdims)


ORACLES: dict[str, tuple[Callable[..., Any], float]] = {
    "sum": (_native(np.sum), 10),
    "mean": (_native(np.mean), 10),
    "var": (_native(np.var), 32),
    "std": (_native(np.std), 32),
    "max": (_native(np.max), 0),
    "min": (_native(np.min), 0),
    "logsumexp": (lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=_tuple(axis), keepdims=keepdims)), 4),
}
"""What NumPy computes in float64, and the error that is allowed, in eps."""
TRUTHS = {"any": _native(np.any), "all": _native(np.all)}


def failures(op: str, dtype: str, eps: float, oracle: Callable[..., Any], x: Any) -> list[str]:
    found = []
    for axis in next(axes for shape, axes in SHAPES if shape == x.shape):
        for keepdims in (False, True):
            try:
                wanted = [np.asarray(oracle(x, axis, keepdims))]
            except ValueError:  # the extreme of no elements
                continue
            for form in list(FORMS)[: 1 if keepdims else None]:
                got = outcome(OPS[op].function, (made(x, dtype, form), axis, keepdims))
                text = differs(got, wanted, [w.astype(dtype) if w.dtype.kind == "f" else w for w in wanted], eps)
                if text:
                    found.append(f"{x.shape} {form}, axis={axis}, keepdims={keepdims}: {text}")
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("op", ORACLES)
def test_a_reduction_has_the_digits_of_float64(op: str, dtype: str, backend: str) -> None:
    if backend == "mlx" and dtype == "float64":
        pytest.skip("MLX has no float64 on its GPU")
    oracle, eps = ORACLES[op]
    eps *= 4 if dtype == "float64" else 1
    found = []
    for shape, _ in SHAPES:
        # A large mean, so that a plain sum of many numbers loses digits.
        x = (spread(*shape) + (0 if dtype == "float16" or op == "logsumexp" else 40)).astype(dtype)
        found += failures(op, dtype, eps, oracle, np.asarray(x, np.float64))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("op", TRUTHS)
def test_a_truth_is_that_of_all_elements(op: str, backend: str) -> None:
    found = []
    for shape, _ in SHAPES:
        x = np.asarray(spread(*shape)) > (2.9 if op == "any" else -2.9)
        found += failures(op, "bool", 0, TRUTHS[op], x)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("op", ["var", "std"])
def test_rows_that_vary_little_about_a_large_mean_keep_their_digits(op: str, backend: str) -> None:
    x = (spread(656, 100) + 1e6).astype(np.float32)
    wanted = ORACLES[op][0](x.astype(np.float64), -1, False)
    np.testing.assert_allclose(ops.to_numpy(OPS[op].function(ops.convert_to_tensor(x), -1)), wanted, 1e-6)
