"""Convolutions, pools and interpolations that a backend computes itself do what their composites do."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from tests.backend.fast_paths.comparing import Case, case, spread, unlike_general

LAST: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 7, 4), (3, 4, 6)),
    ((2, 6, 5, 4), (2, 3, 2, 4)),
    ((1, 5, 4, 4), (2, 2, 1, 16)),
    ((1, 5, 4, 4), (2, 2, 1, 8)),
    ((2, 5, 1), (2, 1, 3)),
    ((2, 4, 3, 3, 2), (2, 1, 2, 2, 2)),
    ((2, 1, 4), (1, 4, 1)),
    ((0, 5, 4), (2, 4, 3)),
    ((2, 5, 4), (2, 4, 0)),
    ((2, 5, 4), (6, 4, 3)),
    ((2, 5, 4), (2, 3, 3)),
]
"""Shapes of inputs and kernels: groups, axes of length 1, three axes, nothing to compute, and what does not fit."""


def _first(x: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def _convs(transposed: bool = False) -> list[Case]:
    found = []
    for shape, size in LAST:
        x, bias = spread(*shape), spread(size[-1])
        kernel = spread(*size, low=-1, high=1)
        if transposed:
            kernel, bias = np.swapaxes(kernel, -1, -2), spread(size[-1])
        for strides, padding in product([1, 2], ["valid", "same"]):
            found.append(case(x, kernel, strides, padding))
        n = x.ndim - 2
        found += [
            case(x, kernel, bias=bias),
            case(x, kernel, dilation_rate=2),
            case(x, kernel, 1, 1),
            case(x, kernel, (2,) * n, ((0, 1),) * n),
            case(x, kernel, 3, "same", dilation_rate=1),
            case(_first(x), kernel, data_format="channels_first", bias=bias),
            case(
                _first(x), kernel, (1,) * n, (1,) * n, data_format="channels_first", dilation_rate=(1,) * n, bias=bias
            ),
            case(_first(x), kernel, (2,) * n, (0,) * n, data_format="channels_first", dilation_rate=(1,) * n),
            case(x, kernel, bias=bias[:1]),
            case(x, kernel, 0),
        ]
        if transposed:
            found += [case(x, kernel, 2, "same", 1), case(x, kernel, 3, "valid", 0), case(x, kernel, 2, 0, 1)]
    return found


def _pools(average: bool) -> list[Case]:
    found = []
    options: list[dict[str, Any]] = [{}, {"ceil_mode": True}]
    options += [{"count_include_pad": True}, {"divisor_override": 3}] if average else [{"dilation_rate": 2}]
    for shape in [(2, 6, 3), (2, 6, 5, 3), (1, 4, 4, 1), (2, 3, 4, 4, 2), (0, 6, 3), (2, 0, 3), (1, 40, 30, 2)]:
        x, n = spread(*shape), len(shape) - 2
        for size, (strides, padding), given in product(
            [2, 3, 9], [(None, "valid"), (1, "valid"), (2, "same"), (2, 1)], options
        ):
            found.append(case(x, size, strides, padding, **given))
        found += [case(x, (2,) * n, (1,) * n, (1,) * n, **given) for given in options]
        found += [case(_first(x), (2,) * n, (1,) * n, (1,) * n, "channels_first", **given) for given in options]
        found += [case(_first(x), 2, data_format="channels_first"), case(x, (2,) * n, 2, ((0, 1),) * n)]
    return found


def _interpolations() -> list[Case]:
    found = []
    for shape, modes in [
        ((2, 5, 3), ["nearest", "nearest-exact", "area", "linear"]),
        ((2, 5, 4, 3), ["nearest", "nearest-exact", "area", "bilinear", "bicubic"]),
        ((1, 3, 4, 2, 2), ["nearest", "trilinear"]),
        ((0, 5, 3), ["nearest"]),
    ]:
        x = spread(*shape)
        for mode in modes:
            found += [
                case(x, 7, mode=mode),
                case(x, 3, mode=mode),
                case(_first(x), 7, None, mode, None, None, "channels_first"),
            ]
            found += [case(x, None, 2.0, mode), case(x, None, 1.5, mode, None, True), case(x, None, 2, mode)]
            found += [case(x, None, (2.0,) * (x.ndim - 2), mode), case(x, 7, 2.0, mode)]
            found += [case(x, 7, None, mode, True)] if mode in ("linear", "bilinear", "bicubic", "trilinear") else []
    return found


CASES: dict[str, tuple[list[Case], float]] = {
    "conv": (_convs(), 32),
    "conv_transpose": (_convs(transposed=True), 32),
    "max_pool": (_pools(average=False), 0),
    "average_pool": (_pools(average=True), 4),
    "interpolate": (_interpolations(), 32),
}


@pytest.mark.parametrize("op", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_backend_does_what_the_composite_does(op: str, backend: str) -> None:
    cases, eps = CASES[op]
    found = unlike_general(op, cases, backend, eps)
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("shape", [(1, 3000, 16), (60, 50, 16)])
def test_a_large_convolution_is_that_of_its_parts(shape: tuple[int, ...], backend: str) -> None:
    x, kernel = spread(*shape).astype(np.float32), spread(9, 16, 3, low=-1, high=1).astype(np.float32)
    found = ops.to_numpy(ops.conv(x, kernel))
    windows = np.lib.stride_tricks.sliding_window_view(x, 9, 1)
    np.testing.assert_allclose(found, np.einsum("ntck,kco->nto", windows, kernel), 1e-4, 1e-4)
