"""Activations, losses, normalisations and layers that a backend computes itself do what their composites do."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.backend.fast_paths.comparing import Case, case, spread, unlike_general

HIGH = spread(60, 100) + 40
"""More elements than NumPy looks at one by one; the exponentials of float16 overflow."""
LOW = np.concatenate([HIGH[:30] - 140, HIGH[30:] - 40])
FLAT = spread(2, 2500)
IDS = np.random.default_rng(0).integers(0, 4, (6, 5))


def _losses() -> list[Case]:
    """Returns calls of `cross_entropy`: ids of each width, ignored ones, weights, and classes on each axis."""
    found = []
    weight = np.array([1.0, 0.5, 2.0, 0.25])
    for reduction, given, smoothing, ignored in product(
        ["mean", "sum", "none"], [None, weight], [0.0, 0.25], [-100, 2]
    ):
        options: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignored}
        x = spread(6, 4)
        found += [case(x, IDS[:, 0], given, **options), case(x, IDS[:, 1].astype(np.int32), given, **options)]
        found.append(case(spread(6, 5, 4), IDS, given, **options))
        found.append(case(spread(6, 4, 5), IDS, given, **options, axis=1))
        found.append(case(spread(4, 6, 5), IDS, given, **options, axis=0))
        found.append(case(spread(4), IDS[0, 0], given, **options))
    found += [
        case(spread(6, 4), np.full(6, 2), weight, ignore_index=2),
        case(spread(6, 4), np.full(6, 2), ignore_index=2, reduction="sum"),
        case(spread(6, 4), np.full(6, 2) - 2 * (np.arange(6) == 3), ignore_index=2),
        case(spread(6, 4), IDS[:, 0] + 1),
        case(spread(6, 4), IDS[:, 0] - 1),
        case(spread(6, 4), IDS[:5, 0]),
        case(spread(6, 4), IDS[:, 0], weight[:3]),
        case(spread(0, 4), IDS[:0, 0]),
        case(spread(0, 4), IDS[:0, 0], reduction="none"),
        case(spread(6, 4), IDS[:, 0], reduction="most"),
        case(spread(6, 4), IDS[:, 0], label_smoothing=1.5),
        case(spread(6, 4), IDS[:, 0], axis=2),
        case(spread(6, 4) * 1000, IDS[:, 0]),
        case(spread(6, 4), np.eye(4)[IDS[:, 0]]),
    ]
    return found


def _sparse() -> list[Case]:
    found = []
    for logits, axis in product([False, True], [-1, 1, 0]):
        output = spread(6, 4, low=0.1, high=1.0)
        found += [case(IDS[:, i], output, logits, axis) for i in range(2)]
        found += [case(IDS[:4, 0].astype(np.int32) - 1, output[:4], logits, axis)]
        found += [case(IDS, spread(6, 5, 4, low=0.1), logits, axis), case(IDS + 2, spread(6, 5, 4), logits, axis)]
        found += [case(IDS[0, 0], output[0], logits, axis), case(IDS[:0, 0], output[:0], logits, axis)]
    return [*found, case(IDS[:, :1], spread(6, 4), True), case(IDS[:, 0], spread(6, 4) * 500, True)]


def _categorical() -> list[Case]:
    given = product([False, True], [-1, 1, 0])
    found = [case(np.eye(4)[IDS[:, 0]], spread(6, 4, low=0.1, high=1.0), logits, axis) for logits, axis in given]
    return [*found, case(np.eye(4)[IDS], spread(6, 5, 4), True), case(np.eye(4)[IDS[0, 0]], spread(4), True)]


def _layer() -> list[Case]:
    gamma, beta = spread(5, low=0.5), spread(1, 5)[0]
    return [
        case(x, *given, **options)
        for x, given, options in product(
            [spread(3, 5), spread(5), spread(2, 3, 5), spread(0, 5), spread(700, 5) + 20],
            [(None, None), (gamma, None), (None, beta), (gamma, beta), (gamma[:3], beta)],
            [{}, {"epsilon": 0.5}, {"axis": 0}, {"axis": (0, -1)}, {"rms_scaling": True}, {"epsilon": np.array(0.25)}],
        )
    ] + [case(spread(3, 0)), case(spread(3, 1)), case(spread(3, 5), np.ones(5, np.int32))]


def _batch() -> list[Case]:
    offset, scale = spread(1, 3)[0], spread(3, low=0.5)
    return [
        case(x, axis, *given)
        for (x, axis), given in product(
            [
                (spread(6, 3), -1),
                (spread(6, 3) + 30, 1),
                (spread(1, 3), 1),
                (spread(4, 3, 5), 1),
                (spread(4, 5, 3), -1),
                (spread(3, 40), 0),
                (spread(1100, 3), 1),
                (spread(6000, 3) + 30, 1),
                (spread(3, 6000), 0),
                (spread(2, 3, 60, 50), 1),
                (spread(0, 3), 1),
                (spread(3), 0),
                (spread(4, 2), 1),
            ],
            [(None, None), (offset, None), (None, scale), (offset, scale), (offset, scale, 0.5)],
        )
    ] + [case(spread(6, 3), 1, offset, scale, 0.0), case(spread(6, 3), 1, offset, scale, np.array(0.25))]


def _groups() -> list[Case]:
    offset, scale = spread(1, 6)[0], spread(6, low=0.5)
    return [
        case(x, groups, *given, axis=axis)
        for (x, axis), groups, given in product(
            [(spread(4, 6), -1), (spread(4, 6, 5), 1), (spread(4, 5, 6), -1), (spread(2, 6), 1), (spread(0, 6), 1)],
            [1, 2, 6, 4],
            [(None, None), (scale, None), (None, offset), (scale, offset), (scale, offset, np.ones(1))],
        )
        if len(given) < 3
    ]


def _norms() -> list[Case]:
    axes: list[tuple[Any, bool]] = [(None, False), (None, True), (0, False), (-1, True), ((0, 1), False), ((), False)]
    orders = [2, 1, 3, 0, 0.5, -1, np.inf, -np.inf]
    found = [case(x, *axis, ord) for x, axis, ord in product([spread(3, 4), spread(0, 4), spread(4)], axes, orders)]
    sizes = [1e-40, 1e-170, 1e30, 1e160, 0.0, np.inf]
    found += [case(spread(3, 4) * size, *axes[i], ord) for size, i, ord in product(sizes, (0, 2), orders)]
    return [*found, *(case(np.full((), -2.5), None, keepdims, ord) for keepdims in (False, True) for ord in (2, 1))]


def _rms() -> list[Case]:
    return [
        case(x, scale, axis, epsilon)
        for x, scale, axis, epsilon in product(
            [spread(3, 5), spread(5), spread(0, 5), spread(3, 0)],
            [None, spread(5, low=0.5), np.ones(5, np.int32)],
            [-1, 0, 1, 2, (0, 1)],
            [None, 0.5, np.array(0.25)],
        )
    ]


def _ropes() -> list[Case]:
    x = spread(2, 9, 3, 6)
    options: list[dict[str, Any]] = [
        *({"offset": n} for n in (0, 3, 250, 255, 256, 1000, np.array([1, 5]))),
        *({"scale": s} for s in (0.5, 2.0)),
        *({"base": b} for b in (100.0, 1e6, -1.0)),
        *({"dims": n} for n in (6, 4, 2, 3, 8)),
        *({"axis": n} for n in (2, -2, -3, 0, 3, 7)),
        {"traditional": True},
        {"frequencies": spread(3)},
        {"scale": 2.0, "offset": 5},
        {"base": 100.0, "offset": 300, "axis": -2},
    ]
    found = [case(x, **given) for given in ({}, *options)]
    return [*found, case(spread(1, 300, 4)), case(spread(7, 4), axis=0), case(spread(1, 2, 5)), case(spread(1, 0, 4))]


def _attention() -> list[Case]:
    query, key = spread(2, 3, 4, 5), spread(2, 6, 4, 5)
    mask = spread(2, 4, 3, 6) > 0
    mask[..., 0] = True
    options: list[dict[str, Any]] = [
        *({"scale": s} for s in (0.5, 2, np.array(0.25))),
        {"is_causal": True},
        {"mask": mask},
        {"mask": mask[0, 0]},
        {"mask": mask[0, 0].astype(np.int32), "is_causal": True},
        {"bias": spread(2, 4, 3, 6)},
        {"bias": spread(6)},
        {"bias": spread(3, 6), "mask": mask, "is_causal": True},
        {"bias": spread(5)},
        {"mask": mask[:, :3]},
        {"attn_logits_soft_cap": 2.0},
        {"bias": np.ones((3, 6), np.float32)},
    ]
    shapes = [
        (query, key, key[..., :3]),
        (query, query, query),
        (query, key[:, :, :2], key[:, :, 2:]),
        (query, key[:, :, :3], key[:, :, :3]),
        (query, key[:, :2], key),
        (query, key[:1], key[:1]),
        (query[0], key[0], key[0]),
        (query[:0], key[:0], key[:0]),
        (query[:, :1], key, key),
    ]
    found = [case(query, key, key, **given) for given in ({}, *options)]
    found += [case(*given, is_causal=causal) for given in shapes for causal in (False, True)]
    return [*found, case(query, key.astype(np.float32), key)]


def _linear() -> list[Case]:
    w, b = spread(3, 5), spread(5)
    xs = [spread(3), spread(2, 3), spread(4, 2, 3), spread(2, 0, 3), spread(0, 3), spread(2, 4)]
    found = [case(x, *given) for x, given in product(xs, [(w,), (w, b), (w, b[:4]), (w, np.ones(5, np.int32))])]
    found += [case(x, w.T, bias, True) for x, bias in product(xs, [None, b])]
    return [*found, case(np.ones((2, 3), np.int32), w), case(spread(2, 0), spread(0, 5), b), case(spread(3), spread(3))]


def _recurrent(gates: int) -> list[Case]:
    found = []
    for batch, hidden, options in product(
        [1, 3], [1, 3], [{}, {"time_major": True}, {"layer_axis": True}, {"reverse": True, "time_major": True}]
    ):
        x = spread(3, batch, 4) if "time_major" in options else spread(batch, 3, 4)
        w, u = spread(gates * hidden, 4, low=-1, high=1), spread(gates * hidden, hidden, low=-1, high=1)
        a, b = spread(gates * hidden), spread(1, gates * hidden)[0]
        h = spread(*((1,) if "layer_axis" in options else ()), batch, hidden)
        given: list[dict[str, Any]] = [
            {},
            {"bias_ih": a},
            {"bias_hh": b},
            {"bias_ih": a, "bias_hh": b, "h": h},
            {"h": h},
        ]
        given += [{"h": h, "c": h / 2}, {"c": h, "weight_hr": spread(2, hidden)}] if gates == 4 else []
        found += [case(x, w, u, **options, **each) for each in given]
        found += [case(x, w, u[:, :1], h=h), case(x, w, u, h=h[..., :0])]
    return [*found, case(spread(2, 0, 4), spread(gates, 4), spread(gates, 1))]


def _axes() -> list[Case]:
    xs = [spread(5), spread(3, 4), spread(0, 3), spread(3, 0), spread(2, 3, 4), FLAT, HIGH, LOW, LOW - 9]
    axes = [-1, 0, 1, (0, 1), (-1, 0), [0], (0, 0), None, 5]
    found = [case(x, axis) for x, axis in product(xs, axes)]
    return [
        *found,
        case(np.arange(6).reshape(2, 3)),
        case(LOW * 8, -1),
        case(HIGH * 4, -1),
        case(np.full((60, 100), -200.0), 0),
    ]


CASES: dict[str, tuple[list[Case], float]] = {
    "softmax": (_axes(), 8),
    "log_softmax": (_axes(), 16),
    "linear": (_linear(), 8),
    "cross_entropy": (_losses(), 8),
    "sparse_categorical_crossentropy": (_sparse(), 16),
    "categorical_crossentropy": (_categorical(), 8),
    "layer_normalization": (_layer(), 128),
    "batch_normalization_training": (_batch(), 128),
    "group_normalization": (_groups(), 128),
    "rms_normalization": (_rms(), 8),
    "vector_norm": (_norms(), 32),
    "rope": (_ropes(), 8),
    "dot_product_attention": (_attention(), 16),
    "rnn": (_recurrent(1), 32),
    "gru": (_recurrent(3), 32),
    "lstm": (_recurrent(4), 32),
}
"""Calls of each op with usual and rare options, and the error that is allowed, in eps."""


@pytest.mark.parametrize("op", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_backend_does_what_the_composite_does(op: str, backend: str) -> None:
    cases, eps = CASES[op]
    found = unlike_general(op, cases, backend, eps, 0.0 if op == "vector_norm" else 1.0)
    assert not found, "\n".join(found[:20])
