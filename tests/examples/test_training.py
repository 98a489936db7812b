"""The training examples: a few steps on every backend, and the whole of each among the slow tests."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.demo.programs import load_example

EXAMPLES = Path(__file__).parents[2] / "examples" / "training"
NUMBER = r"([\d.]+)"
LAST = {"gpt": 3.9, "residual": 2.2, "lstm": 1.46, "vae": 44.0}
"""By example, what the loss of a few steps must fall below."""

RESULTS = {
    "gpt": rf"loss {NUMBER} at first, {NUMBER} at last\n\n(?:.+\n)*",
    "residual": rf"loss {NUMBER}, {NUMBER}% of 397 held-out images\n",
    "lstm": rf"loss {NUMBER}, {NUMBER}% of 1500 symbols are repeated rightly\n",
    "vae": rf"{NUMBER} nats per image at first, {NUMBER} at last\n",
}
GOALS: dict[str, Any] = {
    "gpt": lambda first, last: first > 4 and last < 2.5,
    "residual": lambda loss, share: share >= 97,
    "lstm": lambda loss, share: share >= 99,
    "vae": lambda first, last: first > 44 and last < 30,
}


def test_every_training_example_is_tested() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(LAST) == set(RESULTS) == set(GOALS)


@pytest.mark.parametrize("name", LAST)
def test_a_few_steps_reduce_the_loss_as_they_do_on_numpy(name: str, backend: str) -> None:
    program = load_example(f"training/{name}")
    history = program.train(steps=8, size=8, progress=False)[-1]
    with ops.use_backend("numpy"):
        right = program.train(steps=8, size=8, progress=False)[-1]
    assert history.losses[-1] < LAST[name]
    np.testing.assert_allclose(history.losses, right.losses, rtol=1e-4)


def test_the_gpt_goes_on_after_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = load_example("training/gpt")
    compute, calls = program.loss, []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return compute(*args)

    with ops.use_backend("numpy"):
        whole = program.train(3, 2, progress=False)[-1]
        monkeypatch.setattr(program, "loss", interrupted)
        parts = [program.train(3, 2, progress=False, folder=str(tmp_path))[-1] for _ in range(3)]
    assert [[step.step for step in part] for part in parts] == [[1], [2, 3], []]
    assert [loss for part in parts for loss in part.losses] == whole.losses


@pytest.mark.slow
@pytest.mark.fresh_process
@pytest.mark.parametrize("name", LAST)
def test_an_example_reaches_its_goal(name: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERHARMONY_BACKEND", backend)
    options = ["--picture", str(tmp_path / "digits.png")] if name == "vae" else []
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options], capture_output=True, text=True, check=True
    )
    found = re.fullmatch(f"{backend}: {RESULTS[name]}", done.stdout)
    assert found is not None, done.stdout
    assert GOALS[name](*map(float, found.groups())), done.stdout


@pytest.mark.parametrize("name", LAST)
def test_no_check_complains_about_an_example(name: str, backend: str) -> None:
    program = load_example(f"training/{name}")
    with ops.checked("nan", "bounds") as found:
        program.train(steps=2, size=8, progress=False)
    assert found == []
