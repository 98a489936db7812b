"""The program on the landing page prints what the page shows beside it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from emberharmony import ops

PAGE = Path(__file__).parents[2] / "docs" / "index.md"


@pytest.mark.sampled(2)
def test_the_program_prints_the_output_beside_it() -> None:
    if missing := {"numpy", "torch", "mlx"} - set(ops.available_backends()):
        pytest.skip(f"the program switches to {', '.join(sorted(missing))} too")
    program, output = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout == output
