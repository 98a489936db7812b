"""The files around a document are known until one of them, a folder or the imports change."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run import run_cache
from emberlint.run.file_cache import FileCache
from emberlint.server.surroundings import Surroundings

TEXT = "from library.core import made\n\ny = made() + 1\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_cache, "TICK", -1_000_000_000)  # a test cannot set the ctime of a file
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "core.py").write_text("from library.low import f as made\n")
    (tmp_path / "library" / "low.py").write_text("def f():\n    return 3\n")
    (tmp_path / "library" / "user.py").write_text("")
    return tmp_path


def around(root: Path) -> Surroundings:
    settings = Settings(root=root)
    return Surroundings("library/user.py", TEXT, settings, FileCache(settings, (), enabled=False))


def test_they_hold_while_only_the_document_changes(root: Path) -> None:
    kept = around(root)
    (root / "library" / "user.py").write_text(TEXT)
    assert kept.hold(TEXT)
    assert kept.hold(TEXT + "z = y * 2\nimport math\n")


@pytest.mark.parametrize("text", ["", "import library.low\n" + TEXT, "def f():\n    " + TEXT.split("\n")[0]])
def test_another_import_of_the_document_ends_them(root: Path, text: str) -> None:
    assert not around(root).hold(text)


def test_a_change_of_a_file_that_is_imported_indirectly_ends_them(root: Path) -> None:
    kept = around(root)
    (root / "library" / "low.py").write_text("def f():\n    return 34\n")
    assert not kept.hold(TEXT)


@pytest.mark.parametrize("name", ["library/core/__init__.py", "library.py"])
def test_a_new_file_that_a_module_may_be_ends_them(root: Path, name: str) -> None:
    kept = around(root)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("")
    assert not kept.hold(TEXT)


def test_a_file_that_is_gone_ends_them(root: Path) -> None:
    kept = around(root)
    (root / "library" / "low.py").unlink()
    assert not kept.hold(TEXT)


def test_files_that_may_change_without_another_time_are_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cache, "TICK", 3_600_000_000_000)
    assert not around(root).hold(TEXT)
