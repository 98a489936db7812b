"""Discovery of files: exclusion, paths named by the user, links."""

from pathlib import Path

import pytest

from emberlint.config.errors import UsageError
from emberlint.config.settings import Settings
from emberlint.source.discover import discover


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_paths_are_relative_to_the_root_and_sorted(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.py", "a/y/x.py", "a/note.txt")
    found = discover([tmp_path / "a", tmp_path], Settings(root=tmp_path))
    assert [*found] == ["a/y/x.py", "a/z.py", "b.py"]
    assert found["a/z.py"].samefile(tmp_path / "a" / "z.py")


def test_outside_the_root_patterns_apply_to_paths_below_the_folder(tmp_path: Path) -> None:
    make(tmp_path, "here/x.py", "build/there/a.py", "build/there/build/b.py")
    settings = Settings(root=tmp_path / "here")
    assert [*discover([tmp_path / "build" / "there"], settings)] == ["../build/there/a.py"]
    assert [*discover([tmp_path], settings)] == ["../here/x.py"]


def test_a_folder_named_by_the_user_is_not_excluded_by_its_own_name(tmp_path: Path) -> None:
    make(tmp_path, "build/a.py", "build/.hidden/b.py")
    assert [*discover([tmp_path / "build"], Settings(root=tmp_path))] == ["build/a.py"]


def test_links_to_folders_and_broken_links_are_skipped(tmp_path: Path) -> None:
    make(tmp_path, "a/x.py")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "a" / "gone.py").symlink_to(tmp_path / "missing.py")
    (tmp_path / "a" / "y.py").symlink_to(tmp_path / "a" / "x.py")
    assert [*discover([tmp_path], Settings(root=tmp_path))] == ["a/x.py", "a/y.py"]


def test_a_missing_path_raises_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        discover([tmp_path / "missing"], Settings(root=tmp_path))
