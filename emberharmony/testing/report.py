"""The report of a conformance run: each op on each backend, as data for JSON and as one HTML page."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from emberharmony.backend.base import Backend
from emberharmony.backend.discovery import load
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.testing.conformance import Outcome
from emberharmony.testing.sample import Sample
from emberharmony.version import __version__

FORMAT = 1
KINDS = ("native", "override", "composite", "unsupported")
Report = dict[str, Any]


def op_status(backend: Backend, spec: OpSpec) -> tuple[str, str]:
    """Returns how a backend implements an op, and the reason if it does not support it.

    The words are "native" (the backend defines a primitive), "override" (it replaces a composite), "composite" (the
    body of the declaration runs) and "unsupported".
    """
    if not backend.defines(spec):
        return "composite", ""
    definition = getattr(type(backend), spec.name)
    if hasattr(definition, "reason"):
        return "unsupported", definition.reason
    return ("override" if spec.composite else "native"), ""


def summarize(rows: Sequence[Sample], backends: Sequence[str], outcomes: Iterable[Outcome], quick: bool) -> Report:
    """Returns the report; its key `ops` has one entry for each op and backend."""
    outcomes_by_op_and_backend: dict[tuple[str, str], list[Outcome]] = {
        (row.op, name): [] for row in rows for name in backends
    }
    for outcome in outcomes:
        outcomes_by_op_and_backend[outcome.op, outcome.backend].append(outcome)
    row_by_op = {row.op: row for row in rows}
    return {
        "format": FORMAT,
        "emberharmony": __version__,
        "quick": quick,
        "backends": {name: load(name).version for name in backends},
        "precision": {name: load(name).product_precision() for name in backends},
        "ops": [
            _report_entry(row_by_op[op], load(name), own_outcomes)
            for (op, name), own_outcomes in outcomes_by_op_and_backend.items()
        ],
    }


def _report_entry(row: Sample, backend: Backend, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    status_name, reason = op_status(backend, OPS[row.op])
    unsupported_reasons = sorted({outcome.unsupported for outcome in outcomes if outcome.unsupported})
    if (
        outcomes
        and unsupported_reasons
        and all(outcome.unsupported or outcome.check == "error" for outcome in outcomes)
    ):
        status_name, reason = "unsupported", reason or unsupported_reasons[0]
    counts_by_check: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        check_counts = counts_by_check.setdefault(outcome.check, {"calls": 0, "failures": 0, "unsupported": 0})
        check_counts["calls"] += 1
        check_counts["failures"] += bool(outcome.failure)
        check_counts["unsupported"] += bool(outcome.unsupported)
    largest_error = max((outcome.error for outcome in outcomes if outcome.check != "gradient"), default=0.0)
    return {
        "op": row.op,
        "category": OPS[row.op].category,
        "backend": backend.name,
        "status": status_name,
        "reason": reason,
        "values": "by tests" if row.reference else "by oracle",
        "dtypes": list(dict.fromkeys(o.dtype for o in outcomes if not o.unsupported and o.check != "error")),
        "tolerance": row.tolerance,
        "worst": float(f"{largest_error:.3g}") if math.isfinite(largest_error) else None,
        "checks": counts_by_check,
        "refused": [] if status_name == "unsupported" else unsupported_reasons,
        "failures": [
            {"check": o.check, "dtype": o.dtype, "label": o.label, "failure": o.failure, "snippet": o.snippet}
            for o in outcomes
            if o.failure
        ],
    }


def totals(report: Report, backend: str) -> dict[str, int]:
    """Returns a backend's number of ops by status, of all ops, of calls and of failures."""
    backend_entries = [entry for entry in report["ops"] if entry["backend"] == backend]
    count_by_status = {kind: sum(entry["status"] == kind for entry in backend_entries) for kind in KINDS}
    count_by_status["ops"] = len(backend_entries)
    count_by_status["calls"] = sum(check["calls"] for entry in backend_entries for check in entry["checks"].values())
    count_by_status["failures"] = sum(len(entry["failures"]) for entry in backend_entries)
    return count_by_status


