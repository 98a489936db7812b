"""Edge cases of losses."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.core import errors, selection

X = np.sin(np.arange(24.0)).astype(np.float32)


def test_psnr_of_equal_tensors_is_infinite(backend: str) -> None:
    with np.errstate(divide="ignore"):
        assert ops.to_numpy(ops.psnr(X, X, 1.0)) == np.inf


def test_the_loss_of_a_target_out_of_range_is_zero(backend: str) -> None:
    logits = np.array([[0.0, 1.0, 3.0], [0.5, 0.5, 0.5], [1.0, 2.0, 3.0]], np.float32)
    for from_logits in (True, False):
        lost = ops.to_numpy(ops.sparse_categorical_crossentropy(np.array([2, -1, 3]), logits, from_logits))
        wanted = ops.to_numpy(ops.categorical_crossentropy(np.eye(3, dtype=np.float32)[2], logits[0], from_logits))
        assert np.allclose(lost, [float(wanted), 0.0, 0.0], atol=1e-6)
    columns = ops.sparse_categorical_crossentropy(np.array([0, 1, 0]), logits, True, 0)
    assert ops.shape(columns) == (3,)
    assert np.allclose(ops.to_numpy(columns)[1], ops.to_numpy(ops.logsumexp(logits[:, 1])) - 0.5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float32"])
def test_the_loss_does_not_depend_on_the_dtype_of_the_targets(dtype: str, backend: str) -> None:
    target, logits = np.array([1, 0, 1], dtype), np.array([2.0, -1.0, 0.5], np.float32)
    wanted = np.log1p(np.exp(logits)) - target.astype(np.float64) * logits
    assert np.allclose(ops.to_numpy(ops.binary_crossentropy(target, logits, from_logits=True)), wanted, rtol=1e-5)


def test_psnr_does_not_overflow_in_narrow_dtypes(backend: str) -> None:
    wanted = 20 * np.log10(255.0) - 20 * np.log10(200.0)
    for dtype in ("uint8", "int16", "float16", "float32"):
        found = ops.psnr(ops.cast([0, 200], dtype), ops.cast([200, 0], dtype), 255)
        assert ops.dtype(found) == ("float16" if dtype == "float16" else "float32")
        np.testing.assert_allclose(float(ops.cast(found, "float32")), wanted, rtol=1e-3)
    far = ops.psnr(ops.cast([300.0], "float16"), ops.cast([-300.0], "float16"), 1.0)
    np.testing.assert_allclose(float(ops.cast(far, "float32")), -20 * np.log10(600.0), rtol=1e-3)
    with pytest.raises(errors.ArgumentError, match="max_val is a positive number, not 0"):
        ops.psnr(X, X, 0)


def test_the_tangent_of_psnr_has_its_dtype(backend: str) -> None:
    x = ops.ones((3,))
    value, tangent = ops.jvp(lambda a, b: ops.psnr(a, b, 1.0), (x, ops.zeros((3,))), (x, ops.zeros((3,))))
    assert ops.dtype(value) == ops.dtype(tangent) == "float32"
    np.testing.assert_allclose(float(tangent), -20 / np.log(10.0), rtol=1e-6)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_the_loss_is_the_softmax_less_the_label(from_logits: bool, dtype: str, backend: str) -> None:
    x = np.abs(np.sin(np.arange(12.0))).reshape(3, 4) + 0.1
    labels = np.array([2, 0, -1])
    logits = ops.cast(x, dtype)
    slope = ops.to_numpy(
        ops.grad(lambda x: ops.sum(ops.sparse_categorical_crossentropy(labels, x, from_logits)))(logits)
    )
    hot = np.eye(4)[[2, 0, 0]]
    at = np.exp(x) / np.exp(x).sum(-1, keepdims=True) - hot if from_logits else 1 / x.sum(-1, keepdims=True) - hot / x
    assert np.allclose(slope, at * (labels >= 0)[:, None], atol=1e-6)


def test_the_gradient_of_a_clipped_probability_is_zero(backend: str) -> None:
    x = ops.convert_to_tensor(np.array([[0.0, 1.0], [1e-9, 1.0], [0.5, 0.5]]))
    slope = ops.to_numpy(ops.grad(lambda x: ops.sum(ops.sparse_categorical_crossentropy([0, 0, 0], x)))(x))
    assert np.allclose(slope, [[0.0, 0.0], [0.0, 0.0], [-1.0, 1.0]])


def test_the_loss_has_derivatives_of_higher_order(backend: str) -> None:
    labels, x = np.array([2, 0, 1]), ops.cast(np.sin(np.arange(12.0)).reshape(3, 4), "float64")
    tangent = ops.cast(np.cos(np.arange(12.0)).reshape(3, 4), "float64")
    loss = lambda x: ops.sum(ops.sparse_categorical_crossentropy(labels, x, True) ** 2)
    first = ops.grad(loss)
    assert np.isclose(float(ops.jvp(loss, (x,), (tangent,))[1]), float(ops.sum(first(x) * tangent)))
    second = ops.grad(lambda x: ops.sum(first(x) * tangent))(x)
    step = 1e-6
    wanted = (ops.to_numpy(first(x + tangent * step)) - ops.to_numpy(first(x - tangent * step))) / (2 * step)
    assert np.allclose(ops.to_numpy(second), wanted, atol=1e-6)


def test_the_loss_maps_over_a_batch(backend: str) -> None:
    labels, x = np.array([[2, 0, 1], [1, -1, 7]]), np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4)
    mapped = ops.vmap(lambda t, x: ops.sparse_categorical_crossentropy(t, x, True))
    found = ops.to_numpy(mapped(ops.convert_to_tensor(labels), ops.convert_to_tensor(x)))
    assert np.allclose(found, ops.to_numpy(ops.sparse_categorical_crossentropy(labels, x, True)), atol=1e-6)
    assert found[1, 1:].tolist() == [0.0, 0.0]


def test_the_loss_of_many_classes_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(60000.0)) * 3 + 100).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    wanted = np.log(np.exp(wide - 100).sum(-1)) + 100 - wide[[0, 1], [5, 29999]]
    found = ops.to_numpy(ops.sparse_categorical_crossentropy(np.array([5, 29999]), x, True))
    assert np.abs(found - wanted).max() < 4e-6


CROSS = (
    {},
    {"reduction": "none"},
    {"reduction": "sum", "label_smoothing": 0.25},
    {"ignore_index": 2},
    {"weight": True},
    {"weight": True, "ignore_index": 0, "label_smoothing": 0.5},
)


@pytest.mark.parametrize("hidden", [False, True], ids=["some", "all ignored"])
def test_cross_entropy_is_that_of_torch(hidden: bool, backend: str) -> None:
    torch = pytest.importorskip("torch")
    x, weight = np.sin(np.arange(24.0)).reshape(2, 4, 3), np.array([0.5, 1.0, 2.0, 0.25])
    for options in CROSS:
        ids = np.array([[0, 3, 2], [1, 2, -100]])
        ids = np.where(ids < 0, options.get("ignore_index", -100), ids)
        ids = np.full_like(ids, options.get("ignore_index", -100)) if hidden else ids
        own = {**options, "weight": ops.cast(weight, "float64")} if "weight" in options else options
        theirs = {**options, "weight": torch.tensor(weight)} if "weight" in options else options
        leaf = torch.tensor(x, requires_grad=True)
        wanted = torch.nn.functional.cross_entropy(leaf, torch.tensor(ids), **theirs)
        wanted.sum().backward()
        for axis in (1, -1):
            given = ops.cast(x if axis == 1 else np.moveaxis(x, 1, -1).copy(), "float64")
            loss = lambda x: ops.nn.cross_entropy(x, ops.convert_to_tensor(ids), axis=axis, **own)  # noqa: B023
            assert np.allclose(ops.to_numpy(loss(given)), wanted.detach(), rtol=1e-12, equal_nan=True), options
            slope = ops.to_numpy(ops.grad(lambda x: ops.sum(loss(x)))(given))  # noqa: B023
            assert np.allclose(slope, leaf.grad if axis == 1 else leaf.grad.movedim(1, -1), atol=1e-12), options


@pytest.mark.parametrize("shape", [(32, 10), (5,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy_with_its_derivative_is_that_of_the_op_and_its_rule(
    shape: tuple[int, ...], dtype: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend != "numpy":
        pytest.skip("computed together on NumPy only")
    kind, rng, pairs = type(selection.current()), np.random.default_rng(0), []
    native = kind.value_and_slope

    def counted(self: Any, op: str, arguments: Any) -> Any:
        pairs.append(native(self, op, arguments))
        return pairs[-1]

    monkeypatch.setattr(kind, "value_and_slope", counted)
    x = (rng.normal(size=shape[::-1]).T * 20).astype(dtype)  # in the order of Fortran
    ids = rng.integers(0, shape[-1], shape[:-1])
    compute = ops.value_and_grad(lambda x: ops.multiply(ops.nn.cross_entropy(x, ids), 3.0))
    loss, slope = compute(x)
    assert [pair is not None for pair in pairs] == [True]
    monkeypatch.setattr(kind, "value_and_slope", lambda self, op, arguments: None)
    wanted, by_rule = compute(x)
    assert loss.tobytes() == wanted.tobytes()
    np.testing.assert_allclose(slope, by_rule, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"weight": [1.0, 2.0, 0.5]},
        {"reduction": "none"},
        {"ignore_index": 1},
        {"label_smoothing": 0.5},
        {"axis": 0},
    ],
    ids=str,
)
def test_cross_entropy_with_options_is_left_to_the_rule(options: dict[str, Any], backend: str) -> None:
    x, ids = np.sin(np.arange(9.0)).reshape(3, 3), [0, 1, 2]
    loss = lambda x: ops.sum(ops.nn.cross_entropy(x, ids, **options))
    x = ops.convert_to_tensor(x, "float32")
    slope, step = ops.to_numpy(ops.grad(loss)(x)), 1e-2 * np.eye(9).reshape(9, 3, 3)
    wanted = [float(loss(ops.add(x, s)) - loss(ops.subtract(x, s))) / 2e-2 for s in step.astype(np.float32)]
    np.testing.assert_allclose(slope.ravel(), wanted, atol=1e-3)


@pytest.mark.ember_skip("dask", reason="class ids that are not computed yet are not checked: docs/dask.md")
def test_a_wrong_id_is_named_while_the_loss_is_differentiated(backend: str) -> None:
    if backend == "mlx":
        pytest.skip("MLX checks a tensor of ids in checked mode only")
    with pytest.raises(errors.IndexOutOfBoundsError, match=r"cross_entropy\(\).*class 3 in target"):
        ops.grad(lambda x: ops.nn.cross_entropy(x, [0, 3]))(ops.ones((2, 3)))


def test_cross_entropy_has_derivatives_of_higher_order_by_logits_and_weights(backend: str) -> None:
    ids, tangent = np.array([2, 0, -100]), np.cos(np.arange(12.0)).reshape(3, 4)
    given = [ops.cast(x, "float64") for x in (np.sin(np.arange(12.0)).reshape(3, 4), [0.5, 1.0, 2.0, 0.25])]
    tangents = [ops.cast(x, "float64") for x in (tangent, tangent[0])]
    for reduction in ("mean", "sum", "none"):
        loss = lambda x, w: ops.sum(ops.nn.cross_entropy(x, ids, w, reduction, -100, 0.25) ** 2)  # noqa: B023
        first = ops.grad(loss, argnums=(0, 1))
        pushed = lambda x, w: sum(ops.sum(g * t) for g, t in zip(first(x, w), tangents, strict=True))  # noqa: B023
        assert np.isclose(float(ops.jvp(loss, given, tangents)[1]), float(pushed(*given)))
        step = 1e-6
        ends = [[x + t * s for x, t in zip(given, tangents, strict=True)] for s in (step, -step)]
        assert np.isclose(float(loss(*ends[0]) - loss(*ends[1])) / (2 * step), float(pushed(*given)), rtol=1e-6)
        second = ops.grad(pushed, argnums=(0, 1))(*given)
        for found, above, below in zip(second, first(*ends[0]), first(*ends[1]), strict=True):
            wanted = (ops.to_numpy(above) - ops.to_numpy(below)) / (2 * step)
            assert np.allclose(ops.to_numpy(found), wanted, atol=1e-6)


def test_cross_entropy_maps_over_a_batch_where_ids_out_of_range_do_not_count(backend: str) -> None:
    ids, x = np.array([[2, 0, 1], [1, -1, 7]]), np.sin(np.arange(24.0, dtype=np.float32)).reshape(2, 3, 4)
    count = 1 if backend == "numpy" else 2  # NumPy loops over the batch, so the host has the ids
    given = [ops.convert_to_tensor(each[:count]) for each in (x, ids)]
    wanted = [ops.nn.cross_entropy(x[0], ids[0]), ops.nn.cross_entropy(x[1, :1], ids[1, :1])]
    found = ops.to_numpy(ops.vmap(ops.nn.cross_entropy)(*given))
    assert np.allclose(found, [float(y) for y in wanted[:count]], atol=1e-6)


def test_cross_entropy_of_half_precision_adds_in_float32(backend: str) -> None:
    x, ids = np.tile(np.array([[1.0, 2.5, -3.0]], np.float16), (9000, 1)), np.zeros(9000, np.int64)
    found = ops.nn.cross_entropy(ops.convert_to_tensor(x), ids)
    one = ops.nn.cross_entropy(ops.convert_to_tensor(x[:1]), ids[:1])
    assert found.dtype == one.dtype
    assert float(found) == float(one)
    assert float(ops.sum(ops.cast(ops.nn.cross_entropy(x, ids, None, "none"), "float32"))) > 9000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1.0, 2.0]], [2]), errors.IndexOutOfBoundsError, "class 2 in target is out of range, expected 0 to 1"),
        (([[1.0, 2.0]], [0, 1]), errors.ShapeError, r"target has shape \(2,\), expected \(1,\)"),
        (([[1.0, 2.0]], [0.5]), errors.ArgumentTypeError, "class ids must be integers, got float"),
        (([[1.0, 2.0]], [0], [1.0]), errors.ShapeError, r"weight has shape \(1,\), expected \(2,\)"),
        (([[1.0, 2.0]], [0], None, "average"), errors.ArgumentError, "reduction is 'average', expected one of"),
        (([[1.0, 2.0]], [0], None, "mean", -100, 1.5), errors.ArgumentError, "label_smoothing is 1.5, expected"),
        (([[1.0, 2.0]], [0], None, "mean", -100, 0.0, 2), errors.AxisError, "axis"),
        (([[1j, 2.0]], [0]), errors.DTypeError, "expected real logits"),
    ],
)
def test_cross_entropy_refuses(
    arguments: tuple[object, ...], error: type[Exception], message: str, backend: str
) -> None:
    if backend == "dask" and error is errors.IndexOutOfBoundsError:
        pytest.skip("class ids that are not computed yet are not checked: docs/dask.md")
    with ops.checked(), pytest.raises(error, match=message):
        ops.nn.cross_entropy(*arguments)


def _cross_entropies(x: Any, target: Any, ignored: int) -> Any:
    """Returns the loss at each position, 0 where the id is ignored, and the mean of those that count, in float64."""
    x = x.astype(np.float64)
    logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    kept = target != ignored
    lost = np.where(kept, -np.take_along_axis(logs, np.where(kept, target, 0)[..., None], -1)[..., 0], 0.0)
    return lost, lost.sum() / kept.sum() if kept.any() else np.nan


@pytest.mark.parametrize("ignored", [-100, -1, 0, 2, 3, 7])
@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4)])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_ignored_classes_do_not_count(ignored: int, shape: tuple[int, ...], kind: str, backend: str) -> None:
    x = np.sin(np.arange(float(np.prod(shape)))).reshape(shape).astype(kind)
    target = np.array([0, 2, 3, 2, 1, 0]).reshape(shape[:-1])
    if ignored not in (0, 2, 3):
        target.reshape(-1)[1] = ignored
    lost, mean = _cross_entropies(x, target, ignored)
    options = {"ignore_index": ignored}
    given = ops.asarray(x), ops.asarray(target)
    np.testing.assert_allclose(ops.to_numpy(ops.cross_entropy(*given, reduction="none", **options)), lost, rtol=1e-5)
    np.testing.assert_allclose(float(ops.cross_entropy(*given, reduction="sum", **options)), lost.sum(), rtol=1e-5)
    np.testing.assert_allclose(float(ops.cross_entropy(*given, **options)), mean, rtol=1e-5)
    slope = ops.to_numpy(ops.grad(lambda z: ops.cross_entropy(z, given[1], **options))(given[0]))
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    kept = (target != ignored)[..., None]
    wanted = np.where(kept, shares - (np.arange(4) == target[..., None]), 0.0) / kept.sum()
    np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_no_position_is_nan_with_gradient_zero(weighted: bool, backend: str) -> None:
    x, target = ops.ones((2, 3)), ops.asarray([1, 1])
    weight = ops.ones(3) if weighted else None
    for ignored, ids in ((1, target), (-100, ops.asarray([-100, -100]))):

        def entropy(z: Any, ids: Any = ids, ignored: int = ignored) -> Any:
            return ops.cross_entropy(z, ids, weight, ignore_index=ignored)

        def likelihood(z: Any, ids: Any = ids, ignored: int = ignored) -> Any:
            return nn.losses.nll(ops.log_softmax(z), ids, weight, ignore_index=ignored)

        for loss in (entropy, likelihood):
            assert np.isnan(float(loss(x)))
            for outer in (lambda y: y, ops.nan_to_num):
                slope = ops.grad(lambda z, loss=loss, outer=outer: outer(loss(z)))(x)
                assert ops.to_numpy(slope).tolist() == [[0.0] * 3] * 2


def test_the_loss_of_a_certain_prediction_is_finite(backend: str) -> None:
    target, output = ops.asarray([1.0, 0.0, 1.0, 0.0]), ops.asarray([0.0, 1.0, 1.0, 0.0])
    found = ops.to_numpy(ops.binary_crossentropy(target, output))
    np.testing.assert_allclose(found[:2], -np.log(1e-7), rtol=0.02)  # 1 - 1e-7 is rounded in float32
    assert (abs(found[2:]) < 1e-6).all()
    assert np.isfinite(ops.to_numpy(ops.grad(lambda p: ops.sum(ops.binary_crossentropy(target, p)))(output))).all()
