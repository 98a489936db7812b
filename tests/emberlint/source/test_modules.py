"""Modules are found by reading each folder once."""

import os
from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.source.modules import Modules


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "one.py").write_text("")
    (tmp_path / "package" / "inner" / "__init__.py").write_text("")
    (tmp_path / "package" / "folder.py").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("package/one.py", True),
        ("package/inner/__init__.py", True),
        ("package/two.py", False),
        ("package/folder.py", False),
        ("package/one.py/__init__.py", False),
        ("absent/inner/one.py", False),
        ("package/inner/../one.py", True),
        ("package/./one.py", True),
        ("memory/only.py", True),
    ],
)
def test_exists_is_true_of_files_only(root: Path, path: str, expected: bool):
    assert Modules(Settings(root=root), texts=["memory/only.py"]).exists(path) is expected


def test_no_folder_is_read_twice_or_without_being_listed(root: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (read.append(os.path.relpath(folder, root)), scan(folder))[1])
    modules = Modules(Settings(root=root))
    for name in ("one", "two", "one.deep.deeper", "inner", "inner.x"):
        modules.find_module(f"package.{name}", "package/one.py")
    assert sorted(read) == [".", "package", "package/inner"]
