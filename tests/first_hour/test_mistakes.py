"""What typical mistakes print says what to do; `README.md` has the rule of the scores."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.first_hour.mistake import AREAS, LATER, Mistake, mistakes, output_of

ALL = list(mistakes([*AREAS, *LATER]))


@pytest.mark.parametrize("mistake", [pytest.param(mistake, id=f"{area}: {mistake.name}") for area, mistake in ALL])
def test_the_output_says_what_the_score_was_given_for(mistake: Mistake, tmp_path: Path) -> None:
    needs = (mistake.backend, *mistake.needs, *(["IPython"] if mistake.notebook else []))
    if not all(importlib.util.find_spec(name) for name in needs):
        pytest.skip("a library is missing")
    output = output_of(mistake, tmp_path)
    assert re.search(mistake.says, output, re.DOTALL), output
    assert not mistake.not_says or not re.search(mistake.not_says, output), output
    assert not mistake.lines or len(output.splitlines()) <= mistake.lines, output
