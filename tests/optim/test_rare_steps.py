"""Steps that few programs make: gradients that stay, line searches on waves, phases without a step, wrong wrappers."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from tests.ops.trees import lists
from tests.optim.oracle import require


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda cells: optim.Accumulate(optim.SGD(cells, lr=0.5), 2),
        lambda cells: optim.SkipNonfinite(optim.SGD(cells, lr=0.5)),
    ],
)
def test_a_wrapper_leaves_the_gradients_if_asked(wrapped: Any, backend: str) -> None:
    cells = [Parameter([1.0, 2.0])]
    optimizer = wrapped(cells)
    cells[0].grad = ops.array([float("nan") if isinstance(optimizer, optim.SkipNonfinite) else 1.0, 1.0])
    optimizer.step(clear=False)
    assert cells[0].grad is not None
    assert lists(cells[0].value) == [1.0, 2.0]
    optimizer.step()
    assert cells[0].grad is None


def test_a_gradient_too_few_is_refused_by_accumulation(backend: str) -> None:
    optimizer = optim.Accumulate(optim.SGD(lr=0.5), 2)
    weights = [ops.ones(2), ops.ones(3)]
    state = optimizer.init(weights)
    with pytest.raises(errors.ArgumentError, match="1 gradients are given, expected 2"):
        optimizer.update([ops.ones(2)], state, weights)


def test_only_an_optimizer_itself_is_sharded(backend: str) -> None:
    cells = [Parameter([1.0])]
    with pytest.raises(
        errors.ArgumentTypeError, match="expected an optimizer itself, not Accumulate; wrap the Sharded one"
    ):
        optim.Sharded(optim.Accumulate(optim.SGD(cells, lr=0.5), 2))  # type: ignore[arg-type]
    plan = optim.Sharded(optim.SGD(cells, lr=0.5)).plan({})
    assert not plan.values


def test_a_parameter_of_integers_has_no_step(backend: str) -> None:
    cell = Parameter([1.0, 2.0])
    optimizer = optim.SGD([cell], lr=0.5)
    cell.value = ops.array([1, 2], dtype="int32")
    with pytest.raises(errors.DTypeError, match="has dtype int32, expected a real floating one"):
        optimizer.step({cell: ops.array([1, 2], dtype="int32")})


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize(("share", "first"), [(0.0, None), (0.1, 1.0), (1.0, 0.04)])
def test_a_cycle_may_have_a_phase_without_a_step(
    share: float, first: float | None, strategy: str, backend: str
) -> None:
    rate = optim.schedules.one_cycle(1.0, 10, share, strategy)
    found = [float(rate(i)) for i in range(12)]
    # The rate is highest at the step pct_start * total_steps - 1, as torch's: here before the first step.
    assert found[0] == pytest.approx(first or {"cos": (1 + np.cos(np.pi / 10)) / 2, "linear": 0.9}[strategy], abs=1e-5)
    assert max(found) == pytest.approx(1.0 if first else found[0])
    assert found[-1] == found[9] == pytest.approx(1.0 if share == 1 else 4e-6)


def waves(library: Any, x: Any, seed: int) -> Any:
    """Returns a loss with many minima, whose line searches bracket, zoom and give up."""
    rng = np.random.default_rng(seed)
    size, pace = float(rng.uniform(0.5, 4)), float(rng.uniform(1, 9))
    return library.sum(library.sin(x * pace)) * size + library.sum(library.square(x)) * float(rng.uniform(0.01, 1))


@pytest.mark.parametrize("seed", [*range(6), 42, 86, 100, 106, 122, 162])
def test_line_searches_on_waves_equal_those_of_torch(seed: int, backend: str) -> None:
    torch = pytest.importorskip("torch")
    require(backend, "float64")
    rng = np.random.default_rng(100 + seed)
    start = rng.normal(size=3) * 2
    options: dict[str, Any] = {
        "line_search_fn": "strong_wolfe",
        "lr": [1.0, 0.1, 5.0, 0.01][seed % 4],
        "max_iter": int(rng.integers(1, 5)),
        "max_eval": [None, 3, 40][seed % 3],
        "tolerance_grad": 0.0,
        "tolerance_change": 0.0,
    }
    theirs = torch.tensor(start, requires_grad=True)
    other = torch.optim.LBFGS([theirs], **options)
    ours = Parameter(start)
    optimizer = optim.LBFGS([ours], **options)

    def closure() -> Any:
        other.zero_grad()
        loss = waves(torch, theirs, seed)
        loss.backward()
        return loss.detach()

    for _ in range(2):
        wanted = float(other.step(closure))
        found = float(optimizer.step(lambda: ops.backward(lambda: waves(ops, ours, seed), [ours])))
        assert found == pytest.approx(wanted, rel=1e-8)
        np.testing.assert_allclose(ops.to_numpy(ours.value), theirs.detach().numpy(), 1e-6, 1e-8)


def test_lbfgs_needs_a_parameter(backend: str) -> None:
    for given in ([], None):
        with pytest.raises(errors.ArgumentError, match="there is no Parameter in params"):
            optim.LBFGS(given)  # type: ignore[arg-type]
