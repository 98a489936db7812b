"""The `emberharmony` command and its subcommands `info`, `backend` and `demo`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberharmony import ops
from emberharmony.cli.main import command


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_info_shows_backends_and_the_choice(backend: str) -> None:
    status, output = run("info")
    assert status == 0
    assert f"active: {backend} (from set_backend)" in output
    found = json.loads(run("info", "--json")[1])
    assert found["active"]["backend"] == backend
    assert found["backends"]["numpy"]["version"]


def test_backend_show_names_the_backend_and_its_source(backend: str) -> None:
    assert run("backend", "show") == (0, f"{backend} (from set_backend)\n")
    assert json.loads(run("backend", "show", "--json")[1]) == {"backend": backend, "source": "set_backend"}


def test_backend_list_shows_installed_and_missing_backends() -> None:
    assert "numpy" in run("backend", "list")[1]
    rows = {row["name"]: row["installed"] for row in json.loads(run("backend", "list", "--json")[1])}
    assert rows["numpy"] is True
    assert set(rows) >= {"numpy", "torch", "mlx"}


def test_backend_set_writes_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(file))
    assert run("backend", "set", "numpy") == (0, f"{file}: numpy\n")
    assert file.read_text() == 'backend = "numpy"\n'
    assert run("backend", "unset") == (0, f"{file}: unset\n")
    assert file.read_text() == ""
    file.unlink()
    assert run("backend", "unset") == (0, f"{file}: there is no such file, so nothing is set\n")
    assert not file.exists()
    status, output = run("backend", "set", "torhc")
    assert status == 2
    assert "did you mean 'torch'" in output
    assert run("backend", "set")[0] == 2


def test_backend_set_reports_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(tmp_path / "file" / "config.toml"))
    status, output = run("backend", "set", "numpy")
    assert status == 1
    assert "cannot write" in output


def test_backend_set_says_why_a_file_cannot_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[backend]\n")
    monkeypatch.setenv("EMBERHARMONY_CONFIG", str(file))
    status, output = run("backend", "set", "numpy")
    assert status == 1
    assert "backend is a table in it; write backend" in " ".join(output.split())


def test_the_demo_agrees_between_backends_and_saves_a_picture(tmp_path: Path) -> None:
    before = ops.get_backend()
    picture = tmp_path / "loss.png"
    status, output = run("demo", "--steps", "5", "--gpt-steps", "2", "--plot", str(picture))
    assert status == 0, output
    assert output.count("AGREES") == 2
    assert "dropout masks are equal" in " ".join(output.split())
    assert picture.stat().st_size > 1000
    assert ops.get_backend() == before


def test_the_demo_runs_one_backend_and_refuses_an_unknown_name() -> None:
    status, output = run("demo", "--steps", "3", "--gpt-steps", "0", "--backend", "numpy", "--seed", "3")
    assert status == 0
    assert "GPT" not in output
    assert "torch │" not in output
    status, output = run("demo", "--backend", "nunpy")
    assert status == 2
    assert "did you mean 'numpy'" in output


WITHOUT = """
import sys
for name in ("rich", "hypothesis", "scipy", "ml_dtypes", "torch", "mlx", "matplotlib", "libcst"):
    sys.modules[name] = None
from emberharmony.cli import main
main()
"""


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--version", "emberharmony, version"),
        ("--help", "Usage: "),
        ("info", "active: numpy (from "),
        ("backend show", "numpy (from "),
        ("backend list", "numpy "),
        ("op sin --backend numpy", "ops.sin: a primitive"),
        ("demo --backend numpy --steps 2 --gpt-steps 1", "AGREES"),
    ],
)
def test_the_commands_run_without_any_extra(arguments: str, said: str) -> None:
    environment = os.environ | {"EMBERHARMONY_BACKEND": "numpy"}
    command = [sys.executable, "-c", WITHOUT, *arguments.split()]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--plot", "no/such/folder/x.png", "does not exist"),
        ("--plot", "x.foo", "cannot write the kind of picture"),
        ("--seed", "-1", "not in the range"),
    ],
)
def test_the_demo_checks_its_options_before_it_trains(option: str, value: str, told: str) -> None:
    result = CliRunner().invoke(command, ["demo", option, value])
    assert result.exit_code == 2
    assert told in result.output
    assert "AGREES" not in result.output


def test_an_interrupted_command_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("emberharmony.demo.digits.run", interrupted)
    result = CliRunner().invoke(command, ["demo", "--backend", "numpy"])
    assert result.exit_code == 130
    assert "Interrupted." in result.output


def test_the_page_of_the_command_line_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    for name, each in command.commands.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `emberharmony {name}"))
        assert all(f"`{part}" in row or f" {part}`" in row for part in getattr(each, "commands", ())), row
