"""The losses against torch, at extreme values, in half precision, under transforms and with wrong arguments."""

import functools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from emberharmony import errors, nn, ops
from emberharmony.backend import create_backend
from tests.nn.loss_rows import ROWS, Row
from tests.together import together

LIMITS = {"float64": (1e-12, 1e-12), "float32": (2e-6, 1e-5)}
"""The largest differences of losses and of gradients from torch in float64, as a share of the largest element."""


def dtypes(backend: str) -> list[str]:
    available = [each.name for each in create_backend(backend).dtypes.available]
    return [dtype for dtype in LIMITS if dtype in available]


def require_near(found: Any, expected: Any, limit: float) -> None:
    found, expected = np.asarray(found, "f8"), np.asarray(expected, "f8")
    assert found.shape == expected.shape
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0)) or 1.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=limit * scale)


def reductions(row: Row) -> tuple[str, ...]:
    return ("none", "mean", "sum", "batchmean") if row.name == "kl_div" else ("none", "mean", "sum")


@functools.cache
def torch_results(index: int) -> dict[str, tuple[Any, list[Any]]]:
    return {reduction: torch_result(ROWS[index], reduction) for reduction in reductions(ROWS[index])}


def torch_result(row: Row, reduction: str) -> tuple[Any, list[Any]]:
    """Returns the loss of torch in float64 and the gradients of its weighted sum."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(x) for x in row.arrays]
    floats = [x.requires_grad_() for x in [x for x in tensors if x.is_floating_point()][: row.differentiated]]
    options = {name: torch.tensor(x) if isinstance(x, np.ndarray) else x for name, x in row.options.items()}
    loss = getattr(torch.nn.functional, row.torch)(*tensors, reduction=reduction, **options)
    (loss * torch.tensor(factors(tuple(loss.shape)))).sum().backward()
    return loss.detach().numpy(), [x.grad.numpy() for x in floats if x.grad is not None]


def factors(shape: tuple[int, ...]) -> Any:
    return np.linspace(0.5, 1.5, math.prod(shape)).reshape(shape)


def our_result(row: Row, reduction: str, dtype: str) -> tuple[Any, list[Any]]:
    given = [ops.convert_to_tensor(x.astype(dtype) if x.dtype.kind == "f" else x) for x in row.arrays]
    places = [i for i, x in enumerate(row.arrays) if x.dtype.kind == "f"][: row.differentiated]
    options = {name: x.astype(dtype) if isinstance(x, np.ndarray) else x for name, x in row.options.items()}

    def loss(*tensors: Any) -> Any:
        called = list(given)
        for place, tensor in zip(places, tensors, strict=True):
            called[place] = tensor
        return getattr(nn.losses, row.name)(*called, reduction=reduction, **options)

    value = loss(*[given[i] for i in places])
    weights = ops.convert_to_tensor(factors(tuple(value.shape)).astype(dtype))
    found = ops.grad(lambda *x: ops.sum(ops.multiply(loss(*x), weights)), argnums=tuple(range(len(places))))(
        *[given[i] for i in places]
    )
    assert ops.dtype(value) == dtype
    return ops.to_numpy(value), [ops.to_numpy(gradient) for gradient in found]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:reduction:UserWarning")  # torch recommends "batchmean"
@pytest.mark.parametrize("index", range(len(ROWS)), ids=lambda index: ROWS[index].label)
def test_losses_and_gradients_equal_those_of_torch(index: int, backend: str) -> None:
    row = ROWS[index]
    for reduction, (expected, gradients) in torch_results(index).items():
        for dtype in dtypes(backend):
            near, near_gradient = LIMITS[dtype]
            found, found_gradients = our_result(row, reduction, dtype)
            require_near(found, expected, near)
            for a, b in zip(found_gradients, gradients, strict=False):
                require_near(a, b, near_gradient)


def gradient(loss: Any, *tensors: Any) -> Any:
    return ops.to_numpy(ops.grad(lambda x: ops.sum(loss(x, *tensors[1:])))(ops.convert_to_tensor(tensors[0])))


def test_large_logits_neither_overflow_nor_lose_their_gradients(backend: str) -> None:
    logits = [[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]]
    loss = nn.losses.cross_entropy(logits, [0, 0], reduction="none")
    assert loss.tolist() == [0.0, 2e4]
    assert gradient(lambda x: nn.losses.cross_entropy(x, [0, 0], reduction="sum"), logits).tolist() == [
        [0.0, 0.0, 0.0],
        [-1.0, 1.0, 0.0],
    ]
    for target, expected, slope in ((1.0, [0.0, 1e4], [0.0, -1.0]), (0.0, [1e4, 0.0], [1.0, 0.0])):
        for kind in (nn.losses.binary_cross_entropy_with_logits, nn.losses.multilabel_soft_margin):
            found = ops.multiply(kind([1e4, -1e4], [target] * 2, reduction="sum"), 1.0)
            share = 2.0 if kind is nn.losses.multilabel_soft_margin else 1.0
            assert found.tolist() == sum(expected) / share
        call = lambda x: nn.losses.binary_cross_entropy_with_logits(x, [target] * 2, reduction="none")  # noqa: B023
        assert call([1e4, -1e4]).tolist() == expected
        assert gradient(call, [1e4, -1e4]).tolist() == slope
    assert nn.losses.focal([1e4, -1e4], [0.0, 0.0], alpha=None, reduction="none").tolist() == [1e4, 0.0]
    assert np.isfinite(gradient(lambda x: nn.losses.focal(x, [0.0, 0.0], gamma=0.5), [1e4, -1e4])).all()
    assert gradient(lambda x: nn.losses.log_cosh(x, [0.0, 0.0], reduction="sum"), [1e4, -1e4]).tolist() == [1.0, -1.0]
    assert gradient(lambda x: nn.losses.huber(x, [0.0, 0.0], reduction="sum"), [3e38, -3e38]).tolist() == [1.0, -1.0]


def test_small_binary_losses_keep_their_digits(backend: str) -> None:
    found = nn.losses.binary_cross_entropy_with_logits([-30.0, 30.0], [0.0, 1.0], reduction="none")
    np.testing.assert_allclose(ops.to_numpy(found), math.log1p(math.exp(-30.0)), rtol=1e-5)
    found = nn.losses.log_cosh([1e-4, 0.5, 2.0], [0.0, 0.0, 0.0], reduction="none")
    np.testing.assert_allclose(ops.to_numpy(found), np.log1p(2 * np.sinh(np.array([5e-5, 0.25, 1.0])) ** 2), rtol=1e-6)


def test_probabilities_0_and_1_have_the_losses_and_gradients_of_torch(backend: str) -> None:
    torch = pytest.importorskip("torch")
    p, t = np.array([0.0, 0.0, 1.0, 1.0, 0.5], "f4"), np.array([0.0, 1.0, 0.0, 1.0, 0.5], "f4")
    theirs = torch.tensor(p, requires_grad=True)
    expected = torch.nn.functional.binary_cross_entropy(theirs, torch.tensor(t), reduction="none")
    expected.sum().backward()
    found = nn.losses.binary_cross_entropy(p, t, reduction="none")
    np.testing.assert_allclose(ops.to_numpy(found), expected.detach().numpy(), rtol=1e-6)
    found = gradient(lambda x: nn.losses.binary_cross_entropy(x, t, reduction="none"), p)
    np.testing.assert_allclose(found, theirs.grad.numpy(), rtol=1e-6)
    if backend == "mlx":
        assert math.isnan(nn.losses.binary_cross_entropy([1.5], [1.0]).tolist())
        return
    for name, given in (("input", ([1.5], [1.0])), ("target", ([0.5], [-1.0]))):
        with pytest.raises(errors.ArgumentError, match=f"{name} has elements from .* expected probabilities"):
            nn.losses.binary_cross_entropy(*given)


EDGES = [
    ("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits", ([0.0, 0.0, 0.0], [0.0, 1.0, 0.25]), {}),
    ("huber", "huber_loss", ([1.0, -1.0, 0.0], [0.0, 0.0, 0.0]), {}),
    ("smooth_l1", "smooth_l1_loss", ([2.0, -2.0, 0.0], [0.0, 0.0, 0.0]), {"beta": 2.0}),
    ("l1", "l1_loss", ([1.0, 2.0], [1.0, 1.0]), {}),
    ("margin_ranking", "margin_ranking_loss", ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0]), {"margin": 1.0}),
    ("hinge_embedding", "hinge_embedding_loss", ([1.0, 0.0, 2.0], [-1.0, 1.0, -1.0]), {}),
]


@pytest.mark.parametrize(("name", "theirs", "arrays", "options"), EDGES)
def test_gradients_where_a_loss_has_an_edge_are_those_of_torch(
    name: str, theirs: str, arrays: Any, options: dict[str, Any], backend: str
) -> None:
    torch = pytest.importorskip("torch")
    x, *others = (torch.tensor(each) for each in arrays)
    getattr(torch.nn.functional, theirs)(x.requires_grad_(), *others, reduction="sum", **options).backward()
    found = gradient(lambda x: getattr(nn.losses, name)(x, *arrays[1:], reduction="sum", **options), arrays[0])
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-6)


COMPILED = """
import torch
from emberharmony import nn, ops
ops.set_backend("torch")
ops.compile(ops.sin)  # imports what cannot be imported while a function is traced
x, ids = ops.convert_to_tensor([[1.0, 2.0], [3.0, 4.0]]), ops.convert_to_tensor([0, 1])
for name, args in {"cross_entropy": (x, ids), "nll": (x, ids), "mse": (x, x), "huber": (x, x)}.items():
    loss = getattr(nn.losses, name)
    compiled = torch.compile(lambda *args: loss(*args), backend="eager", fullgraph=True)
    assert compiled(*args).tolist() == loss(*args).tolist(), name
