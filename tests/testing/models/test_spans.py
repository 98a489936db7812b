"""Two models of which one has modules that the other has not: what is compared, and which module is named."""

from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import nn, ops
from emberharmony.testing.models.alignment import Side, align
from emberharmony.testing.models.arrays import fits
from emberharmony.testing.models.functions import adapter_of

torch: Any = pytest.importorskip("torch", reason="the models are ones of PyTorch")

X = np.random.default_rng(0).normal(size=(2, 8, 10)).astype("float32")


class Block(torch.nn.Module):
    """A convolution that pads, or one after a layer that pads."""

    def __init__(self, pads: bool, width: int = 8) -> None:
        super().__init__()
        self.pad = torch.nn.ConstantPad1d((1, 1), 0.0) if pads else None
        self.conv = torch.nn.Conv1d(8, 8, 3, padding=0 if pads else 1)
        self.norm = torch.nn.GroupNorm(2, width)

    def forward(self, x: Any) -> Any:
        return x + self.norm(self.conv(x if self.pad is None else self.pad(x)))


class Wrapped(torch.nn.Module):
    """Two linear layers in a module of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(10, 12), torch.nn.Linear(12, 10)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(x)))


class Layer(torch.nn.Module):
    """A residual layer of two linear layers."""

    def __init__(self, wraps: bool) -> None:
        super().__init__()
        self.mlp = Wrapped() if wraps else None
        if not wraps:
            self.up, self.down = torch.nn.Linear(10, 12), torch.nn.Linear(12, 10)

    def forward(self, x: Any) -> Any:
        return x + (self.mlp(x) if self.mlp is not None else self.down(torch.relu(self.up(x))))


class Attention(torch.nn.Module):
    """Queries, keys and values by one layer or by three, with the weights on either axis."""

    def __init__(self, joined: bool, **layers: Any) -> None:
        super().__init__()
        names = ("joined",) if joined else ("q", "k", "v")
        for name in names:
            self.add_module(name, torch.nn.Linear(10, 10 * (3 if joined else 1)))
        self.out = torch.nn.Linear(10, 10)
        self.is_joined = joined

    def forward(self, x: Any) -> Any:
        q, k, v = self.joined(x).split(10, -1) if self.is_joined else (self.q(x), self.k(x), self.v(x))
        return self.out(torch.softmax(q @ k.transpose(1, 2), -1) @ v)


class Transposed(torch.nn.Module):
    """A linear layer whose inputs are on the first axis of the weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.zeros(10, 10)), torch.nn.Parameter(torch.zeros(10))

    def forward(self, x: Any) -> Any:
        return x @ self.weight + self.bias


def stack(*layers: Any) -> Any:
    return torch.nn.Sequential(*layers)


def alike(first: Any, second: Any) -> tuple[Any, Any]:
    """Gives the second model the tensors of the first, which are random."""
    torch.manual_seed(0)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        one.data = torch.randn_like(one) * 0.3
        other.data = one.data.clone()
    return first, second


def test_a_padded_argument_without_a_counterpart_is_no_difference() -> None:
    first, second = alike(stack(*(Block(False) for _ in range(3))), stack(*(Block(True) for _ in range(3))))
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    assert {row.verdict for row in report.rows} <= {"equal", "rounding"}
    second[1].pad.padding = (0, 2)
    wrong = emberharmony.compare(first, second, X).first
    assert (wrong.path, wrong.other, wrong.wrong) == ("Sequential.1.conv", "Sequential.1.pad", "torch (2)")
    assert "padding is another" in wrong.judge
    assert "in Sequential.1.pad, before Sequential.1.conv" in wrong.message


def test_a_norm_of_one_token_is_one_of_all() -> None:
    class Net(torch.nn.Module):
        def __init__(self, early: bool) -> None:
            super().__init__()
            self.norm, self.head, self.early = torch.nn.LayerNorm(10), torch.nn.Linear(10, 3), early

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(x[:, 0]) if self.early else self.norm(x)[:, 0])

    first, second = alike(Net(False), Net(True))
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    assert next(row.verdict for row in report.rows) == "not compared"
    assert "differ by more than rounding" not in report.summary()
    second.norm.eps = 0.1
    assert emberharmony.compare(first, second, X).first.path == "Net.norm"


def test_a_result_of_another_form_is_wrong_if_nothing_after_it_agrees() -> None:
    class Net(torch.nn.Module):
        def __init__(self, keeps: bool) -> None:
            super().__init__()
            self.first, self.last, self.keeps = torch.nn.Linear(10, 10), torch.nn.Linear(10, 3), keeps

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x) if self.keeps else self.first(x)[:, 1:])

    report = emberharmony.compare(*alike(Net(True), Net(False)), X)
    assert (report.first.path, report.first.wrong) == ("Net.last", "torch (2)")
    assert "another form" in report.first.message


