"""The page of all ops on all backends, and the tables of the reports from other machines."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
REPORTS = sorted((DOCS / "reports").glob("*.json"))


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("conformance_pages")
    finally:
        sys.path.remove(str(DOCS))


def entry(op: str, backend: str, status: str = "native", worst: float = 0.25, **more: Any) -> dict[str, Any]:
    common = {"op": op, "backend": backend, "status": status, "reason": "", "values": "by oracle", "tolerance": 4.0}
    return common | {"worst": worst, "dtypes": ["float32"], "failures": [], "checks": {}} | more


def gradient(failures: int = 0, unsupported: int = 0) -> dict[str, Any]:
    return {"gradient": {"calls": 2, "failures": failures, "unsupported": unsupported}}


def test_the_matrix_shows_status_reason_share_of_the_tolerance_and_gradient(pages: ModuleType) -> None:
    entries = [
        *(entry("sin", "numpy", checks=gradient()), entry("sin", "strict", worst=0.5, checks=gradient(1))),
        *(entry("erf", "numpy"), entry("erf", "strict", "unsupported", 0.0, reason="a|b", dtypes=[])),
        *(entry("sum", "numpy", checks=gradient()), entry("sum", "strict", "override", failures=[{}])),
        *(entry("sort", "numpy", worst=0.0), entry("sort", "strict", "composite", 0.0, checks=gradient(0, 2))),
        *(entry("grad", "numpy", values="by tests"), entry("grad", "strict", "composite", values="by tests")),
    ]
    text = pages.matrix({"backends": {"numpy": "2", "strict": "1"}, "ops": entries})
    assert text[text.index("| op |") :].splitlines() == [
        "| op | numpy | strict | tolerance | met | gradient |",
        "| --- | --- | --- | --- | --- | --- |",
        "| [`sin`](elementary/sin.md) | native | native | 4 | 50% | strict: 1 failures |",
        "| [`erf`](elementary/erf.md) | native | unsupported: a\\|b | 4 | 25% |  |",
        "| [`sum`](reduction/sum.md) | native | override | 4 | **not on strict** | right |",
        "| [`sort`](sorting/sort.md) | native | composite | 4 | exact | strict: unsupported |",
        "| [`grad`](transforms/grad.md) | native | composite |  | by tests |  |",
    ]
    assert "| numpy | 5 | 0 | 0 | 0 | 5 | 4 | 0 |" in text
    assert "| strict | 1 | 1 | 2 | 1 | 5 | 4 | 1 |" in text


def machine(command: str, result: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"format": 1, "command": command, "emberharmony": "1.0", "python": "3.13.1", "system": "Linux x86_64"}
    backends = {"torch": {"version": "2.13", "device": "gpu", "model": "Card 1"}}
    return about | {"backends": backends, "seconds": 3.0, "result": result} | more


def test_reports_become_rows_of_the_table_of_their_command(pages: ModuleType, tmp_path: Path) -> None:
    failing = [{"op": "sin", "failure": "x"}, {"op": "sin", "failure": "y"}]
    found = {"ops": 9, "calls": 1234, "failures": 2, "lacking": ["eig"], "failing": failing}
    legs = [{"backend": "torch", "seconds": 1.5, "loss": 1.0}, {"backend": "numpy alone", "seconds": 3.0, "loss": 1.0}]
    reports = [
        machine(
            "conformance",
            {"quick": True, "precision": {"torch": {"products": "tf32"}}, "backends": {"torch": found}},
        ),
        machine("demo", {"digits": {"agrees": True, "legs": legs}, "gpt": {"agrees": False, "legs": legs}}),
        machine("compare", {"program": "a.py:f", "summary": "no op of 3 calls is wrong"}),
    ]
    files = [tmp_path / f"{i}.json" for i in range(3)]
    for file, report in zip(files, reports, strict=True):
        file.write_text(json.dumps(report), encoding="utf-8")
    text = pages.machine_tables(files)
    about = "| Card 1 (gpu) | torch 2.13 | Linux x86_64, Python 3.13.1 | 1.0 |"
    assert f"{about} tf32 | 9 | eig | 1,234 | 2 (sin) |" in text
    assert f"{about} no | 3.00 | 6.00 |" in text
    assert f"{about} a.py:f | no op of 3 calls is wrong |" in text
    assert pages.machine_tables([]).count("No report yet.") == 4


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", json.dumps(machine("conformance", {}, format=99)), json.dumps(machine("dance", {}))]
)
def test_a_file_that_is_no_report_is_named(pages: ModuleType, tmp_path: Path, content: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"odd\.json is no report"):
        pages.machine_tables([file])


@pytest.mark.parametrize("file", REPORTS, ids=lambda file: file.stem)
def test_a_report_that_is_shown_is_whole_and_names_no_folder(pages: ModuleType, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not any(word in text for word in ("/home/", "/Users/", "/root/", "/tmp/", "C:\\\\"))
    assert pages.machine_tables([file]).count("No report yet.") == 3
