"""`emberharmony doctor`: the command, and faults that end or stop the process of a backend."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emberharmony.cli.main import command
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, Finding
from emberharmony.testing.doctor.process import findings_of_backend

pytestmark = pytest.mark.fresh_process


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, ["doctor", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_report_has_facts_findings_and_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KMP_DUPLICATE_LIB_OK", raising=False)  # which scikit-learn sets when it is imported
    file = tmp_path / "report.json"
    status, output, _ = run("--backend", "numpy", "--json", "--report", str(file))
    assert status == 0, output
    shown: dict[str, Any] = json.loads(output)
    assert [finding for finding in shown["findings"] if finding["verdict"] != OK] == []
    assert shown["counts"] == {OK: len(shown["findings"]), DIFFERS: 0, BROKEN: 0}
    assert shown["backends"]["numpy"]["precision"] == {"products": "float32", "convolutions": "float32"}
    assert {"version", "device", "model", "devices", "memory", "loaded libraries"} <= shown["backends"]["numpy"].keys()
    assert {finding["check"] for finding in shown["findings"]} > {"product precision", "fork", "threads", "speed"}
    written = json.loads(file.read_text(encoding="utf-8"))
    assert written["command"] == "doctor"
    assert written["result"]["findings"] == shown["findings"]


def test_only_faults_have_an_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def findings(name: str, device: str | None) -> Any:
        yield {"precision": {}}
        yield Finding(name, "speed", verdict, "slow", row="performance.md", repro="one\ntwo\nthree")

    monkeypatch.setattr("emberharmony.cli.doctor.findings_of_backend", findings)
    for verdict, expected in ((OK, 0), (DIFFERS, 0), (BROKEN, 1)):
        status, output, _ = run("--backend", "numpy")
        assert status == expected
        assert f"{verdict:8}numpy speed: slow (performance.md)\n        one\n        two\n        three\n" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--backend", "nunpy"), "no backend is named 'nunpy'; did you mean 'numpy'?"),
        (("--backend", "numpy", "--device", "cuda"), "no backend has the device 'cuda': numpy: there is no device"),
    ],
)
def test_what_does_not_exist_is_refused(arguments: tuple[str, ...], words: str) -> None:
    status, _, errors = run(*arguments)
    assert status == 2
    assert words in errors


def broken_library(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> Finding:
    """Returns what is found about PyTorch with this code in its place."""
    (folder / "torch.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{Path(__file__).parents[2]}")
    [finding] = findings_of_backend("torch", None, seconds=15.0 if "sleep" not in code else 4.0)
    assert isinstance(finding, Finding)
    assert (finding.check, finding.verdict) == ("import", BROKEN)
    assert finding.repro.splitlines()[0].endswith("ops.set_backend('torch')")
    return finding


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("raise ImportError('libcudart.so.13: no such file')", "libcudart.so.13: no such file"),
        ("import time; time.sleep(60)", "has not ended after 4 s"),
    ],
)
def test_a_library_that_cannot_be_imported_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, words: str
) -> None:
    assert words in broken_library(monkeypatch, tmp_path, code).detail


def test_a_device_of_the_environment_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBERHARMONY_DEVICE", "gpu:7")
    [finding] = findings_of_backend("numpy", None)
    assert isinstance(finding, Finding)
    assert finding.verdict == BROKEN
    assert "(named by EMBERHARMONY_DEVICE)" in finding.detail
