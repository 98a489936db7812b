"""Type checkers report wrong calls of ops and accept right ones."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import portion

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRONG, RIGHT = HERE / "wrong_calls.py", HERE / "right_calls.py"
pytestmark = pytest.mark.fresh_process


def reported(checker: str) -> dict[Path, dict[int, str]]:
    """Returns, for each of the two files, the lines that a checker reports, with the first message of each."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    options = ["--pythonpath", sys.executable] if checker == "pyright" else []  # mypy's cache is that of `make check`
    command = [sys.executable, "-m", checker, *options, str(WRONG), str(RIGHT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if checker == "pyright" and "npm" in done.stderr + done.stdout and done.returncode not in (0, 1):
        pytest.skip("pyright cannot load its program from the registry of npm")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[Path, dict[int, str]] = {WRONG: {}, RIGHT: {}}
    for path, lines in found.items():
        for line, message in re.findall(rf"{path.name}:(\d+)(?::\d+)?(?: -)?:? error: (.*)", done.stdout):
            lines.setdefault(int(line), message)
    return found


@pytest.mark.parametrize("checker", portion(["mypy", "pyright"], 2))
def test_wrong_calls_are_reported_and_right_ones_are_not(checker: str) -> None:
    lines = WRONG.read_text(encoding="utf-8").split("\n")
    planted = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(planted) >= 30
    both = reported(checker)
    found = both[WRONG]
    assert set(found) <= planted, {lines[number - 1]: found[number] for number in set(found) - planted}
    missed = [lines[number - 1] for number in sorted(planted - set(found))]
    print(f"{checker}: {len(planted) - len(missed)} of {len(planted)} wrong calls are reported")  # noqa: T201  (shown by `pytest -s`)
    assert missed == []
    if all(importlib.util.find_spec(name) for name in ("torch", "mlx")):
        assert both[RIGHT] == {}
