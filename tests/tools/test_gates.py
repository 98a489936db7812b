"""The gates of `tools/gates`: a planted difference of each kind is found, and nothing else is."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
BEFORE = {
    "add": {"float32": ["tensor", "float32", [2], "1.0 nan"], "string": ["error", "DTypeError", "no number"]},
    "eig": {"row": ["several", "EigResult", [["tensor", "float64", [1], "-0.0"], ["object", "int", "1"]]]},
    "sin": {"conditions": ["", "True"], "native": "ufunc:numpy.sin", "source": "def template(p0):\n a\n b\n"},
}
ZERO = ["tensor", "float64", [1], "0.0"]


@pytest.fixture
def gates(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("gates.command").command, importlib.import_module("gates.record").Record


def _compared(gates, tmp_path, after, *options, before=BEFORE):
    command, record = gates
    for name, found in (("before", before), ("after", after)):
        record("probe", "numpy", found).write(tmp_path / name)
    return CliRunner().invoke(command, ["compare", str(tmp_path / "before"), str(tmp_path / "after"), *options])


def _changed(op, call, found):
    return json.loads(json.dumps(BEFORE)) | {op: BEFORE[op] | {call: found}}


def test_equal_records_have_no_difference(gates, tmp_path):
    result = _compared(gates, tmp_path, BEFORE)
    assert (result.exit_code, result.output) == (0, "probe on numpy: 3 entries with 6 findings\nno difference\n")


@pytest.mark.parametrize(
    "op, call, found, kind, exit_code",
    [
        ("add", "float32", ["tensor", "float32", [2], "1.0000001 nan"], "value", 1),
        ("add", "float32", ["tensor", "float64", [2], "1.0 nan"], "dtype or shape", 1),
        ("add", "float32", ["tensor", "float32", [1, 2], "1.0 nan"], "dtype or shape", 1),
        ("add", "float32", ["object", "int", "1"], "dtype or shape", 1),
        ("add", "float32", ["error", "DTypeError", "no number"], "now raises", 1),
        ("add", "string", ["error", "DTypeError", "a string"], "message", 0),
        ("add", "string", ["error", "TypeError", "no number"], "error class", 1),
        ("add", "string", ["object", "str", "'aa'"], "raised before", 1),
        ("add", "new call", ["object", "int", "1"], "new", 0),
        (
            "eig",
            "row",
            ["several", "EigResult", [["tensor", "float64", [1], "0.0"], ["object", "int", "1"]]],
            "value",
            1,
        ),
        ("eig", "row", ["several", "tuple", BEFORE["eig"]["row"][2]], "value", 1),
        ("sin", "source", "def template(p0):\n a\n c\n", "source", 1),
        ("sin", "conditions", ["", "False"], "source", 1),
        ("sin", "native", "ufunc:numpy.cos", "native function", 1),
    ],
)
def test_a_difference_is_found_by_its_kind(gates, tmp_path, op, call, found, kind, exit_code):
    result = _compared(gates, tmp_path, _changed(op, call, found))
    assert f"\n{kind}: 1 in 1 ops: {op}\n" in result.output
    assert result.exit_code == exit_code


def test_an_op_or_a_call_that_is_gone_is_found(gates, tmp_path):
    for after in ({"add": BEFORE["add"], "eig": BEFORE["eig"]}, BEFORE | {"add": {}}):
        result = _compared(gates, tmp_path, after)
        assert "\nno longer there: " in result.output
        assert result.exit_code == 1


@pytest.mark.parametrize(
    "old, new, kind",
    [
        ("1.0 2.0", "1.0000001 2.0", "last digits"),
        ("1.0 nan", "1.0000001 nan", "last digits"),
        ("1.0", "1.001", "value"),
        ("0.0", "-0.0", "value"),
        ("inf 1.0", "-inf 1.0", "value"),
        ("nan", "1.0", "value"),
        ("True", "False", "value"),
    ],
)
def test_last_digits_are_told_apart_on_request(gates, tmp_path, old, new, kind):
    records = [{"exp": {"row": ["tensor", "float32", [1], values]}} for values in (old, new)]
    result = _compared(gates, tmp_path, records[1], "--eps", "4", before=records[0])
    assert f"\n{kind}: 1 in" in result.output


def test_a_change_of_many_sources_is_shown_once(gates, tmp_path):
    before = {name: {"source": "def template(p0):\n return a\n"} for name in ("cos", "sin", "tan")}
    after = {name: {"source": "def template(p0):\n return b\n"} for name in before}
    result = _compared(gates, tmp_path, after, before=before)
    assert "  3 ops, such as cos:\n- return a\n+ return b\n" in result.output


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["probe", "abacus", "out"], "Invalid value for BACKEND: "),
        (["variants", "numpy", "out", "--op", "sinus"], "Invalid value for --op: there is no op 'sinus'"),
        (["compare", "text", "text"], "text is no record of a gate: "),
        (["compare", "list", "list"], "list is no record of a gate: it has no gate, backend and ops"),
        (["compare", "a", "b"], "a is of probe on numpy, b of variants on numpy"),
        (["variants", "numpy", "missing/out", "--op", "sin"], "Could not open file 'missing/out': "),
    ],
)
def test_a_wrong_use_is_explained(gates, tmp_path, monkeypatch, arguments, message):
    command, record = gates
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("sin", encoding="utf-8")
    Path("list").write_text("[]", encoding="utf-8")
    record("probe", "numpy", {}).write(Path("a"))
    record("variants", "numpy", {}).write(Path("b"))
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert message in result.output


@pytest.mark.sampled(2)
@pytest.mark.fresh_process
def test_two_processes_record_the_same(tmp_path):
    chosen = [f"--op={name}" for name in ("add", "sin", "eig", "empty", "random_normal", "host_call", "softmax")]
    for gate in ("probe", "variants"):
        for seed in "12":
            environment = os.environ | {"PYTHONHASHSEED": seed}
            command = [sys.executable, "tools/gates", gate, "numpy", str(tmp_path / f"{gate}{seed}"), *chosen]
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        one, two = ((tmp_path / f"{gate}{seed}").read_text(encoding="utf-8") for seed in "12")
        assert one == two, gate
        assert json.loads(one)["ops"].keys() == {option[5:] for option in chosen}
    found = json.loads((tmp_path / "probe1").read_text(encoding="utf-8"))["ops"]
    assert found["add"]["int32, 2.5"][:3] == ["tensor", "float32", [4]]
    assert found["add"]["string"][:2] == ["error", "DTypeError"]
    assert found["sin"]["gradient, case 0"][0] == "several"
    assert found["empty"]["row, float32, case 0"] == ["tensor", "float32", [2, 3], ""]


@pytest.mark.parametrize("arguments", [["steps", "--optimizer=SGD momentum"], ["programs", "--count=10"]])
def test_two_records_of_steps_and_programs_are_equal(gates, tmp_path, arguments):
    command, _ = gates
    gate, option = arguments
    for out in ("one", "two"):
        result = CliRunner().invoke(command, [gate, "numpy", str(tmp_path / out), option])
        assert result.exit_code == 0, result.output
    one, two = ((tmp_path / out).read_text(encoding="utf-8") for out in ("one", "two"))
    assert one == two
    assert "error" not in one
    assert json.loads(one)["gate"] == gate


def test_an_unknown_optimizer_is_explained(gates, tmp_path):
    command, _ = gates
    result = CliRunner().invoke(command, ["steps", "numpy", str(tmp_path / "out"), "--optimizer", "Adamant"])
    assert result.exit_code != 0
    assert "there is no optimizer 'Adamant'" in result.output
