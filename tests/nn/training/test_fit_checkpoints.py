"""`nn.fit` with checkpoints: a training that was interrupted anywhere repeats the losses of one that was not."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, nn, ops, optim
from emberharmony.errors import ArgumentError, ArgumentTypeError


class Training:
    """A model with dropout and running means, a schedule, and shuffled batches."""

    def __init__(self, seed: int = 0) -> None:
        rngs = nn.Rngs(seed)
        self.model = nn.Sequential(
            nn.Linear(3, 8, rng=rngs), nn.BatchNorm1d(8), nn.Dropout(0.3, rng=rngs), nn.Linear(8, 1, rng=rngs)
        )
        self.optimizer = optim.AdamW(self.model, lr=optim.schedules.cosine(0.05, 50))
        self.noise = ops.random.Generator(seed)
        x = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
        self.batches: Any = nn.data.batches(x, batch_size=6, rng=rngs.data)
        self.calls = itertools.count(1)
        self.interrupted_in = 0

    def loss(self, x: Any) -> Any:
        noisy = ops.add(x, ops.random.normal((3,), generator=self.noise))
        found = ops.mean(ops.square(self.model(noisy) - 1.0))
        if next(self.calls) == self.interrupted_in:
            raise KeyboardInterrupt
        return found

    def fit(self, folder: Path | None, **options: Any) -> list[tuple[int, str]]:
        """Trains, and returns the losses to the last digit."""
        checkpoint = None if folder is None else io.Checkpoint(folder)
        history = nn.fit(
            self.model,
            self.loss,
            self.optimizer,
            self.batches,
            **{"checkpoint": checkpoint, "progress": False, "random": self.noise, **options},
        )
        return [(step.step, step.loss.hex()) for step in history]


def test_a_training_in_parts_repeats_the_losses_of_one_without_a_break(backend: str, tmp_path: Path) -> None:
    whole = Training().fit(None, steps=11)
    parts = [Training(seed).fit(tmp_path, steps=steps) for seed, steps in ((0, 4), (5, 6), (6, 11), (7, 11))]
    assert [len(part) for part in parts] == [4, 2, 5, 0]
    assert [step for part in parts for step in part] == whole
    assert io.Checkpoint(tmp_path).extra() == {"loss": float.fromhex(whole[-1][1]), "validation": None}


def test_an_interrupted_step_is_taken_back_and_made_again(backend: str, tmp_path: Path) -> None:
    whole = Training().fit(None, epochs=3)
    first = Training()
    first.interrupted_in = 7
    begun = first.fit(tmp_path, epochs=3)
    assert begun == whole[:6]
    assert Training(seed=5).fit(tmp_path, epochs=3) == whole[6:]
    assert Training(seed=6).fit(tmp_path, epochs=3) == []


def test_an_interruption_after_the_step_counts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ops.use_backend("numpy"):
        whole, first = Training().fit(None, steps=5), Training()
        step = first.optimizer.step

        def interrupted() -> None:
            step()
            if first.optimizer.count == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(first.optimizer, "step", interrupted)
        assert first.fit(tmp_path, steps=5) == whole[:3]
        assert Training(seed=5).fit(tmp_path, steps=5) == whole[3:]


def test_checkpoints_are_saved_after_epochs_or_steps_and_at_the_end(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        for options, expected in (
            ({"steps": 10}, [4, 8, 10]),
            ({"epochs": 2}, [4, 8]),
            ({"steps": 7, "checkpoint_every": 3}, [3, 6, 7]),
        ):
            folder = tmp_path / str(expected)
            Training().fit(folder, **options)
            assert io.Checkpoint(folder).steps() == expected


def test_epochs_are_validated_where_they_end_after_a_restart(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        Training().fit(tmp_path, steps=6)
        resumed = Training(seed=5)
        history = nn.fit(
            resumed.model,
            resumed.loss,
            resumed.optimizer,
            resumed.batches,
            epochs=3,
            validation=lambda: 0.5,
            checkpoint=io.Checkpoint(tmp_path),
            progress=False,
            random=resumed.noise,
        )
    assert history.validations == [(8, 0.5), (12, 0.5)]


@pytest.mark.parametrize("unsized", [False, True])
def test_batches_without_a_state_are_left_out_as_far_as_they_were_used(tmp_path: Path, unsized: bool) -> None:
    class Unsized:
        def __init__(self, batches: list[Any]) -> None:
            self.batches = batches

        def __iter__(self) -> Any:
            return iter(self.batches)

    def training(seed: int) -> Training:
        made = Training(seed)
        made.batches = list(Training().batches)
        if unsized:
            made.batches = Unsized(made.batches)
        return made

    with ops.use_backend("numpy"):
        whole = training(0).fit(None, epochs=3)
        assert len(whole) == 12
        assert training(0).fit(tmp_path, steps=6) == whole[:6]
        assert training(5).fit(tmp_path, epochs=3) == whole[6:]


def test_a_loss_that_is_not_finite_saves_the_state_before_it(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        run = Training()
        whole = Training().fit(None, steps=4)
        good = run.loss
        run.loss = lambda x: ops.multiply(good(x), float("nan") if run.optimizer.count == 2 else 1.0)  # type: ignore[method-assign]
        with pytest.warns(nn.NonFiniteLossWarning, match="the loss of step 3 is nan"):
            assert run.fit(tmp_path, steps=4) == whole[:2]
        assert Training(seed=5).fit(tmp_path, steps=4) == whole[2:]


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with ops.use_backend("numpy"):
        with pytest.raises(ArgumentTypeError, match=r"checkpoint is an emberharmony\.io\.Checkpoint, not 'runs'"):
            Training().fit(None, checkpoint="runs")
        with pytest.raises(ArgumentError, match="checkpoint_every must be above 0, got 0"):
            Training().fit(tmp_path, checkpoint_every=0)
