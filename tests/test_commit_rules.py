"""Tests of the rules for commit subjects."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gitlint")
ROOT = Path(__file__).parents[1]


def lint(message: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.argv[0] = 'gitlint'; from gitlint.cli import cli; cli()"
    command = [sys.executable, "-c", program, "--ignore-stdin", "--msg-filename", "/dev/stdin"]
    return subprocess.run(command, input=message, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    "subject", ["ops/math: add logaddexp", "Make emberlint a distribution of its own", "backend/mlx: clamp shifts"]
)
def test_a_subject_in_the_imperative_passes(subject: str) -> None:
    assert lint(f"{subject}\n").returncode == 0


@pytest.mark.fresh_process
@pytest.mark.parametrize("subject", ["docs: a quarter", "Added a test", "ops: " + "add " * 20])
def test_a_subject_that_is_too_long_or_not_imperative_is_refused(subject: str) -> None:
    done = lint(f"{subject}\n")
    assert done.returncode != 0
    assert "UC1" in done.stderr or "T1" in done.stderr
