"""`emberharmony conformance`: its report, files, exit status, and the programs that reproduce failures."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from emberharmony import ops
from emberharmony.cli.main import command
from emberharmony.core.registry import OPS
from emberharmony.rules import RULES
from emberharmony.testing.samples import all_samples

PLUGIN = Path(__file__).parents[1] / "plugin"
COMMAND = [sys.executable, "-c", "from emberharmony.cli import main; main()", "conformance"]
BROKEN = """
import numpy as np
from emberharmony.backend import unsupported
from emberharmony.backend.numpy import NumpyBackend

class Broken(NumpyBackend):
    name = "broken"
    def sin(self, x): return super().sin(x) + np.asarray(1e-2, x.dtype)
    def cos(self, x): return np.cos(x).astype("float64")
    def hypot(self, x1, x2): return np.hypot(x1, x2)
    def expand_dims(self, x, axis): return x.reshape(1, *x.shape) if axis == 99 else super().expand_dims(x, axis)
    def trace(self, x, offset=0, axis1=0, axis2=1): return np.trace(x)
    sqrt = unsupported("roots are not square here")
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["conformance", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def alone(*command: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(path), "EMBERHARMONY_BACKEND": "numpy"}
    return subprocess.run([*command], env=environment, capture_output=True, text=True, check=False)


def test_a_missing_gradient_rule_fails_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(RULES, "sinh")
    status, output = run("--backend", "numpy", "--op", "sinh", "--quick")
    assert status == 1
    assert "FAIL numpy sinh, gradient" in output
    assert "sinh has no gradient rule: add one to emberharmony/rules/elementwise/elementary.py" in output


def test_a_missing_sample_row_fails_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "mish", OPS["relu"])
    status, output = run("--backend", "numpy", "--op", "mish")
    assert status == 1
    assert "mish has no sample row: add one to emberharmony/testing/samples/neural/activation.py" in output


def test_a_report_has_status_error_and_checks_of_each_op(tmp_path: Path) -> None:
    data, page = tmp_path / "report.json", tmp_path / "report.html"
    before = ops.get_backend()
    status, output = run("--backend", "numpy", "--op", "sq*", "--json", str(data), "--html", str(page))
    assert status == 0
    assert "numpy 2." in output
    assert " 4 ops (1 native, 2 override, 1 composite, 0 unsupported)" in output
    assert ops.get_backend() == before
    report = json.loads(data.read_text())
    entries: dict[str, Any] = {entry["op"]: entry for entry in report["ops"]}
    assert list(entries) == ["sqrt", "square", "squareplus", "squeeze"]
    root = entries["sqrt"]
    assert (root["status"], root["backend"], root["failures"]) == ("native", "numpy", [])
    assert root["tolerance"] == all_samples()["sqrt"].tolerance
    assert 0 < root["worst"] <= 1
    assert {"float32", "float64", "float16", "bfloat16"} <= set(root["dtypes"])
    assert {"value", "empty", "0-d", "non-contiguous", "NaN and infinity", "error", "generated"} <= set(root["checks"])
    assert all(check["calls"] and not check["failures"] for check in root["checks"].values())
    assert "<code>squareplus</code>" in page.read_text()
    assert sorted(tmp_path.iterdir()) == [page, data]


