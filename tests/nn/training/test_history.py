"""What a training shows: its history in one line with a curve, and a bar in notebooks."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from emberharmony import nn, ops, optim
from emberharmony.core.display.picture import svg_curve
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.nn.training import progress
from emberharmony.nn.training.progress import Progress, Step


def history(*losses: float, validation: float | None = None) -> nn.History:
    steps = [Step(i, loss, 0.1, 1.0, 0.25) for i, loss in enumerate(losses, 1)]
    return nn.History([*steps[:-1], steps[-1]._replace(validation=validation)])


def test_a_history_is_one_line() -> None:
    assert repr(nn.History()) == "History(no step)"
    found = history(2.0, 1.0, 0.5, validation=0.75)
    found.stopped = "enough"
    assert repr(found) == "History(3 steps in 0.75 s, loss 2 to 0.5, validation loss 0.75, stopped: enough)"
    assert found.validations == [(3, 0.75)]
    assert found._repr_html_().count("<polyline") == 1


def test_the_name_of_a_series_is_no_key_of_a_history() -> None:
    found = history(2.0, 1.0)
    assert (found[-1].loss, len(found[:1])) == (1.0, 1)
    with pytest.raises(ArgumentTypeError, match=r"not 'loss': use history\.losses"):
        found["loss"]


def test_a_history_is_drawn_by_matplotlib() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = history(2.0, 1.0, validation=0.5).plot(figure.subplots())
    assert [list(line.get_ydata()) for line in axes.lines] == [[2.0, 1.0], [0.5]]


def test_a_figure_of_its_own_holds_all_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = history(2.0, 1.0).plot()
    axes.figure.draw_without_rendering()
    label, picture = axes.xaxis.label.get_window_extent(), axes.figure.bbox
    pyplot.close(axes.figure)
    assert label.y0 >= picture.y0


def test_a_curve_has_the_values_and_leaves_out_what_is_not_finite() -> None:
    assert svg_curve([], "x") == svg_curve([1.0], "x") == ""
    drawn = svg_curve([1.0, math.nan, 3.0], "a < b")
    assert "a &lt; b" in drawn
    assert drawn.count(",") == 2
    assert ">3</text>" in drawn
    assert svg_curve([float(i) for i in range(5000)], "x").count(",") <= 420


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda html: shown.append(html.data))
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=None))
    monkeypatch.setattr("IPython.display.display", lambda html, display_id: handle)
    with Progress(3, shown=True) as bar:
        for step in history(2.0, 1.0, 0.5):
            bar.show(step)
    assert 'value="3" max="3"' in shown[-1]
    assert "loss 0.5" in shown[-1]
    assert len(shown) < 3  # ten in a second
    with Progress(30, shown=True) as bar:
        for step in history(2.0, 1.0, 0.25):
            bar.show(step)
    assert 'value="3" max="30"' in shown[-1], "the bar ends at the last step, also where the training stops early"
    assert "loss 0.25" in shown[-1]


def test_without_a_notebook_or_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: False))
    assert progress._make_bar(3) is None


def test_models_batches_and_parameters_are_shown(backend: str) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    text = net.summary()
    assert repr(text) == str(text)
    assert "output" not in text.splitlines()[0]
    assert "output" in net.summary(ops.ones((4, 2))).splitlines()[0]
    assert text._repr_html_().count("<tr>") == 4  # type: ignore[attr-defined]
    assert nn.BatchNorm1d(3).summary().split()[4:7] == ["BatchNorm1d", "6", "56"]  # with the bytes of the buffers
    batches = nn.data.batches(ops.ones((10, 3)), ops.zeros(10), batch_size=4)
    assert repr(batches) == ("Batches(10 rows shuffled, 3 batches of 4; arrays (10, 3) float32, (10,) float32)")
    assert "[1.0, 1.0, 1.0]" in batches._repr_html_()
    parameter = nn.Parameter([1.0, 2.0])
    assert str(parameter) == "Parameter(shape=(2,), dtype=float32)\n[1. 2.]"
    ops.backward(lambda: (str(parameter), ops.sum(parameter))[1], parameter)
    assert "exchange_grad_step" not in dir(parameter)
    assert "value" in dir(parameter)


def test_public_modules_show_public_names_only() -> None:
    for module in (nn.data, nn.init, nn.losses, nn.metrics, nn.parametrize, nn, optim, optim.schedules):
        names = dir(module)
        assert not {"Any", "ops", "TYPE_CHECKING", "ArgumentError", "public_getattr_and_dir"} & set(names), module
        assert all(hasattr(module, name) for name in names)
    assert dir(nn.data) == ["Batches", "batches"]


def test_a_tensor_does_not_replace_a_parameter(backend: str) -> None:
    layer = nn.Linear(2, 1)
    with pytest.raises(TypeError, match=r"Linear\.weight is a Parameter.*weight\.value = tensor"):
        layer.weight = ops.zeros((1, 2))  # type: ignore[assignment]
    layer.weight = nn.Parameter(ops.zeros((1, 2)))
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]


def test_layers_of_another_library_are_refused() -> None:
    torch: Any = pytest.importorskip("torch")

    class Net(nn.Module):
        def __init__(self, part: Any) -> None:
            self.part = part

    for part in (torch.nn.Linear(2, 1), torch.nn.Parameter(torch.ones(2)), [torch.nn.ReLU()]):
        with pytest.raises(TypeError, match=r"part.* is a torch \w+, which would not be trained"):
            Net(part).parameters()
    assert Net(torch.ones(2)).parameters() == []
    with pytest.raises(TypeError, match="Sequential got a torch Linear"):
        nn.Sequential(torch.nn.Linear(2, 1))
