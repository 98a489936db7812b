"""Settings survive corruption, are written in one step and never on import."""

import os
from pathlib import Path

import pytest

from emberharmony.core import settings
from emberharmony.core.errors import SettingsWarning


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "config.toml"
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(path))
    return path


def test_path_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBERHARMONY_CONFIG", raising=False)
    assert Path(settings.path()).parts[-2:] == ("emberharmony", "config.toml")


def test_missing_file_is_no_setting(file: Path) -> None:
    assert settings.read("backend") is None
    assert not file.exists()


def test_write_then_read(file: Path) -> None:
    assert settings.write("backend", "torch") == str(file)
    assert settings.read("backend") == "torch"
    assert os.listdir(file.parent) == ["config.toml"]


def test_write_keeps_foreign_lines(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('# mine\nbackend = "numpy"\n\n[other]\nbackend = "kept"\n')
    settings.write("backend", "mlx")
    assert file.read_text() == 'backend = "mlx"\n# mine\n\n[other]\nbackend = "kept"\n'


def test_write_none_removes(file: Path) -> None:
    settings.write("backend", "torch")
    settings.write("backend", None)
    assert settings.read("backend") is None


@pytest.mark.parametrize("content", [b"backend = ", b"\xff\xfe", b"backend = 3\n"])
def test_corrupt_file_is_a_warning(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.warns(SettingsWarning, match=r"config\.toml"):
        assert settings.read("backend") is None


def test_unreadable_file_is_a_warning(file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.warns(SettingsWarning, match="cannot be read"):
        assert settings.read("backend") is None


def test_write_keeps_a_corrupt_file_beside(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("what is this")
    settings.write("backend", "torch")
    assert settings.read("backend") == "torch"
    assert file.with_name("config.toml.bak").read_text() == "what is this"


def test_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write("backend", "torch")

    def refuse(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        settings.write("backend", "mlx")
    assert settings.read("backend") == "torch"
    assert os.listdir(file.parent) == ["config.toml"]


def test_unknown_keys_are_refused(file: Path) -> None:
    with pytest.raises(ValueError, match="unknown setting 'backed'"):
        settings.write("backed", "torch")