def test_quick_leaves_out_the_inputs_of_hypothesis(tmp_path: Path) -> None:
    data = tmp_path / "report.json"
    assert run("--backend", "numpy", "--op", "sqrt", "--quick", "--json", str(data))[0] == 0
    report = json.loads(data.read_text())
    assert report["quick"] is True
    assert "generated" not in report["ops"][0]["checks"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--op", "sinn"), "did you mean 'sin'?"),
        (("--op", "nothing*"), "no op matches 'nothing*'"),
        (("--backend", "nunpy"), "did you mean 'numpy'?"),
        (("--op", "sin", "--json", "/no/such/folder/x.json"), "its folder is missing"),
    ],
)
def test_a_wrong_argument_exits_with_status_2(arguments: tuple[str, ...], message: str) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert message in output


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], subprocess.CompletedProcess[str]]:
    """Returns the folder, the report and the process of a run that checks a backend with five faults."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "broken_backend.py").write_text(BROKEN)
    (folder / "broken_backend-1.dist-info").mkdir()
    (folder / "broken_backend-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (folder / "broken_backend-1.dist-info" / "entry_points.txt").write_text(
        "[emberharmony.backends]\nbroken = broken_backend:Broken\n"
    )
    data = folder / "report.json"
    done = alone(
        *COMMAND, "--backend", "broken", "--op", "[schet]*[nstre]", "--quick", "--json", str(data), path=folder
    )
    return folder, json.loads(data.read_text()), done


@pytest.mark.fresh_process
def test_a_broken_backend_fails_and_the_report_names_the_failures(
    broken: tuple[Path, dict[str, Any], subprocess.CompletedProcess[str]],
) -> None:
    _, report, done = broken
    assert done.returncode == 1, done.stderr
    failing = {entry["op"]: {f["check"] for f in entry["failures"]} for entry in report["ops"] if entry["failures"]}
    assert "value" in failing["sin"]
    assert "value" in failing["cos"]
    assert "FAIL broken sin, value, float32, case 0: error" in done.stdout


@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("op", "check", "complaint"),
    [
        ("sin", "value", "eps exceeds the tolerance of"),
        pytest.param("sin", "non-contiguous", "eps exceeds the tolerance of", marks=pytest.mark.slow),
        pytest.param("cos", "value", "result has dtype float64, expected float32", marks=pytest.mark.slow),
        ("hypot", "promotion", "result has dtype"),
        ("expand_dims", "error", "expected AxisError"),
        pytest.param("trace", "value", "result has shape", marks=pytest.mark.slow),
    ],
)
def test_the_snippet_of_a_failure_reproduces_it_in_a_new_process(
    broken: tuple[Path, dict[str, Any], subprocess.CompletedProcess[str]], op: str, check: str, complaint: str
) -> None:
    folder, report, _ = broken
    failures = next(entry["failures"] for entry in report["ops"] if entry["op"] == op)
    program = next(failure["snippet"] for failure in failures if failure["check"] == check)
    done = alone(sys.executable, "-W", "error", "-c", program, path=folder)
    assert done.returncode == 1
    assert complaint in done.stderr
    repaired = alone(sys.executable, "-c", program.replace("'broken'", "'numpy'"), path=folder)
    assert repaired.returncode == 0, repaired.stderr


@pytest.mark.fresh_process
def test_an_unsupported_op_is_listed_with_its_reason(
    broken: tuple[Path, dict[str, Any], subprocess.CompletedProcess[str]],
) -> None:
    _, report, done = broken
    entry = next(entry for entry in report["ops"] if entry["op"] == "sqrt")
    assert (entry["status"], entry["reason"], entry["failures"]) == ("unsupported", "roots are not square here", [])
    assert "unsupported broken sqrt: roots are not square here" in done.stdout


@pytest.mark.fresh_process
def test_an_interrupted_run_writes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "report.json"
    data.write_text("old")
    program = (
        "import os, signal\n"
        "from emberharmony.cli import conformance_run, main\n"
        "before = conformance_run.run_sample\n"
        "def run_sample(row, name, quick, most=None):\n"
        "    if row.op == 'square': os.kill(os.getpid(), signal.SIGINT)\n"
        "    yield from before(row, name, quick)\n"
        "conformance_run.run_sample = run_sample\n"
        "main()\n"
    )
    arguments = ["conformance", "--backend", "numpy", "--op", "sq*", "--quick", "--json", str(data)]
    done = alone(sys.executable, "-c", program, *arguments, path=tmp_path)
    assert done.returncode == 128 + signal.SIGINT
    assert "nothing was written" in done.stderr
    assert data.read_text() == "old"
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.fresh_process
@pytest.mark.parametrize("module", ["scipy", "hypothesis"])
def test_without_scipy_or_hypothesis_the_command_says_how_to_install_them(tmp_path: Path, module: str) -> None:
    program = f"import sys; sys.modules['{module}'] = None\nfrom emberharmony.cli import main\nmain()"
    done = alone(sys.executable, "-c", program, "conformance", "--backend", "numpy", path=tmp_path)
    assert done.returncode == 1
    wanted = f'Error: emberharmony conformance needs {module}: pip install "emberharmony[conformance]"\n'
    assert done.stderr == wanted
    done = alone(sys.executable, "-c", program, "fuzz", "--backend", "numpy", path=tmp_path)
    assert done.returncode == 1
    assert done.stderr == wanted.replace(" conformance", " fuzz", 1)
    done = alone(sys.executable, "-c", program, "backend", "show", path=tmp_path)
    assert done.stdout.startswith("numpy")


def test_a_precision_that_the_device_lacks_ends_the_command(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["conformance", "--backend", "numpy", "--op", "dot", "--precision", "tf32"])
    assert result.exit_code == 2
    assert "precision('tf32') on backend 'numpy'" in result.output
    file = tmp_path / "report.json"
    arguments = [
        "conformance",
        "--backend",
        "numpy",
        "--op",
        "dot",
        "--quick",
        "--precision",
        "float32",
        "--json",
        str(file),
    ]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    precision = json.loads(file.read_text(encoding="utf-8"))["precision"]
    assert precision == {"numpy": {"products": "float32", "convolutions": "float32"}}