def test_the_caller_is_wrong_if_its_values_make_a_module_raise() -> None:
    class Heads(torch.nn.Module):
        def __init__(self, merges: bool) -> None:
            super().__init__()
            self.out, self.merges = torch.nn.Linear(10, 10), merges

        def forward(self, x: Any) -> Any:
            parts = x.reshape(2, 8, 2, 5).transpose(1, 2)
            return self.out((parts.transpose(1, 2) if self.merges else parts).flatten(2))

    report = emberharmony.compare(*alike(stack(Heads(True)), stack(Heads(False))), X)
    assert (report.first.path, report.first.cause, report.first.wrong) == ("Sequential.0", "error", "torch (2)")
    assert "values of another form" in report.first.message


def test_code_of_a_module_without_a_counterpart_is_named() -> None:
    first, second = alike(stack(*(Layer(True) for _ in range(3))), stack(*(Layer(False) for _ in range(3))))
    assert emberharmony.compare(first, second, X, stop="all").ok
    first[1].mlp.forward = lambda x: first[1].mlp.down(torch.tanh(first[1].mlp.up(x)))
    wrong = emberharmony.compare(first, second, X).first
    assert (wrong.path, wrong.wrong) == ("Sequential.1.mlp", "torch (1)"), wrong.message


def test_an_activation_without_a_counterpart_is_named() -> None:
    class Net(torch.nn.Module):
        def __init__(self, gelu: Any) -> None:
            super().__init__()
            self.up, self.act, self.down = torch.nn.Linear(10, 12), gelu, torch.nn.Linear(12, 10)

        def forward(self, x: Any) -> Any:
            return self.down(torch.nn.functional.gelu(self.up(x)) if self.act is None else self.act(self.up(x)))

    first, second = alike(Net(None), Net(torch.nn.GELU()))
    assert emberharmony.compare(first, second, X, stop="all").ok
    second.act.approximate = "tanh"
    assert emberharmony.compare(first, second, X).first.other == "Net.act"


