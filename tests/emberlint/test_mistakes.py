"""The command after wrong calls, bad files or interrupts: its messages, exit statuses, and remaining files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click import NoSuchOption
from click.testing import CliRunner, Result

from emberlint.cli import main
from emberlint.run import check
from emberlint.run.file_cache import FOLDER, write_json

SLECT = NoSuchOption("--slect", possibilities=["--extend-select", "--select"]).format_message()
BAD = "import numpy as np\n\nx = np.sin(1.0)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "bad.py").write_text(BAD)
    (tmp_path / "library" / "good.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # a checkout above it does not count
    return tmp_path


def run(*words: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, words, input=stdin)


def test_help_lists_the_commands_and_options() -> None:
    for words in (["--help"], ["-h"]):
        text = run(*words).stdout
        assert "`emberlint check --help`" in text
        assert all(f"\n  {name} " in text for name in ("check", "fix", "explain", "rules", "inventory", "port"))
        assert "exit status" in text
        assert "..." not in text.split("Commands:")[1]  # no help text is truncated
    assert "--explain-inference FILE:LINE" in run("library", "--help").stdout


def test_version_prints_the_name_and_exits_with_0() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("emberlint")


@pytest.mark.parametrize(
    "words, message",
    [
        (["chekc", "library"], "no command, file or folder 'chekc'; did you mean 'check'?"),
        (["explian", "EMB101"], "did you mean 'explain'?"),
        (
            ["--slect", "EMB1", "library"],
            SLECT,
        ),
        (["--format", "sraif"], "'sraif' is not one of 'text', 'json', 'jsonl', 'sarif', 'github'"),
        (["--min-tier", "D"], "'D' is not one of"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--select", "tensor-opertor", "library"], "unknown rule 'tensor-opertor'; did you mean 'tensor-operator'?"),
        (["--ignore", "EMB9999", "library"], "unknown rule 'EMB9999'"),
        (["explain", "tensor-oprator"], "did you mean 'tensor-operator'?"),
        (["libary"], "no such file or folder: libary"),
        (["fix", "libary"], "no such file or folder: libary"),
        (["inventory", "libary"], "no such file or folder: libary"),
        (["-", "library"], "`-` (standard input) cannot be combined with other paths"),
        (["--fix", "-", "library"], "`-` (standard input) cannot be combined with other paths"),
        (["--stdin-filename", "new.py", "library"], "--stdin-filename needs the path `-`"),
        (["--explain-inference", "library/none.py:1"], "no such file: library"),
        (["--explain-inference", "library/broken.py:1"], "cannot be read: '(' was never closed"),
        (["--baseline", "library", "library"], "library: cannot be read as a baseline"),
        (["--baseline", "none/accepted.json", "--baseline-update", "library"], "cannot be written"),
        (["--diff-base", "HEAD", "library"], "'HEAD' is not a commit in "),
    ],
)
def test_a_mistake_is_named_and_exits_with_2(project: Path, words: list[str], message: str) -> None:
    (project / "library" / "broken.py").write_text("x = (\n")
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 4


@pytest.mark.parametrize(
    "settings, message",
    [
        ("[tool]\nemberlint = 3\n", "[tool.emberlint]: expected a table, got 3"),
        ("[tool.emberlint]\nbackends = 'numpy'\n", "backends: expected a list of strings, got 'numpy'"),
        ("[tool.emberlint]\nfunctions = {'a.b' = 'tensr'}\n", "unknown kind 'tensr'; did you mean 'tensor'?"),
        ("[tool.emberlint]\nignore = ['tensor-oprator']\n", "did you mean 'tensor-operator'?"),
        ("[tool.emberlint.per-file-ignores]\n'none.py' = ['tensor-oprator']\n", "did you mean 'tensor-operator'?"),
        (
            "[[tool.emberlint.contracts]]\ntype = 'layers'\nlayers = ['libary.top', 'library.core']\n",
            "contract 'layers': no package 'libary'; did you mean 'library'?",
        ),
        (
            "[tool.emberlint.parity]\nfrontend = 'library/ops'\nbackend = 'library'\n",
            "parity: no backends in 'library'",
        ),
        ("[tool.emberlint]\nbaseline = 'none.json'\n", "none.json: cannot be read as a baseline"),
        ("[tool.emberlint\n", "pyproject.toml: Expected ']'"),
    ],
)
def test_a_mistake_in_the_settings_is_named_and_exits_with_2(project: Path, settings: str, message: str) -> None:
    (project / "pyproject.toml").write_text(settings)
    result = run("library")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_folder_named_like_a_mistyped_command_is_a_folder(project: Path) -> None:
    (project / "checks").mkdir()
    assert run("checks").exit_code == 0


def test_explaining_a_line_without_expressions_exits_with_0(project: Path) -> None:
    result = run("--explain-inference", "library/bad.py:2")
    assert (result.exit_code, result.stdout) == (0, "no expression other than a constant begins on line 2\n")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that exists and cannot be read")
@pytest.mark.parametrize("words", [["library"], ["library/locked.py", "library/bad.py"], ["fix", "library"]])
def test_a_file_that_cannot_be_read_is_a_finding_and_the_rest_is_checked(project: Path, words: list[str]) -> None:
    (project / "library" / "locked.py").symlink_to("/proc/self/mem")
    with (project / "pyproject.toml").open("a") as settings:
        settings.write("[[tool.emberlint.contracts]]\ntype = 'layers'\nlayers = ['library.bad', 'library.locked']\n")
    result = run(*words)
    assert result.exit_code == 1
    assert "library/locked.py:1:1: EMB000 syntax-error: cannot be read as Python: " in result.stdout
    assert "library/bad.py:1:1: EMB101" in result.stdout


@pytest.mark.fresh_process
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the names of files are Unicode")
@pytest.mark.parametrize("form", ["text", "json", "jsonl", "sarif", "github"])
def test_findings_in_a_file_whose_name_is_not_unicode_are_reported(project: Path, form: str) -> None:
    (project / "library" / "bad.py").rename(os.fsdecode(bytes(project / "library") + b"/\xff.py"))
    command = [sys.executable, "-m", "emberlint", "--format", form, "library"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    shown = {"json": b"\\udcff.py", "jsonl": b"\\udcff.py", "sarif": b"library/%FF.py"}.get(form, b".py")
    assert shown in done.stdout
    assert b"EMB101" in done.stdout


@pytest.mark.parametrize("content", [b"\xff\xfe", b"# coding: nonsense\n", b"# coding: ascii\n\xe9\n"])
def test_standard_input_that_cannot_be_decoded_is_a_finding_or_an_error(project: Path, content: bytes) -> None:
    result = run("-", "--stdin-filename", "library/new.py", stdin=content)
    assert result.exit_code == 1
    assert result.stdout.startswith("library/new.py:1:1: EMB000 ")
    result = run("fix", "-", stdin=content)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be read" in result.stderr


def test_standard_input_is_repaired_with_its_line_ends(project: Path) -> None:
    source = b"from emberharmony import ops\r\n\r\nx = ops.ones(3) + 1\r\n"
    result = run("fix", "-", stdin=source)
    assert result.stdout_bytes == source.replace(b"ops.ones(3) + 1", b"ops.add(ops.ones(3), 1)")
    assert run("fix", "-", stdin=b"# coding: latin-1\nx = '\xe9'\n").exit_code == 0


def test_a_repair_without_libcst_names_the_package_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("emberlint.fixes")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "libcst", None)
    result = run("fix", "library")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install emberlint" in result.stderr
    assert run("library").exit_code == 1  # a check works without libcst


def test_an_interrupted_repair_leaves_the_file_unchanged_and_no_other_file(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "library" / "bad.py"
    file.write_text("from emberharmony import ops\n\nx = ops.ones(3) + 1\n")
    before = file.read_text()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    assert run("fix", "library").exit_code == 130
    assert file.read_text() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["bad.py", "good.py"]


def kept(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (project / FOLDER).iterdir()}


def test_an_interrupt_exits_with_130_and_leaves_the_cache_unchanged(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("library").exit_code == 1
    before = kept(project)
    assert before
    (project / "library" / "bad.py").write_text(BAD + "y = np.cos(x)\n")

    check_text = check.check_text

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check, "check_text", interrupted)
    result = run("library")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "emberlint: interrupted\n")
    assert kept(project) == before
    monkeypatch.setattr(check, "check_text", check_text)
    assert "numpy.cos" in run("library").stdout


def test_an_interrupt_while_the_cache_is_written_keeps_the_old_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / FOLDER / "kept.json"
    write_json(file, {"a": 1})

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_json(file, {"a": 2})
    assert json.loads(file.read_text()) == {"a": 1}
    assert sorted(path.name for path in file.parent.iterdir()) == [".gitignore", "kept.json"]


@pytest.mark.fresh_process
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the processes of the pool")
def test_ctrl_c_ends_a_run_over_many_files(project: Path) -> None:
    body = "".join(f"def f{number}(x):\n    y = ops.exp(x)\n    return [y, {number}]\n\n\n" for number in range(300))
    for number in range(400):
        (project / "library" / f"part{number}.py").write_text(f"from emberharmony import ops\n\n\n{body}")
    command = [sys.executable, "-m", "emberlint", "-j", "2", "library"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while started.poll() is None and not children.read_text().split():
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGINT)  # a terminal sends Ctrl-C to the whole group
    stdout, stderr = started.communicate(timeout=120)
    assert (started.returncode, stdout, stderr) == (130, b"", b"emberlint: interrupted\n")
    assert not (project / FOLDER).exists()
