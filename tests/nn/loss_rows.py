"""Inputs and options of each loss, for comparison with `torch.nn.functional`."""

from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    """A call of a loss with its name in torch; gradients are taken by the first `differentiated` floating arrays."""

    name: str
    torch: str
    arrays: tuple[Any, ...]
    options: dict[str, Any]
    differentiated: int = 3

    @property
    def label(self) -> str:
        given = ",".join(f"{name}={'...' if hasattr(x, 'shape') else x}" for name, x in self.options.items())
        return f"{self.name}-{'x'.join(map(str, self.arrays[0].shape))}-{given}"


RNG = np.random.default_rng(11)


def normal(*shape: int, scale: float = 1.0) -> Any:
    return RNG.normal(size=shape) * scale


def uniform(*shape: int) -> Any:
    return RNG.uniform(0.05, 0.95, size=shape)


def ids(classes: int, *shape: int) -> Any:
    return RNG.integers(0, classes, size=shape)


def signs(*shape: int) -> Any:
    return RNG.choice([-1.0, 1.0], size=shape)


def log_softmax(x: Any, axis: int) -> Any:
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def softmax(x: Any, axis: int) -> Any:
    return np.exp(log_softmax(x, axis))


def with_ignored(x: Any, value: int) -> Any:
    found = x.copy()
    found.flat[::3] = value
    return found


WEIGHT = np.array([0.5, 2.0, 1.5, 0.0, 1.0])
LABELS = np.array([[1, 3, -1, 2, 0], [4, -1, 0, 0, 0], [-1, 1, 2, 3, 4], [0, 1, 2, 3, 4]])
T, N, C, S = 7, 3, 5, 3


def _classes(ours: str, torch: str, change: Any) -> list[Row]:
    return [
        Row(ours, torch, (change(normal(4, 5, scale=3.0), 1), ids(5, 4)), {}),
        Row(ours, torch, (change(normal(5), 0), ids(5)), {}),
        Row(ours, torch, (change(normal(4, 5, 2, 3), 1), ids(5, 4, 2, 3)), {"weight": WEIGHT}),
        Row(ours, torch, (change(normal(6, 5), 1), with_ignored(ids(5, 6), -100)), {}),
        Row(ours, torch, (change(normal(6, 5), 1), with_ignored(ids(5, 6), 2)), {"ignore_index": 2, "weight": WEIGHT}),
        Row(ours, torch, (change(normal(6, 5), 1), with_ignored(ids(5, 6), -1)), {"ignore_index": -1}),
    ]


def _pairs(ours: str, torch: str, *options: dict[str, Any]) -> list[Row]:
    return [
        row
        for given in ({}, *options)
        for row in (
            Row(ours, torch, (normal(4, 3, scale=2.0), normal(4, 3, scale=2.0)), given),
            Row(ours, torch, (normal(2, 3, 2), normal(2, 3, 2)), given),
        )
    ]


