"""Accumulation, Lookahead and steps that are left out: what they do, alone, together and in the pure form."""

import copy
import functools
import importlib
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim, to_backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from tests.ops.trees import lists
from tests.optim.oracle import LIMIT, recorded, require, require_near

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))
Make = Callable[[Any], Any]
MADE: dict[str, Make] = {
    "accumulate": lambda inner: optim.Accumulate(inner, 4),
    "lookahead": lambda inner: optim.Lookahead(inner, 3, 0.7),
    "skip": lambda inner: optim.SkipNonfinite(inner),
    "all": lambda inner: optim.SkipNonfinite(optim.Lookahead(optim.Accumulate(inner, 2), 3)),
    "inside out": lambda inner: optim.Accumulate(optim.SkipNonfinite(optim.Lookahead(inner, 2)), 3),
}
made = pytest.mark.parametrize("make", MADE.values(), ids=MADE)


def adam(params: Any = None) -> optim.Optimizer:
    return optim.AdamW(params, lr=optim.schedules.cosine(0.1, 40))


def gradients_of(dtype: str = "float32") -> list[list[Any]]:
    """Returns 20 rows of gradients, of which two are not finite."""
    found = recorded(20, dtype)[1]
    found[5][1][0, 0], found[6][3] = np.nan, np.asarray(np.inf, dtype)
    return found


def cells_of(dtype: str = "float32") -> list[Parameter]:
    return [Parameter(start) for start in recorded(20, dtype)[0]]


def trained(optimizer: Any, rows: list[list[Any]]) -> list[Any]:
    cells = optimizer.param_groups[0]["params"]
    for row in rows:
        optimizer.step(dict(zip(cells, row, strict=True)))
    return [ops.to_numpy(cell.value) for cell in cells]


