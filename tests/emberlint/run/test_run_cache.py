"""The cache of whole runs: valid only while the files are unchanged, and written only after a tick of the clock."""

import os
import time
from pathlib import Path

import pytest

from emberlint.config.settings import Contract, Settings
from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Fix, Report, Safety
from emberlint.run import run_cache
from emberlint.run.file_cache import FOLDER
from emberlint.run.run_cache import RunCache
from emberlint.source.discover import discover

FOUND = [
    Finding("EMB201", "tensor-operator", "a.py", 1, 1, 1, 6, "a plus", Tier.B, "seen", Fix(Safety.SAFE, "do", "x")),
    Finding("EMB000", "syntax-error", "b.py", 2, 1, 2, 1, "torn"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py"):
        write(tmp_path / name, "x = 1\n")
    return tmp_path


def write(file: Path, text: str, age: float = 60.25) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    then = time.time() - age
    os.utime(file, (then, then))


def run(tree: Path, words: tuple[str, ...] = ("all",), settings: Settings | None = None) -> RunCache:
    settings = settings or Settings(root=tree)
    return RunCache(settings, words, discover([tree], settings))


@pytest.fixture(autouse=True)
def changes_of_the_inode_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the tick negative, because a test cannot set the ctime of a file."""
    monkeypatch.setattr(run_cache, "TICK", -1_000_000_000)


def test_the_same_run_is_remembered(tree: Path) -> None:
    first = run(tree)
    assert first.recall_findings() is None
    first.store_report(Report(FOUND, ()))
    assert run(tree).recall_findings() == FOUND


def test_the_lines_of_the_report_are_remembered_by_file(tree: Path) -> None:
    run(tree).store_report(Report(FOUND, ()))
    expected = {one.path: [f"{one.line}:1: {one.code} {one.name}: {one.message}"] for one in FOUND}
    assert run(tree).entries() == expected


def test_a_new_file_where_a_module_was_sought_is_noticed(tree: Path) -> None:
    run(tree).store_report(Report(FOUND, (), absent=("c.py", "deep/er/d.py", "deep/er/d/__init__.py")))
    assert run(tree).recall_findings() == FOUND
    write(tree / "deep.txt", "")
    assert run(tree).recall_findings() == FOUND
    (tree / "deep").mkdir()  # which may soon have the file
    assert run(tree).recall_findings() is None


def test_a_clean_run_is_remembered_as_clean(tree: Path) -> None:
    run(tree).store_report(Report([], ()))
    assert run(tree).recall_findings() == []


@pytest.mark.parametrize("text", ["x = 2\n", "x = 11\n"])
def test_a_touched_file_is_noticed(tree: Path, text: str) -> None:
    run(tree).store_report(Report(FOUND, ()))
    write(tree / "b.py", text)
    assert run(tree).recall_findings() is None


def test_added_and_deleted_files_are_noticed(tree: Path) -> None:
    run(tree).store_report(Report(FOUND, ()))
    write(tree / "c.py", "")
    assert run(tree).recall_findings() is None
    (tree / "c.py").unlink()
    assert run(tree).recall_findings() == FOUND
    (tree / "b.py").unlink()
    assert run(tree).recall_findings() is None


def test_other_options_or_settings_do_not_use_the_cached_run(tree: Path) -> None:
    run(tree).store_report(Report(FOUND, ()))
    assert run(tree, ("EMB101",)).recall_findings() is None
    assert run(tree, settings=Settings(root=tree, backends=("torch",))).recall_findings() is None


def test_a_change_in_a_file_that_contracts_examine_is_noticed(tree: Path) -> None:
    write(tree / "lib" / "low.py", "")
    contract = Contract("floors", "layers", layers=("lib.high", "lib.low"))
    settings = Settings(root=tree, contracts=(contract,))
    asked = {"a.py": tree / "a.py"}
    RunCache(settings, (), asked).store_report(Report(FOUND, ()))
    assert RunCache(settings, (), asked).recall_findings() == FOUND
    write(tree / "lib" / "low.py", "import lib.high\n")
    assert RunCache(settings, (), asked).recall_findings() is None


def test_a_run_over_a_file_just_written_is_not_cached(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cache, "TICK", 3_600_000_000_000)
    run(tree).store_report(Report(FOUND, ()))
    assert not (tree / FOLDER).exists()


def test_times_in_whole_seconds_count_as_a_coarse_clock(tree: Path) -> None:
    os.utime(tree / "a.py", ns=(0, (time.time_ns() // 1_000_000_000 + 1) * 1_000_000_000))
    run(tree).store_report(Report(FOUND, ()))
    assert run(tree).recall_findings() is None


def test_a_damaged_run_cache_is_ignored(tree: Path) -> None:
    run(tree).store_report(Report(FOUND, ()))
    (kept,) = (tree / FOLDER).glob("*.run")
    head, entries, findings = kept.read_text().split("\n")
    for text in (head[:20], head, f"{head}\n{entries[:20]}", f"{head}\n{entries}\n{findings[:20]}"):
        kept.write_text(text)
        assert run(tree).recall_findings() is None
    assert run(tree).entries() is not None
    kept.write_text(f"{head}\n{entries[:20]}")
    assert run(tree).entries() is None


def test_a_file_deleted_meanwhile_disables_the_run_cache(tree: Path) -> None:
    settings = Settings(root=tree)
    files = discover([tree], settings)
    (tree / "b.py").unlink()
    gone = RunCache(settings, ("all",), files)
    gone.store_report(Report(FOUND, ()))
    assert gone.recall_findings() is None
    assert not (tree / FOLDER).exists()
