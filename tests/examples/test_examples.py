"""Every example runs on every backend, as a user runs it, with a checked result."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBER = r"(-?[\d.]+)"

RESULTS: dict[str, tuple[str, Callable[..., bool]]] = {
    "softmax_regression": (
        f"loss {NUMBER}, accuracy {NUMBER} on 397 held-out images",
        lambda loss, accuracy: loss < 0.15 and accuracy > 0.95,
    ),
    "logistic_regression": (
        f"loss {NUMBER}, {NUMBER}% of the points on the right side",
        lambda loss, share: abs(loss - 0.1662) < 1e-3 and share > 92,
    ),
    "mlp_digits": (
        f"loss {NUMBER}, {NUMBER}% of 397 held-out images",
        lambda loss, share: loss < 0.05 and share > 97,
    ),
    "gaussian_process": (
        f"length {NUMBER}, amplitude {NUMBER}, noise {NUMBER} of 0.1, negative log-likelihood {NUMBER}, "
        f"largest error {NUMBER}",
        lambda length, amplitude, noise, likelihood, error: (
            abs(noise - 0.1) < 0.02 and abs(likelihood + 0.5712) < 1e-3 and error < 0.17
        ),
    ),
    "least_squares": (
        f"loss {NUMBER} before, {NUMBER} in the last step; largest error {NUMBER}",
        lambda before, after, error: before > 10 and after < 0.012 and error < 0.02,
    ),
    "newton": (
        rf"\[{NUMBER}, {NUMBER}, {NUMBER}\] after {NUMBER} steps of Newton's method",
        lambda x, y, z, steps: (x, y, z) == (1, 1, 1) and steps < 40,
    ),
    "neural_ode": (
        f"mean squared distance {NUMBER} before, {NUMBER} after training",
        lambda before, after: before > 0.3 and after < 0.01,
    ),
}


def test_every_example_has_a_checked_result() -> None:
    assert set(RESULTS) == {file.stem for file in EXAMPLES.glob("*.py")}


def test_examples_are_short() -> None:
    assert all(20 <= len(file.read_text().splitlines()) <= 80 for file in EXAMPLES.glob("*.py"))


PROGRAM = """
import runpy, sys
for path in sys.argv[1:]:
    print("==", path)
    runpy.run_path(path, run_name="__main__")
"""


@pytest.mark.fresh_process
def test_examples_run(backend: str) -> None:
    """Runs all examples in one process, because a process for each would import the library of the backend again."""
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend}
    files = [str(EXAMPLES / f"{name}.py") for name in sorted(RESULTS)]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *files], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    printed = dict(part.split("\n", 1) for part in done.stdout.split("== ")[1:])
    for file in files:
        form, is_right = RESULTS[Path(file).stem]
        found = re.fullmatch(f"{backend}: {form}\n", printed[file])
        assert found is not None, (file, printed[file])
        assert is_right(*map(float, found.groups())), (file, printed[file])
