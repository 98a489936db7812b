"""`compare` of a model of PyTorch with the same one of Keras, flax and equinox; skipped where these are missing."""

from typing import Any

import numpy as np
import pytest

import emberharmony

torch: Any = pytest.importorskip("torch", reason="the models are compared with one of PyTorch")

WIDTH = 6
X = np.random.default_rng(0).normal(size=(4, WIDTH)).astype("float32")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(self.norm(x))))


def host(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach().numpy())


def keras_net(net: Any) -> Any:
    keras: Any = pytest.importorskip("keras")
    backend = keras.backend.backend()
    if backend not in ("torch", "jax"):
        pytest.skip(f"Keras runs on {backend} here, which has no adapter")
    layers = [
        keras.layers.LayerNormalization(epsilon=1e-5, name="norm"),
        keras.layers.Dense(2 * WIDTH, activation="relu", name="up"),
        keras.layers.Dense(3, name="down"),
    ]
    model = keras.Sequential([keras.Input((WIDTH,)), *layers])
    for layer, source in zip(layers, (net.norm, net.up, net.down), strict=True):
        layer.set_weights([host(source.weight).T, host(source.bias)])
    return model, layers[0]


def flax_net(net: Any) -> Any:
    nnx: Any = pytest.importorskip("flax.nnx", reason="flax is not installed")
    import jax

    streams = nnx.Rngs(0)

    class FlaxNet(nnx.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.norm = nnx.LayerNorm(WIDTH, epsilon=1e-5, rngs=streams)
            self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=streams)
            self.down = nnx.Linear(2 * WIDTH, 3, rngs=streams)

        def __call__(self, x: Any) -> Any:
            return self.down(jax.nn.relu(self.up(self.norm(x))))

    model = FlaxNet()
    for layer, source in ((model.norm, net.norm), (model.up, net.up), (model.down, net.down)):
        (layer.scale if layer is model.norm else layer.kernel)[...] = host(source.weight).T
        layer.bias[...] = host(source.bias)
    return model, model.norm


def equinox_net(net: Any) -> Any:
    equinox: Any = pytest.importorskip("equinox")
    import jax

    key = jax.random.PRNGKey(0)

    class EquinoxNet(equinox.Module):  # type: ignore[misc]
        norm: Any
        up: Any
        down: Any

        def __init__(self) -> None:
            self.norm = equinox.nn.LayerNorm(WIDTH)
            self.up = equinox.nn.Linear(WIDTH, 2 * WIDTH, key=key)
            self.down = equinox.nn.Linear(2 * WIDTH, 3, key=key)

        def __call__(self, x: Any) -> Any:
            return self.down(jax.nn.relu(self.up(self.norm(x))))

    model = EquinoxNet()
    for layer, source in ((model.norm, net.norm), (model.up, net.up), (model.down, net.down)):
        object.__setattr__(layer, "weight", jax.numpy.asarray(host(source.weight)))
        object.__setattr__(layer, "bias", jax.numpy.asarray(host(source.bias)))
    return jax.vmap(model), model.norm


@pytest.mark.parametrize("build", [keras_net, flax_net, equinox_net])
def test_the_same_model_is_not_accused_and_a_wrong_epsilon_is_named(build: Any) -> None:
    torch.manual_seed(0)
    net = Net().eval()
    model, norm = build(net)
    right = emberharmony.compare(net, model, X, stop="all", gradients=True)
    assert right.ok, right.table()
    object.__setattr__(norm, "eps" if build is equinox_net else "epsilon", 0.1)
    wrong = emberharmony.compare(net, model, X)
    assert wrong.first is not None
    assert "norm" in wrong.first.path, wrong.table()
