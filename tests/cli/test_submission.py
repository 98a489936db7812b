"""`--device` and `--report` of the commands: they refuse absent devices, and write what a run found on a machine."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emberharmony import ops
from emberharmony.backend.discovery import load
from emberharmony.cli.main import command
from emberharmony.core.types import BackendName
from emberharmony.errors import DeviceError
from emberharmony.rules import RULES

PROGRAM = "from emberharmony import ops\n\ndef run(x=(1.0, 2.0)):\n    return ops.tanh(ops.exp(x))\n"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def report_of(file: Path, *arguments: str) -> dict[str, Any]:
    status, output = run(*arguments, "--report", str(file))
    assert status == 0, output
    assert f"wrote a report on this machine to {file}" in output
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert found["format"] == 1
    assert found["command"] == arguments[0]
    assert found["seconds"] > 0
    assert {"emberharmony", "python", "system", "result"} < found.keys()
    for each in found["backends"].values():
        assert all(each[name] for name in ("version", "device", "model"))
        assert each["precision"] == {"products": "float32", "convolutions": "float32"}
    return found


def test_conformance_reports_totals_and_failures(tmp_path: Path, backend: str) -> None:
    arguments = ("conformance", "--backend", backend, "--op", "square", "--quick", "--device", "cpu")
    found = report_of(tmp_path / "report.json", *arguments)
    assert found["backends"][backend]["device"] == "cpu"
    result = found["result"]["backends"][backend]
    assert (result["ops"], result["failures"], result["lacking"], result["failing"]) == (1, 0, [], [])
    assert result["calls"] > 10


def test_failures_are_reported_without_their_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(RULES, "sinh")
    file = tmp_path / "report.json"
    status, _ = run("conformance", "--backend", "numpy", "--op", "sinh", "--quick", "--report", str(file))
    assert status == 1
    [first, *_] = json.loads(file.read_text(encoding="utf-8"))["result"]["backends"]["numpy"]["failing"]
    assert first.keys() == {"op", "check", "dtype", "label", "failure"}
    assert (first["op"], first["check"]) == ("sinh", "gradient")


def test_the_demo_reports_losses_and_seconds(tmp_path: Path) -> None:
    arguments = ("demo", "--backend", "numpy", "--steps", "2", "--gpt-steps", "1", "--device", "cpu")
    result = report_of(tmp_path / "report.json", *arguments)["result"]
    for part in ("digits", "gpt"):
        assert result[part]["agrees"] is True
        assert [leg["backend"] for leg in result[part]["legs"]] == ["numpy", "numpy alone"]


def test_a_comparison_reports_its_verdict(tmp_path: Path, backend: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    sides = f"numpy,{backend}"
    arguments = ("compare", f"{program}:run", "--backends", sides, "--device", "cpu")
    result = report_of(tmp_path / "report.json", *arguments)["result"]
    assert (result["program"], result["ok"], result["calls"]) == ("program.py:run", True, 2)
    assert str(tmp_path) not in json.dumps(result)


@pytest.mark.parametrize(
    "arguments", [("conformance", "--op", "square"), ("conformance", "--backend", "numpy"), ("demo",)]
)
def test_an_absent_device_is_refused(arguments: tuple[str, ...]) -> None:
    status, output = run(*arguments, "--device", "gpu:77")
    assert status == 2
    assert "no backend has the device 'gpu:77'" in output


def test_a_report_that_cannot_be_written_is_refused_before_the_work() -> None:
    for arguments in (("conformance",), ("demo",), ("compare", "program.py:run")):
        status, output = run(*arguments, "--report", "/no/such/folder/x.json")
        assert status == 2
        assert "its folder is missing" in output


def test_a_saved_run_has_no_report(tmp_path: Path) -> None:
    status, output = run("compare", "a.log", "b.log", "--report", str(tmp_path / "x.json"))
    assert status == 2
    assert "--report is for a comparison on this machine" in output


def test_a_backend_names_the_model_of_a_device(backend: str) -> None:
    found = load(BackendName(backend))
    assert found.device_model("cpu")
    assert found.device_model("cpu") == load(BackendName("numpy")).device_model("cpu")
    if backend != "numpy":
        with pytest.raises(DeviceError):
            found.device_model("gpu:77")
    assert ops.get_default_device()
