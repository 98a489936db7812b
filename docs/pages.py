"""Writes one page a category from the op declarations."""

import inspect
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.report import Report, summarize
from emberharmony.testing.repr_source import spelled
from emberharmony.testing.samples import all_samples


def _signature(spec: OpSpec) -> str:
    signature = inspect.signature(spec.declared)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def write_pages(folder: Path) -> None:
    """Writes `<category>.md` for every category and the matrix of all ops, removing what was there."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    categories: dict[str, list[OpSpec]] = {}
    for spec in OPS.values():
        categories.setdefault(spec.category, []).append(spec)
    for category, specs in categories.items():
        module = sys.modules[specs[0].declared.__module__]
        title, _, rest = (module.__doc__ or category).strip().partition("\n")
        parts = [f"# {category}: {title.rstrip('.')}\n\n{rest.strip()}\n"]
        for spec in sorted(specs, key=lambda spec: spec.name):
            body = textwrap.dedent("    " + (spec.declared.__doc__ or "").strip())
            names = f"Also: {', '.join(f'`{alias}`' for alias in spec.aliases)}.\n\n" if spec.aliases else ""
            shown = spelled(spec.name).removeprefix("ops.")
            parts.append(f"\n## {shown}\n\n```python\n{shown}{_signature(spec)}\n```\n\n{names}{_as_markdown(body)}\n")
        (folder / f"{category}.md").write_text("".join(parts), encoding="utf-8")
    (folder / "matrix.md").write_text(matrix(_quick_report()), encoding="utf-8")


def _quick_report() -> Report:
    """Returns what `emberharmony conformance --quick --json` writes."""
    backends = [name for name in BUILTIN if is_installed(name)]
    rows = [row for _, row in sorted(all_samples().items())]
    before = ops.get_backend()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        outcomes = [outcome for name in backends for row in rows for outcome in run_sample(row, name)]
    ops.set_backend(before)
    return summarize(rows, backends, outcomes, quick=True)


_MATRIX = """\
# Ops and backends

How each backend has each op. *native*: the backend's own; *composite*: written over other ops; *override*: a composite
done natively. Errors are measured against a float64 oracle: the *tolerance* is in eps of the result's dtype, and *met*
says how much of it the largest error took, over all inputs, dtypes and backends of `emberharmony conformance --quick`,
whose report this page is written from. Ops *by tests* have results that no oracle foretells: random numbers, devices,
functions. Versions: {versions}.

"""


def matrix(report: Report) -> str:
    """Returns the page of all ops on all backends, from a report of `emberharmony conformance`."""
    by_op: dict[str, list[dict[str, Any]]] = {}
    for entry in report["ops"]:
        by_op.setdefault(entry["op"], []).append(entry)
    versions = ", ".join(f"{name} {version}" for name, version in report["backends"].items())
    heads = ["op", *report["backends"], "tolerance", "met"]
    lines = [f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"]
    for op, entries in by_op.items():
        kinds = " | ".join(": ".join(filter(None, (entry["status"], entry["reason"]))) for entry in entries)
        lines.append(f"| `{op}` | {kinds} | {' | '.join(_met(entries))} |\n")
    return _MATRIX.format(versions=versions) + "".join(lines)


def _met(entries: list[dict[str, Any]]) -> tuple[str, str]:
    """Returns the tolerance and whether every backend met it."""
    failing = [entry["backend"] for entry in entries if entry["failures"]]
    if failing:
        return f"{entries[0]['tolerance']:g}", f"**not on {', '.join(failing)}**"
    if entries[0]["values"] == "by tests" or not any(entry["dtypes"] for entry in entries):
        return "", "by tests"
    worst = max(entry["worst"] for entry in entries)
    return f"{entries[0]['tolerance']:g}", f"{worst:.0%}" if worst else "exact"


def _as_markdown(docstring: str) -> str:
    """Returns a docstring with its examples fenced."""
    lines: list[str] = []
    fenced = False
    for line in docstring.splitlines():
        example = line.startswith("    ") and (fenced or line.strip().startswith(">>>"))
        if example != fenced:
            lines.append("```pycon" if example else "```")
            fenced = example
        lines.append(line.strip() if example else line)
    return "\n".join([*lines, "```"] if fenced else lines)
