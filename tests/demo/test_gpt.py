"""The GPT of the demo: a training that switches the backend gives what one on NumPy alone gives."""

import copy

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.types import BackendName
from emberharmony.demo import gpt
from emberharmony.errors import BackendNotFoundError


@pytest.mark.slow
def test_sixty_steps_on_three_backends_agree_with_numpy_alone() -> None:
    names = ops.available_backends()
    result = gpt.run(names, steps=60 // len(names))
    assert result.differences.agrees, result.differences
    assert result.reference.losses[-1] < result.reference.losses[0] - 0.5


def test_a_few_steps_agree_and_the_active_backend_is_restored(backend: str) -> None:
    calls: list[None] = []
    result = gpt.run([backend, "numpy"], steps=2, advance=lambda: calls.append(None))
    assert result.differences.agrees, result.differences
    assert [leg.steps for leg in result.legs] == ["1 to 2", "3 to 4"]
    assert len(calls) == 8
    assert ops.get_backend() == backend


def test_no_check_complains_about_a_step(backend: str) -> None:
    training = gpt.Training(10, seed=0)
    with ops.checked("nan", "bounds") as found:
        for _ in range(2):
            training.step()
    assert found == []


def test_the_step_after_a_switch_is_the_one_that_would_have_followed(backend: str) -> None:
    with ops.use_backend("numpy"):
        training = gpt.Training(10, seed=0)
        for _ in range(3):
            training.step()
        batch = next(training.batches)
        training.batches = iter([batch] * 2)
        other = copy.deepcopy({"model": training.model, "optimizer": training.optimizer})
        training.step()
        right = training.arrays()[0]
    training.model, training.optimizer = other["model"], other["optimizer"]
    with ops.use_backend(BackendName(backend)):
        training.step()
    assert training.masks[-1] == training.masks[-2]
    assert abs(training.losses[-1] - training.losses[-2]) <= 1e-6
    for found, wanted in zip(training.arrays()[0], right, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_differences_are_found() -> None:
    with ops.use_backend("numpy"):
        one, other = gpt.Training(4, seed=0), gpt.Training(4, seed=1)
        one.step()
        other.step()
    found = gpt.compare_trainings(one, other)
    assert not found.agrees
    assert not found.masks
    assert found.loss > gpt.LOSS


def test_an_unknown_backend_is_refused_before_the_training() -> None:
    before = ops.get_backend()
    with pytest.raises(BackendNotFoundError):
        gpt.run(["nunpy"], steps=1)
    assert ops.get_backend() == before
