"""Embeddings on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, EmberError, IndexOutOfBoundsError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch, torch

PAIRS = np.array([[1, 2, 4, 5], [4, 3, 2, 1]])
REPEATED = np.array([[1, 1, 4], [4, 1, 0]])
FLAT, STARTS = np.array([1, 2, 4, 5, 4, 3, 2, 1]), np.array([0, 3, 3, 6])
ENDS = np.array([0, 3, 3, 8])
BAG: list[tuple[Any, ...]] = [
    (FLAT, STARTS),
    (PAIRS,),
    (REPEATED.ravel(), np.array([0, 4])),
]
CASES = [
    Case("Embedding", (6, 3), (PAIRS,)),
    Case("Embedding", (6, 3), (np.array(4),)),
    Case("Embedding", (6, 3), (np.zeros((0, 2), "int64"),)),
    Case("Embedding", (6, 3, 1), (REPEATED,)),
    Case("Embedding", (6, 3), (REPEATED,), {"padding_idx": -2}),
    Case("Embedding", (6, 3), (REPEATED,), {"scale_grad_by_freq": True}),
    Case("Embedding", (6, 3), (REPEATED,), {"scale_grad_by_freq": True, "padding_idx": 0}),
    *(Case("EmbeddingBag", (6, 3), inputs, {"mode": mode}) for mode in ("sum", "mean", "max") for inputs in BAG),
    *(Case("EmbeddingBag", (6, 3), (PAIRS,), {"mode": m, "padding_idx": 4}) for m in ("sum", "mean", "max")),
    *(Case("EmbeddingBag", (6, 3), (FLAT, STARTS), {"mode": m, "padding_idx": -5}) for m in ("sum", "mean", "max")),
    *(
        Case("EmbeddingBag", (6, 3), (np.array([4, 4, 1]), np.array([0, 2])), {"mode": mode, "padding_idx": 4})
        for mode in ("sum", "mean", "max")
    ),
    Case("EmbeddingBag", (6, 3), (FLAT, ENDS), {"include_last_offset": True}),
    Case("EmbeddingBag", (6, 3), (FLAT, STARTS, (8,)), {"mode": "sum"}),
    Case("EmbeddingBag", (6, 3), (FLAT, STARTS, (8,)), {"mode": "sum", "padding_idx": 2}),
    Case("EmbeddingBag", (6, 3), (FLAT, ENDS, (8,)), {"mode": "sum", "include_last_offset": True}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[6], CASES[8], CASES[14]], ids=str)
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, case: Case) -> None:
    require_behaviours(backend, case)


def gradient(layer: nn.Module, *inputs: Any) -> np.ndarray:
    ops.backward(lambda: ops.sum(ops.square(layer(*inputs))), layer)
    return np.asarray(ops.to_numpy(next(iter(layer.parameters())).grad))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_can_be_divided_by_how_often_an_index_occurs(backend: str, mode: str) -> None:
    # PyTorch 2.13 is no oracle: on the CPU it divides by how often another index occurs.
    for inputs in ((REPEATED,), (FLAT, STARTS)):
        plain = nn.EmbeddingBag(6, 3, mode=mode, rng=ops.random.Generator(0))
        scaled = nn.EmbeddingBag(6, 3, mode=mode, rng=ops.random.Generator(0), scale_grad_by_freq=True)
        times = np.maximum(np.bincount(inputs[0].ravel(), minlength=6), 1)
        require_close(gradient(scaled, *inputs), gradient(plain, *inputs) / times[:, None], 2e-6, mode)


def test_factors_of_rows_are_for_bags_of_equal_length_too(backend: str) -> None:
    theirs, ours = torch.nn.EmbeddingBag(6, 3, mode="sum").double(), nn.EmbeddingBag(6, 3, mode="sum")
    ours.load_state_dict(theirs.state_dict())
    weights = np.random.default_rng(0).standard_normal(PAIRS.shape)
    right = theirs(torch.tensor(PAIRS), per_sample_weights=torch.tensor(weights)).detach().numpy()
    require_close(ours(PAIRS, per_sample_weights=weights.astype("float32")), right, 2e-6, "EmbeddingBag")


def test_empty_bags_give_zeros(backend: str) -> None:
    for mode in ("sum", "mean", "max"):
        layer = nn.EmbeddingBag(4, 2, mode=mode)
        assert layer(ops.zeros((3, 0), "int64")).tolist() == [[0.0, 0.0]] * 3
        assert layer(ops.zeros((0,), "int64"), [0, 0]).tolist() == [[0.0, 0.0]] * 2
        assert layer(ops.zeros((0, 2), "int64")).tolist() == []


def test_initial_values_are_normal_equal_on_every_backend_and_zeros_for_padding(backend: str) -> None:
    layer = nn.Embedding(200, 50, 7, rng=ops.random.Generator(3))
    found = ops.to_numpy(layer.weight.value)
    with ops.use_backend("numpy"):
        assert nn.Embedding(200, 50, 7, rng=ops.random.Generator(3)).weight.value.tolist() == found.tolist()
    assert not found[7].any()
    assert abs(found.mean()) < 0.05
    assert abs(found.std() - 1) < 0.05


def test_a_head_can_share_the_table(backend: str) -> None:
    layer, x = nn.Embedding(5, 3), np.random.default_rng(0).standard_normal((2, 3)).astype("float32")
    require_close(layer.as_linear(x), x @ ops.to_numpy(layer.weight.value).T, 2e-6, "as_linear")
    ops.backward(lambda: ops.sum(layer.as_linear(layer([1, 2]))), layer)
    assert tuple(layer.weight.grad.shape) == (5, 3)


def test_a_given_table_is_frozen_unless_asked_otherwise(backend: str) -> None:
    table = np.arange(6.0, dtype="float32").reshape(3, 2)
    layer = nn.Embedding.from_pretrained(table, padding_idx=0)
    assert layer.parameters(trainable=True) == []
    assert layer([0, 2]).tolist() == [[0.0, 1.0], [4.0, 5.0]]
    assert repr(layer) == "Embedding(3, 2, padding_idx=0)"
    assert len(nn.Embedding.from_pretrained(table, freeze=False).parameters(trainable=True)) == 1
    with pytest.raises(ShapeError, match=r"expected a table .*got shape \(3,\)"):
        nn.Embedding.from_pretrained([1.0, 2.0, 3.0])


def test_an_index_out_of_range_names_the_layer(backend: str) -> None:
    net = nn.Sequential(nn.Identity(), nn.Embedding(3, 2))
    with pytest.raises(IndexOutOfBoundsError, match="in 1 of Sequential, an Embedding"), ops.checked():
        net(ops.convert_to_tensor([0, 3]))
    with pytest.raises(IndexOutOfBoundsError, match="in Embedding"):
        nn.Embedding(3, 2)([0, -4])
    assert nn.Embedding(3, 2)([-1]).shape == (1, 2)  # indices from the end are those of ops.embedding


def test_wrong_options_and_inputs_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="padding_idx must be less than num_embeddings 3, got 3"):
        nn.Embedding(3, 2, 3)
    with pytest.raises(ArgumentError, match="padding_idx must be at least -3, got -4"):
        nn.Embedding(3, 2, -4)
    with pytest.raises(ArgumentTypeError, match="num_embeddings must be an integer"):
        nn.Embedding(None, 2)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mode must be one of 'sum', 'mean', 'max', got 'avg'"):
        nn.EmbeddingBag(3, 2, mode="avg")
    with pytest.raises(ArgumentError, match="scale_grad_by_freq is for the modes"):
        nn.EmbeddingBag(3, 2, mode="max", scale_grad_by_freq=True)
    layer = nn.EmbeddingBag(3, 2)
    with pytest.raises(ShapeError, match=r"expected indices \(bags, length\), or .*got shape \(3,\) \(in EmbeddingBag"):
        layer([0, 1, 2])
    with pytest.raises(ShapeError, match=r"expected indices \(n,\) and offsets .*\(1, 2\) and \(1,\)"):
        layer([[0, 1]], [0])
    with pytest.raises(ArgumentError, match="per_sample_weights are for the mode 'sum', not 'mean'"):
        layer([[0, 1]], per_sample_weights=[[1.0, 2.0]])
    with pytest.raises(ShapeError, match=r"per_sample_weights of shape \(1, 2\), got \(2,\)"):
        nn.EmbeddingBag(3, 2, mode="sum")([[0, 1]], per_sample_weights=[1.0, 2.0])
    with pytest.raises(EmberError, match="in Embedding"):
        nn.Embedding(3, 2)(ops.convert_to_tensor([0.5]))
