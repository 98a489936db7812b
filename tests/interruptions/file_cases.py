"""Actions that write files, to interrupt."""

import os
import stat
from pathlib import Path

import pytest

from emberharmony.core.state import settings
from emberharmony.core.state.files import replace_bytes, replace_text
from tests.interruptions.cases import Case, case, cases_of

FILES = {
    "changed": (
        '# mine\nbackend = "numpy"  # here\n[t]\nx = 1\n',
        '# mine\nbackend = "mlx"  # here\n[t]\nx = 1\n',
        "mlx",
    ),
    "removed": ('backend = "numpy"\nlast = 1\n', "last = 1\n", None),
    "added": ("x = [\n1]\n", 'backend = "mlx"\nx = [\n1]\n', "mlx"),
    "new": (None, 'backend = "mlx"\n', "mlx"),
}


@cases_of(list(FILES))
def write_settings(path: Path, patch: pytest.MonkeyPatch, kind: str) -> Case:
    old, new, value = FILES[kind]
    file = path / "real" / "config.toml"
    file.parent.mkdir()
    link = path / "config.toml"
    link.symlink_to(file)
    patch.setenv("EMBERHARMONY_CONFIG", str(link))

    def prepare() -> None:
        file.unlink(missing_ok=True)
        if old is not None:
            file.write_text(old)
            file.chmod(0o600)

    def check() -> None:
        assert (file.read_text() if file.exists() else None) in (old, new)
        assert link.is_symlink()
        assert set(os.listdir(file.parent)) <= {"config.toml"}
        if old is not None:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    return Case(prepare, lambda: settings.write("backend", value), check)


@case
def write_settings_over_a_file_that_is_not_toml(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file, kept = path / "config.toml", path / "config.toml.bak"
    patch.setenv("EMBERHARMONY_CONFIG", str(file))

    def prepare() -> None:
        kept.unlink(missing_ok=True)
        file.write_text("what is this")

    def check() -> None:
        found = {each.name: each.read_text() for each in path.iterdir()}
        new = {"config.toml": 'backend = "mlx"\n', "config.toml.bak": "what is this"}
        assert found in ({"config.toml": "what is this"}, new)

    return Case(prepare, lambda: settings.write("backend", "mlx"), check)


@case
def write_a_file(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file = path / "report.json"

    def check() -> None:
        assert file.read_text() in ("old", "new" * 1000)
        assert os.listdir(path) == ["report.json"]

    return Case(lambda: file.write_text("old"), lambda: replace_text(str(file), "new" * 1000), check)


@case
def write_bytes_through_a_link(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file, link = path / "weights", path / "link"
    link.symlink_to(file)

    def prepare() -> None:
        file.write_bytes(b"old")
        file.chmod(0o640)

    def run() -> None:
        with replace_bytes(str(link)) as stream:
            stream.write(b"new")
            stream.write(b"er" * 1000)

    def check() -> None:
        assert file.read_bytes() in (b"old", b"new" + b"er" * 1000)
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert link.is_symlink()
        assert sorted(os.listdir(path)) == ["link", "weights"]

    return Case(prepare, run, check)
