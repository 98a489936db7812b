"""The summary that a conformance report gives of its outcomes."""

import json

from emberharmony.backend.discovery import load
from emberharmony.core.registry import OPS
from emberharmony.testing.conformance import Outcome
from emberharmony.testing.report import as_html, condense, gradient_verdict, op_status, summarize, totals, verdict
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()


def test_status_tells_native_from_composite_ops() -> None:
    assert op_status(load("numpy"), OPS["sin"]) == ("native", "")
    assert op_status(load("numpy"), OPS["softsign"]) == ("composite", "")


def test_a_report_has_one_entry_for_each_op_and_backend() -> None:
    outcomes = [
        Outcome("sin", "numpy", "value", "float32", "case 0", error=0.25),
        Outcome("sin", "numpy", "value", "float64", "case 0", error=0.5),
        Outcome("sin", "numpy", "error", "float32", "strings", failure="returns <1>", snippet="print('<1>')"),
        Outcome("cos", "numpy", "value", "float32", "case 0", unsupported="cos() is unsupported by X: no kernel"),
        Outcome("tan", "numpy", "value", "float32", "case 0", error=float("inf"), failure="error inf eps"),
        Outcome("tan", "numpy", "value", "float64", "case 0", unsupported="tan() is unsupported by X: no float64"),
    ]
    report = summarize([SAMPLES[op] for op in ("sin", "cos", "tan")], ["numpy"], outcomes, quick=True)
    sin, cos, tan = report["ops"]
    assert (sin["worst"], sin["dtypes"], sin["status"]) == (0.5, ["float32", "float64"], "native")
    assert sin["checks"]["value"] == {"calls": 2, "failures": 0, "unsupported": 0}
    assert sin["failures"][0]["failure"] == "returns <1>"
    assert verdict(sin) == "1 failures"
    assert (cos["status"], cos["reason"], verdict(cos)) == (
        *("unsupported", "cos() is unsupported by X: no kernel", "unsupported"),
    )
    assert (tan["worst"], tan["refused"]) == (None, ["tan() is unsupported by X: no float64"])
    assert totals(report, "numpy") == {
        "native": 1,
        "override": 1,
        "composite": 0,
        "unsupported": 1,
        "ops": 3,
        "calls": 6,
        "failures": 2,
    }
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    page = as_html(report)
    assert "print(&#x27;&lt;1&gt;&#x27;)" in page
    assert "<1>" not in page


def test_each_failure_of_an_op_is_counted() -> None:
    outcomes = [
        Outcome("sin", "numpy", "value", dtype, "case 0", failure="wrong")
        for dtype in ("float16", "float32", "float64")
    ]
    outcomes.append(Outcome("cos", "numpy", "value", "float32", "case 0", unsupported="no kernel"))
    report = summarize([SAMPLES[op] for op in ("sin", "cos")], ["numpy"], outcomes, quick=True)
    assert totals(report, "numpy")["failures"] == 3
    found = condense(report)["backends"]["numpy"]
    assert (found["lacking"], [each["dtype"] for each in found["failing"]]) == (
        ["cos"],
        ["float16", "float32", "float64"],
    )


def test_gradients_are_right_unless_one_fails_or_all_are_refused() -> None:
    for calls, failures, unsupported, words in ((3, 0, 0, "right"), (3, 0, 1, "right"), (3, 0, 3, "unsupported")):
        counts = {"calls": calls, "failures": failures, "unsupported": unsupported}
        assert gradient_verdict({"checks": {"gradient": counts}}) == words
    assert gradient_verdict({"checks": {"gradient": {"calls": 3, "failures": 2, "unsupported": 1}}}) == "2 failures"
    assert gradient_verdict({"checks": {"value": {}}}) == ""
