"""Recurrent layers: compared with PyTorch, derivatives of every kind, shapes that do not fit."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, ShapeError

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
X = np.sin(np.arange(24.0)).reshape(2, 4, 3)


def weights_of(name: str, hidden: int = 5, features: int = 3) -> list[np.ndarray[Any, Any]]:
    rows = GATES[name] * hidden
    shapes = [(rows, features), (rows, hidden), (rows,), (rows,)]
    return [np.cos(np.arange(np.prod(shape)) * (i + 1)).reshape(shape) * 0.6 for i, shape in enumerate(shapes)]


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("time_major", [False, True])
def test_both_directions_are_those_of_pytorch(name: str, time_major: bool, backend: str) -> None:
    import torch

    layer = getattr(torch.nn, name.upper())(3, 5, batch_first=not time_major, bidirectional=True).double()
    x = torch.from_numpy(X.swapaxes(0, 1).copy() if time_major else X)
    outputs, last = layer(x)
    weights = [parameter.detach().numpy() for parameter in layer.parameters()]
    for direction in (0, 1):
        found = getattr(ops, name)(
            x.numpy(), *weights[4 * direction : 4 * direction + 4], time_major=time_major, reverse=bool(direction)
        )
        assert np.allclose(ops.to_numpy(found[0]), outputs.detach()[..., 5 * direction : 5 * direction + 5].numpy())
        for state, wanted in zip(found[1:], last if name == "lstm" else (last,), strict=True):
            assert np.allclose(ops.to_numpy(state), wanted[direction].detach().numpy())


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
def test_the_options_of_pytorch_are_reached(backend: str) -> None:
    import torch

    layer = torch.nn.LSTM(3, 5, bias=False, proj_size=2, batch_first=True).double()
    outputs, (h, c) = layer(torch.from_numpy(X))
    wi, wh, wr = (parameter.detach().numpy() for parameter in layer.parameters())
    for got, wanted in zip(ops.lstm(X, wi, wh, weight_hr=wr), (outputs, h[0], c[0]), strict=True):
        assert np.allclose(ops.to_numpy(got), wanted.detach().numpy())
    relu = torch.nn.RNN(3, 5, nonlinearity="relu", batch_first=True).double()
    outputs, h = relu(torch.from_numpy(X), torch.ones(1, 2, 5).double())
    weights = [parameter.detach().numpy() for parameter in relu.parameters()]
    found = ops.rnn(X, *weights, np.ones((2, 5)), "relu")
    assert np.allclose(ops.to_numpy(found[0]), outputs.detach().numpy())
    assert np.allclose(ops.to_numpy(found[1]), h[0].detach().numpy())


@pytest.mark.parametrize("name", GATES)
def test_two_halves_of_a_sequence_are_the_whole(name: str, backend: str) -> None:
    layer, weights = getattr(ops, name), weights_of(name)
    whole, *last = layer(X, *weights)
    first, *states = layer(X[:, :1], *weights)
    second, *again = layer(X[:, 1:], *weights, *states)
    assert np.allclose(ops.to_numpy(ops.concatenate([first, second], 1)), ops.to_numpy(whole))
    for a, b in zip(last, again, strict=True):
        assert np.allclose(ops.to_numpy(a), ops.to_numpy(b))


@pytest.mark.parametrize("name", GATES)
def test_derivatives_of_every_kind(name: str, backend: str) -> None:
    x, *weights = (ops.cast(a, "float64") for a in (X, *weights_of(name)))
    places = tuple(range(5))

    def loss(*given: Any) -> Any:
        outputs, *last = getattr(ops, name)(*given, reverse=True)
        return ops.sum(outputs**3) + sum(ops.sum(state**2) for state in last)

    def along(*given: Any) -> Any:
        return sum(ops.sum(g * t) for g, t in zip(ops.grad(loss, places)(*given), tangents, strict=True))

    given = (x, *weights)
    tangents = [ops.cast(np.cos(np.arange(a.size) * 0.7).reshape(a.shape), "float64") for a in (X, *weights_of(name))]
    step = 1e-5
    ends = [[a + t * s for a, t in zip(given, tangents, strict=True)] for s in (step, -step)]
    wanted = (float(loss(*ends[0])) - float(loss(*ends[1]))) / (2 * step)
    assert np.isclose(float(along(*given)), wanted, rtol=1e-6)
    assert np.isclose(float(ops.jvp(loss, given, tuple(tangents))[1]), wanted, rtol=1e-6)
    second = ops.grad(along)(*given)
    slope = (float(along(ends[0][0], *weights)) - float(along(ends[1][0], *weights))) / (2 * step)
    assert np.isclose((ops.to_numpy(second) * ops.to_numpy(tangents[0])).sum(), slope, rtol=1e-5)


@pytest.mark.parametrize("name", GATES)
def test_layers_map_over_a_batch_of_sequences_and_of_weights(name: str, backend: str) -> None:
    layer = getattr(ops, name)
    x = ops.convert_to_tensor(np.stack([X, X[::-1], -X]).astype(np.float32))
    weights = [ops.convert_to_tensor(w.astype(np.float32)) for w in weights_of(name)]
    found = ops.vmap(lambda x: layer(x, *weights)[0])(x)
    assert np.allclose(ops.to_numpy(found), [ops.to_numpy(layer(row, *weights)[0]) for row in x], atol=1e-6)
    two = ops.stack([weights[1], weights[1] * 0.5])
    found = ops.vmap(lambda w: layer(x[0], weights[0], w, *weights[2:])[1])(two)
    wanted = [ops.to_numpy(layer(x[0], weights[0], w, *weights[2:])[1]) for w in (weights[1], weights[1] * 0.5)]
    assert np.allclose(ops.to_numpy(found), wanted, atol=1e-6)


@pytest.mark.parametrize("name", GATES)
def test_the_gradient_reaches_what_a_loss_reads_alone(name: str, backend: str) -> None:
    layer, weights = getattr(ops, name), [ops.convert_to_tensor(w) for w in weights_of(name)]
    x = ops.convert_to_tensor(X)
    for part in range(3 if name == "lstm" else 2):
        slope = ops.to_numpy(ops.grad(lambda x, i=part: ops.sum(layer(x, *weights)[i]))(x))
        step = 1e-3 if ops.dtype(x).bits == 32 else 1e-6
        ends = [float(ops.sum(layer(ops.convert_to_tensor(X + s), *weights)[part])) for s in (step, -step)]
        assert np.isclose(slope.sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-2)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("reverse", [False, True])
def test_an_axis_of_layers_changes_the_shapes_of_states_alone(name: str, reverse: bool, backend: str) -> None:
    layer = getattr(ops, name)
    x, *weights = (ops.convert_to_tensor(a) for a in (X, *weights_of(name)))
    states = [ops.convert_to_tensor(np.cos(np.arange(10.0) + i).reshape(2, 5)) for i in range(1 + (name == "lstm"))]
    count = len(states)

    def total(layer_axis: bool, x: Any, *given: Any) -> Any:
        outputs, *last = layer(x, *given[count:], *given[:count], reverse=reverse, layer_axis=layer_axis)
        return sum(ops.sum(t**3) for t in (outputs, *last))

    for given in (states, [None] * count):
        layered = [None if state is None else ops.expand_dims(state, 0) for state in given]
        wanted = layer(x, *weights, *given, reverse=reverse)
        found = layer(x, *weights, *layered, reverse=reverse, layer_axis=True)
        assert [ops.shape(t) for t in found] == [(2, 4, 5)] + [(1, 2, 5)] * count
        for got, right in zip(found, wanted, strict=True):
            assert np.array_equal(ops.to_numpy(got).reshape(right.shape), ops.to_numpy(right))
    places = tuple(range(2, 3 + count))
    gradients = [
        ops.grad(total, places)(layer_axis, x, *given, *weights)
        for layer_axis, given in ((False, states), (True, [ops.expand_dims(state, 0) for state in states]))
    ]
    for plain, layered in zip(*gradients, strict=True):
        assert np.allclose(ops.to_numpy(layered).reshape(plain.shape), ops.to_numpy(plain), rtol=1e-5, atol=1e-5)
    assert ops.shape(gradients[1][0]) == (1, 2, 5)


@pytest.mark.parametrize("name", GATES)
def test_half_precision_is_computed_in_float32(name: str, backend: str) -> None:
    x, weights = X.astype(np.float16), [w.astype(np.float16) for w in weights_of(name)]
    found = getattr(ops, name)(x, *weights)[0]
    assert ops.dtype(found) == "float16"
    wanted = getattr(ops, name)(x.astype(np.float32), *[w.astype(np.float32) for w in weights])[0]
    assert np.array_equal(ops.to_numpy(found), ops.to_numpy(wanted).astype(np.float16))


def with_gradients(name: str, *given: Any) -> Any:
    """Returns the results of a layer, and the gradients of a sum of squares of its outputs by all arguments."""

    def loss(*given: Any) -> Any:
        outputs, *last = getattr(ops, name)(*given)
        return ops.sum(outputs * outputs), (outputs, *last)

    (_, found), gradients = ops.value_and_grad(loss, tuple(range(len(given))), has_aux=True)(*given)
    return found, gradients


@pytest.mark.parametrize("name", GATES)
def test_each_sample_of_a_batch_is_computed_alone(name: str, backend: str) -> None:
    """Checks states of lengths 1 and 2, whose gates are views with strides for which `np.negative` fails in place."""
    for hidden, dtype in ((1, "float16"), (1, "float32"), (1, "float64"), (2, "float32"), (2, "float64")):
        weights = [ops.cast(w, dtype) for w in weights_of(name, hidden)]
        wide = [ops.cast(w, "float64") for w in weights]
        for batch in (1, 2, 4):
            x = ops.cast(np.sin(np.arange(batch * 6.0)).reshape(batch, 2, 3), dtype)
            found, (of_x, *of_weights) = with_gradients(name, x, *weights)
            rows = [with_gradients(name, ops.cast(x[i : i + 1], "float64"), *wide) for i in range(batch)]
            wanted = [np.concatenate([*map(ops.to_numpy, t)]) for t in zip(*[row[0] for row in rows], strict=True)]
            wanted.append(np.concatenate([ops.to_numpy(row[1][0]) for row in rows]))
            wanted += [sum(map(ops.to_numpy, t)) for t in zip(*[row[1][1:] for row in rows], strict=True)]
            for got, right in zip((*found, of_x, *of_weights), wanted, strict=True):
                np.testing.assert_allclose(ops.to_numpy(got), right, atol=64 * ops.finfo(dtype).eps)


@pytest.mark.parametrize("name", GATES)
def test_a_compiled_layer_of_one_unit_computes_the_same(name: str, backend: str) -> None:
    if backend == "torch":
        pytest.skip("torch.compile traces the steps of a gradient for 10 s")
    given = [ops.cast(w, "float32") for w in (X, *weights_of(name, 1))]
    outputs = lambda *given: (getattr(ops, name)(*given)[0], with_gradients(name, *given))
    for got, wanted in zip(*[ops.tree_leaves(f(*given)) for f in (ops.compile(outputs), outputs)], strict=True):
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(wanted), atol=1e-5)


@pytest.mark.parametrize("name", GATES)
def test_empty_batches_and_states(name: str, backend: str) -> None:
    outputs, *last = getattr(ops, name)(X[:0], *weights_of(name))
    assert ops.shape(outputs) == (0, 4, 5)
    assert {ops.shape(state) for state in last} == {(0, 5)}
    assert ops.shape(getattr(ops, name)(X[..., :0], *weights_of(name, 5, 0))[0]) == (2, 4, 5)


@pytest.mark.parametrize("name", GATES)
def test_shapes_that_do_not_fit_are_refused(name: str, backend: str) -> None:
    layer, (wi, wh, bi, _) = getattr(ops, name), weights_of(name)
    for arguments, message in (
        ((X[0], wi, wh), r"sequences of shape \(batch, time, features\), got \(4, 3\)"),
        ((X[:, :0], wi, wh), "sequences of at least one element"),
        ((X, wi[:, :2], wh), rf"weight_ih of shape \({GATES[name]} \* hidden, 3\) for 3 features"),
        ((X, wi, wh[:, :2]), "weight_hh of shape"),
        ((X, wi, wh, bi[:2]), "bias_ih of shape"),
        ((X, wi, wh, None, bi[:2]), "bias_hh of shape"),
        ((X, wi, wh, None, None, np.ones((1, 5))), r"h of shape \(2, 5\)"),
    ):
        with pytest.raises(ShapeError, match=message):
            layer(*arguments)
    with pytest.raises(ShapeError, match=r"h of shape \(1, 2, 5\), \(1, batch, length\), got \(2, 5\)"):
        layer(X, wi, wh, h=np.ones((2, 5)), layer_axis=True)
    if name == "rnn":
        with pytest.raises(ArgumentError, match="activation is 'tanh' or 'relu', not 'gelu'"):
            ops.rnn(X, wi, wh, activation="gelu")
    if name == "lstm":
        with pytest.raises(ShapeError, match=r"c of shape \(2, 5\)"):
            ops.lstm(X, wi, wh, c=np.ones((2, 4)))
        with pytest.raises(ShapeError, match=r"weight_hr of shape \(outputs, 5\)"):
            ops.lstm(X, wi, wh, weight_hr=np.ones((2, 4)))