def near(found: list[Any], expected: list[Any], limit: float = 1e-5) -> bool:
    return all(np.allclose(a, b, rtol=limit, atol=limit) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("dtype", LIMIT)
def test_accumulation_is_a_step_with_the_mean(dtype: str, backend: str) -> None:
    require(backend, dtype)
    rows = recorded(20, dtype)[1]
    means = [[np.mean([row[i] for row in rows[j : j + 4]], 0, "f8").astype(dtype) for i in range(4)] for j in (0, 4, 8)]
    plain, accumulated = adam(cells_of(dtype)), optim.Accumulate(adam(cells_of(dtype)), 4)
    expected = trained(plain, means)
    require_near([trained(accumulated, rows[:12])], [expected], LIMIT[dtype])
    assert accumulated.count == 3
    trained(accumulated, rows[12:14])
    assert near([ops.to_numpy(cell.value) for cell in accumulated.parameters()], expected, 2e-6)
    assert accumulated.passes == 2


def test_accumulation_is_the_gradient_of_a_larger_batch(backend: str) -> None:
    x = ops.convert_to_tensor(np.random.default_rng(0).normal(size=(12, 3)).astype("f4"))
    once, often = Parameter([1.0, 2.0, 3.0]), Parameter([1.0, 2.0, 3.0])

    def loss(weight: Parameter, batch: Any) -> Any:
        return ops.mean(ops.square(ops.matmul(batch, weight)))

    ops.backward(lambda: loss(once, x), once)
    optim.Adam([once], lr=0.1).step()
    optimizer = optim.Accumulate(optim.Adam([often], lr=0.1), 3)
    for batch in ops.split(x, 3):
        ops.backward(functools.partial(loss, often, batch), often)
        optimizer.step()
        assert often.grad is None
    assert near([ops.to_numpy(often.value)], [ops.to_numpy(once.value)])


def test_a_pass_without_gradient_counts_as_zero(backend: str) -> None:
    a, b = Parameter([1.0]), Parameter([1.0])
    optimizer = optim.Accumulate(optim.SGD([a, b], lr=1.0), 2)
    optimizer.step({a: [1.0]})
    optimizer.step({b: [1.0]})
    assert lists([a.value, b.value]) == [[0.5], [0.5]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_16_bits_are_added_in_float32(dtype: str, backend: str) -> None:
    try:
        weight = Parameter(ops.zeros((1,), dtype))
    except errors.DTypeError:
        pytest.skip(f"{backend} lacks {dtype}")
    optimizer = optim.Accumulate(optim.SGD([weight], lr=1.0), 1025)
    optimizer.step({weight: ops.full((1,), 1025.0, dtype)})
    for _ in range(1024):
        optimizer.step({weight: ops.full((1,), 0.25, dtype)})
    assert float(ops.cast(weight.value, "float32")[0]) == pytest.approx(-(1024 + 256) / 1025, rel=1e-2)
    assert ops.dtype(weight.value) == dtype


@pytest.mark.parametrize("dtype", LIMIT)
def test_lookahead_follows_the_formula(dtype: str, backend: str) -> None:
    require(backend, dtype)
    rows = recorded(20, dtype)[1]
    optimizer = optim.Lookahead(optim.SGD(cells_of(dtype), lr=0.1, momentum=0.9), 3, 0.3)
    fast = [start.astype("f8") for start in recorded(20, dtype)[0]]
    slow, buffers = list(fast), [np.zeros_like(x) for x in fast]
    for i, row in enumerate(rows):
        buffers = [0.9 * b + g.astype("f8") for b, g in zip(buffers, row, strict=True)]
        fast = [x - 0.1 * b for x, b in zip(fast, buffers, strict=True)]
        if i % 3 == 2:
            fast = slow = [s + 0.3 * (x - s) for s, x in zip(slow, fast, strict=True)]
        require_near([trained(optimizer, [row])], [[np.asarray(x, dtype) for x in fast]], LIMIT[dtype])


def test_lookahead_with_alpha_1_changes_nothing(backend: str) -> None:
    rows = recorded(20, "float32")[1]
    expected = trained(adam(cells_of()), rows)
    assert near(trained(optim.Lookahead(adam(cells_of()), 4, 1.0), rows), expected, 2e-6)


def test_steps_that_are_not_finite_change_nothing(backend: str) -> None:
    rows = gradients_of()
    optimizer = optim.SkipNonfinite(adam(cells_of()))
    expected = trained(adam(cells_of()), [*rows[:5], *rows[7:]])
    assert near(trained(optimizer, rows), expected, 0.0)
    assert (optimizer.skipped, optimizer.in_a_row, optimizer.count) == (2, 0, 18)


def test_too_many_steps_in_a_row_are_an_error(backend: str) -> None:
    good, bad = Parameter([1.0], name="good"), Parameter([1.0], name="bad")
    optimizer = optim.SkipNonfinite(optim.SGD([good, bad]), 1)
    optimizer.step({good: [1.0], bad: [np.nan]})
    before = pickle.dumps(optimizer)
    with pytest.raises(optim.NonFiniteGradientError, match=r"gradients of Parameter\('bad'.* are not finite, after 1 "):
        optimizer.step({good: [1.0], bad: [np.inf]})
    assert pickle.dumps(optimizer) == before
    for value in (1.0, np.nan, 1.0, np.nan):  # only those in a row count
        optimizer.step({good: [1.0], bad: [value]})
    assert (optimizer.skipped, optimizer.in_a_row) == (3, 1)
    good.value = [1.0]
    endless = optim.SkipNonfinite(optim.SGD([good]), None)
    for _ in range(20):
        endless.step({good: [np.nan]})
    assert endless.in_a_row == 20
    assert lists(good.value) == [1.0]
    endless.step({})
    assert endless.in_a_row == 0


@made
def test_the_pure_form_makes_the_same_steps(make: Make, backend: str) -> None:
    rows = gradients_of()
    rows = recorded(20, "float32")[1] if make is MADE["accumulate"] or make is MADE["lookahead"] else rows
    expected = trained(make(adam(cells_of())), rows)
    pure = make(adam())
    starts = recorded(20, "float32")[0]
    tree = {"a": [ops.convert_to_tensor(x) for x in starts[:2]], "b": tuple(map(ops.convert_to_tensor, starts[2:]))}
    state = pure.init(tree)
    for row in rows:
        given = [ops.convert_to_tensor(gradient) for gradient in row]
        tree, state = pure.update({"a": given[:2], "b": tuple(given[2:])}, state, tree)
    assert near([ops.to_numpy(x) for x in (*tree["a"], *tree["b"])], expected)


@pytest.mark.parametrize(
    "make", [MADE["lookahead"], *(pytest.param(MADE[n], marks=pytest.mark.slow) for n in ("accumulate", "all"))]
)
def test_the_pure_form_can_be_compiled(make: Make, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    starts, rows = recorded(20, "float32")
    expected = trained(make(optim.SGD(cells_of(), lr=0.1)), rows[:7])
    pure = make(optim.SGD(lr=0.1))
    params = [ops.convert_to_tensor(start) for start in starts]
    state = pure.init(params)
    update = ops.compile(pure.update)
    for row in rows[:7]:
        params, state = update([ops.convert_to_tensor(gradient) for gradient in row], state, params)
    assert near([ops.to_numpy(x) for x in params], expected)


@made
def test_the_pure_form_can_be_mapped(make: Make, backend: str) -> None:
    pure = make(optim.SGD(lr=0.1))
    rows = np.random.default_rng(5).normal(size=(7, 2, 3)).astype("f4")
    starts = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]], "f4")
    params = ops.convert_to_tensor(starts)
    state = ops.vmap(pure.init)(params)
    for row in rows:
        params, state = ops.vmap(pure.update)(ops.convert_to_tensor(row), state, params)
    for i in range(2):
        expected = trained(make(optim.SGD([Parameter(starts[i])], lr=0.1)), [[row[i]] for row in rows])
        assert near([ops.to_numpy(params[i])], expected)