ROWS: list[Row] = [
    *_classes("cross_entropy", "cross_entropy", lambda x, axis: x),
    Row("cross_entropy", "cross_entropy", (normal(4, 5), ids(5, 4)), {"label_smoothing": 0.1}),
    Row("cross_entropy", "cross_entropy", (normal(4, 5), ids(5, 4)), {"label_smoothing": 0.2, "weight": WEIGHT}),
    Row(
        "cross_entropy",
        "cross_entropy",
        (normal(6, 5, 2), with_ignored(ids(5, 6, 2), -100)),
        {"label_smoothing": 0.2, "weight": WEIGHT},
    ),
    Row("cross_entropy", "cross_entropy", (normal(4, 5), softmax(normal(4, 5), 1)), {}),
    Row("cross_entropy", "cross_entropy", (normal(5), softmax(normal(5), 0)), {"label_smoothing": 0.3}),
    Row(
        "cross_entropy",
        "cross_entropy",
        (normal(4, 5, 3), softmax(normal(4, 5, 3), 1)),
        {"label_smoothing": 0.1, "weight": WEIGHT},
    ),
    *_classes("nll", "nll_loss", log_softmax),
    Row("binary_cross_entropy", "binary_cross_entropy", (uniform(4, 3), uniform(4, 3)), {}),
    Row("binary_cross_entropy", "binary_cross_entropy", (uniform(4, 3), uniform(4, 3)), {"weight": uniform(3)}),
    *(
        Row(name, name, (normal(4, 3, scale=4.0), uniform(4, 3)), options)
        for name in ["binary_cross_entropy_with_logits"]
        for options in (
            {},
            {"weight": uniform(4, 1)},
            {"pos_weight": uniform(3) * 4},
            {"weight": uniform(4, 3), "pos_weight": uniform(4, 3)},
        )
    ),
    *_pairs("mse", "mse_loss"),
    *_pairs("l1", "l1_loss"),
    *_pairs("smooth_l1", "smooth_l1_loss", {"beta": 0.5}, {"beta": 0.0}, {"beta": 3.0}),
    *_pairs("huber", "huber_loss", {"delta": 0.5}, {"delta": 3.0}),
    Row("kl_div", "kl_div", (log_softmax(normal(4, 5), 1), softmax(normal(4, 5), 1)), {}),
    Row("kl_div", "kl_div", (log_softmax(normal(4, 5), 1), log_softmax(normal(4, 5), 1)), {"log_target": True}),
    Row("hinge_embedding", "hinge_embedding_loss", (normal(4, 3), signs(4, 3)), {}),
    Row("hinge_embedding", "hinge_embedding_loss", (normal(4, 3), signs(4, 3)), {"margin": 0.3}),
    *(
        Row("cosine_embedding", "cosine_embedding_loss", (normal(6, 3), normal(6, 3), signs(6)), options)
        for options in ({}, {"margin": 0.4}, {"margin": -0.5})
    ),
    Row("cosine_embedding", "cosine_embedding_loss", (normal(3), normal(3), np.array(1.0)), {}),
    Row("margin_ranking", "margin_ranking_loss", (normal(6), normal(6), signs(6)), {}),
    Row("margin_ranking", "margin_ranking_loss", (normal(2, 3), normal(2, 3), signs(2, 3)), {"margin": 0.7}),
    *(
        Row("multi_margin", "multi_margin_loss", (normal(4, 5), ids(5, 4)), options)
        for options in ({}, {"p": 2}, {"margin": 0.3}, {"weight": WEIGHT}, {"p": 2, "margin": 2.0, "weight": WEIGHT})
    ),
    Row("multi_margin", "multi_margin_loss", (normal(5), ids(5)), {}),
    Row("multilabel_margin", "multilabel_margin_loss", (normal(4, 5), LABELS), {}),
    Row("multilabel_margin", "multilabel_margin_loss", (normal(5), LABELS[0]), {}),
    *(
        Row("multilabel_soft_margin", "multilabel_soft_margin_loss", (normal(4, 5), signs(4, 5) / 2 + 0.5), options)
        for options in ({}, {"weight": WEIGHT})
    ),
    Row("soft_margin", "soft_margin_loss", (normal(4, 5), signs(4, 5)), {}, 1),
    *(
        Row("triplet_margin", "triplet_margin_loss", (normal(6, 4), normal(6, 4), normal(6, 4)), options)
        for options in ({}, {"margin": 0.5, "p": 1.0}, {"p": 3.0, "eps": 1e-3}, {"swap": True}, {"p": float("inf")})
    ),
    *(
        Row(f"{name}_with_distance", f"{name}_with_distance_loss", (normal(6, 4), normal(6, 4), normal(6, 4)), options)
        for name in ["triplet_margin"]
        for options in ({}, {"margin": 0.5, "swap": True})
    ),
    *(
        Row("gaussian_nll", "gaussian_nll_loss", (normal(4, 3), normal(4, 3), variance), options)
        for variance in (uniform(4, 3), uniform(4), uniform(4, 1), np.zeros((4, 3)))
        for options in ({}, {"full": True, "eps": 0.5})
    ),
    *(
        Row("poisson_nll", "poisson_nll_loss", (normal(4, 3), RNG.poisson(3.0, size=(4, 3)) * 1.0), options, 1)
        for options in ({}, {"full": True})
    ),
    *(
        Row("poisson_nll", "poisson_nll_loss", (uniform(4, 3) * 5, RNG.poisson(3.0, size=(4, 3)) * 1.0), options, 1)
        for options in ({"log_input": False}, {"log_input": False, "full": True, "eps": 1e-3})
    ),
    *(
        Row(
            "ctc",
            "ctc_loss",
            (log_softmax(normal(T, N, C), 2), targets, np.array([7, 6, 5]), np.array([3, 2, 1])),
            options,
        )
        for targets in (ids(C - 1, N, S) + 1, ids(C - 1, 6) + 1)
        for options in ({}, {"zero_infinity": True})
    ),
    Row(
        "ctc",
        "ctc_loss",
        (log_softmax(normal(T, N, C), 2), ids(C - 1, N, S), np.array([7, 2, 1]), np.array([3, 2, 3])),
        {"blank": 4, "zero_infinity": True},
    ),
    Row("ctc", "ctc_loss", (log_softmax(normal(T, C), 1), ids(C - 1, S) + 1, np.array(7), np.array(3)), {}),
    *(
        Row("ctc", "ctc_loss", (log_softmax(normal(T, N, C), 2), targets, np.array([7, 1, 0]), np.array(lengths)), {})
        for targets, lengths in (
            (np.zeros((N, 0), np.int64), [0, 0, 0]),
            (np.zeros(0, np.int64), [0, 0, 0]),
            (ids(C - 1, N, S) + 1, [0, 0, 0]),
            (ids(C - 1, 2) + 1, [1, 1, 0]),
        )
    ),
]
