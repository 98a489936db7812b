"""Parametrized tensors on every backend."""

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import TensorSpec, nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError
from tests.nn.behaviours import quick_compiler
from tests.nn.oracle import FORWARD, GRADIENT, dtypes_of, require_close, torch

LAYERS: dict[str, tuple[Any, ...]] = {"Linear": (3, 4), "Bilinear": (3, 3, 2), "Embedding": (5, 3), "Conv2d": (3, 4, 2)}
LAYERS |= {"ConvTranspose1d": (3, 4, 2), "LSTM": (3, 2)}
OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("weight_norm", "Linear", {}),
    ("weight_norm", "Linear", {"dim": 1}),
    ("weight_norm", "Linear", {"dim": None}),
    ("weight_norm", "Linear", {"dim": -1}),
    ("weight_norm", "Bilinear", {}),
    ("weight_norm", "Bilinear", {"dim": 2}),
    ("weight_norm", "Embedding", {}),
    ("weight_norm", "Linear", {"name": "bias", "dim": None}),
    ("weight_norm", "Conv2d", {}),
    ("weight_norm", "LSTM", {"name": "weight_hh_l0"}),
    ("spectral_norm", "Linear", {}),
    ("spectral_norm", "Linear", {"n_power_iterations": 3}),
    ("spectral_norm", "Linear", {"dim": 1, "eps": 1e-6}),
    ("spectral_norm", "Bilinear", {}),
    ("spectral_norm", "Bilinear", {"dim": -1}),
    ("spectral_norm", "Linear", {"name": "bias"}),
    ("spectral_norm", "Conv2d", {}),
    ("spectral_norm", "ConvTranspose1d", {}),
    ("spectral_norm", "ConvTranspose1d", {"dim": 0}),
]


def inputs(name: str) -> list[Any]:
    draw = np.random.default_rng(0)
    if name == "Embedding":
        return [np.array([1, 4, 1])]
    shape = {"Conv2d": (2, 3, 4, 4), "ConvTranspose1d": (2, 3, 4), "LSTM": (5, 2, 3)}.get(name, (2, 3))
    return [draw.standard_normal(shape).astype("float32") for _ in range(1 + (name == "Bilinear"))]


def first(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple) else outputs


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "name", "options"), OPTIONS)
@pytest.mark.parametrize("train", [True, False])
def test_they_compute_what_those_of_torch_do(
    backend: str, kind: str, name: str, options: dict[str, Any], train: bool
) -> None:
    for dtype in dtypes_of(backend):
        theirs = getattr(torch.nn, name)(*LAYERS[name]).to(getattr(torch, dtype))
        theirs = getattr(torch.nn.utils.parametrizations, kind)(theirs, **options).train(train)
        ours = getattr(nn.parametrize, kind)(getattr(nn, name)(*LAYERS[name]), **options).train(train).to(dtype=dtype)
        ours.load_state_dict(theirs.state_dict())
        assert list(ours.state_dict()) == list(theirs.state_dict())
        theirs = theirs.double()
        given = [x.astype(dtype) if x.dtype.kind == "f" else x for x in inputs(name)]
        right = first(theirs(*(torch.tensor(x.astype("float64") if x.dtype.kind == "f" else x) for x in given)))
        right.sin().sum().backward()
        found: list[Any] = []

        def loss(ours: Any = ours, found: list[Any] = found, given: Any = given) -> Any:
            output = first(ours(*map(ops.convert_to_tensor, given)))
            found[:] = [ops.stop_gradient(output)]
            return ops.sum(ops.sin(output))

        ops.backward(loss, ours)
        require_close(found[0], right.detach().numpy(), FORWARD[dtype], "output")
        for key, parameter in theirs.named_parameters():
            grad = dict(ours.named_parameters())[key].grad
            require_close(grad, parameter.grad.numpy(), GRADIENT[dtype], f"gradient by {key}")
        for key, buffer in theirs.named_buffers():
            require_close(ours.state_dict()[key], buffer.numpy(), 2 * FORWARD[dtype], f"buffer {key}")


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_the_parameters_are_those_of_torch(kind: str) -> None:
    theirs = inspect.signature(getattr(torch.nn.utils.parametrizations, kind)).parameters
    ours = dict(inspect.signature(getattr(nn.parametrize, kind)).parameters)
    ours.pop("rng", None)
    assert {name: each.default for name, each in ours.items()} == {name: each.default for name, each in theirs.items()}


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_layers_keep_working_in_copies_transforms_and_on_other_backends(backend: str, kind: str) -> None:
    layer = getattr(nn.parametrize, kind)(nn.Linear(3, 2)).eval()
    x = ops.convert_to_tensor(inputs("Linear")[0])
    right = ops.to_numpy(layer(x))
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(copied) is type(layer)
        assert repr(copied) == repr(layer)
        assert ops.to_numpy(copied(x)).tolist() == right.tolist()
        assert not {id(cell) for cell in copied.parameters()} & {id(cell) for cell in layer.parameters()}
    with ops.use_backend("numpy"):
        require_close(layer(inputs("Linear")[0]), right, 2e-6, "on NumPy")
    require_close(ops.vmap(layer)(x), right, 2e-6, "vmap")
    require_close(ops.checkpoint(layer)(x), right, 2e-6, "checkpoint")
    with quick_compiler(backend):
        require_close(ops.compile(layer)(x), right, 2e-6, "compile")
    assert tuple(ops.eval_shape(layer, TensorSpec((5, 3))).shape) == (5, 2)
    structure, parameters, buffers = nn.split(layer)
    require_close(nn.merge(structure, parameters, buffers)(x), right, 2e-6, "merge")
    assert ops.dtype(layer.to(dtype="float16")(ops.cast(x, "float16"))).name == "float16"


