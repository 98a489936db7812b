"""Training steps in compiled functions: gradients of `ops.backward`, and steps of optimizers."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, nn, ops, optim
from emberharmony.core.errors import EmberError

RATE = optim.schedules.exponential(0.01, 0.9)
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "AdamW": lambda net: optim.AdamW(net, lr=RATE),
    "SGD": lambda net: optim.SGD(net, lr=0.1, momentum=0.9),
    "RAdam": lambda net: optim.RAdam(net),
    "Accumulate": lambda net: optim.Accumulate(optim.AdamW(net), 2),
}


class Training:
    """A network with its optimizer and a training step, always begun in the same way."""

    def __init__(self, optimizer: str = "AdamW", width: int = 8, **options: Any) -> None:
        draws = ops.random.Generator(0)
        self.net = nn.Sequential(
            nn.Linear(4, width, rng=draws), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 2, rng=draws)
        )
        self.optimizer = OPTIMIZERS[optimizer](self.net)
        self.runs, self.options = 0, options

    def backward(self, x: Any, y: Any) -> Any:
        self.runs += 1
        return ops.backward(lambda: nn.losses.mse(self.net(x), y), self.net)

    def step(self, x: Any, y: Any) -> Any:
        loss = self.backward(x, y)
        self.optimizer.step(**self.options)
        return loss

    def state(self) -> dict[str, Any]:
        """Returns all that a step may change, as arrays and numbers."""
        gradients = [None if cell.grad is None else ops.to_numpy(cell.grad) for cell in self.net.parameters()]
        found = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "gradients": gradients}
        return ops.tree_map(lambda x: ops.to_numpy(x) if ops.is_tensor(x) else x, found)


def batch(size: int = 6, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return tuple(ops.convert_to_tensor(rng.standard_normal((size, n)).astype(np.float32)) for n in (4, 2))  # type: ignore[return-value]


def assert_alike(a: Any, b: Any) -> None:
    found, wanted = ops.tree_flatten(a), ops.tree_flatten(b)
    assert found[1] == wanted[1]
    for x, y in zip(found[0], wanted[0], strict=True):
        np.testing.assert_array_equal(x, y)


def both(fn: Callable[[Training, Any, Any], Any], **options: Any) -> tuple[Training, int]:
    """Returns a training by a compiled function, after a check that it is like an uncompiled one at each step.

    Also returns how often the compiled function has run.
    """
    plain, other = Training(**options), Training(**options)
    compiled = ops.compile(lambda x, y: fn(other, x, y))
    for seed, size in enumerate((6, 6, 6, 6, 3, 3, 3, 6)):
        x, y = batch(size, seed)
        assert_alike(ops.to_numpy(compiled(x, y)), ops.to_numpy(fn(plain, x, y)))
        assert_alike(other.state(), plain.state())
    return other, other.runs


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_training_step_is_that_of_the_function(name: str, quick: str) -> None:
    _, runs = both(Training.step, optimizer=name)
    assert quick != "numpy" or runs == 4  # for each shape, and once more to find the cells


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{"clear": False}, {"width": 2**14}], ids=["clear", "large"])
def test_options_and_large_parameters_are_those_of_the_function(options: dict[str, Any], quick: str) -> None:
    def step(training: Training, x: Any, y: Any) -> Any:
        training.optimizer.zero_grad()
        return training.step(x, y)

    _, runs = both(step, **options)
    assert quick != "numpy" or runs == 4


@pytest.mark.sampled(3)
def test_gradients_are_added_to_those_of_earlier_calls(quick: str) -> None:
    _, runs = both(Training.backward)
    assert quick != "numpy" or runs == 4


ACTIONS: dict[str, Callable[[Parameter, Any], object]] = {
    "backward": lambda w, _: ops.backward(lambda: ops.sum(ops.square(w)), [w]),
    "step": lambda _, optimizer: optimizer.step(),
    "step without clearing": lambda _, optimizer: optimizer.step(clear=False),
    "step by gradients": lambda w, optimizer: optimizer.step({w: ops.array([2.0, 3.0])}),
    "clear": lambda _, optimizer: optimizer.zero_grad(),
    "assign a gradient": lambda w, _: setattr(w, "grad", ops.array([1.0, -1.0])),
}


@pytest.mark.filterwarnings("ignore:.*changes nothing, because no parameter has a gradient")
@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", ACTIONS)
def test_two_actions_in_either_order_do_what_they_do_uncompiled(first: str, quick: str) -> None:
    for second in ACTIONS if quick != "torch" else ["step by gradients"]:  # torch.compile takes half a second for each
        found = []
        for compiled in (False, True):
            w = Parameter([1.0, -2.0])
            optimizer = optim.SGD([w], lr=0.25, momentum=0.5)

            def act(x: Any, w: Parameter = w, optimizer: Any = optimizer, second: str = second) -> Any:
                ACTIONS[first](w, optimizer)
                ACTIONS[second](w, optimizer)
                return x

            call = ops.compile(act) if compiled else act
            for _ in range(3):
                call(ops.ones(()))
            found.append([ops.to_numpy(w.value).tolist(), None if w.grad is None else ops.to_numpy(w.grad).tolist()])
        assert found[0] == found[1], second


@pytest.mark.sampled(3)
def test_gradients_can_be_used_in_the_function(quick: str) -> None:
    def step(training: Training, x: Any, y: Any) -> Any:
        loss = training.backward(x, y)
        optim.clip_by_value(training.net, 0.01)
        first = training.net[0].weight
        first.grad = ops.multiply(first.grad, 2.0)
        total = ops.add(loss, ops.sum(first.grad))
        training.optimizer.step()
        return total

    _, runs = both(step)
    assert quick != "numpy" or runs == 4


def after(training: Training, x: Any, y: Any) -> Any:
    loss = training.step(x, y)
    return ops.add(loss, ops.sum(training.net[0].weight.value))


def assigned(training: Training, x: Any, y: Any) -> Any:
    loss, cell = training.step(x, y), training.net[0].weight
    cell.value = ops.multiply(ops.sum(x), ops.ones((8, 4)))
    return loss


def twice(training: Training, x: Any, y: Any) -> Any:
    training.step(x, y)
    return training.step(x, y)


def counting(training: Training, x: Any, y: Any) -> Any:
    return ops.multiply(training.step(x, y), training.optimizer.count)


def rated(training: Training, x: Any, y: Any) -> Any:
    training.optimizer.param_groups[0]["lr"] = 0.1 / (training.optimizer.count + 1)
    return training.step(x, y)


def limited(training: Training, x: Any, y: Any) -> Any:
    loss = training.backward(x, y)
    optim.clip_by_global_norm(training.net, 0.1)
    training.optimizer.step()
    return loss


@pytest.mark.parametrize("step", [after, assigned, twice, counting, rated, limited])
def test_what_depends_on_a_step_in_the_same_function_runs_uncompiled(step: Callable[..., Any], quick: str) -> None:
    both(step)


def test_gradients_are_gone_after_the_step_that_takes_them(quick: str) -> None:
    def step(training: Training, x: Any, y: Any) -> Any:
        loss = training.backward(x, y)
        between = sum(cell.grad is not None for cell in training.net.parameters())
        training.optimizer.step()
        after = sum(cell.grad is not None for cell in training.net.parameters())
        return ops.add(ops.multiply(loss, 0.0), 10 * between + after)

    training, runs = both(step)
    x, y = batch()
    assert float(ops.compile(lambda x, y: step(training, x, y))(x, y)) == 10 * len(training.net.parameters())
    assert quick != "numpy" or runs < 8


@pytest.mark.sampled(3)
def test_options_may_change_between_calls(quick: str) -> None:
    plain, other = Training(), Training()
    compiled = ops.compile(other.step)
    for i in range(6):
        x, y = batch(seed=i)
        for training, step in ((plain, plain.step), (other, compiled)):
            training.optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            step(x, y)
        assert_alike(other.state(), plain.state())
    assert quick != "numpy" or other.runs == 2


def test_gradients_from_before_belong_to_the_step(quick: str) -> None:
    plain, other = Training(), Training()
    compiled = ops.compile(other.step)
    for i in range(6):
        x, y = batch(seed=i)
        if i in (0, 3):
            plain.backward(x, y), other.backward(x, y)
        plain.step(x, y), compiled(x, y)
        assert_alike(other.state(), plain.state())
    assert quick != "numpy" or other.runs == 2 + 2 + 3  # backward, the first call and once more, 1, 2 and 3


class Failing(optim.SGD):
    """Fails as long as it shall."""

    calls, fails = 0, False

    def plan(self, gradients: Any, *, clear: bool = True) -> Any:
        self.calls += 1
        if self.fails:
            raise ValueError("on purpose")
        return super().plan(gradients, clear=clear)


def test_an_error_in_a_step_reaches_the_caller_once(quick: str) -> None:
    weight = Parameter([1.0, 2.0])
    optimizer = optim.Accumulate(Failing([weight], lr=0.1), 1)
    inner: Any = optimizer.optimizer

    def step(x: Any) -> Any:
        loss = ops.backward(lambda: ops.sum(ops.multiply(weight, x)), weight)
        optimizer.step()
        return loss

    compiled, x = ops.compile(step), ops.array([1.0, 3.0])
    for _ in range(3):
        compiled(x)
    before, inner.calls, inner.fails = ops.to_numpy(weight.value).copy(), 0, True
    with pytest.raises(ValueError, match="on purpose"):
        compiled(x)
    assert inner.calls == 1
    np.testing.assert_array_equal(ops.to_numpy(weight.value), before)
    np.testing.assert_array_equal(ops.to_numpy(weight.grad), [1.0, 3.0])
    inner.fails, weight.grad = False, None
    compiled(x)
    np.testing.assert_allclose(ops.to_numpy(weight.value), before - [0.1, 0.3], rtol=1e-6)


def test_a_program_with_a_step_has_no_effect_in_a_transform() -> None:
    with ops.use_backend("numpy"):
        weight = Parameter([1.0, 2.0])
        optimizer = optim.SGD([weight], lr=0.1)

        def step() -> Any:
            loss = ops.backward(lambda: ops.sum(ops.square(weight)), weight)
            optimizer.step()
            return loss

        compiled = ops.compile(step)
        for _ in range(3):
            compiled()
        before = weight.value.copy()
        with pytest.raises(EmberError):
            ops.backward(lambda: ops.add(compiled(), ops.sum(weight)), weight)
        np.testing.assert_array_equal(weight.value, before)
        weight.grad = None
        assert optimizer.count == 3


def test_other_threads_see_the_plain_gradients_while_a_function_is_recorded() -> None:
    with ops.use_backend("numpy"):
        weight, seen = Parameter([1.0, 2.0]), []

        def step(x: Any) -> Any:
            loss = ops.backward(lambda: ops.sum(ops.multiply(weight, x)), weight)
            thread = threading.Thread(target=lambda: seen.append((weight.grad, weight.value.tolist())))
            thread.start()
            thread.join()
            return loss

        ops.compile(step)(np.ones(2, np.float32))
        assert seen == [(None, [1.0, 2.0])]
        assert weight.grad.tolist() == [1.0, 1.0]
