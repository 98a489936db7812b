"""The engine: the caches, the process pool, and the choice of files and rules."""

import json
from pathlib import Path

import pytest

from emberlint.config.configuration import settings_from_table
from emberlint.config.settings import Contract, Settings
from emberlint.run import check as single
from emberlint.run import engine, pool
from emberlint.run.engine import check
from emberlint.run.file_cache import FOLDER
from emberlint.run.registry import all_rules, codes_of_word
from emberlint.source.discover import discover

CODES = frozenset(all_rules())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(3):
        (tmp_path / f"m{number}.py").write_text(f"import numpy as np\n\nx = np.zeros({number})\n")
    return tmp_path


def codes_of(report: engine.Report) -> list[str]:
    return [f"{one.path}:{one.line}:{one.code}" for one in report.findings]


def test_a_second_run_reads_the_cache(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    first = check(files, settings, CODES)
    monkeypatch.setattr(single, "check_text", lambda *_: pytest.fail("read again"))
    second = check(files, settings, CODES)
    assert first == second
    assert len(first.findings) == 6


def test_a_changed_file_is_read_again(tree: Path) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    check(files, settings, CODES)
    (tree / "m1.py").write_text("x = 1\n")
    assert {one.path for one in check(files, settings, CODES).findings} == {"m0.py", "m2.py"}


def test_findings_are_in_the_order_of_the_files_if_only_some_are_cached(tree: Path) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    check(files, settings, CODES)
    (tree / "m0.py").write_text("import torch\n")
    assert [one.path for one in check(files, settings, CODES).findings] == ["m0.py", "m1.py", "m1.py", "m2.py", "m2.py"]


def test_other_settings_use_another_cache(tree: Path) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    check(files, settings, CODES)
    other = settings.with_changes(backends=("torch",))
    assert check(files, other, CODES).findings == []
    assert len(list((tree / FOLDER).glob("*.json"))) == 2


def test_a_damaged_cache_is_ignored(tree: Path) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    first = check(files, settings, CODES)
    (written,) = (tree / FOLDER).glob("*.json")
    written.write_text(written.read_text()[:100])
    assert check(files, settings, CODES) == first
    assert json.loads(written.read_text())


def test_without_a_cache_nothing_is_written(tree: Path) -> None:
    settings = Settings(root=tree)
    check(discover([tree], settings), settings, CODES, cached=False)
    assert not (tree / FOLDER).exists()


def test_the_pool_reports_the_same_findings(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    alone = check(files, settings, CODES, cached=False)
    monkeypatch.setattr(pool, "POOL_FROM", 0)
    monkeypatch.setattr(pool, "BATCH", 1)
    assert check(files, settings, CODES, jobs=2, cached=False) == alone


def test_project_findings_are_cached_and_follow_changes(tmp_path: Path) -> None:
    package = tmp_path / "lib"
    package.mkdir()
    for name in ("__init__", "high", "low"):
        (package / f"{name}.py").touch()
    contract = Contract("floors", "layers", layers=("lib.high", "lib.low"))
    settings = Settings(root=tmp_path, contracts=(contract,))
    low = {"lib/low.py": package / "low.py"}
    assert codes_of(check(low, settings, CODES)) == []
    (package / "low.py").write_text("from lib import between\n")
    (package / "between.py").write_text("import lib.high\n")
    for _ in range(2):
        report = check(low, settings, CODES)
        assert codes_of(report) == ["lib/low.py:1:EMB301"]
        assert "lib.low -> lib.between -> lib.high" in report.findings[0].message
    (package / "between.py").write_text("")  # this file was not among the checked files
    assert codes_of(check(low, settings, CODES)) == []


def test_project_findings_can_be_silenced(tmp_path: Path) -> None:
    package = tmp_path / "lib"
    package.mkdir()
    (package / "high.py").touch()
    (package / "low.py").write_text("import lib.high  # emberlint: ignore[layer-order] -- until the move\n")
    settings = Settings(root=tmp_path, contracts=(Contract("floors", "layers", layers=("lib.high", "lib.low")),))
    assert codes_of(check({"lib/low.py": package / "low.py"}, settings, CODES)) == []


def test_the_lowest_reported_tier_can_be_raised_and_lowered(tree: Path) -> None:
    source = {"m.py": "from emberharmony import ops\n\nname = ops.get_backend()\nx = name == 'torch'\n"}
    found = [
        engine.check_texts(source, settings_from_table({"min-tier": tier}, tree), CODES).findings
        for tier in ("A", "B", "C")
    ]
    assert [len(one) for one in found] == [0, 1, 1]


def test_rules_are_chosen_by_code_prefix_or_name() -> None:
    assert codes_of_word("EMB9") == codes_of_word("EMB9xx") == tuple(f"EMB90{number}" for number in range(1, 6))
    assert codes_of_word("backend-use") == ("EMB102",)
    assert codes_of_word("all") == tuple(all_rules())


def test_discovery_skips_excluded_files_unless_they_are_named(tmp_path: Path) -> None:
    for name in ("a/b.py", "a/c.txt", "a/d.pyi", ".venv/e.py", "build/f.py", "a/__pycache__/g.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    settings = Settings(root=tmp_path)
    assert [*discover([tmp_path], settings)] == ["a/b.py", "a/d.pyi"]
    assert [*discover([tmp_path / "build"], settings)] == ["build/f.py"]
    assert [*discover([tmp_path / "a" / "c.txt"], settings)] == ["a/c.txt"]
