"""Low-rank adaptation on every backend."""

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, require_close

X = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")


def test_the_layer_follows_the_formula(backend: str) -> None:
    layer = nn.LoRALinear(3, 4, rank=2, alpha=6.0)
    start = ops.to_numpy(nn.Linear.__call__(layer, X))
    require_close(layer(X), start, 0.0, "at first")
    state = layer.state_dict(host=True)
    state["lora_b.weight"] = np.random.default_rng(1).standard_normal((4, 2)).astype("float32")
    layer.load_state_dict(state)
    correction = 3.0 * X.astype("float64") @ state["lora_a.weight"].T @ state["lora_b.weight"].T
    require_close(layer(X), start + correction, 2e-6, "LoRALinear")
    require_close(layer.merged()(X), start + correction, 2e-6, "merged")
    assert layer.merged().weight.trainable
    assert not layer.weight.trainable


@pytest.mark.parametrize("bias", [True, False])
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, bias: bool) -> None:
    require_behaviours(backend, Case("LoRALinear", (3, 4), (X,), {"bias": bias, "rank": 2}))


def test_only_the_correction_is_trained_and_sees_the_dropout(backend: str) -> None:
    base = nn.Linear(3, 4, bias=False)
    layer = nn.LoRALinear.from_linear(base, rank=2, dropout=0.5, rng=ops.random.Generator(0))
    layer.lora_b.weight.value = ops.ones((4, 2))
    assert layer.weight is base.weight
    gradients = nn.value_and_grad(layer, lambda: ops.sum(ops.square(layer(X))))()[1]
    assert set(gradients) == {"lora_a.weight", "lora_b.weight"}
    first, second = ops.to_numpy(layer(X)), ops.to_numpy(layer(X))
    assert not np.array_equal(first, second)
    layer.eval()
    require_close(layer(X), ops.to_numpy(layer.merged()(X)), 2e-6, "after eval")
    assert repr(layer).startswith("LoRALinear(\n  3, 4, bias=False, rank=2")


def test_a_model_gets_corrections_by_pattern(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    right = ops.to_numpy(net(X))
    assert nn.add_lora(net, "0", "2.*", rank=2) is net
    require_close(net(X), right, 1e-7, "at first")
    assert [type(part).__name__ for part in net[2]] == ["LoRALinear", "LoRALinear"]
    assert all("lora_" in name for name, _ in net.named_parameters(trainable=True))
    assert len(net.parameters(trainable=True)) == 6
    assert len(nn.add_lora(nn.Sequential(nn.Linear(2, 2), nn.PReLU())).parameters(trainable=True)) == 2


def test_wrong_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="rank must be at least 1, got 0"):
        nn.LoRALinear(3, 4, rank=0)
    with pytest.raises(ArgumentError, match="p must be a probability from 0 to 1, got 2"):
        nn.LoRALinear(3, 4, dropout=2.0)
    with pytest.raises(ArgumentError, match=r"Sequential has no linear layer 'heads\.\*'; it has 0"):
        nn.add_lora(nn.Sequential(nn.Linear(3, 4)), "heads.*")