@made
def test_a_state_dict_and_copies_go_on_the_same(make: Make, backend: str) -> None:
    rows = gradients_of()
    rows = recorded(20, "float32")[1] if make is MADE["accumulate"] or make is MADE["lookahead"] else rows
    expected = trained(make(adam(cells_of())), rows)
    first = make(adam(cells_of()))
    trained(first, rows[:10])
    saved = pickle.loads(pickle.dumps(first.state_dict(host=True)))
    again = make(adam(copy.deepcopy(first.param_groups[0]["params"])))
    again.load_state_dict(saved)
    near_by = make(adam(copy.deepcopy(first.param_groups[0]["params"])))
    near_by.load_state_dict(first.state_dict())
    for optimizer in (again, near_by, copy.deepcopy(first), pickle.loads(pickle.dumps(first)), first):
        assert near(trained(optimizer, rows[10:]), expected, 0.0)


@pairs
@made
def test_training_goes_on_on_another_backend(make: Make, here: str, there: str) -> None:
    rows = recorded(20, "float32")[1]
    with ops.use_backend(here):
        expected = trained(make(adam(cells_of())), rows)
        optimizer = make(adam(cells_of()))
        trained(optimizer, rows[:7])
    with ops.use_backend(there):
        trained(optimizer, rows[7:14])
    to_backend(optimizer, here)
    with ops.use_backend(here):
        assert near(trained(optimizer, rows[14:]), expected)


def test_wrappers_stand_in_the_place_of_an_optimizer(backend: str) -> None:
    a, b = Parameter([1.0], name="a"), Parameter([1.0])
    optimizer = optim.Lookahead(optim.Accumulate(optim.SGD([a], lr=0.5), 1), 1, 1.0)
    optimizer.add_param_group({"params": b, "lr": 0.25})
    assert optimizer.learning_rates() == [0.5, 0.25]
    assert optimizer.state == {}
    a.grad = ops.ones((1,))
    optimizer.zero_grad()
    assert a.grad is None
    optimizer.step({"a": [1.0], b: [1.0]})
    assert lists([a.value, b.value]) == [[0.5], [0.75]]
    a.grad = ops.ones((1,))
    optimizer.step(clear=False)
    assert lists(a.grad) == [1.0]
    with pytest.raises(errors.ArgumentError, match="grads has 'c', which is no parameter"):
        optimizer.step({"c": [1.0]})


@made
def test_wrong_gradients_change_nothing(make: Make, backend: str) -> None:
    optimizer = make(adam(cells_of()))
    trained(optimizer, recorded(20, "float32")[1][:3])
    before = pickle.dumps(optimizer)
    cells = optimizer.parameters()
    with pytest.raises(errors.ShapeError, match=r"has shape \(2,\), expected \(3, 5\)"):
        optimizer.step({cells[0]: ops.ones((4, 3)), cells[1]: ops.ones((2,))})
    assert pickle.dumps(optimizer) == before


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: optim.Accumulate(optim.SGD(), 0), errors.ArgumentError, "n is 0, expected an integer >= 1"),
    (lambda: optim.Lookahead(optim.SGD(), 0), errors.ArgumentError, "k is 0"),
    (lambda: optim.Lookahead(optim.SGD(), 5, 1.5), errors.ArgumentError, "alpha is 1.5"),
    (lambda: optim.SkipNonfinite(optim.SGD(), -1), errors.ArgumentError, "limit is -1"),
    (lambda: optim.Accumulate(optim.LBFGS([Parameter([1.0])]), 2), errors.ArgumentTypeError, "not LBFGS"),
    (lambda: optim.Lookahead([Parameter([1.0])]), errors.ArgumentTypeError, "expected an optimizer with a rule"),
]


@pytest.mark.parametrize(("make", "error", "message"), WRONG)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_state_that_does_not_fit_is_refused(backend: str) -> None:
    optimizer = optim.Accumulate(optim.SGD([Parameter([1.0])]), 2)
    saved = optimizer.state_dict()
    with pytest.raises(errors.ArgumentError, match=r"expected \['optimizer', 'passes', 'sums'\]"):
        optimizer.load_state_dict(optim.SGD([Parameter([1.0])]).state_dict())
    with pytest.raises(errors.ArgumentError, match=r"sums\[0\] has shape \(2,\), expected \(1,\)"):
        optimizer.load_state_dict({**saved, "sums": {0: ops.ones((2,))}})
    with pytest.raises(errors.ArgumentError, match=r"sums\[3\] has shape \(1,\), expected no such entry"):
        optimizer.load_state_dict({**saved, "sums": {3: ops.ones((1,))}})
    assert optimizer.sums == {}
