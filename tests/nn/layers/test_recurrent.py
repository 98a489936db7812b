"""Recurrent layers on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_like_torch

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")  # of torch, about its own speed

SEQUENCE, BATCH_FIRST, SINGLE = (5, 2, 3), (2, 5, 3), (5, 3)
KINDS = ("RNN", "GRU", "LSTM")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"num_layers": 2},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "bias": False},
]

CASES = [
    *(Case(kind, (3, 4), (SEQUENCE,), options) for kind in KINDS for options in OPTIONS),
    *(Case(kind, (3, 4), (BATCH_FIRST,), {"batch_first": True, "num_layers": 2}) for kind in KINDS),
    *(Case(kind, (3, 4), (SINGLE,), {"bidirectional": True}) for kind in KINDS),
    *(Case(kind, (3, 4), (SEQUENCE,), {"dropout": 0.5, "num_layers": 2}, train=False) for kind in KINDS),
    *(Case(kind, (3, 4), (SEQUENCE, (4, 2, 4)), {"num_layers": 2, "bidirectional": True}) for kind in KINDS[:2]),
    *(Case(kind, (3, 4), (SINGLE, (1, 4)), {}) for kind in KINDS[:2]),
    *(Case(kind, (1, 1), ((1, 1, 1),), {}) for kind in KINDS),
    *(Case(kind, (3, 1), ((2, batch, 3),), {"bidirectional": True}) for kind in KINDS for batch in (2, 3, 4)),
    Case("LSTM", (3, 2), ((3, 4, 3),), {"proj_size": 1, "num_layers": 2, "batch_first": True}),
    Case("RNN", (3, 4), (SEQUENCE,), {"nonlinearity": "relu", "num_layers": 2}),
    Case("RNN", (3, 4, 2, "relu"), (SEQUENCE,)),
    Case("LSTM", (3, 4), (SEQUENCE,), {"proj_size": 2}),
    Case("LSTM", (3, 4), (SEQUENCE,), {"proj_size": 2, "num_layers": 2, "bidirectional": True, "bias": False}),
    *(Case(f"{kind}Cell", (3, 4), ((2, 3),), options) for kind in KINDS for options in OPTIONS[:2]),
    *(Case(f"{kind}Cell", (3, 4), ((3,),)) for kind in KINDS),
    *(Case(f"{kind}Cell", (3, 4), ((2, 3), (2, 4))) for kind in KINDS[:2]),
    Case("RNNCell", (3, 4), ((2, 3), (2, 4)), {"nonlinearity": "relu"}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


def test_an_lstm_continues_from_the_states_it_returned(backend: str) -> None:
    for options, widths in (({"num_layers": 2}, (4, 4)), ({"proj_size": 2, "bidirectional": True}, (2, 4))):
        theirs = torch.nn.LSTM(3, 4, **options).double()
        ours = nn.LSTM(3, 4, **options)
        ours.load_state_dict(theirs.float().state_dict())
        theirs = theirs.double()
        x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype("float32")
        states = [np.random.default_rng(1).standard_normal((2, 2, n)).astype("float32") for n in widths]
        right, (h, c) = theirs(torch.tensor(x).double(), tuple(torch.tensor(s).double() for s in states))
        found, (our_h, our_c) = ours(x, tuple(map(ops.convert_to_tensor, states)))
        for mine, wanted in ((found, right), (our_h, h), (our_c, c)):
            np.testing.assert_allclose(ops.to_numpy(mine), wanted.detach().numpy(), atol=2e-6)
        if not options.get("bidirectional"):
            first, between = ours(x[:2])
            second, last = ours(x[2:], between)
            whole, end = ours(x)
            np.testing.assert_allclose(ops.to_numpy(ops.concatenate([first, second])), ops.to_numpy(whole), atol=2e-6)
            np.testing.assert_allclose(ops.to_numpy(last[1]), ops.to_numpy(end[1]), atol=2e-6)


def test_an_lstm_cell_computes_the_steps_of_an_lstm(backend: str) -> None:
    layer, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    cell.load_state_dict(layer.state_dict(), rename=lambda name: name.removesuffix("_l0"))
    x = ops.random.normal((5, 2, 3))
    outputs, (_, c) = layer(x)
    states = None
    for t in range(5):
        states = cell(x[t], states)
        np.testing.assert_allclose(ops.to_numpy(states[0]), ops.to_numpy(outputs[t]), atol=2e-6)
    assert states is not None
    np.testing.assert_allclose(ops.to_numpy(states[1]), ops.to_numpy(c[0]), atol=2e-6)


def test_dropout_between_layers_is_equal_on_every_backend_and_absent_in_use(backend: str) -> None:
    def outputs() -> Any:
        layer = nn.GRU(3, 8, 2, dropout=0.5, rng=nn.Rngs(3))
        x = ops.ones((4, 2, 3))
        return [ops.to_numpy(layer(x)[0]), ops.to_numpy(layer(x)[0]), ops.to_numpy(layer.eval()(x)[0])]

    found = outputs()
    with ops.use_backend("numpy"):
        right = outputs()
    for mine, wanted in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, wanted, atol=2e-6)
    assert abs(found[0] - found[1]).max() > 1e-3
    assert abs(found[0] - found[2]).max() > 1e-3


def test_bidirectional_equals_the_option_of_the_layers(backend: str) -> None:
    whole = nn.GRU(3, 4, bidirectional=True, batch_first=True)
    both = nn.Bidirectional(nn.GRU(3, 4, batch_first=True), nn.GRU(3, 4, batch_first=True))
    names = {
        f"{name}{suffix}": f"{part}.{name}"
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        for suffix, part in (("", "forward_layer"), ("_reverse", "backward_layer"))
    }
    both.load_state_dict(whole.state_dict(), rename=names.__getitem__)
    x = ops.random.normal((2, 5, 3))
    right, states = whole(x)
    found, (last, first) = both(x)
    np.testing.assert_allclose(ops.to_numpy(found), ops.to_numpy(right), atol=2e-6)
    np.testing.assert_allclose(ops.to_numpy(ops.concatenate([last, first])), ops.to_numpy(states), atol=2e-6)
    again, _ = both(x, (last, first))
    np.testing.assert_allclose(ops.to_numpy(again), ops.to_numpy(whole(x, states)[0]), atol=2e-6)
    one, other = np.split(ops.to_numpy(right), 2, -1)
    for merge, wanted in (("sum", one + other), ("mul", one * other), ("ave", (one + other) / 2)):
        both.merge = merge
        np.testing.assert_allclose(ops.to_numpy(both(x)[0]), wanted, atol=2e-6)
    both.merge = None
    np.testing.assert_allclose(ops.to_numpy(both(x)[0][1]), other, atol=2e-6)


def test_wrong_inputs_name_the_layer_and_the_shape_that_fits(backend: str) -> None:
    net = nn.Sequential(nn.Linear(2, 5), nn.RNN(3, 4))
    with pytest.raises(ShapeError, match=r"shape \(time, batch, 3\) or \(time, 3\), got \(7, 2, 5\) \(in 1 of Seq"):
        net(ops.zeros((7, 2, 2)))
    with pytest.raises(ShapeError, match=r"shape \(batch, time, 3\).*got \(3,\)"):
        nn.GRU(3, 4, batch_first=True)(ops.zeros((3,)))
    with pytest.raises(ShapeError, match=r"at least one element, got length 0 \(in GRU\)"):
        nn.GRU(3, 4)(ops.zeros((0, 2, 3)))
    with pytest.raises(ShapeError, match=r"expected the state of shape \(1, 2, 4\).*got \(2, 2, 4\)"):
        nn.GRU(3, 4)(ops.zeros((5, 2, 3)), ops.zeros((2, 2, 4)))
    with pytest.raises(ShapeError, match=r"expected the cell state of shape \(1, 2, 4\).*got \(1, 2, 2\)"):
        nn.LSTM(3, 4, proj_size=2)(ops.zeros((5, 2, 3)), (ops.zeros((1, 2, 2)), ops.zeros((1, 2, 2))))
    with pytest.raises(ArgumentTypeError, match="hx must be a pair of the state and the cell state"):
        nn.LSTM(3, 4)(ops.zeros((5, 2, 3)), ops.zeros((1, 2, 4)))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"expected hx of shape \(2, 4\).*got \(4,\) \(in GRUCell\)"):
        nn.GRUCell(3, 4)(ops.zeros((2, 3)), ops.zeros((4,)))
    with pytest.raises(ShapeError, match="in RNNCell"):
        nn.RNNCell(3, 4)(ops.zeros((2, 4)))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="hidden_size must be at least 1, got 0"):
        nn.RNN(3, 0)
    with pytest.raises(ArgumentError, match=r"nonlinearity must be one of 'tanh', 'relu', got 'rely'.*relu"):
        nn.RNN(3, 4, nonlinearity="rely")
    with pytest.raises(ArgumentError, match="dropout must be a probability from 0 to 1, got 1"):
        nn.GRU(3, 4, dropout=1.5)
    with pytest.raises(ArgumentError, match="proj_size must be smaller than hidden_size, 4, got 4"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ArgumentError, match="num_layers must be at least 1, got 0"):
        nn.LSTM(3, 4, 0)
    with pytest.raises(ArgumentError, match="must be two layers, got one for both"):
        layer = nn.GRU(3, 4)
        nn.Bidirectional(layer, layer)
    with pytest.raises(ArgumentError, match="merge must be one of"):
        nn.Bidirectional(nn.GRU(3, 4), nn.GRU(3, 4), "cat")  # type: ignore[arg-type]


def test_the_options_are_shown() -> None:
    assert repr(nn.LSTM(3, 4, proj_size=2, bidirectional=True)) == "LSTM(3, 4, bidirectional=True, proj_size=2)"
    assert repr(nn.GRUCell(3, 4, bias=False)) == "GRUCell(3, 4, bias=False)"


BEHAVING = [
    Case("RNN", (3, 4), ((2, 1, 3),), {"batch_first": True}),
    Case("GRU", (3, 4), ((2, 2, 3),), {"bidirectional": True}),
    Case("LSTM", (3, 4), ((2, 2, 3),), {"proj_size": 2}),
    Case("GRUCell", (3, 4), ((2, 3), (2, 4))),
    Case("LSTMCell", (3, 4), ((3,),)),
]


@pytest.mark.parametrize("case", BEHAVING, ids=str)
def test_layers_behave_as_layers(backend: str, case: Case) -> None:
    require_behaviours(backend, case)
