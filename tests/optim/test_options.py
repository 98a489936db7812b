"""The constructors and limits that follow from the fields of an optimizer."""

import inspect

import pytest

from emberharmony import nn, ops, optim
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, TrainingWarning


def test_options_are_in_the_groups_and_no_attributes() -> None:
    assert str(inspect.signature(optim.Lion.__init__)).startswith("(self, params: Any = None, lr: float | ")
    assert str(inspect.signature(optim.Lion)).endswith(
        "betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *, maximize: bool = False) -> None"
    )
    optimizer = optim.Lion(None, 0.5, maximize=True)
    assert optimizer.defaults == {"lr": 0.5, "betas": (0.9, 0.99), "weight_decay": 0.0, "maximize": True}
    assert not any(hasattr(optimizer, name) for name in ("params", "lr", "betas", "maximize", "_"))
    assert list(optim.Lion.limits) == list(optimizer.defaults)
    with pytest.raises(TypeError, match=r"Lion.__init__\(\) got an unexpected keyword argument 'beta'"):
        optim.Lion(beta=0.5)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"Lion\(\): maximize is 1, expected True or False"):
        optim.Lion(maximize=1)  # type: ignore[arg-type]


def test_a_learning_rate_is_no_attribute_and_a_schedule_no_wrapper(backend: str) -> None:
    optimizer = optim.SGD(nn.Linear(2, 1), lr=0.5)
    for name in ("lr", "learning_rate"):
        with pytest.raises(
            ArgumentTypeError, match=rf"SGD.{name} = 0.1 would change nothing.*param_groups\[0\]\['lr'\] = "
        ):
            setattr(optimizer, name, 0.1)
    assert optimizer.learning_rates() == [0.5]
    with pytest.raises(ArgumentTypeError, match="a schedule begins with a learning rate, not SGD"):
        optim.schedules.step(optimizer, 3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"Lion\(\): there is no option 'learning_rate' \(known: lr, betas"):
        optim.Lion([{"params": nn.Linear(2, 1), "learning_rate": 0.1}])
    with pytest.raises(ArgumentError, match="a group with options has its parameters as 'params'"):
        optim.Lion([{"parameters": nn.Linear(2, 1), "lr": 0.1}])
    with pytest.raises(ArgumentError, match="is given twice"):
        optimizer.add_param_group({"params": optimizer.parameters()})


def test_parameters_that_a_model_got_later_are_told(backend: str) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = optim.Adam(model)
    model[1] = nn.Linear(3, 1)
    before = model[1].weight.tolist()
    ops.backward(lambda: ops.sum(model(ops.ones((4, 2)))), model)
    with pytest.warns(TrainingWarning, match=r"Adam.step\(\) does not change 1.weight, 1.bias: the model got new"):
        optimizer.step()
    assert model[1].weight.tolist() == before
    optimizer.add_param_group({"params": model[1]})
    ops.backward(lambda: ops.sum(model(ops.ones((4, 2)))), model)
    optimizer.step()
    assert model[1].weight.tolist() != before


def test_gradients_in_another_form_have_a_way_out(backend: str) -> None:
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer, lr=1.0)
    gradients = ops.grad(lambda layer: ops.sum(layer(ops.ones((4, 2)))))(layer)
    with pytest.raises(ArgumentTypeError, match=r"nn.value_and_grad\(model, fn\) returns the gradients"):
        optimizer.step(gradients)
    before = layer.bias.tolist()
    _, named = nn.value_and_grad(layer, lambda: ops.sum(layer(ops.ones((4, 2)))))()
    optimizer.step(named)
    assert layer.bias.tolist() == pytest.approx([before[0] - 4.0])
    with pytest.raises(ArgumentTypeError, match=r"ops.backward returns the loss, and step\(\) without an argument"):
        optimizer.step(ops.ones(()))  # type: ignore[arg-type]