def condense(report: Report) -> dict[str, Any]:
    """Returns the totals of each backend, its unsupported ops and its failures, without programs that show them."""
    summary_by_backend = {}
    for name in report["backends"]:
        backend_entries = [entry for entry in report["ops"] if entry["backend"] == name]
        failures = [
            {"op": entry["op"], **{key: failure[key] for key in ("check", "dtype", "label", "failure")}}
            for entry in backend_entries
            for failure in entry["failures"]
        ]
        unsupported_ops = [entry["op"] for entry in backend_entries if entry["status"] == "unsupported"]
        summary_by_backend[name] = {**totals(report, name), "lacking": unsupported_ops, "failing": failures}
    return {"quick": report["quick"], "precision": report["precision"], "backends": summary_by_backend}


def verdict(entry: dict[str, Any]) -> str:
    """Returns a short text that says whether an op met its tolerance on a backend."""
    if entry["failures"]:
        return f"{len(entry['failures'])} failures"
    if entry["status"] == "unsupported":
        return "unsupported"
    if entry["values"] == "by tests" or not entry["checks"]:
        return "by tests"
    return "exact" if not entry["worst"] else f"{entry['worst']:.0%} of {entry['tolerance']:g} eps"


def gradient_verdict(entry: dict[str, Any]) -> str:
    """Returns a short text that says whether an op's gradients were right on a backend; "" if it has none."""
    gradient_counts = entry["checks"].get("gradient")
    if gradient_counts is None:
        return ""
    if gradient_counts["failures"]:
        return f"{gradient_counts['failures']} failures"
    return "unsupported" if gradient_counts["unsupported"] == gradient_counts["calls"] else "right"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>EmberHarmony conformance</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }}
table {{ border-collapse: collapse }} td, th {{ border-bottom: 1px solid #ccc; padding: .2rem .8rem; text-align: left }}
.bad {{ background: #fdd }} pre {{ background: #f4f4f4; overflow-x: auto; padding: .5rem }}
</style>
<h1>Conformance of {backends}</h1>
<p>EmberHarmony {version}{quick}. The tables show how each backend implements the op, its largest error against the
float64 oracle, and whether its derivatives of first and second order agree with central differences.</p>
<table><tr><th>backend<th>native<th>override<th>composite<th>unsupported<th>ops<th>calls<th>failures</tr>
{totals}
</table>
<h2>Failures</h2>
{failures}
<h2>Ops</h2>
<table><tr><th>op{heads}</tr>
{rows}
</table>
"""


def as_html(report: Report) -> str:
    """Returns the report as one HTML page: totals, failures with programs that reproduce them, and a table of ops."""
    backend_names = list(report["backends"])
    entries_by_op: dict[str, dict[str, Any]] = {}
    for entry in report["ops"]:
        entries_by_op.setdefault(entry["op"], {})[entry["backend"]] = entry
    totals_by_backend = {name: totals(report, name) for name in backend_names}
    failures_html = "".join(_failure_rows(entry) for entry in report["ops"] if entry["failures"])
    return _PAGE.format(
        backends=html.escape(", ".join(f"{name} {version}" for name, version in report["backends"].items())),
        version=report["emberharmony"],
        quick=", quick run" if report["quick"] else "",
        totals="\n".join(
            f"<tr><td>{n}{''.join(f'<td>{c}' for c in totals_by_backend[n].values())}</tr>" for n in backend_names
        ),
        failures=failures_html or "<p>None.</p>",
        heads="".join(f"<th>{name}<th>gradient" for name in backend_names),
        rows="\n".join(
            f"<tr><td><code>{op}</code>{_table_cells(outcomes, backend_names)}</tr>"
            for op, outcomes in entries_by_op.items()
        ),
    )


def _table_cells(entries: dict[str, Any], names: Sequence[str]) -> str:
    return "".join(
        f"<td{' class=bad' if entries[name]['failures'] else ''} title='{html.escape(entries[name]['reason'])}'>"
        f"{entries[name]['status']}, {verdict(entries[name])}<td>{gradient_verdict(entries[name])}"
        for name in names
    )


def _failure_rows(entry: dict[str, Any]) -> str:
    return "".join(
        f"<details><summary><code>{entry['op']}</code> on {entry['backend']}, {failure['check']}, {failure['dtype']}, "
        f"{html.escape(failure['label'])}: {html.escape(failure['failure'][:200])}</summary>"
        f"<pre>{html.escape(failure['snippet'])}</pre></details>\n"
        for failure in entry["failures"]
    )
