"""A training goes on where it was: to the last digit on one backend, and on others from the same state."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from emberharmony import io, nn, ops, optim
from tests.io.checkpoints.trainings import Training, restored
from tests.sampling import portion

SAVED, LATER = 5, 6
"""After how many steps the checkpoint is saved, in the middle of the second epoch, and how many follow."""


def test_a_resumed_training_repeats_the_losses_to_the_last_digit(backend: str, tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path)
    whole = Training()
    whole.train(SAVED)
    checkpoint.save(SAVED, **whole.parts)
    losses = whole.train(LATER)
    resumed = Training(seed=9)
    assert resumed.train(2) != losses[:2]
    assert checkpoint.restore(**resumed.parts) == SAVED
    assert resumed.train(LATER) == losses
    assert resumed.everything() == whole.everything()


def test_default_streams_continue_on_the_same_backend(backend: str, tmp_path: Path) -> None:
    checkpoint, generator = io.Checkpoint(tmp_path), ops.random.Generator(0)
    ops.random.normal(3)
    checkpoint.save(1, random=generator)
    drawn = ops.random.normal(3).tolist()
    checkpoint.restore(random=generator)
    assert ops.random.normal(3).tolist() == drawn


def initial() -> list[Any]:
    """Returns the initial values of a layer, which are drawn on the host."""
    return ops.to_numpy(nn.Linear(2, 1).weight.value).tolist()


def test_another_backend_continues_streams_of_the_host(tmp_path: Path) -> None:
    checkpoint, generator = io.Checkpoint(tmp_path), ops.random.Generator(0)
    drawn = {}
    for name in ops.available_backends():
        with ops.use_backend("numpy"):
            ops.random.seed(3)
            initial()
            checkpoint.save(1, random=generator)
        with ops.use_backend(name), warnings.catch_warnings():
            warnings.simplefilter("error")
            initial()
            checkpoint.restore(random=generator)
            drawn[name] = initial()
    assert len(set(map(repr, drawn.values()))) == 1, drawn


def test_another_backend_continues_the_same_state_order_and_masks(backend: str, tmp_path: Path) -> None:
    checkpoint = io.Checkpoint(tmp_path)
    whole = Training()
    whole.train(SAVED)
    ops.random.normal(3)
    checkpoint.save(SAVED, **whole.parts)
    before = whole.everything()
    mask = nn.Dropout(0.3, rng=whole.model.last.rng)
    names = portion([name for name in ops.available_backends() if name != backend], 2)
    for other in names:
        with ops.use_backend(other):
            resumed = Training(seed=9)
            (note,) = restored(checkpoint, resumed)
            assert "default random streams" in note
            assert f"{backend} " in note
            assert f"{other} " in note
            assert resumed.everything() == before  # weights, state, steps, learning rate, generators, position
    others = {}
    for other in (backend, *names):
        with ops.use_backend(other):
            resumed = Training(seed=9)
            restored(checkpoint, resumed)
            mask = nn.Dropout(0.3, rng=resumed.model.last.rng)
            masks = (ops.to_numpy(mask(ops.ones((5, 8)))) != 0).tolist()
            order = [ops.to_numpy(y).tolist() for _ in range(2) for _, y in resumed.data]
            noise = ops.to_numpy(ops.random.normal((3,), generator=resumed.random)).tolist()
            restored(checkpoint, resumed)
            resumed = Training(seed=9)
            restored(checkpoint, resumed)
            others[other] = (masks, order, noise), [float.fromhex(loss) for loss in resumed.train(LATER)]
    for exact, losses in others.values():
        assert exact == others[backend][0]
        assert losses == pytest.approx(others[backend][1], abs=1e-5)


def test_wrappers_averages_scalers_and_rates_with_a_state_continue(tmp_path: Path) -> None:
    def parts(rate: float) -> dict[str, Any]:
        models = {"left": nn.Linear(2, 1, rng=ops.random.Generator(0)), "right": nn.PReLU()}
        plateau = optim.ReduceOnPlateau(rate, patience=0)
        inner = optim.SGD(models["left"], lr=plateau, momentum=0.9)
        optimizers = {
            "steps": optim.Accumulate(optim.Lookahead(inner, k=2), 2),
            "average": optim.EMA(models["left"]),
            "scaler": optim.LossScaler(rate),
            "newton": optim.LBFGS(models["right"], history_size=2, max_iter=3),
        }
        return {"model": models, "optimizer": optimizers, "random": [ops.random.Generator(0), nn.Rngs(1)]}

    def train(given: dict[str, Any]) -> list[Any]:
        model, optimizers = given["model"], given["optimizer"]
        for i in range(3):
            ops.backward(lambda: ops.sum(ops.square(model["left"]([[1.0, 2.0]]))), model["left"])
            optimizers["steps"].step()
            optimizers["average"].update()
            optimizers["scaler"].scale *= 2
            optimizers["steps"].param_groups[0]["lr"].observe(1.0 + i)
            loss = lambda: ops.sum(ops.square(model["right"]([-1.0, 2.0]) - 1.0))
            optimizers["newton"].step(lambda loss=loss: ops.backward(loss, model["right"]))  # type: ignore[misc]
        drawn = [ops.random.normal((2,), generator=g).tolist() for g in (given["random"][0], given["random"][1].noise)]
        return [drawn, *(str(part.state_dict()) for kind in ("model", "optimizer") for part in given[kind].values())]

    with ops.use_backend("numpy"):
        checkpoint, whole, resumed = io.Checkpoint(tmp_path), parts(0.1), parts(0.1)
        train(whole)
        checkpoint.save(3, **whole)
        later = train(whole)
        checkpoint.restore(**resumed)
        assert resumed["optimizer"]["steps"].param_groups[0]["lr"].lr < 0.1
        assert train(resumed) == later


class Foreign:
    """A part of another library: it has a state, and changes at once or raises."""

    def __init__(self, value: int) -> None:
        self.value = {"now": value}

    def state_dict(self) -> dict[str, int]:
        return self.value

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.value.update(state)
        if state["now"] < 0:
            raise RuntimeError("below 0")


def test_parts_of_other_libraries_are_as_before_after_an_error(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        checkpoint, layer = io.Checkpoint(tmp_path), nn.Linear(1, 1)
        checkpoint.save(1, model=nn.Linear(1, 1), data={"a": Foreign(1), "b": Foreign(2)})
        checkpoint.save(2, model=nn.Linear(1, 1), data={"a": Foreign(3), "b": Foreign(-1)})
        a, b = Foreign(8), Foreign(9)
        weight = layer.weight.value.tolist()
        with pytest.raises(io.CheckpointError, match=r"data\['b'\]: below 0"):
            checkpoint.restore(model=layer, data={"a": a, "b": b})
        assert (a.value, b.value, layer.weight.value.tolist()) == ({"now": 8}, {"now": 9}, weight)
        checkpoint.restore(model=layer, data={"a": a, "b": b}, step=1)
        assert (a.value, b.value) == ({"now": 1}, {"now": 2})
        assert layer.weight.value.tolist() != weight


@pytest.mark.slow
def test_parts_of_torch_continue_and_are_as_before_after_an_error(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def parts(width: int = 3) -> dict[str, Any]:
        model = torch.nn.Linear(width, 1)
        return {"model": model, "optimizer": torch.optim.Adam(model.parameters())}

    def train(given: dict[str, Any]) -> Any:
        given["optimizer"].zero_grad()
        given["model"](torch.ones(3)).sum().backward()
        given["optimizer"].step()
        return given["model"].weight.tolist()

    with ops.use_backend("torch"):
        checkpoint, whole, resumed, other = io.Checkpoint(tmp_path), parts(), parts(), parts(4)
        train(whole)
        checkpoint.save(1, **whole)
        checkpoint.restore(**resumed)
        assert train(resumed) == train(whole)
        before = other["model"].weight.tolist()
        own = nn.Linear(4, 1)
        weight = own.weight.value.tolist()
        with pytest.raises(io.CheckpointError, match="size mismatch"):
            checkpoint.restore(**other)
        assert other["model"].weight.tolist() == before
        assert not other["optimizer"].state
        checkpoint.save(2, model={"a": nn.Linear(4, 1), "b": parts()["model"]})
        with pytest.raises(io.CheckpointError, match=r"(?s)model\['b'\]: .*size mismatch"):
            checkpoint.restore(model={"a": own, "b": other["model"]})
        assert own.weight.value.tolist() == weight
