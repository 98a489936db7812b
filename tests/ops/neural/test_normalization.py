"""Normalisations: half precision, other axes, long rows, and the GPU kernels."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("normalize", [ops.layer_normalization, ops.rms_normalization])
def test_half_precision_does_not_overflow(normalize: object, backend: str) -> None:
    x = np.array([[-6e4, 6e4, 1e4]], np.float16)
    values = ops.to_numpy(normalize(x))  # type: ignore[operator]
    assert values.dtype == np.float16
    assert np.isfinite(values).all()
    assert (np.abs(values) > 0.1).all()


@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
def test_layer_normalization_accepts_other_axes_and_broadcast_weights(axis: Any, backend: str) -> None:
    x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4)
    off = x - x.mean(axis, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(axis, keepdims=True) + 1e-7) * 2.0 + np.arange(4.0)
    got = ops.layer_normalization(x, np.float32([2.0]), np.arange(4, dtype=np.int32), axis)
    assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5)


def test_layer_normalization_of_long_rows_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(40000.0)) + 1000.0).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    off = wide - wide.mean(-1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-7)
    assert np.abs(ops.to_numpy(ops.layer_normalization(x)) - wanted).max() < 2e-4


@pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed")
def test_the_gpu_kernels_of_mlx_agree_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.mlx.neural import normalization_ops

    monkeypatch.setattr(normalization_ops, "on_cpu", lambda: False)
    x, w = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4), np.arange(4, dtype=np.float32)
    with ops.use_backend("mlx"):
        for name, arguments in (("layer_normalization", (x, w, w)), ("rms_normalization", (x, w))):
            got = getattr(ops, name)(*arguments)
            with ops.use_backend("numpy"):
                wanted = getattr(ops, name)(*arguments)
            assert np.allclose(ops.to_numpy(got), wanted, atol=1e-5), name


def test_weights_of_the_normalised_axes_belong_to_them(backend: str) -> None:
    x = np.sin(np.arange(27.0)).reshape(3, 3, 3)
    gamma, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, -0.5, 0.0])
    off = x - x.mean(1, keepdims=True)
    wanted = off / np.sqrt((off**2).mean(1, keepdims=True) + 0.1) * gamma[:, None] + beta[:, None]
    assert np.allclose(ops.to_numpy(ops.layer_normalization(x, gamma, beta, 1, 0.1)), wanted, atol=1e-6)
    two = ops.layer_normalization(x, np.arange(9.0).reshape(3, 3), axis=(1, 0), epsilon=0.1)
    off = x - x.mean((0, 1), keepdims=True)
    wanted = off / np.sqrt((off**2).mean((0, 1), keepdims=True) + 0.1) * np.arange(9.0).reshape(3, 3, 1)
    assert np.allclose(ops.to_numpy(two), wanted, atol=1e-6)


def test_rms_scaling_keeps_the_mean_and_ignores_beta(backend: str) -> None:
    x = np.array([[1.0, 3.0, 8.0], [2.0, 2.5, 2.0]])
    wanted = x / np.sqrt(x.var(-1, keepdims=True) + 1e-7) * 2.0
    found = ops.layer_normalization(x, np.full(3, 2.0), np.ones(3), rms_scaling=True)
    assert np.allclose(ops.to_numpy(found), wanted, rtol=1e-5)


IMAGE = np.sin(np.arange(2.0 * 6 * 5 * 4)).reshape(2, 6, 5, 4)


def _batch_loss(x: Any, offset: Any, scale: Any, axis: int) -> Any:
    result, mean, variance = ops.batch_normalization_training(x, axis, offset, scale, 0.1)
    return ops.add(ops.sum(ops.power(result, 3)), ops.add(ops.sum(mean), ops.sum(variance)))


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize(("shape", "axis"), [((5, 4), 1), ((2, 4, 3), 1), ((2, 3, 4), -1), ((4, 6), 0)])
def test_derivatives_of_batch_normalization_in_training(shape: tuple[int, ...], axis: int, backend: str) -> None:
    from torch import from_numpy
    from torch.autograd import grad
    from torch.nn import functional

    x, weight, shift = np.sin(np.arange(24.0)[: np.prod(shape)]).reshape(shape), np.cos(np.arange(4.0)), np.arange(4.0)
    given = [from_numpy(array).requires_grad_() for array in (x, shift, weight)]
    moved = given[0].movedim(axis, 1)
    made = functional.batch_norm(moved, None, None, given[2], given[1], True, 0.0, 0.1).movedim(1, axis)
    wanted = grad(made.pow(3).sum(), given, create_graph=True)
    arguments = [ops.convert_to_tensor(array) for array in (x, shift, weight)]
    first = ops.grad(_batch_loss, (0, 1, 2))
    for mine, theirs in zip(first(*arguments, axis), wanted, strict=True):
        assert np.allclose(ops.to_numpy(mine), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)
    (wanted_second,) = grad(wanted[0].pow(2).sum(), given[:1])
    second = ops.grad(lambda x: ops.sum(ops.square(first(x, *arguments[1:], axis)[0])))(arguments[0])
    assert np.allclose(ops.to_numpy(second), wanted_second.numpy(), rtol=1e-8, atol=1e-8)
    tangent = np.cos(np.arange(x.size)).reshape(shape)
    _, along = ops.jvp(lambda x: _batch_loss(x, *arguments[1:], axis), arguments[:1], [ops.convert_to_tensor(tangent)])
    assert np.isclose(float(along), float((wanted[0].detach() * from_numpy(tangent)).sum()))
    rows = np.stack([x, x[::-1] + 1])
    mapped = ops.vmap(lambda x: ops.batch_normalization_training(x, axis))(ops.convert_to_tensor(rows))
    apart = [ops.batch_normalization_training(row, axis) for row in rows]
    for i, part in enumerate(mapped):
        assert np.allclose(ops.to_numpy(part), [ops.to_numpy(each[i]) for each in apart])


def test_batch_normalization_in_training_keeps_its_digits(backend: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axis in (((3000, 2), 1), ((3, 9000), 0), ((40, 3, 9), 1), ((40, 9, 3), 2), ((9, 3, 999), 1)):
        x = (rng.standard_normal(shape) + 1e4).astype(np.float32)
        wide, over = x.astype(np.float64), tuple(a for a in range(x.ndim) if a != axis)
        off = wide - wide.mean(over, keepdims=True)
        wanted = off / np.sqrt((off**2).mean(over, keepdims=True) + 1e-3)
        result, mean, variance = map(ops.to_numpy, ops.batch_normalization_training(x, axis))
        assert np.abs(result - wanted).max() < (5e-6 if backend == "torch" else 5e-3)
        assert np.abs(mean - wide.mean(over)).max() < 5e-3
        assert np.abs(variance - wide.var(over)).max() < 1e-5
    half = np.array([[-6e4, 1e4], [6e4, 1e4]], np.float16)
    result, mean, variance = ops.batch_normalization_training(half, -1, np.ones(2, "float16"))
    assert np.allclose(ops.to_numpy(result).astype(float), [[0.0, 1.0], [2.0, 1.0]], atol=1e-3)
    assert (ops.dtype(result).name, ops.dtype(mean).name) == ("float16", "float32")
    assert np.isclose(float(variance[0]), np.float64(half[1, 0]) ** 2)


def test_statistics_of_one_value_and_of_none(backend: str) -> None:
    result, mean, variance = ops.batch_normalization_training(np.float32([[1.0, 2.0]]), 1)
    assert [ops.to_numpy(t).tolist() for t in (result, mean, variance)] == [[[0.0, 0.0]], [1.0, 2.0], [0.0, 0.0]]
    result, mean, _ = ops.batch_normalization_training(np.float32([[1.0, np.nan], [3.0, 2.0]]), -1)
    assert np.isnan(ops.to_numpy(result)[:, 1]).all()
    assert ops.to_numpy(mean)[0] == 2.0
    with pytest.raises(ShapeError, match=r"expected scale of shape \(2,\)"):
        ops.batch_normalization_training(np.ones((3, 2)), -1, scale=np.ones(3))


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
def test_group_normalization_is_that_of_pytorch(backend: str) -> None:
    from torch import from_numpy
    from torch.nn import functional

    weight, shift = np.cos(np.arange(6.0)), np.arange(6.0)
    for groups in (1, 2, 3, 6):
        wanted = functional.group_norm(from_numpy(IMAGE), groups, from_numpy(weight), from_numpy(shift), 1e-5)
        found = ops.group_normalization(IMAGE, groups, weight, shift, 1, 1e-5)
        assert np.allclose(ops.to_numpy(found), wanted.numpy())
    wanted = functional.instance_norm(from_numpy(IMAGE), weight=from_numpy(weight), bias=from_numpy(shift), eps=1e-5)
    assert np.allclose(ops.to_numpy(ops.group_normalization(IMAGE, 6, weight, shift, 1, 1e-5)), wanted.numpy())
    last = ops.group_normalization(np.moveaxis(IMAGE, 1, -1), 6, weight, shift, epsilon=1e-5)
    assert np.allclose(ops.to_numpy(ops.moveaxis(last, -1, 1)), wanted.numpy())


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 40])
def test_local_response_normalization_is_that_of_pytorch(size: int, backend: str) -> None:
    from torch import from_numpy
    from torch.nn import functional

    wanted = functional.local_response_norm(from_numpy(IMAGE), size, 0.3, 0.6, 2.0).numpy()
    assert np.allclose(ops.to_numpy(ops.local_response_normalization(IMAGE, size, 0.3, 0.6, 2.0, 1)), wanted)
    last = ops.local_response_normalization(np.moveaxis(IMAGE, 1, -1), size, 0.3, 0.6, 2.0)
    assert np.allclose(ops.to_numpy(ops.moveaxis(last, -1, 1)), wanted)


def test_a_group_of_constants_is_zero(backend: str) -> None:
    x = np.array([[1.0, 1.0, 5.0, 7.0]], np.float32)
    assert ops.to_numpy(ops.group_normalization(x, 2))[0, :2].tolist() == [0.0, 0.0]
    alone = ops.to_numpy(ops.group_normalization(x[:, 2:], 2, np.ones(2, "float32"), x[0, 2:]))
    assert np.allclose(alone, [[5.0, 7.0]], rtol=0, atol=1e-4)  # groups of one element
    assert ops.shape(ops.group_normalization(np.ones((0, 3, 4)), 2)) == (0, 3, 4)


def test_groups_in_half_precision_do_not_overflow(backend: str) -> None:
    x = np.array([[-6e4, 6e4, 1e4, 3e4]], np.float16)
    values = ops.to_numpy(ops.group_normalization(x, 2))
    assert values.dtype == np.float16
    assert np.allclose(values, [[-1.0, 1.0, -1.0, 1.0]], atol=1e-2)


def test_derivatives_of_group_normalization_of_any_layout(backend: str) -> None:
    weight, shift = np.cos(np.arange(6.0)), np.arange(6.0)
    for axis, x in ((1, IMAGE), (-1, np.moveaxis(IMAGE, 1, -1))):
        for weights in ((weight, shift), (None, shift), (None, None)):

            def loss(x: Any, axis: int = axis, weights: Any = weights) -> Any:
                return ops.sum(ops.group_normalization(x, 3, *weights, axis) ** 3)

            first = ops.grad(loss)
            tangent = ops.cast(np.cos(np.arange(x.size)).reshape(x.shape), "float64")
            given = ops.convert_to_tensor(x)
            _, along = ops.jvp(loss, (given,), (tangent,))
            assert np.isclose(float(along), float(ops.sum(ops.multiply(first(given), tangent))))
            second = ops.grad(lambda x, f=first: ops.sum(f(x) ** 2))(given)
            step = 1e-5
            ends = [float(ops.sum(first(ops.add(given, ops.multiply(tangent, s))) ** 2)) for s in (step, -step)]
            slope = (ends[0] - ends[1]) / (2 * step)
            assert np.isclose(float(ops.sum(ops.multiply(second, tangent))), slope, rtol=1e-5, atol=1e-5)


def test_group_normalization_maps_over_a_batch(backend: str) -> None:
    x = ops.convert_to_tensor(IMAGE[None] + np.arange(3.0).reshape(3, 1, 1, 1, 1))
    mapped = ops.to_numpy(ops.vmap(lambda x: ops.group_normalization(x, 2, axis=1))(x))
    assert np.allclose(mapped, [ops.to_numpy(ops.group_normalization(row, 2, axis=1)) for row in x])


def test_groups_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="a number of channels that is a multiple of 4 groups, got 6"):
        ops.group_normalization(IMAGE, 4, axis=1)
    with pytest.raises(ArgumentError, match="groups is an integer of at least 1, not 0"):
        ops.group_normalization(IMAGE, 0)
    with pytest.raises(ArgumentError, match="axis is that of the channels"):
        ops.group_normalization(IMAGE, 1, axis=0)
    with pytest.raises(ShapeError, match=r"expected offset of shape \(6,\), one for each channel, got \(5,\)"):
        ops.group_normalization(IMAGE, 2, None, np.ones(5), 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_statistics_of_a_batch_in_half_precision_have_its_digits(dtype: str, backend: str) -> None:
    # The squares exceed float16, and a sum in half precision would stop growing at 2,048 times its terms.
    x = ops.cast(np.sin(np.arange(5000.0 * 3)).reshape(5000, 3) * 3.0 + [300.0, -700.0, 0.25], dtype)
    held = ops.to_numpy(ops.cast(x, "float64"))
    result, mean, variance = ops.batch_normalization_training(x, -1)
    eps = 2.0**-11 if dtype == "float16" else 2.0**-8
    assert ops.dtype(result).name == dtype
    assert ops.dtype(mean).name == ops.dtype(variance).name == "float32"
    np.testing.assert_allclose(ops.to_numpy(mean), held.mean(0), rtol=1e-6)
    np.testing.assert_allclose(ops.to_numpy(variance), held.var(0), rtol=1e-5)
    wanted = (held - held.mean(0)) / np.sqrt(held.var(0) + 1e-3)
    np.testing.assert_allclose(ops.to_numpy(ops.cast(result, "float64")), wanted, atol=4 * eps)
    average, spread = ops.moments(x, (0,))
    np.testing.assert_allclose(ops.to_numpy(ops.cast(average, "float64")), held.mean(0), rtol=2 * eps)
    np.testing.assert_allclose(ops.to_numpy(ops.cast(spread, "float64")), held.var(0), rtol=2 * eps)
