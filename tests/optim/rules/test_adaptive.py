"""Adagrad, Adadelta, RMSprop, Rprop and ASGD against torch."""

from typing import Any

import numpy as np
import pytest

from emberharmony import errors, ops, optim
from tests.optim.oracle import (
    LIMIT,
    our_run,
    pure_run,
    recorded,
    require,
    require_near,
    require_steps_of_torch,
)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"eps": 1e-3}),
    ("RMSprop", {"lr": 0.001, "alpha": 0.9, "weight_decay": 0.1, "momentum": 0.9, "maximize": True}),
    ("RMSprop", {"lr": 0.001, "alpha": 0.5, "momentum": 0.5, "centered": True, "eps": 1e-3}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.2), "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1, "maximize": True}),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_steps_equal_those_of_torch(name: str, options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch(name, options, dtype, 20, our_run, pure_run)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_200_steps_equal_those_of_torch(name: str, options: dict[str, Any], dtype: str, backend: str) -> None:
    require(backend, dtype)
    require_steps_of_torch(name, options, dtype, 200, our_run)


@pytest.mark.parametrize(("name", "options"), [case for case in CASES if len(case[1]) > 2])
def test_the_state_of_torch_goes_on(name: str, options: dict[str, Any], backend: str) -> None:
    torch = pytest.importorskip("torch")
    starts, gradients = recorded(10, "float32")
    theirs = [torch.tensor(start, requires_grad=True) for start in starts]
    optimizer = getattr(torch.optim, name)(theirs, **options)
    cells = [ops.Parameter(start) for start in starts]
    for i, row in enumerate(gradients):
        if i == 6:
            ours = getattr(optim, name)(cells)
            ours.load_state_dict(optimizer.state_dict())
            for cell, their_cell in zip(cells, theirs, strict=True):
                cell.value = ops.convert_to_tensor(their_cell.detach().numpy().copy())
        for their_cell, gradient in zip(theirs, row, strict=True):
            their_cell.grad = torch.tensor(gradient)
        optimizer.step()
        if i >= 6:
            ours.step(dict(zip(cells, row, strict=True)))
    found = [[ops.to_numpy(cell.value) for cell in cells]]
    require_near(found, [[np.asarray(cell.detach().numpy()) for cell in theirs]], LIMIT["float32"])
    ours_saved, saved = ours.state_dict(host=True)["state"], optimizer.state_dict()["state"]
    for i, entry in saved.items():
        names = [name for name, x in entry.items() if x is not None]
        assert set(names) == set(ours_saved[i])
        for name in names:
            wanted = np.asarray(entry[name])
            np.testing.assert_allclose(ours_saved[i][name], wanted, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adagrad", {"lr_decay": -1.0}),
        ("Adadelta", {"rho": 1.5}),
        ("RMSprop", {"alpha": -0.1}),
        ("Rprop", {"etas": (1.2, 0.5)}),
        ("Rprop", {"step_sizes": (1.0, 0.1)}),
        ("ASGD", {"t0": float("nan")}),
    ],
)
def test_wrong_options_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=rf"{name}\(\): {next(iter(options))} is"):
        getattr(optim, name)(**options)


def test_the_first_sum_of_squares_is_that_of_the_group(backend: str) -> None:
    a, b = ops.Parameter([1.0]), ops.Parameter([1.0])
    optimizer = optim.Adagrad([{"params": [a], "initial_accumulator_value": 3.0}, {"params": [b]}], lr=1.0)
    for parameter in (a, b):
        parameter.grad = ops.ones(1)
    optimizer.step()
    assert ops.to_numpy(a.value).tolist() == [0.5]
    assert np.allclose(ops.to_numpy(b.value), 0.0, atol=1e-6)
