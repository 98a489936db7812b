"""Writes the page of all ops on all backends, and the tables of reports that users have sent from their machines."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from emberharmony.cli.submission import FORMAT
from emberharmony.core.registry import OPS
from emberharmony.testing.report import KINDS, Report, gradient_verdict, totals

_MATRIX = """\
# Conformance: ops and backends

What `emberharmony conformance --quick` found when this page was built, with {versions}. Every op is called on every
backend in all its dtypes, with usual, empty, 0-d and non-contiguous inputs, with NaN and infinity, and with wrong
arguments. Its values are compared with a float64 oracle, and its gradients of first and second order with central
differences. [Testing](../testing.md) says how, and [devices](../accelerators.md) what was found elsewhere.

{totals}

*native*: the backend has its own implementation; *composite*: the op is written over other ops; *override*: the op is a
composite, but the backend has its own implementation.

## Each op

The *tolerance* is in eps of the dtype of the result. *met* is the largest error as a share of the tolerance, over all
inputs, dtypes and backends. *by tests*: no oracle can compute the result of the op (random numbers, devices,
functions), so only tests check it. *gradient*: whether derivatives are right on every backend that has them.

"""


def matrix(report: Report) -> str:
    """Returns the page of all ops on all backends, from a report of `emberharmony conformance`."""
    by_op: dict[str, list[dict[str, Any]]] = {}
    for entry in report["ops"]:
        by_op.setdefault(entry["op"], []).append(entry)
    versions = ", ".join(f"{name} {version}" for name, version in report["backends"].items())
    counts = [(name, totals(report, name)) for name in report["backends"]]
    parts = [
        _MATRIX.format(
            versions=versions,
            totals=_table(
                ["backend", *KINDS, "ops", "calls", "failures"],
                ([name, *(f"{count:,}" for count in found.values())] for name, found in counts),
            ),
        ),
        _table(
            ["op", *report["backends"], "tolerance", "met", "gradient"],
            (
                [
                    f"[`{op}`]({OPS[op].category}/{op}.md)",
                    *(": ".join(filter(None, (entry["status"], entry["reason"]))) for entry in entries),
                    *_met(entries),
                    _gradients(entries),
                ]
                for op, entries in by_op.items()
            ),
        ),
    ]
    return "".join(parts)


def _table(header: Sequence[str], rows: Iterator[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _met(entries: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Returns the cells for the tolerance and for the share of it that the largest error takes."""
    failing = [entry["backend"] for entry in entries if entry["failures"]]
    if failing:
        return f"{entries[0]['tolerance']:g}", f"**not on {', '.join(failing)}**"
    if entries[0]["values"] == "by tests" or not any(entry["dtypes"] for entry in entries):
        return "", "by tests"
    worst = max(entry["worst"] for entry in entries)
    return f"{entries[0]['tolerance']:g}", f"{worst:.0%}" if worst else "exact"


def _gradients(entries: Sequence[dict[str, Any]]) -> str:
    """Returns the cell for the gradients: "right", or the backends where they are not; "" if the op has none."""
    found = {entry["backend"]: gradient_verdict(entry) for entry in entries}
    odd = [f"{name}: {verdict}" for name, verdict in found.items() if verdict not in ("", "right")]
    return "; ".join(odd) or max(found.values(), default="")


def machine_tables(files: Sequence[Path]) -> str:
    """Returns the tables of the reports of `--report`, by command.

    Raises:
        ValueError: if a file is no such report; the message names the file.
    """
    rows: dict[str, list[list[str]]] = {command: [] for command in _HEADS}
    for file in files:
        try:
            report = json.loads(file.read_text(encoding="utf-8"))
            if report["format"] != FORMAT:
                raise ValueError(f"format {report['format']} is not {FORMAT}")
            rows[report["command"]] += _rows(report)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file.name} is no report of `--report`: {error!r}") from error
    parts = []
    for command, found in rows.items():
        parts.append(f"## {command}\n\n{_table(_HEADS[command], iter(found)) if found else 'No report yet.'}\n")
    return "\n".join(parts)


_MACHINE = ["device", "backend", "system", "EmberHarmony"]
_HEADS = {
    "conformance": [*_MACHINE, "products", "ops", "not supported", "calls", "failures"],
    "demo": [*_MACHINE, "agrees", "seconds", "seconds on NumPy alone"],
    "compare": [*_MACHINE, "program", "verdict"],
    "doctor": [*_MACHINE, "products", "convolutions", "differs", "broken", "product, GFLOP/s", "copy, GB/s"],
}
"""The columns of the table of each command."""


def _rows(report: dict[str, Any]) -> Iterator[list[str]]:
    """Yields a row for each backend of a report."""
    result = report["result"]
    for name, backend in report["backends"].items():
        machine = [
            f"{backend['model']} ({backend['device']})",
            f"{name} {backend['version']}",
            f"{report['system']}, Python {report['python']}",
            report["emberharmony"],
        ]
        if report["command"] == "conformance":
            found = result["backends"][name]
            failing = sorted({failure["op"] for failure in found["failing"]})
            failures = f"{found['failures']} ({', '.join(failing)})" if failing else "0"
            products = result.get("precision", {}).get(name, {}).get("products", "float32")
            yield [
                *machine,
                products,
                str(found["ops"]),
                ", ".join(found["lacking"]) or "none",
                f"{found['calls']:,}",
                failures,
            ]
        elif report["command"] == "demo":
            legs = [leg for part in result.values() for leg in part["legs"]]
            seconds = [sum(leg["seconds"] for leg in legs if leg["backend"] == of) for of in (name, "numpy alone")]
            agrees = "yes" if all(part["agrees"] for part in result.values()) else "no"
            # The training on NumPy alone makes the steps of all backends.
            yield [*machine, agrees, f"{seconds[0]:.2f}", f"{seconds[1] / len(report['backends']):.2f}"]
        elif report["command"] == "doctor":
            yield [*machine, *_diagnosis(name, backend, result)]
        else:
            yield [*machine, result["program"], result["summary"]]


def _diagnosis(name: str, backend: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    """Yields the cells of what the doctor found about a backend."""
    found = [finding for finding in result["findings"] if finding["subject"] == name]
    yield from (backend["precision"][kind] for kind in ("products", "convolutions"))
    for verdict in ("differs", "broken"):
        yield ", ".join(finding["check"] for finding in found if finding["verdict"] == verdict) or "none"
    figures = {key: value for finding in found for key, value in finding.get("figures", {}).items()}
    yield from (f"{figures[key]:.3g}" if key in figures else "" for key in ("product GFLOP/s", "copy GB/s"))
