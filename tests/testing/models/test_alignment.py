"""Which modules and tensors of two models correspond, where names, masks and places differ."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import emberharmony

torch: Any = pytest.importorskip("torch", reason="the models are ones of PyTorch")

X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


def linears(names: Sequence[str], source: Any = None) -> Any:
    """Returns a model of linear layers of one size, which have some names, with the weights of another one."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in names:
                self.add_module(name, torch.nn.Linear(8, 8))

        def forward(self, x: Any) -> Any:
            for name in names:
                x = torch.tanh(self.get_submodule(name)(x))
            return x

    net = Net()
    if source is not None:
        for one, other in zip(net.parameters(), source.parameters(), strict=True):
            one.data = other.data.clone()
    return net


def test_equal_names_at_other_places_do_not_correspond() -> None:
    first = linears(["conv1", "conv2"])
    second = linears(["conv0", "conv1"], first)
    assert emberharmony.compare(first, second, X, stop="all").ok
    second.conv0.weight.data = second.conv0.weight.data.T.clone()
    report = emberharmony.compare(first, second, X)
    assert (report.first.path, report.first.other) == ("Net.conv1", "Net.conv0")


def test_modules_with_equal_tensors_correspond_wherever_they_are() -> None:
    class Net(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.add_module(name, torch.nn.Embedding(5, 8))
            self.add_module(name + "_out", torch.nn.Linear(8, 2))
            self.name = name

        def forward(self, x: Any) -> Any:
            table = self.get_submodule(self.name)
            x = x + (table(torch.arange(5)) if self.name == "places" else table.weight)
            return self.get_submodule(self.name + "_out")(x)

    first, second = Net("places"), Net("order")
    second.load_state_dict({name.replace("places", "order"): x for name, x in first.state_dict().items()})
    report = emberharmony.compare(first, second, X)
    assert report.ok
    assert not any("correspond to none" in note for note in report.notes), report.notes


def test_a_tensor_that_another_module_has_is_not_missing() -> None:
    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = torch.nn.Parameter(torch.randn(1, 5, 8))
            self.out = torch.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.out(x + self.token)

    class Start(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = torch.nn.Parameter(torch.randn(1, 5, 8))

        def forward(self, x: Any) -> Any:
            return x + self.token

    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.start, self.out = Start(), torch.nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            return self.out(self.start(x))

    first, second = Outer(), Inner()
    second.start.token.data = first.token.data.clone()
    second.out.load_state_dict(first.out.state_dict())
    assert emberharmony.compare(first, second, X, stop="all").ok
    second.start.token.data += 1
    assert "token has other values" in emberharmony.compare(first, second, X).first.message


def test_masks_that_are_added_may_have_other_large_numbers() -> None:
    class Scores(torch.nn.Module):
        def forward(self, x: Any, mask: Any) -> Any:
            return torch.softmax(x + mask, -1)

    class Net(torch.nn.Module):
        def __init__(self, low: float, above: int = 1) -> None:
            super().__init__()
            self.scores, self.low, self.above = Scores(), low, above

        def forward(self, x: Any) -> Any:
            return self.scores(x, torch.full((5, 8), self.low).triu(self.above))

    assert emberharmony.compare(Net(float("-inf")), Net(-1e9), X, stop="all").ok
    wrong = emberharmony.compare(Net(float("-inf")), Net(-1e9, 2), X).first
    assert (wrong.path, "before it calls scores" in wrong.message) == ("Net", True)


def test_recurrent_layers_of_pytorch_compute_in_float64() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(8, 4, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0]

    net = Net()
    report = emberharmony.compare(net, net, X)
    assert report.ok
    assert not any("float64" in note for note in report.notes), report.notes
    assert net.lstm.weight_ih_l0.dtype == torch.float32


def test_an_option_that_is_not_the_default_of_its_class_is_odd() -> None:
    mx: Any = pytest.importorskip("mlx.core", reason="MLX has no padding_mode")
    from mlx import nn

    first = torch.nn.Sequential(torch.nn.Conv1d(8, 8, 3, padding=1), torch.nn.Conv1d(8, 8, 3, padding=1))
    second = nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), nn.Conv1d(8, 8, 3, padding=1))
    for one, other in zip(first, second.layers, strict=True):
        other.weight = mx.array(np.moveaxis(one.weight.detach().numpy(), 1, -1))
        other.bias = mx.array(one.bias.detach().numpy())
    images = np.ascontiguousarray(X.swapaxes(1, 2))
    assert emberharmony.compare(first, second, images).ok
    first[1].padding_mode = "reflect"
    report = emberharmony.compare(first, second, images)
    assert (report.first.path, report.first.wrong) == ("Sequential.1", "torch")
    assert "whose paddingmode is another" in report.first.judge
