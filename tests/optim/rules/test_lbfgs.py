"""LBFGS against torch."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops, optim
from tests.ops.trees import lists
from tests.optim.oracle import require

CASES: list[dict[str, Any]] = [
    {"lr": 0.5},
    {"lr": 1, "max_iter": 3},
    {"max_iter": 1},
    {"lr": 0.2, "max_iter": 4, "max_eval": 3, "history_size": 2},
    {"lr": 0.3, "max_iter": 8, "tolerance_grad": 0.05},
    {"lr": 0.3, "max_iter": 8, "tolerance_change": 1e-3},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "lr": 0.1, "max_iter": 4},
    {"line_search_fn": "strong_wolfe", "lr": 20.0, "max_iter": 3, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "lr": 1e-3, "max_iter": 5, "max_eval": 7},
    {"line_search_fn": "strong_wolfe", "max_iter": 6, "tolerance_grad": 0.01},
    {"line_search_fn": "strong_wolfe", "max_iter": 6, "tolerance_change": 1e-3},
]
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 2))
STARTS = [RNG.normal(size=(4, 2)), np.array(0.5), RNG.normal(size=2)]


def regression(library: Any, x: Any, y: Any, weights: Any) -> Any:
    """Returns a loss that is convex, so that rounding errors do not grow, and not quadratic."""
    matrix, scale, shift = weights
    error = library.subtract(library.add(library.matmul(x, matrix), shift), y)
    penalties = [library.sum(library.exp(library.multiply(each, 0.5))) for each in weights]
    penalty = library.add(library.add(*penalties[:2]), penalties[2])
    far = library.square(library.subtract(scale, 2.0))
    return library.add(library.add(library.mean(library.logaddexp(error, -error)), far), library.multiply(penalty, 0.1))


def torch_run(options: dict[str, Any], dtype: str, steps: int, starts: Any = STARTS) -> tuple[Any, list[Any]]:
    torch = pytest.importorskip("torch")
    cells = [torch.tensor(np.asarray(start, dtype), requires_grad=True) for start in starts]
    x, y = (torch.tensor(array.astype(dtype)) for array in (X, Y))
    optimizer = torch.optim.LBFGS(cells, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = regression(torch, x, y, cells)
        loss.backward()
        return loss.detach()

    found = []
    for _ in range(steps):
        loss = float(optimizer.step(closure))
        found.append([np.asarray(loss), *(cell.detach().numpy().copy() for cell in cells)])
    return optimizer, found


def closure_of(cells: list[Parameter], dtype: str) -> Any:
    x, y = (ops.convert_to_tensor(array.astype(dtype)) for array in (X, Y))
    return lambda: ops.backward(lambda: regression(ops, x, y, cells), cells)


def our_run(
    options: dict[str, Any], dtype: str, steps: int, state: Any = None, starts: Any = STARTS
) -> tuple[Any, list[Any]]:
    cells = [Parameter(np.asarray(start, dtype)) for start in starts]
    optimizer = optim.LBFGS(cells, **options)
    if state is not None:
        optimizer.load_state_dict(state)
    found = []
    for _ in range(steps):
        loss = float(optimizer.step(closure_of(cells, dtype)))
        found.append([np.asarray(loss), *(ops.to_numpy(cell.value) for cell in cells)])
    return optimizer, found


def worst(found: list[Any], expected: list[Any]) -> float:
    pairs = [pair for rows in zip(found, expected, strict=True) for pair in zip(*rows, strict=True)]
    return max(float(np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b)))) for a, b in pairs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", CASES)
def test_steps_equal_those_of_torch(options: dict[str, Any], backend: str) -> None:
    require(backend, "float64")
    theirs, expected = torch_run(options, "float64", 20)
    ours, found = our_run(options, "float64", 20)
    assert worst(found, expected) <= 1e-10
    their_state, our_state = (optimizer.state_dict()["state"][0] for optimizer in (theirs, ours))
    assert [our_state[name] for name in ("func_evals", "n_iter")] == [their_state[n] for n in ("func_evals", "n_iter")]


@pytest.mark.parametrize("options", [CASES[0], CASES[6]])
def test_float32_stays_near_torch(options: dict[str, Any], backend: str) -> None:
    _, expected = torch_run(options, "float32", 3)
    _, found = our_run(options, "float32", 3)
    assert all(x.dtype == np.float32 for x in found[0][1:])
    assert worst(found[:1], expected[:1]) <= 1e-3


@pytest.mark.parametrize("options", [CASES[1], CASES[7]])
def test_state_dicts_go_to_torch_and_back(options: dict[str, Any], backend: str) -> None:
    torch = pytest.importorskip("torch")
    require(backend, "float64")
    theirs, expected = torch_run(options, "float64", 5)
    half, begun = torch_run(options, "float64", 2)
    ours, found = our_run(options, "float64", 3, half.state_dict(), begun[-1][1:])
    assert worst(found, expected[2:]) <= 1e-10
    assert ours.state_dict()["state"][0].keys() == theirs.state_dict()["state"][0].keys() - {"al"}
    saved = pickle.loads(pickle.dumps(our_run(options, "float64", 2)[0].state_dict(host=True)))
    saved["state"][0] = {
        name: [torch.tensor(each) for each in x] if isinstance(x, list) else x for name, x in saved["state"][0].items()
    }
    for name in ("d", "H_diag", "prev_flat_grad"):
        saved["state"][0][name] = torch.tensor(saved["state"][0][name])
    cells = [torch.tensor(start, requires_grad=True) for start in begun[-1][1:]]
    again = torch.optim.LBFGS(cells)
    again.load_state_dict(saved)
    x, y = torch.tensor(X), torch.tensor(Y)

    def closure() -> Any:
        again.zero_grad()
        loss = regression(torch, x, y, cells)
        loss.backward()
        return loss.detach()

    again.step(closure)
    assert worst([[cell.detach().numpy() for cell in cells]], [expected[2][1:]]) <= 1e-10


def test_copies_go_on_the_same(backend: str) -> None:
    options = CASES[7]
    first, _ = our_run(options, "float32", 2)
    packed = pickle.dumps(first)
    results = []
    for optimizer in (copy.deepcopy(first), pickle.loads(packed), first):
        cells = optimizer.param_groups[0]["params"]
        optimizer.step(closure_of(cells, "float32"))
        results.append(lists([cell.value for cell in cells]))
    assert results[0] == results[1] == results[2]
    assert first.count == 3


def test_training_goes_on_on_another_backend(backend: str) -> None:
    options = {**CASES[7], "max_iter": 2}
    _, expected = our_run(options, "float32", 4)
    first, _ = our_run(options, "float32", 2)
    with ops.use_backend("numpy"):
        cells = first.param_groups[0]["params"]
        for _ in range(2):
            first.step(closure_of(cells, "float32"))
        found = [[np.asarray(cell.value) for cell in cells]]
    assert worst(found, [expected[-1][1:]]) <= 1e-3


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_all_is_as_before(error: type[BaseException], line_search: str | None, backend: str) -> None:
    cells = [Parameter(start.astype("f4")) for start in STARTS]
    optimizer = optim.LBFGS(cells, lr=0.1, line_search_fn=line_search)
    optimizer.step(closure_of(cells, "float32"))
    cells[0].grad = ops.ones((4, 2))
    before = pickle.dumps(optimizer)
    backward, calls = closure_of(cells, "float32"), iter(range(3))

    def closure() -> Any:
        if next(calls, None) is None:
            raise error
        return backward()

    with pytest.raises(error):
        optimizer.step(closure)
    assert pickle.dumps(optimizer) == before
    assert lists(cells[0].grad) == [[1.0, 1.0]] * 4


def test_a_step_inside_of_a_transform_is_refused(backend: str) -> None:
    weight = Parameter([1.0])
    optimizer = optim.LBFGS([weight])

    def loss() -> Any:
        optimizer.step(lambda: 1.0)
        return ops.sum(weight.value)

    with pytest.raises(errors.TracedTensorError, match=r"cannot change in the loss function of ops.backward"):
        ops.backward(loss, weight)
    assert optimizer.count == 0


def test_gradients_are_kept_if_asked(backend: str) -> None:
    weight = Parameter([2.0])
    optimizer = optim.LBFGS([weight, frozen := Parameter([3.0], trainable=False)], lr=0.5)
    closure = lambda: ops.backward(lambda: ops.sum(ops.square(weight)), weight)
    assert float(optimizer.step(closure, clear=False)) == 4.0
    assert weight.grad is not None
    assert float(optimizer.step(closure)) < 1e-4
    assert weight.grad is None
    assert lists(frozen.value) == [3.0]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"lr": -1.0}, "lr is"),
    ({"max_iter": 0}, "max_iter is"),
    ({"max_eval": 0}, "max_eval is"),
    ({"tolerance_grad": -1.0}, "tolerance_grad is"),
    ({"tolerance_change": math.nan}, "tolerance_change is"),
    ({"history_size": 0}, "history_size is"),
    ({"line_search_fn": "armijo"}, "line_search_fn is 'armijo', expected None or 'strong_wolfe'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        optim.LBFGS([Parameter([1.0])], **options)


def test_wrong_arguments_are_refused(backend: str) -> None:
    weight = Parameter([1.0])
    with pytest.raises(errors.ArgumentError, match="only one group"):
        optim.LBFGS([{"params": weight}, {"params": Parameter([1.0])}])
    with pytest.raises(errors.ArgumentError, match="there is no Parameter"):
        optim.LBFGS([])
    optimizer = optim.LBFGS([weight])
    with pytest.raises(errors.ArgumentTypeError, match="takes a function that computes the loss"):
        optimizer.step({weight: ops.ones((1,))})
    with pytest.raises(errors.ArgumentTypeError, match="the closure returned None, expected the loss"):
        optimizer.step(lambda: None)


def test_a_state_that_does_not_fit_is_refused(backend: str) -> None:
    first, _ = our_run(CASES[1], "float32", 2)
    saved = first.state_dict()
    entry = saved["state"][0]
    entry["d"], entry["moment"] = ops.ones((2,)), 1.0
    del entry["t"]
    second = optim.LBFGS([Parameter(start.astype("f4")) for start in STARTS])
    with pytest.raises(errors.ArgumentError, match=r"unexpected 'moment' of .*; missing 't' of"):
        second.load_state_dict(saved)
    entry["t"] = 1.0
    del entry["moment"]
    with pytest.raises(errors.ArgumentError, match=r"'d' of .* has shape \(2,\), expected \(11,\)"):
        second.load_state_dict(saved)
    assert second.state == {}
    assert not any(isinstance(x, Buffer) for x in second.state.values())