def test_spectral_norm_approaches_the_largest_singular_value(backend: str) -> None:
    layer = nn.Linear(20, 10, rng=ops.random.Generator(0))
    largest = float(np.linalg.svd(ops.to_numpy(layer.weight.value), compute_uv=False)[0])
    weight = ops.to_numpy(layer.weight.value)
    nn.parametrize.spectral_norm(layer, n_power_iterations=50, rng=ops.random.Generator(1))
    require_close(layer.weight.value, weight / largest, 1e-3, "weight")
    layer.eval()
    before = layer.state_dict(host=True)
    layer(ops.zeros((1, 20)))
    for name, value in layer.state_dict(host=True).items():
        np.testing.assert_array_equal(value, before[name])


def test_parametrizations_can_be_stacked_and_removed(backend: str) -> None:
    layer = nn.Linear(3, 3)
    weight = layer.weight
    nn.parametrize.register(layer, "weight", nn.Lambda(ops.triu))
    nn.parametrize.register(layer, "weight", nn.Lambda(ops.negative))
    nn.parametrize.weight_norm(layer, "bias", None)
    assert nn.parametrize.is_parametrized(layer)
    assert not nn.parametrize.is_parametrized(layer, "other")
    wanted = -np.triu(ops.to_numpy(weight.value))
    require_close(layer.weight, wanted, 0.0, "weight")
    assert [name for name, _ in layer.named_parameters()] == [
        "parametrizations.weight.original",
        "parametrizations.bias.original0",
        "parametrizations.bias.original1",
    ]
    assert "(parametrizations.weight): ParametrizationList(" in repr(layer)
    nn.parametrize.remove(layer, "weight")
    assert nn.parametrize.is_parametrized(layer, "bias")
    nn.parametrize.remove(layer, "bias")
    assert type(layer) is nn.Linear
    assert any(parameter is layer.weight for parameter in layer.parameters())
    require_close(layer.weight, wanted, 0.0, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_training_moves_the_originals(backend: str) -> None:
    layer = nn.parametrize.weight_norm(nn.Linear(3, 2))
    assert nn.parametrize.weight_norm(nn.Linear(3, 2).freeze("weight")).parameters(trainable=True)[0].value.shape == (
        2,
    )
    loss, gradients = nn.value_and_grad(layer, lambda x: ops.sum(ops.square(layer(x))))(inputs("Linear")[0])
    assert set(gradients) == {"bias", "parametrizations.weight.original0", "parametrizations.weight.original1"}
    assert float(loss) > 0


def test_wrong_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match=r"Linear has no parameter 'wieght'.*did you mean 'weight'"):
        nn.parametrize.weight_norm(nn.Linear(2, 2), "wieght")
    with pytest.raises(ArgumentError, match="Linear has no parameter 'kernel'"):
        nn.parametrize.spectral_norm(nn.Linear(2, 2), "kernel")
    with pytest.raises(ArgumentTypeError, match="register\\(\\) takes a module"):
        nn.parametrize.register(nn.Linear(2, 2), "weight", ops.triu)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Linear has no computed parameter 'weight'"):
        nn.parametrize.remove(nn.Linear(2, 2), "weight")
    with pytest.raises(ArgumentError, match="dim must be an axis of the weight, from -2 to 1, got 2"):
        nn.parametrize.spectral_norm(nn.Linear(2, 2), dim=2)
    with pytest.raises(ArgumentError, match="n_power_iterations must be at least 1, got 0"):
        nn.parametrize.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
