"""Convolutions on MLX: every way has the values, gradients and errors that NumPy has in float64."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from tests.backend.mlx_outcomes import assert_as_numpy, drawn
from tests.sampling import portion

mx = pytest.importorskip("mlx.core")


def checked(call: Any, cases: Any, eps: float = 16.0, gradients: bool = True) -> None:
    for case in cases:
        assert_as_numpy(call, case, "float32", eps, gradients)


def test_convolutions() -> None:
    geometry = [
        ((7,), (3,)),
        ((6, 5), (2, 3)),
        ((6, 5), (1, 1)),
        ((4, 3, 5), (2, 2, 2)),
        ((2, 2), (3, 3)),
        ((0, 5), (2, 2)),
        ((3, 3, 2, 3), (2, 2, 2, 1)),
        ((40, 41), (5, 5)),
    ]
    channels = [
        (1, 1, 1),
        (2, 3, 1),
        (4, 4, 2),
        (4, 8, 4),
        (16, 16, 1),
        (18, 18, 18),
        (12, 12, 1),
        (0, 2, 1),
        (2, 0, 1),
    ]
    combinations = [*product(product(geometry, channels), (1, 2, 3), ("valid", "same"), (1, 2))]
    for ((lengths, size), (inner, outer, groups)), strides, padding, spread in portion(combinations, 5):
        if (len(lengths) > 2 and (strides == 3 or inner > 4)) or (spread == 2 and strides * outer > 3):
            continue
        if lengths == (40, 41) and (inner * outer > 16 * 16 or strides == 3 or spread == 2):
            continue
        x, w, b = drawn(2, *lengths, inner), drawn(*size, max(inner // groups, 0), outer), drawn(outer)
        plain = {"strides": strides, "padding": padding, "dilation_rate": spread}
        smooth = inner < 5 and strides < 3
        checked(partial(ops.conv, **plain), [(x, w)], 48.0, smooth)
        checked(lambda x, w, b, p=plain: ops.conv(x, w, bias=b, **p), [(x, w, b)], 48.0, False)
        checked(partial(ops.conv_transpose, **plain), [(x, np.swapaxes(w, -1, -2))], 48.0, smooth)
        if (strides, padding, spread) == (1, "valid", 1):
            half = x.astype("float16"), w.astype("float16")
            for pair in ((half[0], w), (x, half[1])):
                checked(ops.conv, [pair], 48.0, False)
                checked(ops.conv_transpose, [(pair[0], np.swapaxes(pair[1], -1, -2))], 48.0, False)


def test_depthwise_convolutions() -> None:
    geometry = [((7,), (3,)), ((6, 5), (2, 3)), ((40, 41), (3, 3)), ((4, 3, 5), (2, 2, 2)), ((2, 2), (3, 3))]
    for (lengths, size), channels, multiplier in portion([*product(geometry, (1, 2, 4), (0, 1, 3))], 2):
        for options in (
            {},
            {"strides": 2},
            {"padding": "same"},
            {"dilation_rate": 2},
            {"data_format": "channels_last"},
        ):
            x, w = drawn(2, *lengths, channels), drawn(*size, channels, multiplier)
            checked(partial(ops.depthwise_conv, **options), [(x, w)], 48.0, lengths != (40, 41))
            checked(partial(ops.depthwise_conv, **options), [(x, w.astype("float16"))], 48.0, False)


def test_options_of_convolutions() -> None:
    x, w, b = drawn(2, 6, 7, 4), drawn(2, 3, 4, 6), drawn(6)
    turned = np.moveaxis(x, -1, 1).copy()
    for strides, padding, spread in product(
        ((1, 2), [2, 1], 2), ("valid", ((0, 1), (1, 0)), [(1, 1), (2, 0)]), ((1, 1), 2)
    ):
        options = {"strides": strides, "padding": padding, "dilation_rate": spread}
        checked(partial(ops.conv, **options), [(x, w)], 48.0)
        checked(lambda x, w, b, o=options: ops.conv(x, w, bias=b, **o), [(x, w, b), (x, w, b.astype("float16"))], 48.0)
        first = {**options, "data_format": "channels_first"}
        checked(lambda x, w, b, o=first: ops.conv(x, w, bias=b, **o), [(turned, w, b)], 48.0)
        checked(partial(ops.depthwise_conv, **options), [(x, drawn(2, 3, 4, 1))], 48.0)
        checked(partial(ops.depthwise_conv, **first), [(turned, drawn(2, 3, 4, 2))], 48.0)
        swapped = np.swapaxes(w, -1, -2).copy()
        checked(partial(ops.conv_transpose, **options), [(x, swapped)], 48.0)
        checked(
            lambda x, w, b, o=options: ops.conv_transpose(x, w, bias=b, **o),
            [(x, swapped, b), (x, swapped, b.astype("float16"))],
            48.0,
        )
        checked(partial(ops.conv_transpose, **first), [(turned, swapped)], 48.0)
    checked(partial(ops.conv_transpose, strides=2, output_padding=1), [(x, np.swapaxes(w, -1, -2).copy())], 48.0)
    for wrong in (drawn(2, 3, 5, 6), drawn(2, 4, 6), drawn(3, 4, 2, 3, 6)):
        checked(ops.conv, [(x, wrong)])
    checked(lambda x, w, b: ops.conv(x, w, bias=b), [(x, w, drawn(5))])
