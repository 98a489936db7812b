"""The baseline: it accepts findings by content, and only shrinks."""

import json
from pathlib import Path

import pytest

from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.findings import Finding
from emberlint.run.baseline import apply_baseline, read_entries, shrink_baseline, stale_findings
from emberlint.run.engine import check_texts
from emberlint.run.registry import all_rules

PATH = "library/module.py"
CHECKED = frozenset({PATH})


def findings(source: str) -> list[Finding]:
    return check_texts({PATH: source}, Settings(root=Path("/nowhere")), frozenset(all_rules())).findings


def test_accepted_findings_stay_accepted_when_their_lines_move(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("import numpy\n"), CHECKED)
    new, left = apply_baseline(findings("'''Longer now.'''\n\nimport   numpy\nimport torch\n"), read_entries(file))
    assert [one.line for one in new] == [3, 4]
    new, left = apply_baseline(findings("'''Longer now.'''\n\nimport numpy\nimport torch\n"), read_entries(file))
    assert [one.line for one in new] == [4]
    assert not left


def test_the_same_line_twice_counts_twice(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("import numpy\n"), CHECKED)
    new, _ = apply_baseline(findings("import numpy\nimport numpy\n"), read_entries(file))
    assert len(new) == 1


def test_a_baseline_only_shrinks(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("import numpy\nimport torch\n"), CHECKED)
    assert sum(read_entries(file).values()) == 2
    shrink_baseline(file, findings("import torch\nimport jax\n"), CHECKED)
    new, _ = apply_baseline(findings("import torch\nimport jax\n"), read_entries(file))
    assert [one.line for one in new] == [2]


def test_entries_of_files_not_checked_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("import numpy\n"), CHECKED)
    shrink_baseline(file, [], frozenset({"library/other.py"}))
    assert sum(read_entries(file).values()) == 1


def test_a_stale_entry_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("import numpy\nimport torch\n"), CHECKED)
    _, left = apply_baseline(findings("import torch\n"), read_entries(file))
    found = stale_findings(file, "accepted.json", left, CHECKED)
    assert [one.code for one in found] == ["EMB905"]
    gone = next(iter(left))
    assert gone.fingerprint in file.read_text().splitlines()[found[0].line - 1]
    assert stale_findings(file, "accepted.json", left, frozenset()) == []


def test_a_file_that_does_not_parse_is_never_accepted(tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    shrink_baseline(file, findings("x = (\n"), CHECKED)
    assert json.loads(file.read_text())["entries"] == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "entries": []}', '{"version": 1, "entries": [{}]}'])
def test_a_file_that_is_not_a_baseline_raises_a_usage_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "accepted.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="baseline"):
        read_entries(file)
