"""The metrics against their definitions in float64, over batches, merged, saved and with wrong arguments."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, nn, ops
from emberharmony.nn import metrics

RNG = np.random.default_rng(2)
LOGITS = np.round(RNG.normal(size=(60, 4)), 1)
"""Rounded, so that some scores are equal."""
TARGET = RNG.integers(0, 3, size=60)
TARGET[:2] = 3
SCORES = np.round(RNG.uniform(size=60), 1)
POSITIVE = RNG.integers(0, 2, size=60)
VALUES, WANTED = RNG.normal(size=60), RNG.normal(size=60) + 1e6


def pairs() -> tuple[Any, Any, Any, Any]:
    """Returns the predicted classes, and for each class the counts of right and wrong predictions."""
    predicted = LOGITS.argmax(1)
    right = np.array([np.sum((predicted == c) & (TARGET == c)) for c in range(4)])
    extra = np.array([np.sum((predicted == c) & (TARGET != c)) for c in range(4)])
    missed = np.array([np.sum((predicted != c) & (TARGET == c)) for c in range(4)])
    return predicted, right, extra, missed


def area() -> float:
    order = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(SCORES[POSITIVE == 1], SCORES[POSITIVE == 0])]
    return float(np.mean(order))


def perplexity(axis: int = 1) -> float:
    shares = np.exp(LOGITS) / np.exp(LOGITS).sum(axis, keepdims=True)
    return float(np.exp(-np.mean(np.log(shares[np.arange(60), TARGET]))))


PREDICTED, RIGHT, EXTRA, MISSED = pairs()
HITS = SCORES > 0.5
TP, FP, FN = np.sum(HITS & (POSITIVE == 1)), np.sum(HITS & (POSITIVE == 0)), np.sum(~HITS & (POSITIVE == 1))
MATRIX = np.array([[np.sum((TARGET == i) & (PREDICTED == j)) for j in range(4)] for i in range(4)])

CASES: list[tuple[Any, Any, Any, Any]] = [
    (metrics.Mean, VALUES, np.abs(WANTED), np.average(VALUES, weights=np.abs(WANTED))),
    (metrics.Accuracy, LOGITS, TARGET, np.mean(PREDICTED == TARGET)),
    (metrics.Accuracy, PREDICTED, TARGET, np.mean(PREDICTED == TARGET)),
    (metrics.Accuracy, SCORES, POSITIVE, np.mean(HITS == POSITIVE)),
    (lambda: metrics.Accuracy(threshold=0.3), SCORES, POSITIVE, np.mean((SCORES > 0.3) == POSITIVE)),
    (lambda: metrics.Accuracy(ignore_index=0), LOGITS, TARGET, np.mean((PREDICTED == TARGET)[TARGET != 0])),
    (lambda: metrics.TopK(1), LOGITS, TARGET, np.mean(PREDICTED == TARGET)),
    (
        lambda: metrics.TopK(2),
        LOGITS,
        TARGET,
        np.mean([t in np.argsort(-x, kind="stable")[:2] for x, t in zip(LOGITS, TARGET, strict=True)]),
    ),
    (lambda: metrics.TopK(4), LOGITS, TARGET, 1.0),
    (metrics.Precision, SCORES, POSITIVE, TP / (TP + FP)),
    (metrics.Recall, SCORES, POSITIVE, TP / (TP + FN)),
    (metrics.F1, SCORES, POSITIVE, 2 * TP / (2 * TP + FP + FN)),
    *(
        (lambda kind=kind: kind("micro", num_classes=4), LOGITS, TARGET, np.mean(PREDICTED == TARGET))
        for kind in (metrics.Precision, metrics.Recall, metrics.F1)
    ),
    (lambda: metrics.Precision("macro", num_classes=4), LOGITS, TARGET, np.mean(RIGHT / (RIGHT + EXTRA))),
    (lambda: metrics.Recall("macro", num_classes=9), LOGITS, TARGET, np.mean(RIGHT / (RIGHT + MISSED))),
    (lambda: metrics.F1("macro", num_classes=4), LOGITS, TARGET, np.mean(2 * RIGHT / (2 * RIGHT + EXTRA + MISSED))),
    (lambda: metrics.F1(None, num_classes=4), LOGITS, TARGET, 2 * RIGHT / (2 * RIGHT + EXTRA + MISSED)),
    (lambda: metrics.ConfusionMatrix(4), LOGITS, TARGET, MATRIX),
    (lambda: metrics.ConfusionMatrix(4, normalize="true"), LOGITS, TARGET, MATRIX / MATRIX.sum(1, keepdims=True)),
    (lambda: metrics.ConfusionMatrix(4, normalize="pred"), LOGITS, TARGET, MATRIX / MATRIX.sum(0, keepdims=True)),
    (lambda: metrics.ConfusionMatrix(4, normalize="all"), LOGITS, TARGET, MATRIX / 60),
    (metrics.AUC, SCORES, POSITIVE, area()),
    (metrics.MSE, VALUES, WANTED, np.mean((VALUES - WANTED) ** 2)),
    (metrics.MAE, VALUES, WANTED, np.mean(np.abs(VALUES - WANTED))),
    (metrics.R2, WANTED + VALUES / 10, WANTED, 1 - np.sum(VALUES**2) / 100 / np.sum((WANTED - WANTED.mean()) ** 2)),
    (metrics.Perplexity, LOGITS, TARGET, perplexity()),
]
LABELS = [f"{case[0]().__class__.__name__}{i}" for i, case in enumerate(CASES)]


@pytest.mark.parametrize(("make", "first", "second", "expected"), CASES, ids=LABELS)
def test_metrics_equal_their_definitions(make: Any, first: Any, second: Any, expected: Any) -> None:
    """Over arrays in one update, in batches, merged, and continued from a saved state."""
    whole, batched, parts = make(), make(), [make() for _ in range(3)]
    whole.update(first, second)
    for i, part in enumerate([slice(0, 7), slice(7, 7), slice(7, 40), slice(40, 60)]):
        batched.update(first[part], second[part])
        parts[i % 3].update(first[part], second[part])
    merged = make().merge(parts[0]).merge(parts[1]).merge(parts[2])
    continued = make()
    continued.load_state_dict(json.loads(json.dumps(parts[0].state_dict())))
    continued.merge(parts[1]).merge(parts[2])
    for metric in (whole, batched, merged, continued):
        np.testing.assert_allclose(metric.compute(), expected, rtol=1e-11)
    whole.reset()
    assert whole.state_dict() == make().state_dict()


@pytest.mark.parametrize(("make", "first", "second", "expected"), CASES, ids=LABELS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_metrics_take_tensors(make: Any, first: Any, second: Any, expected: Any, dtype: str, backend: str) -> None:
    metric, other = make(), make()
    if dtype == "float16":
        first, second = (x / 1e3 if np.max(np.abs(x)) > 1e3 else x for x in (first, second))
    given = [x.astype(dtype) if x.dtype.kind == "f" else x for x in (first, second)]
    metric.update(*(ops.convert_to_tensor(x) for x in given))
    other.update(*given)
    np.testing.assert_allclose(metric.compute(), other.compute(), rtol=1e-12)


def test_sums_are_in_float64(backend: str) -> None:
    mean = metrics.Mean()
    for _ in range(10):
        mean.update(ops.full((10000,), 0.1, "float32"))
    assert mean.compute() == pytest.approx(float(np.float32(0.1)), rel=1e-12)
    mean.reset()
    mean.update(0.1)
    assert mean.compute() == 0.1


def test_parameters_and_differentiated_results_are_read(backend: str) -> None:
    weight, mean = Parameter([1.0, 3.0]), metrics.Mean()
    mean.update(weight)
    ops.backward(lambda: ops.sum(ops.square(weight)), weight)
    mean.update(weight.grad)
    assert mean.compute() == 3.0


def test_a_loss_function_may_update_a_metric(backend: str) -> None:
    mean = metrics.Mean()

    def loss(x: Any) -> Any:
        mean.update(x)
        return ops.sum(ops.square(x))

    ops.grad(loss)(ops.ones((3,)))
    assert mean.state_dict() == {"total": 3.0, "weight": 3.0}
    ops.vmap(loss)(ops.ones((2, 3)))
    assert mean.state_dict() == {"total": 9.0, "weight": 9.0}


def test_axes_of_classes(backend: str) -> None:
    logits, target = LOGITS.reshape(6, 10, 4), TARGET.reshape(6, 10)
    for make, limit in (
        (metrics.Accuracy, 1e-12),
        (lambda **o: metrics.TopK(2, **o), 1e-12),
        (metrics.Perplexity, 1e-6),
    ):
        last, first = make(), make(axis=1)
        last.update(ops.convert_to_tensor(logits.astype("f4")), target)
        first.update(ops.convert_to_tensor(np.moveaxis(logits, -1, 1).astype("f4")), target)
        assert first.compute() == pytest.approx(last.compute(), rel=limit)


def test_nothing_gives_nan() -> None:
    for make, *_ in CASES:
        metric = make()
        if not isinstance(metric, (metrics.ConfusionMatrix)):
            assert math.isnan(metric.compute())
    assert metrics.Precision().compute() == 0.0
    assert metrics.Recall(zero_division=1.0).compute() == 1.0
    assert math.isnan(metrics.F1("macro").compute())


def test_special_cases() -> None:
    area = metrics.AUC()
    area.update([0.5, 0.7], [1, 1])
    assert math.isnan(area.compute())
    area.update([math.nan], [0])
    assert math.isnan(area.compute())
    share = metrics.R2()
    share.update([1.0, 1.0], [1.0, 1.0])
    assert share.compute() == 1.0
    share.update([2.0], [1.0])
    assert share.compute() == 0.0
    perplexity = metrics.Perplexity()
    perplexity.update([[1e4, -1e4], [0.0, 0.0]], [0, -100])
    assert perplexity.compute() == 1.0
    perplexity.update([[1e4, -1e4]], [1])
    assert perplexity.compute() == math.inf
    top = metrics.TopK(1)
    top.update([[math.nan, 1.0], [1.0, 1.0]], [0, 0])
    assert top.compute() == 0.5
    assert repr(top) == "TopK(0.5)"


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (
        lambda: metrics.Accuracy().update([1, 2], [1]),
        errors.ShapeError,
        r"predictions has shape \(2,\), expected \(1,\)",
    ),
    (lambda: metrics.Accuracy().update(np.ones((3, 2)), [1, 1]), errors.ShapeError, "besides the axis of the classes"),
    (lambda: metrics.TopK(2).update([1.0], [0]), errors.ShapeError, "one more axis for the classes at -1"),
    (lambda: metrics.TopK(2, axis=2).update([[1.0]], [0]), errors.ShapeError, "for the classes at 2"),
    (lambda: metrics.TopK(2, axis=-3).update([[1.0]], [0]), errors.ShapeError, "for the classes at -3"),
    (lambda: metrics.Accuracy(axis=2).update([[1.0]], [0]), errors.ShapeError, "for the classes at 2"),
    (
        lambda: metrics.TopK(2).update([[1.0, 2.0]], [2]),
        errors.IndexOutOfBoundsError,
        "class 2 is out of range, expected 0 to 1",
    ),
    (lambda: metrics.TopK(0), errors.ArgumentError, "k must be at least 1"),
    (lambda: metrics.ConfusionMatrix(2).update([0, 1], [0, -1]), errors.IndexOutOfBoundsError, "class -1"),
    (lambda: metrics.ConfusionMatrix(2).update([0, 3], [0, 1]), errors.IndexOutOfBoundsError, "predictions: class 3"),
    (lambda: metrics.ConfusionMatrix(2).update([0, 1], [0.5, 1.0]), errors.ArgumentTypeError, "whole numbers"),
    (lambda: metrics.ConfusionMatrix(2, normalize="rows"), errors.ArgumentError, "normalize must be one of"),
    (lambda: metrics.F1("macros"), errors.ArgumentError, "did you mean 'macro'"),
    (lambda: metrics.F1(num_classes=3), errors.ArgumentError, "average='binary' is for 2 classes, not 3"),
    (lambda: metrics.AUC().update([0.5], [2]), errors.IndexOutOfBoundsError, "class 2"),
    (lambda: metrics.AUC().update([0.5, 0.5], [1]), errors.ShapeError, r"scores has shape \(2,\)"),
    (lambda: metrics.MSE().update([[1.0]], [1.0]), errors.ShapeError, r"predictions has shape \(1, 1\)"),
    (lambda: metrics.Mean().update([1.0, 2.0], [1.0, 2.0, 3.0]), errors.ShapeError, "does not broadcast"),
    (lambda: metrics.Mean().update([1j]), errors.ArgumentTypeError, "expected real numbers"),
    (lambda: metrics.Mean().update("text"), errors.ArgumentTypeError, "expected real numbers"),
    (lambda: metrics.Mean().merge(metrics.MSE()), errors.ArgumentTypeError, r"Mean\.merge\(\) takes a Mean"),
    (lambda: metrics.MSE().merge(metrics.MAE()), errors.ArgumentTypeError, r"MSE\.merge\(\) takes a MSE"),
    (
        lambda: metrics.ConfusionMatrix(2).merge(metrics.ConfusionMatrix(3)),
        errors.ArgumentError,
        r"'counts' has shape \(3, 3\), expected \(2, 2\)",
    ),
    (
        lambda: metrics.Mean().load_state_dict({"total": 1.0}),
        errors.ArgumentError,
        r"a dict with \['total', 'weight'\]",
    ),
    (lambda: metrics.ConfusionMatrix(2).load_state_dict({"counts": [[1]]}), errors.ArgumentError, "the options differ"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


DOCUMENTED = [each for each in vars(metrics).values() if isinstance(each, type) and ">>>" in (each.__doc__ or "")]


def test_every_metric_is_documented_by_an_example() -> None:
    public = {each for each in vars(metrics).values() if isinstance(each, type) and issubclass(each, metrics.Metric)}
    assert public - {metrics.Metric} == set(DOCUMENTED)
    assert nn.metrics is metrics
