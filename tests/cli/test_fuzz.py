"""`emberharmony fuzz`: its output, files and exit status; Ctrl-C ends the command and its worker."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from emberharmony.cli.main import command
from emberharmony.testing.fuzz import runner
from emberharmony.testing.fuzz.runner import Finding, Tally

COMMAND = [sys.executable, "-c", "from emberharmony.cli import main; main()", "fuzz"]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["fuzz", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.fresh_process
def test_a_run_without_findings_exits_with_status_0(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    status, output = run("--backend", "numpy", "--op", "s[iq]n*", "--calls", "20", "--seed", "4", "--json", str(file))
    assert status == 0, output
    assert "numpy 2." in output
    assert ": 0 findings (" in output
    report = json.loads(file.read_text())
    assert (report["seed"], report["pattern"], report["first"]) == (4, "s[iq]n*", 0)
    assert sum(report["backends"][0]["counts"].values()) == 20


def test_findings_are_printed_with_one_program_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(tally: Tally, *_: object) -> None:
        for number, alone in ((3, True), (4, False)):
            tally.findings.append(
                Finding("numpy", "sin", number, "signal", "is killed by SIGSEGV", "THE PROGRAM", alone)
            )
        tally.findings.append(Finding("numpy", "cos", 5, "untyped", "raises KeyError\n  File x", "ANOTHER"))
        tally.skipped.append("sin")

    monkeypatch.setattr(runner, "run_calls", found)
    status, output = run("--backend", "numpy")
    assert status == 1
    assert "FAIL numpy sin, call 3: is killed by SIGSEGV\n" in output
    assert "FAIL numpy sin, call 4: is killed by SIGSEGV (not when it is called alone)" in output
    assert output.count("THE PROGRAM") == 1
    assert "FAIL numpy cos, call 5: raises KeyError\n" in output
    assert "ANOTHER" in output
    assert "numpy sin was left out" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--op", "sinn"), "did you mean 'sin'?"),
        (("--backend", "nunpy"), "did you mean 'numpy'?"),
        (("--op", "sin", "--json", "/no/such/folder/x.json"), "its folder is missing"),
        (("--calls", "0"), "0 is not in the range"),
    ],
)
def test_a_wrong_argument_exits_with_status_2(arguments: tuple[str, ...], message: str) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert message in output


@pytest.mark.sampled(2)
@pytest.mark.fresh_process
def test_ctrl_c_exits_with_status_130_and_ends_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    command = [*COMMAND, "--backend", "numpy", "--calls", "1000000", "--json", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            children: list[str] = []
            deadline = time.monotonic() + 60
            while not children and time.monotonic() < deadline:
                time.sleep(0.2)
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            time.sleep(2.0)  # by now the worker makes calls
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "Stopped before all calls were made." in errors
    assert "numpy 2." in output
    assert json.loads(file.read_text())["backends"][0]["backend"] == "numpy"
    assert children
    assert not any(os.path.exists(f"/proc/{child}") for child in children)
