"""The modules of the losses: the constructors of torch, their buffers, copies and errors."""

import copy
import doctest
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import errors, nn, ops
from emberharmony.nn.losses import Loss
from tests.nn.loss_rows import ROWS, Row
from tests.nn.oracle import torch

KINDS = [each for each in vars(nn.losses).values() if isinstance(each, type) and each is not Loss]


def test_each_function_has_a_module() -> None:
    functions = {name for name in dir(nn.losses) if inspect.isfunction(getattr(nn.losses, name))}
    assert functions == {kind.function.__name__ for kind in KINDS}


def tensors(row: Row) -> list[Any]:
    return [ops.convert_to_tensor(x.astype("f4") if x.dtype.kind == "f" else x) for x in row.arrays]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_module_computes_its_function(kind: type[Loss], backend: str) -> None:
    row = next((row for row in reversed(ROWS) if row.name == kind.function.__name__), ROWS[-1])
    given = tensors(row) if row.name == kind.function.__name__ else [ops.ones((2, 3)), ops.zeros((2, 3))]
    options = row.options if row.name == kind.function.__name__ else {}
    options = {name: np.asarray(x, "f4") if isinstance(x, np.ndarray) else x for name, x in options.items()}
    loss = kind(**options, reduction="sum")
    expected = kind.function(*given, **options, reduction="sum").tolist()
    for same in (loss, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert same(*given).tolist() == expected
        assert type(same) is kind
    assert loss.parameters() == []
    assert [name for name, _ in loss.named_buffers()] == [name for name in ("weight", "pos_weight") if name in options]


def test_weights_are_buffers_by_the_names_of_torch(backend: str) -> None:
    weight = np.array([1.0, 2.0], "f4")
    ours = nn.BCEWithLogitsLoss(weight, pos_weight=weight)
    theirs = torch.nn.BCEWithLogitsLoss(torch.tensor(weight), pos_weight=torch.tensor(weight))
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert nn.CrossEntropyLoss().state_dict() == {}


def test_a_loss_moves_between_backends() -> None:
    with ops.use_backend("numpy"):
        loss = nn.CrossEntropyLoss(weight=[1.0, 3.0])
        expected = loss([[0.0, 1.0]], [1]).tolist()
    for name in ops.available_backends():
        with ops.use_backend(name):
            assert ops.to_numpy(loss([[0.0, 1.0]], [1])).tolist() == pytest.approx(expected, rel=1e-6)


def test_wrong_options_are_refused_when_a_loss_is_made() -> None:
    with pytest.raises(errors.ArgumentError, match=r"MSELoss\(\): reduction is 'avg', expected one of 'none', 'mean'"):
        nn.MSELoss(reduction="avg")
    with pytest.raises(errors.ArgumentError, match="did you mean 'sum'"):
        nn.KLDivLoss(reduction="sums")
    assert nn.KLDivLoss(reduction="batchmean").reduction == "batchmean"
    with pytest.raises(errors.ArgumentTypeError, match=r"HuberLoss\(\) has no option 'detla'; did you mean 'delta'"):
        nn.HuberLoss(detla=2.0)
    with pytest.raises(errors.ArgumentTypeError, match=r"has no option 'size_average'; pass reduction="):
        nn.MSELoss(size_average=False)
    with pytest.raises(errors.ArgumentTypeError, match=r"HuberLoss\(\): too many positional.*pass options by name"):
        nn.HuberLoss("sum")


def test_an_error_names_the_loss_in_its_model(backend: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.loss = nn.MSELoss()

        def __call__(self, x: Any) -> Any:
            return self.loss(x, [1.0])

    with pytest.raises(errors.ShapeError, match=r"mse\(\): target has shape \(1,\).*in loss of .*Net, an MSELoss"):
        Net()([1.0, 2.0])


def test_a_loss_shows_its_options() -> None:
    assert repr(nn.TripletMarginLoss(2.0, swap=True)) == "TripletMarginLoss(margin=2.0, swap=True)"
    assert repr(nn.NLLLoss([1.0, 2.0], ignore_index=0)) == "NLLLoss(ignore_index=0)"


def test_the_example_of_the_base_runs(backend: str) -> None:
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(Loss) or "", {}, "Loss", None, 0)
    assert not doctest.DocTestRunner(verbose=False).run(example).failed
