"""Trainings on several ranks are that of one process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops, optim
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import ArgumentError, CheckpointError
from tests.distributed.learner import batches, bits, host, loss_of, model, trained
from tests.distributed.ranks import right, run

MIXED = (tuple(name for name in BUILTIN if is_installed(name)) * 4)[:4]


def alone(steps: int = 5, **options: Any) -> tuple[list[float], dict[str, Any]]:
    with ops.use_backend("numpy"):
        net = model()
        return trained(net, optim.AdamW(net, lr=0.05, **options), batches(), steps), host(net)


def require_close(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert list(found) == list(wanted)
    for name, x in wanted.items():
        np.testing.assert_allclose(found[name], x, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("is_sharded", [False, True], ids=["whole", "sharded"])
def test_ranks_with_parts_of_batches_are_one_process(
    monkeypatch: pytest.MonkeyPatch, size: int, is_sharded: bool
) -> None:
    def program(world: Any) -> Any:
        net = nn.DataParallel(model(seed=world.rank))  # it takes the weights of rank 0
        optimizer: Any = optim.AdamW(net, lr=0.05)
        optimizer = optim.Sharded(optimizer) if is_sharded else optimizer
        losses = trained(net, optimizer, batches(shard=True), 5, net.synchronize)
        return losses, host(net), len(optimizer.state)

    losses, weights = alone()
    kept = 0
    for found_losses, found, states in right(run(monkeypatch, MIXED[:size], program)):
        np.testing.assert_allclose(found_losses, losses, rtol=1e-5)
        require_close(found, weights)
        kept += states
    assert kept == (4 if is_sharded else 4 * size)


def test_the_order_of_ranks_gives_the_bits_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process that adds the gradients of 4 parts in the order of the tree has the same weights, to the bit."""
    with ops.use_backend("numpy"):
        wanted = bits(None)
    for size in (1, 2, 4):
        for found in right(run(monkeypatch, ("numpy",) * size, bits)):
            assert found == wanted, size


def test_fit_on_ranks_continues_from_checkpoints_with_other_numbers_of_ranks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def program(world: Any, steps: int) -> Any:
        net = nn.DataParallel(model())
        optimizer = optim.Sharded(optim.AdamW(net, lr=0.05))
        checkpoint = io.RankCheckpoint(tmp_path)
        history = nn.fit(
            net,
            lambda x, y: loss_of(net, x, y),
            optimizer,
            batches(shard=True),
            steps=steps,
            clip=1.0,
            progress=False,
            checkpoint=checkpoint,
            checkpoint_every=3,
        )
        return history.losses, host(net)

    with ops.use_backend("numpy"):
        net = model()
        optimizer = optim.AdamW(net, lr=0.05)
        history = nn.fit(net, lambda x, y: loss_of(net, x, y), optimizer, batches(), steps=7, clip=1.0, progress=False)
        wanted = host(net)
    losses: list[float] = []
    for size, steps in ((2, 3), (4, 5), (1, 7)):
        found = right(run(monkeypatch, ("numpy",) * size, lambda world, steps=steps: program(world, steps)))
        assert all(each[0] == found[0][0] for each in found)
        losses += found[0][0]
    np.testing.assert_allclose(losses, history.losses, rtol=1e-5)
    require_close(found[0][1], wanted)


def test_checkpoints_of_each_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def program(world: Any) -> Any:
        net, generator = nn.DataParallel(model()), ops.random.Generator(world.rank)
        checkpoint = io.RankCheckpoint(tmp_path, sharded=True)
        assert checkpoint.latest() is None
        parts = {"model": net, "optimizer": optim.AdamW(net), "random": generator}
        checkpoint.save(2, **parts)
        wanted = ops.random.normal((2,), generator=generator).tolist()
        assert checkpoint.restore(**parts) == 2
        assert ops.random.normal((2,), generator=generator).tolist() == wanted
        if world.rank == 1:
            (tmp_path / "rank-1-of-2" / "step-000002" / "model.safetensors").write_bytes(b"damaged")
        with pytest.raises(CheckpointError, match="could not be restored on all ranks\n  rank 1: "):
            checkpoint.restore(step=2, **parts)
        return wanted

    first, other = right(run(monkeypatch, ("numpy", "numpy"), program))
    assert first != other
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank-0-of-2", "rank-1-of-2"]


def test_parameters_without_gradients_and_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        net = nn.DataParallel(nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.BatchNorm1d(1)]))
        one, other, norm = net.module
        one.weight.grad = ops.full_like(one.weight.value, 2.0)
        if world.rank == 1:
            other.weight.grad = ops.full_like(other.weight.value, 4.0)
        norm.running_mean.value = ops.full((1,), 5.0 + world.rank)
        loss = net.synchronize(ops.array(float(world.rank)))
        found = [one.weight.grad.tolist(), other.weight.grad.tolist(), one.bias.grad]
        return found, norm.running_mean.value.tolist(), float(loss)

    for found in right(run(monkeypatch, MIXED[:2], program)):
        assert found == ([[[2.0]], [[2.0]], None], [5.0], 0.5)


def test_parts_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(world: Any) -> Any:
        data = nn.data.batches(np.arange(11), batch_size=4, shuffle=False, shard=True)
        rows = [batch.tolist() for batch in data]
        with pytest.raises(ArgumentError, match="batch_size 3 does not divide by the 2 ranks"):
            nn.data.batches(np.arange(11), batch_size=3, shard=True, rng=ops.random.Generator(0))
        with pytest.raises(ArgumentError, match=r"other rows or generators; pass rng=ops.random.Generator\(0\)"):
            nn.data.batches(np.arange(11), batch_size=4, shard=True, rng=ops.random.Generator(world.rank))
        return rows

    first, other = right(run(monkeypatch, ("numpy", "numpy"), program))
    assert (first, other) == ([[0, 1], [4, 5], [8]], [[2, 3], [6, 7], [9]])
