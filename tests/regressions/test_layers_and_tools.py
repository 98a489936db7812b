"""Faults that were found by differential checks of layers, transforms and tools, each with its siblings."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import nn, ops
from emberharmony.errors import TracedTensorError
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher

TWICE: dict[str, tuple[Callable[..., Any], Any]] = {
    "itself": (lambda v, i: v, (1, 0)),
    "view": (lambda v, i: ops.multiply(v, 2.0), (1, 0)),
    "take": (lambda v, i: ops.take(ops.array([[5.0, 6.0], [7.0, 8.0]]), i, axis=1), (0, 0)),
    "where": (lambda v, i: ops.where(ops.equal(i, 1), v, 0.5), (0, 0)),
    "cond": (lambda v, i: ops.cond(ops.equal(i, 1), lambda: ops.negative(v), lambda: v), (0, 0)),
    "broadcast_to": (lambda v, i: ops.broadcast_to(ops.cast(i, "float32"), (3,)), (1, 0)),
    "transpose": (lambda v, i: ops.transpose(ops.stack([v, v])), (1, 0)),
}


@pytest.mark.parametrize("name", TWICE)
def test_vmap_of_a_tensor_that_is_returned_twice(name: str, backend: str) -> None:
    fn, axes = TWICE[name]
    x, indices = ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([1, 0])
    wanted = ops.to_numpy(ops.vmap(fn, axes)(x, indices))
    results = {
        "tuple": ops.vmap(lambda v, i: (fn(v, i),) * 3, axes)(x, indices),
        "one object": ops.vmap(lambda v, i: (y := fn(v, i), y, ops.reshape(y, y.shape), y), axes)(x, indices),
        "argument": (ops.vmap(lambda v, i: (y := fn(v, i), v, y, v), axes)(x, indices))[::2],
    }
    for way, found in results.items():
        for each in found:
            assert np.array_equal(ops.to_numpy(each), wanted), way


def test_nested_vmap_of_a_tensor_that_is_returned_twice(backend: str) -> None:
    x = ops.reshape(ops.arange(12.0), (2, 2, 3))
    inner = ops.vmap(lambda v: (y := ops.sin(v), y), in_axes=1)
    for axis in (0, 1, 2):
        a, b = ops.vmap(inner, in_axes=axis)(x)
        assert np.array_equal(ops.to_numpy(a), ops.to_numpy(b))
        rows = [inner(ops.take(x, i, axis=axis))[0] for i in range(x.shape[axis])]
        assert np.array_equal(ops.to_numpy(a), ops.to_numpy(ops.stack(rows)))
    a, b = ops.vectorized_map(lambda v: (y := ops.transpose(v), y), x)
    assert np.array_equal(ops.to_numpy(b), ops.to_numpy(ops.transpose(x, (0, 2, 1))))
    a, b = ops.vectorize(lambda v: (y := ops.cumsum(v), y), signature="(n)->(n),(n)")(x)
    assert np.array_equal(ops.to_numpy(a), ops.to_numpy(b))


def test_vmap_of_a_gradient_that_two_arguments_share(backend: str) -> None:
    x, y = ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([[5.0, 6.0], [7.0, 8.0]])
    scaled = ops.grad(lambda a, b, s: ops.multiply(s, ops.sum(ops.add(a, b))), (0, 1))
    sines = ops.grad(lambda a, b, s: ops.multiply(s, ops.sum(ops.sin(ops.add(a, b)))), (0, 1))
    given = ops.array([1.0, 10.0])
    for fn, axes in itertools.product((scaled, sines), ((0, 0, 0), (1, 1, 0), (0, 1, 0))):
        found, wanted = ops.vmap(fn, in_axes=axes)(x, y, given), _sliced(fn, axes, x, y, given)
        for one, other in zip(found, wanted, strict=True):
            assert np.allclose(ops.to_numpy(one), other, atol=1e-6)


def _sliced(fn: Callable[..., Any], axes: tuple[int, ...], *tensors: Any) -> list[Any]:
    """Returns the results of a function for each slice, each stacked on the host."""
    rows = [fn(*[ops.take(x, i, axis=axis) for x, axis in zip(tensors, axes, strict=True)]) for i in range(2)]
    return [np.stack([ops.to_numpy(each) for each in column]) for column in zip(*rows, strict=True)]


def test_the_tangent_of_a_custom_gradient_that_two_arguments_share(backend: str) -> None:
    @ops.custom_gradient
    def added(x: Any, y: Any) -> Any:
        return ops.add(x, y), lambda x, y, upstream: (upstream, upstream)

    x, one = ops.array([1.0, 2.0]), ops.ones(2)
    _, tangent = ops.jvp(added, (x, x), (one, ops.multiply(one, 10.0)))
    assert ops.to_numpy(tangent).tolist() == [11.0, 11.0]
    _, tangent = ops.jvp(ops.vmap(added), (x, x), (one, ops.multiply(one, 10.0)))
    assert ops.to_numpy(tangent).tolist() == [11.0, 11.0]
    rows = ops.vmap(lambda t: ops.jvp(added, (x, x), (t, ops.multiply(t, 10.0)))[1])(ops.eye(2))
    assert ops.to_numpy(rows).tolist() == [[11.0, 0.0], [0.0, 11.0]]


def test_every_cotangent_of_a_tensor_that_is_returned_twice_counts(backend: str) -> None:
    x, one = ops.array([1.0, 2.0]), ops.ones(2)

    def f(v: Any) -> Any:
        y = ops.square(v)
        return y, ops.stop_gradient(y), v, y, ops.reshape(y, y.shape), v

    _, pull = ops.vjp(f, x)
    (found,) = pull(tuple(ops.multiply(one, 10.0**i) for i in range(6)))
    assert ops.to_numpy(found).tolist() == [2 * 11001 + 100100.0, 4 * 11001 + 100100.0]


def test_a_compiled_function_takes_the_tensor_that_it_closes_over(quick: str) -> None:
    x = ops.array([1.0, 2.0])
    for fn in (lambda t: ops.add(t, x), lambda t: (x, x, t), lambda t: [ops.sin(x), x]):
        compiled = ops.compile(fn)
        for argument in (x, ops.ones(2), x):
            found, wanted = compiled(argument), fn(argument)
            assert np.array_equal(np.asarray(ops.stack(found)), np.asarray(ops.stack(wanted)))


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_of_one_unit_computes_each_sample_alone(layer: Any, backend: str) -> None:
    m = layer(3, 1, batch_first=True, rng=ops.random.Generator(0))
    x = np.random.default_rng(0).standard_normal((4, 5, 3)).astype("float32")
    alone = np.concatenate([ops.to_numpy(m(x[i : i + 1])[0]) for i in range(4)])
    np.testing.assert_allclose(ops.to_numpy(m(x)[0]), alone, atol=1e-6)


def test_mlx_compiles_what_returns_a_value_beside_its_gradient(backend: str) -> None:
    if backend == "torch":
        pytest.skip("torch.compile takes seconds")

    def fn(x: Any) -> Any:
        return ops.exp(x), ops.value_and_grad(lambda x: (ops.sum(y := ops.exp(x)), y), has_aux=True)(x)

    x = ops.array([0.0, 1.0])
    for found, wanted in zip(ops.tree_leaves(ops.compile(fn)(x)), ops.tree_leaves(fn(x)), strict=True):
        np.testing.assert_allclose(ops.to_numpy(found), ops.to_numpy(wanted), rtol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "bilinear", "bicubic", "trilinear"])
def test_a_scale_factor_gives_the_positions_also_where_an_axis_keeps_its_length(mode: Any, backend: str) -> None:
    axes = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
    factors = {1: (1.3, 2.2), 2: ((1.3, 1.2), (1.3, 2.0)), 3: ((1.3, 1.2, 1.0), (2.2, 1.2, 1.0))}
    for n in [axes[mode]] if mode in axes else (1, 2, 3):
        shape = (3, 4, 2)[:n]
        count = int(np.prod(shape))
        for factor in factors[n]:
            layer = nn.Upsample(scale_factor=factor, mode=mode)
            with ops.use_backend("numpy"):  # the rows are the results for all vectors of a basis
                matrix = ops.to_numpy(layer(np.eye(count).reshape(count, 1, *shape))).reshape(count, -1)
            x = np.sin(np.arange(count) * 1.7)
            found = layer(ops.convert_to_tensor(x.reshape(1, 1, *shape)))
            np.testing.assert_allclose(ops.to_numpy(found).reshape(-1), x @ matrix, atol=1e-5)
            upstream = np.cos(np.arange(matrix.shape[1]) * 1.3)
            weights = ops.convert_to_tensor(upstream.reshape(found.shape))
            slope = ops.grad(lambda x, f=layer, w=weights: ops.sum(ops.multiply(f(x), w)))(ops.ones((1, 1, *shape)))
            np.testing.assert_allclose(ops.to_numpy(slope).reshape(-1), matrix @ upstream, atol=1e-5)
    if mode == "linear":
        found = nn.Upsample(scale_factor=1.3, mode=mode)([[[0.0, 1.0, 3.0]]])
        np.testing.assert_allclose(ops.to_numpy(found)[0, 0], [0.0, 0.6538, 1.8462], atol=1e-4)


def test_what_a_negative_pad_cuts_off_is_mirrored_before(backend: str) -> None:
    assert ops.to_numpy(nn.ReflectionPad1d((2, -1))(ops.array([[0, 1, 2]]))).tolist() == [[2, 1, 0, 1]]
    image = ops.reshape(ops.arange(9), (1, 3, 3))
    found = nn.ReflectionPad2d((2, -1, -2, 1))(image)
    assert ops.to_numpy(found).tolist() == [[[8, 7, 6, 7], [5, 4, 3, 4]]]


def test_ctc_loss_of_empty_transcripts_is_that_of_blanks(backend: str) -> None:
    rows = np.sin(np.arange(24.0)).reshape(4, 2, 3)
    blanks = -np.log(np.exp(rows[..., 0]) / np.exp(rows).sum(-1)).sum(0)
    for targets in (np.zeros(0, "int64"), np.zeros((2, 0), "int64")):
        found = nn.losses.ctc(ops.convert_to_tensor(rows), targets, [4, 4], [0, 0], reduction="none")
        np.testing.assert_allclose(ops.to_numpy(found), blanks, rtol=1e-6)


def test_the_gradient_of_celu_has_the_digits_of_float64(backend: str) -> None:
    x = np.linspace(-3.0, 0.0, 20)
    layer = nn.CELU(0.7)
    slope = ops.grad(lambda x: ops.sum(layer(x)))(ops.convert_to_tensor(x, "float64"))
    np.testing.assert_allclose(ops.to_numpy(slope), np.exp(x / 0.7), atol=1e-15)


def test_no_index_of_max_pool_is_negative(backend: str) -> None:
    values, indices = nn.MaxPool1d(2, 1, 1, 3, return_indices=True)(ops.array([[[1.0, 2.0]]]))
    assert ops.to_numpy(values).tolist() == [[[-np.inf]]]
    assert ops.to_numpy(indices).tolist() == [[[2]]]


def test_a_program_with_native_operators_is_differentiated_in_checked_mode(backend: str) -> None:
    a = ops.array([[1.0, 2.0], [3.0, 4.0]])
    slope = ops.grad(lambda x: ops.sum(a * x + a @ x))
    wanted = slope(a).tolist()
    for words in ((), ("nan",), ("dtype",)):
        with ops.checked(*words):
            assert slope(a).tolist() == wanted, words
    with ops.record(backward=True) as log:
        assert slope(a).tolist() == wanted
    assert any("MLX itself" in note for note in log.notes) == (backend == "mlx")


def test_compare_has_no_false_alarm_for_a_result_without_a_gradient(backend: str) -> None:
    def program(y: Any) -> Any:
        return ops.cos(ops.stop_gradient(y)), ops.sin(y)

    report = emberharmony.compare(program, np.linspace(0.1, 1, 3), backends=("numpy", backend), gradients=True)
    assert report.ok, str(report)


def test_compare_refuses_a_program_whose_gradient_it_cannot_follow() -> None:
    pytest.importorskip("mlx.core")
    given = np.ones((2, 2), "float32")
    with pytest.raises(TracedTensorError, match=r"MLX itself computes a gradient.* at .*test_layers_and_tools\.py:\d+"):
        emberharmony.compare(lambda x: ops.copy(given) @ x, given, backends=("numpy", "mlx"), gradients=True)


def test_a_tree_with_a_module_of_mlx_is_built_again() -> None:
    mlx_nn = pytest.importorskip("mlx.nn")

    class Net(mlx_nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.rest, self.scale = mlx_nn.Linear(2, 3), [mlx_nn.Linear(3, 1)], 2.5

        def __call__(self, x: Any) -> Any:
            return self.rest[0](self.first(x)) * self.scale

    with ops.use_backend("mlx"):
        net, x = Net(), ops.ones((4, 2))
        net.rest[0].freeze()
        copied = ops.tree_map(ops.copy, {"net": net})["net"]
        assert type(copied) is Net
        assert copied(x).tolist() == net(x).tolist()
        copied.unfreeze()
        assert set(net.trainable_parameters()["first"]) == {"weight", "bias"}
        assert net.trainable_parameters()["rest"] == [{}]
        gradient = ops.grad(lambda net: ops.sum(net(x)))(net)
        assert ops.to_numpy(gradient.rest[0].weight).shape == (1, 3)


def test_a_custom_gradient_may_be_none_for_a_part_of_an_argument(backend: str) -> None:
    @ops.custom_gradient
    def total(p: Any, q: Any) -> Any:
        def gradient(p: Any, q: Any, upstream: Any) -> Any:
            return {"a": ops.multiply(upstream, [1.0, 2.0]), "b": None, "c": (None, upstream)}, None

        return ops.add(ops.sum(p["a"]), p["c"][1]), gradient

    p = {"a": [1.0, 1.0], "b": [ops.ones(2), 1.0], "c": (3.0, 4.0)}
    first, second = ops.grad(total, (0, 1))(p, ops.ones(3))
    assert first["a"].tolist() == [1.0, 2.0]
    assert [x.tolist() for x in (*first["b"], *first["c"])] == [[0.0, 0.0], 0.0, 0.0, 1.0]
    assert second.tolist() == [0.0, 0.0, 0.0]


class Reader(Watcher):
    """Reads each result, which nothing may do in a gradient that MLX itself computes."""

    def after(self, call: WatchedCall, result: Any) -> None:
        repr(result)


def test_a_compiled_program_inside_of_a_hessian_is_checked(backend: str, quick: str) -> None:
    a = ops.ones((2, 2))
    compiled = ops.compile(lambda x: ops.sum((a @ x) ** 2))
    for block in (ops.checked("nan"), Observation(Reader())):
        with block:
            assert ops.hessian(compiled)(ops.ones(2)).tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_compare_takes_gradients_of_a_program_without_floating_results(backend: str) -> None:
    given = np.linspace(0.1, 1, 3)
    for program in (lambda x: ops.argmax(x), lambda x: {"above": ops.greater(ops.sin(x), 0.5)}):
        report = emberharmony.compare(program, given, backends=("numpy", backend), gradients=True)
        assert report.ok, str(report)