def test_a_module_around_a_layer_is_not_the_layer() -> None:
    class Widening(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(10, 12)

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.gelu(self.dense(x))

    class Net(torch.nn.Module):
        def __init__(self, wraps: bool) -> None:
            super().__init__()
            self.up, self.down = Widening() if wraps else torch.nn.Linear(10, 12), torch.nn.Linear(12, 10)
            self.wraps = wraps

        def forward(self, x: Any) -> Any:
            return self.down(self.up(x) if self.wraps else torch.nn.functional.gelu(self.up(x)))

    first, second = alike(Net(True), Net(False))
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    second.up.bias.data.zero_()
    assert emberharmony.compare(first, second, X).first.path == "Net.up.dense"


def test_tensors_in_another_layout_are_right_if_the_results_are_equal() -> None:
    first, second = alike(stack(torch.nn.Linear(10, 10)), stack(Transposed()))
    second[0].weight.data = first[0].weight.data.T.clone()
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    assert "0.weight is transposed in the other model, and the results are equal" in report.notes
    second[0].weight.data = first[0].weight.data.clone()
    assert not emberharmony.compare(first, second, X).ok


def test_queries_keys_and_values_of_one_layer_are_those_of_three() -> None:
    first, second = stack(Attention(True), Attention(True)), stack(Attention(False), Attention(False))
    torch.manual_seed(0)
    for one, other in zip(first, second, strict=True):
        for name in ("weight", "bias"):
            for part, rows in zip((other.q, other.k, other.v), getattr(one.joined, name).data.split(10), strict=True):
                getattr(part, name).data = rows.clone()
        other.out.load_state_dict(one.out.state_dict())
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    assert not any("correspond to none" in note for note in report.notes), report.notes
    second[1].k.weight.data = second[1].k.weight.data.half().float()
    wrong = emberharmony.compare(first, second, X).first
    assert (wrong.path, wrong.other, wrong.wrong) == ("Sequential.1.joined", "Sequential.1.k", "torch (2)")
    assert "rounded to float16" in wrong.message


def test_modules_of_other_sizes_tell_which_formula_is_odd() -> None:
    class Narrowing(torch.nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.layer, self.factor = torch.nn.Linear(size, size - 1), 2

        def forward(self, x: Any) -> Any:
            return torch.tanh(self.layer(x)) * self.factor

    first, second = alike(stack(*map(Narrowing, (10, 9, 8))), stack(*map(Narrowing, (10, 9, 8))))
    first[1].forward = lambda x: torch.relu(first[1].layer(x))
    wrong = emberharmony.compare(first, second, X).first
    assert (wrong.path, wrong.wrong) == ("Sequential.1", "torch (1)"), wrong.message


def test_half_of_the_bias_of_a_recurrent_layer_that_is_zero_is_odd() -> None:
    mx: Any = pytest.importorskip("mlx.core", reason="MLX has one bias where PyTorch has two")
    from mlx import nn

    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (torch.nn.LSTM(10, 10, batch_first=True) for _ in range(2))

        def forward(self, x: Any) -> Any:
            return self.two(self.one(x)[0])[0]

    class Theirs(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.LSTM(10, 10), nn.LSTM(10, 10)

        def __call__(self, x: Any) -> Any:
            return self.two(self.one(x)[0])[0]

    first, second = Recurrent(), Theirs()
    for name in ("one", "two"):
        layer = getattr(first, name)
        values = {key: tensor.detach().numpy() for key, tensor in layer.named_parameters()}
        theirs = getattr(second, name)
        theirs.Wx, theirs.Wh = mx.array(values["weight_ih_l0"]), mx.array(values["weight_hh_l0"])
        theirs.bias = mx.array(values["bias_ih_l0"] + values["bias_hh_l0"])
    assert emberharmony.compare(first, second, X, stop="all").ok
    first.two.bias_ih_l0.data.zero_()
    wrong = emberharmony.compare(first, second, X).first
    assert (wrong.path, wrong.wrong) == ("Recurrent.two", "torch"), wrong.message


def test_series_with_channels_last_stay_where_a_model_transposes_them_itself() -> None:
    mx: Any = pytest.importorskip("mlx.core", reason="its convolutions have channels on the last axis")
    from mlx import nn

    class ConvFront(torch.nn.Module):
        """Named as a convolution, without tensors of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv1d(10, 4, 3)

        def forward(self, x: Any) -> Any:
            return self.conv(x.transpose(1, 2)).transpose(1, 2)

    class Theirs(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(10, 4, 3)

        def __call__(self, x: Any) -> Any:
            return self.conv(x)

    first, second = ConvFront(), Theirs()
    second.conv.weight = mx.array(np.moveaxis(first.conv.weight.detach().numpy(), 1, -1))
    second.conv.bias = mx.array(first.conv.bias.detach().numpy())
    report = emberharmony.compare(first, second, X, stop="all")
    assert report.ok, report.table()
    assert not any("transposed" in note for note in report.notes)


@pytest.mark.slow
def test_a_deep_model_is_not_accused_of_rounding() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Sequential(nn.LayerNorm(10), nn.Linear(10, 10)) for _ in range(48)]

        def __call__(self, x: Any) -> Any:
            for layer in self.layers:
                x = ops.add(x, ops.sin(ops.multiply(layer(x), 3.0)))
            return x

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(stack(torch.nn.LayerNorm(10), torch.nn.Linear(10, 10)) for _ in range(48))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + torch.sin(layer(x) * 3.0)
            return x

    with ops.use_backend("numpy"):
        first, second = Theirs(), Net()
        second.load_state_dict({name: tensor.numpy() for name, tensor in first.state_dict().items()})
        assert emberharmony.compare(first, second, X, stop="all").ok
        first.layers[40][0].eps = 1e-3
        report = emberharmony.compare(first, second, X)
    assert (report.first.path, report.first.wrong) == ("Theirs.layers.40.0", "torch")


def test_buffers_of_integers_are_no_weights() -> None:
    class Masked(Attention):
        def __init__(self) -> None:
            super().__init__(True)
            self.register_buffer("mask", torch.ones(6, 6, dtype=torch.bool))

    class Net(torch.nn.Module):
        def __init__(self, joined: bool) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(10)
            self.mix = Masked() if joined else None
            if joined:
                self.mlp = Wrapped()
            else:
                self.blend = Attention(False)
                self.up, self.down = torch.nn.Linear(10, 12), torch.nn.Linear(12, 10)

        def forward(self, x: Any) -> Any:
            if self.mix is None:
                return self.down(torch.relu(self.up(self.blend(self.norm(x)))))
            return self.mlp(self.mix(self.norm(x)))

    first, second = Side(adapter_of(Net(True)), Net(True), {}), Side(adapter_of(Net(False)), Net(False), {})
    assert sum(first.sizes("mix").elements()) == sum(second.sizes("blend").elements())
    assert align(first, second, {}).names["mix"] == "blend"


def test_axes_that_one_shape_has_joined_fit() -> None:
    array = np.arange(80.0).reshape(2, 5, 8)
    for first, second in (
        ((2, 5, 8), (2, 5, 2, 4)),
        ((2, 5, 2, 4), (2, 5, 8)),
        ((10, 8), (2, 5, 8)),
        ((2, 40), (2, 5, 8)),
    ):
        (fit, *_) = list(fits(first, second))
        assert fit.to_second(array.reshape(first)).shape == second
    assert not list(fits((4, 20), (2, 5, 8)))
