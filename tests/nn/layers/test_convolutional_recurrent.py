"""Recurrent layers of images on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import FORWARD, GRADIENT, Case, dtypes_of, require_close

torch: Any = pytest.importorskip("torch")

SHAPE = (3, 2, 4, 7, 6)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stride": 2},
    {"padding": 1},
    {"padding": "same", "dilation": 2},
    {"padding": (1, 0), "bias": False},
    {"padding": 2, "stride": (2, 1), "batch_first": True},
    {"kernel_size": (1, 3)},
    {"kernel_size": 2, "padding": 1},
]


def _right(layer: Any, x: Any, states: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns outputs and states in float64 by the functions of torch, and the weights that they were made of."""
    weights = {
        name: torch.tensor(w.astype("float64"), requires_grad=True) for name, w in layer.state_dict(host=True).items()
    }
    keys = ("stride", "padding", "dilation")
    kept = {key: options[key] for key in keys if key in options}
    h, c = states
    found = []
    for each in x:
        product = torch.nn.functional.conv2d(each, weights["conv_ih.weight"], weights.get("conv_ih.bias"), **kept)
        h = product.new_zeros(len(product), 5, *product.shape[2:]) if h is None else h
        c = torch.zeros_like(h) if c is None else c
        # torch warns about an even kernel with padding "same", so the zeros are added before.
        size = weights["conv_hh.weight"].shape[2:]
        around = [n for k in reversed(size) for n in ((k - 1) // 2, k // 2)]
        gates = product + torch.nn.functional.conv2d(torch.nn.functional.pad(h, around), weights["conv_hh.weight"])
        enter, forget, new, leave = gates.split(5, 1)
        c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
        h = leave.sigmoid() * c.tanh()
        found.append(h)
    return (torch.stack(found), h, c), weights


def _moved(x: Any, data_format: str) -> Any:
    return np.moveaxis(x, -3, -1) if data_format == "channels_last" else x


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
def test_outputs_and_gradients_are_those_of_the_formula(backend: str, options: Any, data_format: Any) -> None:
    draw = np.random.default_rng(0)
    for dtype in dtypes_of(backend):
        layer = nn.ConvLSTM2d(4, 5, **{"kernel_size": 3, **options}, data_format=data_format, dtype=dtype)
        x = draw.standard_normal(SHAPE).astype(dtype)
        leaf = torch.tensor(x.astype("float64"), requires_grad=True)
        right, weights = _right(layer, leaf, (None, None), options)
        cotangents = [draw.standard_normal(tuple(y.shape)) for y in right]
        sum((y * torch.tensor(c)).sum() for y, c in zip(right, cotangents, strict=True)).backward()

        def arranged(y: Any, options: Any = options) -> Any:
            y = _moved(y, data_format)
            return np.swapaxes(y, 0, 1) if options.get("batch_first") and y.ndim == 5 else y

        given = ops.convert_to_tensor(np.ascontiguousarray(arranged(x)))
        outputs, states = layer(given)
        for found, y in zip((outputs, *states), right, strict=True):
            require_close(found, arranged(y.detach().numpy()), FORWARD[dtype], "outputs")

        def loss(z: Any, values: Any, layer: Any = layer, cotangents: Any = cotangents, dtype: str = dtype) -> Any:
            outputs, states = nn.functional_call(layer, values, z)
            pairs = zip((outputs, *states), cotangents, strict=True)
            return sum(ops.sum(ops.multiply(y, ops.cast(arranged(c), dtype))) for y, c in pairs)

        by_input, by_weights = ops.grad(loss, (0, 1))(given, layer.state_dict())
        require_close(by_input, arranged(leaf.grad.numpy()), GRADIENT[dtype], "gradient by the input")
        for name, weight in weights.items():
            require_close(by_weights[name], weight.grad.numpy(), GRADIENT[dtype], f"gradient by {name}")


def test_the_layer_continues_from_the_states_it_returned(backend: str) -> None:
    layer = nn.ConvLSTM2d(4, 5, 3, padding=1)
    x = ops.random.normal(SHAPE)
    whole, (_, c) = layer(x)
    _, between = layer(x[:2])
    rest, (_, end) = layer(x[2:], between)
    np.testing.assert_allclose(ops.to_numpy(rest), ops.to_numpy(whole[2:]), atol=2e-6)
    np.testing.assert_allclose(ops.to_numpy(end), ops.to_numpy(c), atol=2e-6)
    alone, (h, _) = layer(x[:, 0])
    np.testing.assert_allclose(ops.to_numpy(alone), ops.to_numpy(whole[:, 0]), atol=2e-6)
    again, _ = layer(x[:, 0], (h, h))
    assert tuple(again.shape) == (3, 5, 7, 6)


def test_wrong_inputs_and_options_are_refused(backend: str) -> None:
    layer = nn.ConvLSTM2d(4, 5, 3)
    with pytest.raises(ShapeError, match=r"of 5 axes with time and batch.*got shape \(4, 7, 6\) \(in ConvLSTM2d\)"):
        layer(ops.zeros((4, 7, 6)))
    with pytest.raises(ShapeError, match="at least one time step"):
        layer(ops.zeros((0, 2, 4, 7, 6)))
    with pytest.raises(ShapeError, match=r"expected 4 channels.*in conv_ih of ConvLSTM2d"):
        layer(ops.zeros((3, 2, 5, 7, 6)))
    with pytest.raises(ShapeError, match=r"expected the state of shape \(2, 5, 5, 4\), got \(2, 5, 7, 6\)"):
        layer(ops.zeros(SHAPE), (ops.zeros((2, 5, 7, 6)), ops.zeros((2, 5, 7, 6))))
    with pytest.raises(ArgumentTypeError, match="hx must be a pair"):
        layer(ops.zeros(SHAPE), 3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="needs stride 1"):
        nn.ConvLSTM2d(4, 5, 3, stride=2, padding="same")


def test_the_layer_behaves_as_layers(backend: str) -> None:
    require_behaviours(backend, Case("ConvLSTM2d", (2, 3, 3), ((2, 2, 2, 4, 4),), {"padding": 1}))
