"""Settings survive corrupt files, are written in one step and never on import."""

import os
import stat
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony.core.errors import SettingsError, SettingsWarning
from emberharmony.core.state import settings
from emberharmony.core.state.toml import edit_key

KINDS = {
    "fifo": lambda file: os.mkfifo(file),
    "zeros": lambda file: file.symlink_to("/dev/zero"),
    "deep": lambda file: file.write_text("a = " + "[" * 100_000 + "]" * 100_000),
    "large": lambda file: file.write_text("# " + "a" * 2**20),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "config.toml"
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(path))
    return path


def test_the_settings_file_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBERHARMONY_CONFIG", raising=False)
    assert Path(settings.path()).parts[-2:] == ("emberharmony", "config.toml")


def test_a_missing_file_means_no_settings(file: Path) -> None:
    assert settings.read("backend") is None
    assert not file.exists()


def test_a_written_setting_can_be_read(file: Path) -> None:
    assert settings.write("backend", "torch") == str(file)
    assert settings.read("backend") == "torch"
    assert os.listdir(file.parent) == ["config.toml"]


def test_write_keeps_all_other_lines(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('# mine\nbackend = "numpy"\n\n[other]\nbackend = "kept"\n')
    settings.write("backend", "mlx")
    assert file.read_text() == '# mine\nbackend = "mlx"\n\n[other]\nbackend = "kept"\n'


def test_writing_none_removes_the_setting(file: Path) -> None:
    settings.write("backend", "torch")
    settings.write("backend", None)
    assert settings.read("backend") is None


@pytest.mark.parametrize("content", [b"backend = ", b"\xff\xfe", b"backend = 3\n"])
def test_a_corrupt_file_gives_a_warning(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.warns(SettingsWarning, match=r"config\.toml"):
        assert settings.read("backend") is None


def test_an_unreadable_file_gives_a_warning(file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.warns(SettingsWarning, match="cannot be read"):
        assert settings.read("backend") is None


def test_write_keeps_a_backup_of_a_corrupt_file(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("what is this")
    settings.write("backend", "torch")
    assert settings.read("backend") == "torch"
    assert file.with_name("config.toml.bak").read_text() == "what is this"


def test_a_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_can_make_the_program_hang_or_fail(file: Path, kind: str) -> None:
    """Runs in a process of its own, which the timeout kills if it hangs."""
    file.parent.mkdir()
    KINDS[kind](file)
    program = (
        "import warnings\nfrom emberharmony.core.errors import SettingsWarning\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    from emberharmony import ops\n    ops.sin([1.0])\n"
        "assert [each.category for each in seen] == [SettingsWarning], seen\nprint(seen[0].message)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "EMBERHARMONY_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert f"{file} cannot be read and is ignored" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_file_is_not_changed_and_the_error_says_what_to_do(file: Path, kind: str) -> None:
    file.parent.mkdir()
    KINDS[kind](file)
    before = os.lstat(file)
    with pytest.raises(SettingsError, match=r'write backend = "torch" into it by hand, or name another file in EMBERH'):
        settings.write("backend", "torch")
    after = os.lstat(file)
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert os.listdir(file.parent) == ["config.toml"]


def test_the_null_device_reads_as_empty_and_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERHARMONY_CONFIG", os.devnull)
    assert settings.read("backend") is None
    with pytest.raises(OSError, match="cannot be replaced"):
        settings.write("backend", "torch")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_write_keeps_the_mode_and_follows_a_link(file: Path) -> None:
    file.parent.mkdir()
    real = file.parent / "dotfiles" / "settings.toml"
    real.parent.mkdir()
    real.write_text("x = 1\n")
    real.chmod(0o600)
    file.symlink_to(real)
    settings.write("backend", "torch")
    assert file.is_symlink()
    assert real.read_text() == 'backend = "torch"\nx = 1\n'
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert os.listdir(real.parent) == ["settings.toml"]


def test_write_creates_the_target_of_a_link(file: Path) -> None:
    file.parent.mkdir()
    file.symlink_to(file.parent / "elsewhere" / "settings.toml")
    settings.write("backend", "torch")
    assert file.is_symlink()
    assert settings.read("backend") == "torch"


def test_write_refuses_a_link_to_itself(file: Path) -> None:
    file.parent.mkdir()
    file.symlink_to(file)
    with pytest.raises(OSError, match="symbolic links"):
        settings.write("backend", "torch")
    assert file.is_symlink()


def test_a_new_file_has_the_mode_that_open_gives(file: Path) -> None:
    before = os.umask(0o027)
    try:
        settings.write("backend", "torch")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_threads_may_write_at_the_same_time(file: Path) -> None:
    failures: list[Exception] = []

    def work(name: str) -> None:
        try:
            for _ in range(30):
                settings.write("backend", name)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"name{i}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert settings.read("backend") in {f"name{i}" for i in range(16)}
    assert os.listdir(file.parent) == ["config.toml"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('list = [\n[1],\n]\nbackend = "torch"\n', 'list = [\n[1],\n]\nbackend = "mlx"\n'),
        ('"backend" = "torch"\n', '"backend" = "mlx"\n'),
        ("'backend'='torch'", "'backend'=\"mlx\""),
        ('"back\\u0065nd" = 1', '"back\\u0065nd" = "mlx"'),
        ('t = """\nbackend = 1\n"""\n', 'backend = "mlx"\nt = """\nbackend = 1\n"""\n'),
        ('t = """a\\"""""\nbackend = \'x\' # "\n', 't = """a\\"""""\nbackend = "mlx" # "\n'),
        ("t = '''a''''' # '''\nbackend = {a = [1]}\n", "t = '''a''''' # '''\nbackend = \"mlx\"\n"),
        ("# backend = 1\r\nx = 1\r\n", 'backend = "mlx"\r\n# backend = 1\r\nx = 1\r\n'),
        ('  backend = """\r\ntorch"""  \r\n[t]\r\n', '  backend = "mlx"  \r\n[t]\r\n'),
        ('[t]\nbackend = "kept"\n', 'backend = "mlx"\n[t]\nbackend = "kept"\n'),
        ("[[t]]\nx = nan\n", 'backend = "mlx"\n[[t]]\nx = nan\n'),
        ("backend = [ # ]\n 1, # [\n]\nx = 1979-05-27T07:32:00Z\n", 'backend = "mlx"\nx = 1979-05-27T07:32:00Z\n'),
        ("", 'backend = "mlx"\n'),
    ],
)
def test_an_edit_changes_only_the_given_key(text: str, wanted: str) -> None:
    assert edit_key(text, "backend", "mlx") == wanted
    removed = tomllib.loads(edit_key(wanted, "backend", None), parse_float=str)
    assert removed == {key: value for key, value in tomllib.loads(text, parse_float=str).items() if key != "backend"}


@pytest.mark.parametrize("text", ["[backend]\nx = 1\n", "backend.x = 1\n", "[[backend]]\n", "[backend.deep]\n"])
@pytest.mark.parametrize("value", ["torch", None])
def test_a_table_of_that_name_is_not_replaced(file: Path, text: str, value: str | None) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(SettingsError, match="backend is a table in it"):
        settings.write("backend", value)
    assert file.read_text() == text


VALUES = st.sampled_from(
    [
        *("1", "nan", "-inf", "true", "[]", "[\n[1], # ]\n]", "{a = 1, b.c = 2}", "1979-05-27", "'='", '"#"', '"\\""'),
        *('"""\nbackend = 1\n"""', "'''\n[x]\n'''", '""""""', "''''a''''", "0x1F", "[[1, 2], ['a'], {x = []}]"),
    ]
)
KEYED = st.tuples(
    st.sampled_from(["a", "b-1", '"c d"', "'e'", "f.g", '"["']), VALUES, st.sampled_from(["", " # backend = 1"])
)
LINES = st.one_of(
    KEYED.map(lambda parts: f"{parts[0]} = {parts[1]}{parts[2]}"),
    st.sampled_from(["", "   ", "# [no table]", "#"]),
)


@given(
    st.lists(LINES, max_size=6),
    st.sampled_from(["", 'backend = "x"', "  'backend'   =   1 # mine", "backend = [\n 1\n]"]),
    st.lists(LINES, max_size=3),
    st.sampled_from(["", "[t]\nbackend = 1\n", "[t]\nbackend.x = 1\n"]),
    st.sampled_from(["\n", "\r\n"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
def test_an_edit_of_a_generated_file_changes_only_the_given_key(
    above: list[str], line: str, below: list[str], table: str, newline: str, value: str
) -> None:
    text = "".join(f"{each}\n" for each in (*above, line, *below)) + table
    text = text.replace("\n", newline)
    try:
        before = tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError:  # the generated file has the same key twice
        return
    rest = {key: found for key, found in before.items() if key != "backend"}
    changed = edit_key(text, "backend", value)
    assert tomllib.loads(changed, parse_float=str) == rest | {"backend": value}
    assert tomllib.loads(edit_key(changed, "backend", None), parse_float=str) == rest
    assert edit_key(changed, "backend", value) == changed
