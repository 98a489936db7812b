"""Precision and recall of the tensor rules on labelled files: realistic code with traps.

A line with expected findings ends in `# expect: EMB201 EMB203`. The files in `development` were written together with
the inference, those in `holdout` after it, without looking at its code.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from emberlint.config.settings import Settings
from emberlint.run.check import check_text

FOLDER = Path(__file__).parent / "labelled"
CODES = ("EMB201", "EMB202", "EMB203", "EMB204", "EMB205", "EMB206")
LABEL = re.compile(r"# expect: (EMB\d{3}(?: EMB\d{3})*)$")


class Score(NamedTuple):
    hits: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.hits / (self.hits + self.wrong)

    @property
    def recall(self) -> float:
        return self.hits / (self.hits + self.missed)

    @property
    def expected(self) -> int:
        return self.hits + self.missed


Place = tuple[str, int, str]  # file, line, code


def expected(name: str, text: str) -> set[Place]:
    found = set()
    for number, line in enumerate(text.splitlines(), 1):
        match = LABEL.search(line)
        assert match or "# expect" not in line, f"{name}:{number}: a label that cannot be read"
        found.update((name, number, code) for code in (match.group(1).split() if match else ()))
    return found


def reported(name: str, text: str) -> set[Place]:
    result = check_text(f"library/{name}.py", text, Settings(root=FOLDER), frozenset({*CODES, "EMB000"}))
    return {(name, one.line, one.code) for one in result.findings}


def compare(folder: str) -> tuple[set[Place], set[Place]]:
    wanted: set[Place] = set()
    seen: set[Place] = set()
    for file in sorted((FOLDER / folder).glob("*.py.txt")):
        name, text = file.name.removesuffix(".py.txt"), file.read_text()
        wanted |= expected(name, text)
        seen |= reported(name, text)
    return wanted, seen


def score(wanted: set[Place], seen: set[Place]) -> Score:
    return Score(len(wanted & seen), len(seen - wanted), len(wanted - seen))


@pytest.mark.parametrize("folder", sorted(one.name for one in FOLDER.iterdir()))
def test_precision_and_recall_reach_their_bounds(folder: str) -> None:
    wanted, seen = compare(folder)
    whole = score(wanted, seen)
    told = f"wrong: {sorted(seen - wanted)}, missed: {sorted(wanted - seen)}"
    assert whole.precision >= 0.97, told
    assert whole.recall >= 0.95, told
    for code in CODES:
        one = score({place for place in wanted if place[2] == code}, {place for place in seen if place[2] == code})
        assert one.precision >= 0.9, (code, told)
        assert one.recall >= 0.9, (code, told)


@pytest.mark.parametrize("folder", sorted(one.name for one in FOLDER.iterdir()))
def test_each_rule_has_enough_labelled_lines(folder: str) -> None:
    wanted, _ = compare(folder)
    counts = Counter(code for _, _, code in wanted)
    assert all(counts[code] >= 8 for code in CODES), counts


def test_the_holdout_has_enough_files_and_findings() -> None:
    wanted, _ = compare("holdout")
    assert len({file for file, _, _ in wanted}) >= 25
    assert len(wanted) >= 400