"""


@pytest.mark.slow
@pytest.mark.fresh_process
def test_torch_compiles_losses_as_one_graph() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", COMPILED], check=True, timeout=120)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["mse", "binary_cross_entropy_with_logits", "cross_entropy", "multi_margin"])
def test_half_precision_is_computed_in_float32(name: str, dtype: str, backend: str) -> None:
    if dtype not in [each.name for each in create_backend(backend).dtypes.available]:
        pytest.skip(f"{backend} lacks {dtype}")
    x = ops.convert_to_tensor(np.linspace(-300, 300, 20).reshape(4, 5).astype("f4"), dtype)
    target = ops.convert_to_tensor([1, 0, 3, 2]) if name in ("cross_entropy", "multi_margin") else ops.zeros_like(x)
    loss = getattr(nn.losses, name)
    found = loss(x, target)
    assert ops.dtype(found) == dtype
    wide = loss(ops.cast(x, "float32"), target)
    assert ops.cast(found, "float32").tolist() == ops.cast(ops.cast(wide, dtype), "float32").tolist()
    assert ops.dtype(ops.grad(lambda x: loss(x, target))(x)) == dtype


def test_integers_become_the_default_float(backend: str) -> None:
    loss = nn.losses.mse(ops.convert_to_tensor([1, 250], "uint8"), ops.convert_to_tensor([3, 252], "uint8"))
    assert (loss.tolist(), ops.dtype(loss)) == (4.0, ops.default_float())


@pytest.mark.parametrize("row", [row for row in ROWS if not row.options and row.name != "ctc"], ids=lambda r: r.label)
def test_losses_under_vmap_jvp_and_compile(row: Row, backend: str) -> None:
    given = [ops.convert_to_tensor(x.astype("f4") if x.dtype.kind == "f" else x) for x in row.arrays]

    def loss(x: Any) -> Any:
        return getattr(nn.losses, row.name)(x, *given[1:])

    stacked = ops.stack([given[0], ops.multiply(given[0], 0.5)])
    expected = [loss(stacked[0]).tolist(), loss(stacked[1]).tolist()]
    assert ops.vmap(loss)(stacked).tolist() == pytest.approx(expected, rel=1e-5)
    _, tangent = ops.jvp(loss, (given[0],), (ops.ones_like(given[0]),))
    assert tangent.tolist() == pytest.approx(ops.sum(ops.grad(loss)(given[0])).tolist(), rel=1e-4, abs=1e-5)
    if backend != "torch":  # torch.compile takes seconds; a slow test has it
        assert ops.compile(loss)(given[0]).tolist() == pytest.approx(expected[0], rel=1e-5)


def test_channels_last(backend: str) -> None:
    logits, target = np.random.default_rng(3).normal(size=(2, 5, 3)), [[0, 1, 2, 3, 0], [4, 4, 1, 2, 3]]
    first = nn.losses.cross_entropy(np.moveaxis(np.pad(logits, ((0, 0), (0, 0), (0, 2))), -1, 1), target)
    last = nn.losses.cross_entropy(np.pad(logits, ((0, 0), (0, 0), (0, 2))), target, axis=-1)
    assert last.tolist() == pytest.approx(first.tolist(), rel=1e-6)


def test_all_positions_ignored_give_nan_as_in_torch(backend: str) -> None:
    assert math.isnan(nn.losses.cross_entropy([[1.0, 2.0]], [-100]).tolist())
    assert nn.losses.cross_entropy([[1.0, 2.0]], [-100], reduction="sum").tolist() == 0.0


def test_impossible_targets_of_ctc_are_infinite(backend: str) -> None:
    logits = np.zeros((2, 1, 3))
    assert nn.losses.ctc(logits, [[1, 1]], [2], [2]).tolist() == math.inf
    zero = lambda x: nn.losses.ctc(x, [[1, 1]], [2], [2], zero_infinity=True)
    assert zero(logits).tolist() == 0.0
    assert not gradient(zero, logits.astype("f4")).any()


def test_an_input_without_steps_has_no_label(backend: str) -> None:
    loss = lambda x, steps: nn.losses.ctc(x, [[1], [1]], steps, [0, 1], reduction="none")
    assert ops.to_numpy(loss(np.ones((3, 2, 4)), [0, 0])).tolist() == [0.0, math.inf]
    assert ops.to_numpy(loss(np.ones((0, 2, 4)), [0, 0])).tolist() == [0.0, math.inf]
    assert not gradient(lambda x: loss(x, [0, 0])[0], np.ones((3, 2, 4), "f4")).any()


def test_focal_and_dice_equal_their_formulas(backend: str) -> None:
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(3, 4)) * 3, rng.integers(0, 2, size=(3, 4)) * 1.0
    p = 1 / (1 + np.exp(-x))
    q = np.where(t == 1, p, 1 - p)
    for alpha in (0.25, 0.6, None):
        for gamma in (0.0, 0.5, 2.0):
            share = 1.0 if alpha is None else np.where(t == 1, alpha, 1 - alpha)
            expected = -share * (1 - q) ** gamma * np.log(q)
            found = nn.losses.focal(x.astype("f4"), t.astype("f4"), alpha=alpha, gamma=gamma, reduction="none")
            np.testing.assert_allclose(ops.to_numpy(found), expected, rtol=2e-5)
    for smooth in (0.0, 1.0):
        expected = 1 - (2 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)
        found = nn.losses.dice(p.astype("f4"), t.astype("f4"), smooth=smooth, reduction="none")
        np.testing.assert_allclose(ops.to_numpy(found), expected, rtol=1e-5)
    assert nn.losses.dice(p, t, axis=(0, 1), reduction="none").shape == ()
    found = nn.losses.hinge(x, 2 * t - 1, reduction="none", margin=0.5)
    np.testing.assert_allclose(ops.to_numpy(found), np.maximum(0, 0.5 - x * (2 * t - 1)), rtol=1e-5, atol=1e-6)


PAIR = [[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]
SHARES = ([[0.1, 0.2], [0.3, 0.4]], [[0.0, 1.0], [1.0, 0.0]])
REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    ("mse", PAIR, {"reduction": "maen"}, errors.ArgumentError, r"mse\(\): reduction is 'maen'.*did you mean 'mean'"),
    (
        "mse",
        PAIR,
        {"reduction": None},
        errors.ArgumentError,
        "reduction is None, expected one of 'none', 'mean', 'sum'",
    ),
    (
        "mse",
        ([[1.0], [2.0]], [1.0, 2.0]),
        {},
        errors.ShapeError,
        r"\(2,\), input \(2, 1\); use ops\.reshape\(target",
    ),
    ("l1", ([1j], [1.0]), {}, errors.DTypeError, "expected real tensors, got complex64"),
    ("huber", PAIR, {"delta": 0.0}, errors.ArgumentError, r"delta is 0\.0, expected a number > 0"),
    ("smooth_l1", PAIR, {"beta": -1.0}, errors.ArgumentError, "expected a number >= 0"),
    ("cross_entropy", (PAIR[0], [0, 2]), {}, errors.IndexOutOfBoundsError, "class 2 in target .* expected 0 to 1"),
    ("cross_entropy", (PAIR[0], [0, -1]), {}, errors.IndexOutOfBoundsError, "class -1 .* or ignore_index=-100"),
    ("cross_entropy", (PAIR[0], [[0], [1]]), {}, errors.ShapeError, r"target has shape \(2, 1\), expected \(2,\)"),
    ("cross_entropy", (PAIR[0], [[0.5, 0.5]]), {}, errors.ShapeError, r"target has shape \(1, 2\)"),
    ("cross_entropy", (PAIR[0], [0, 1]), {"weight": [1.0]}, errors.ShapeError, r"expected \(2,\), one for each class"),
    ("cross_entropy", (PAIR[0], [0, 1]), {"label_smoothing": 1.5}, errors.ArgumentError, "a number from 0 to 1"),
    ("cross_entropy", (1.0, 0), {}, errors.ShapeError, "has no axis 1"),
    ("nll", (PAIR[0], [0.0, 1.0]), {}, errors.ArgumentTypeError, r"nll\(\): class ids must be integers, got float64: "),
    (
        "cross_entropy",
        (PAIR[0], [True, False]),
        {},
        errors.ArgumentTypeError,
        r"cross_entropy\(\).*class ids .* got bool",
    ),
    (
        "cross_entropy",
        (PAIR[0], np.array([True, False])),
        {},
        errors.ArgumentTypeError,
        r"cross_entropy\(\).*class ids must be integers, got bool: ops\.cast\(target, 'int64'\)",
    ),
    ("nll", (PAIR[0], [0, 1]), {"axis": 2}, errors.ShapeError, "has no axis 2"),
    ("binary_cross_entropy", SHARES, {"weight": [1.0] * 3}, errors.ShapeError, r"weight has shape \(3,\)"),
    ("binary_cross_entropy_with_logits", SHARES, {"pos_weight": [1.0] * 3}, errors.ShapeError, "pos_weight"),
    ("kl_div", PAIR, {"reduction": "batch_mean"}, errors.ArgumentError, "did you mean 'batchmean'"),
    ("kl_div", (1.0, 1.0), {"reduction": "batchmean"}, errors.ShapeError, "needs an axis of examples"),
    ("focal", PAIR, {"alpha": 2.0}, errors.ArgumentError, "alpha is 2.0"),
    ("focal", PAIR, {"gamma": -1.0}, errors.ArgumentError, "gamma is -1.0"),
    ("dice", PAIR, {"smooth": -1.0}, errors.ArgumentError, "smooth is -1.0"),
    ("multi_margin", (PAIR[0], [0, 1]), {"p": 3}, errors.ArgumentError, "p is 3, expected 1 or 2"),
    ("multi_margin", (PAIR[0], [0, 5]), {}, errors.IndexOutOfBoundsError, "class 5 .* expected 0 to 1"),
    ("multi_margin", (1.0, 0), {}, errors.ShapeError, r"expected \(classes,\) or \(batch, classes\)"),
    ("multilabel_margin", (PAIR[0], [[0, 1]]), {}, errors.ShapeError, "that of input"),
    ("multilabel_margin", PAIR, {}, errors.ArgumentTypeError, "expected integers, got float32"),
    ("multilabel_soft_margin", (1.0, 1.0), {}, errors.ShapeError, r"expected shape \(\.\.\., classes\)"),
    ("cosine_embedding", (*PAIR, [1.0]), {}, errors.ShapeError, r"and a target \(\) or \(batch,\)"),
    ("cosine_embedding", (*PAIR, [1.0, 1.0]), {"margin": 2.0}, errors.ArgumentError, "from -1 to 1"),
    ("triplet_margin", (*PAIR, PAIR[0]), {"margin": 0.0}, errors.ArgumentError, r"margin is 0\.0"),
    ("triplet_margin", (*PAIR, [1.0]), {}, errors.ShapeError, "negative has shape"),
    ("triplet_margin", (1.0, 1.0, 1.0), {}, errors.ShapeError, "anchor has no axes"),
    ("gaussian_nll", (*PAIR, [1.0] * 3), {}, errors.ShapeError, r"var has shape \(3,\)"),
    ("gaussian_nll", (*PAIR, -1.0), {}, errors.ArgumentError, "var is -1.0"),
    ("ctc", (PAIR[0], [9], 2, 1), {}, errors.IndexOutOfBoundsError, "9"),
    ("ctc", (PAIR[0], [[1, 1]], [2], [9]), {}, errors.IndexOutOfBoundsError, "target length 9"),
    ("ctc", (PAIR[0], [[1], [1]], [2], [1]), {}, errors.ShapeError, r"expected \(1, labels\)"),
    ("ctc", (PAIR[0], [1], [2], [2]), {}, errors.ShapeError, "with all labels one after the other"),
    ("ctc", (PAIR[0], [1], 2, 1), {"blank": 2}, errors.ArgumentError, "a class from 0 to 1"),
    ("ctc", (1.0, [1], 2, 1), {}, errors.ShapeError, r"\(steps, batch, classes\)"),
]


@together("name, args, options, error, message", REFUSED)
def test_wrong_arguments_are_refused(
    name: str, args: Any, options: dict[str, Any], error: type[Exception], message: str, backend: str
) -> None:
    with pytest.raises(error, match=message):
        getattr(nn.losses, name)(*args, **options)


@pytest.mark.parametrize("wrong", [-1, 2, 100])
def test_tensors_of_ids_are_checked(wrong: int, backend: str) -> None:
    with pytest.raises(errors.IndexOutOfBoundsError), ops.checked():
        nn.losses.cross_entropy(ops.convert_to_tensor(PAIR[0]), ops.convert_to_tensor([0, wrong]))


@pytest.mark.parametrize("loss", [nn.losses.binary_cross_entropy, nn.losses.binary_cross_entropy_with_logits])
def test_labels_before_outputs_are_noticed_in_training_alone(backend: str, loss: Any) -> None:
    layer, x, y = nn.Linear(2, 1), ops.ones((4, 2)), ops.array([[0.0], [1.0], [1.0], [0.0]])
    with pytest.warns(errors.TrainingWarning, match=r"the order is \(output, target\)"):
        ops.backward(lambda: loss(y, ops.sigmoid(layer(x))), layer)
    ops.backward(lambda: loss(ops.sigmoid(layer(x)), y), layer)
    loss(ops.sigmoid(layer(x)), y)
    loss(y, y)
