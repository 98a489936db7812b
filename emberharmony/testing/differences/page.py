"""The report as one HTML page: the wrong calls, and a table of all calls that is drawn as it is opened."""

import html
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberharmony.testing.differences.report import Divergence, Report

_PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }}
table {{ border-collapse: collapse; width: 100% }} th, td {{ text-align: left; padding: 2px 8px; vertical-align: top }}
th {{ border-bottom: 1px solid #999 }} tr:nth-child(even) {{ background: #f6f6f6 }}
code, .mono {{ font-family: ui-monospace, monospace; font-size: 13px }}
summary {{ cursor: pointer; padding: 3px 0 }} .wrong, .error, .unknown {{ color: #b00020; font-weight: 600 }}
.amplified, .parted {{ color: #9a5b00 }} .verdict {{ font-size: 1.2em; padding: .6em 1em;
border-left: 5px solid {color}; background: #f6f6f6 }}
.bar {{ display: inline-block; height: 9px; background: #8aa8c8; margin-right: 6px }}
.bar.wrong {{ background: #b00020 }} td.bars {{ white-space: nowrap; width: 14em }} .note {{ color: #555 }}
</style>
<h1>{sides}</h1>
<p class="verdict">{summary}</p>
{notes}
<h2>Divergences</h2>
{divergences}
<h2>All calls</h2>
<p class="note">{count} calls were compared. A bar shows how far the results differ, as a share of the largest element,
from 10<sup>-16</sup> (empty) to 1 (full), on a logarithmic scale. Errors are in units of what is allowed.</p>
<div id="calls"></div>
<h2>Environment</h2>
<table>{environment}</table>
<script>
const heads = {heads}, names = {names}, rows = {rows}, size = 200;
const safe = s => String(s).replace(/[&<>"]/g, c => ({{"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}})[c]);
const wide = x => x === null ? 0 : x === "inf" ? 100 : Math.max(0, Math.min(100, 100 * (16 + Math.log10(x)) / 16));
const shown = x => x === null ? "-" : typeof x === "string" ? x : x.toPrecision(2);
function line(r) {{
  const bar = r[5] ? `<span class="bar ${{r[7]}}" style="width:${{wide(r[5])}}px"></span>${{shown(r[5])}}` : "0";
  const cells = [r[0], `<code>${{safe(names[r[1]])}}</code>`, safe(names[r[2]]), safe(names[r[3]]), safe(r[4])];
  return `<tr><td>${{cells.join("<td>")}}<td class="bars">${{bar}}<td>${{r[6].map(shown).join("<td>")}}`
    + `<td class="${{r[7]}}">${{r[7]}}`;
}}
const place = document.getElementById("calls");
for (let at = 0; at < rows.length; at += size) {{
  const part = rows.slice(at, at + size), box = document.createElement("details");
  const counts = {{}};
  for (const r of part) counts[r[7]] = (counts[r[7]] || 0) + 1;
  const said = Object.entries(counts).map(([k, n]) => `<span class="${{k}}">${{n}} ${{k}}</span>`).join(", ");
  box.innerHTML = `<summary>calls ${{part[0][0]}} to ${{part[part.length - 1][0]}}: ${{said}}</summary>`;
  box.addEventListener("toggle", () => {{
    if (box.open && !box.querySelector("table"))
      box.insertAdjacentHTML("beforeend",
        `<table><tr><th>${{heads.map(safe).join("<th>")}}</tr>${{part.map(line).join("")}}</table>`);
  }});
  place.append(box);
  if (counts.wrong && !place.querySelector("details[open]") || rows.length <= size) box.open = true;
}}
</script></html>
"""


def page(report: "Report") -> str:
    """Returns the page."""
    numbers: dict[str, int] = {}
    rows = []
    for row in report.rows:
        words = [numbers.setdefault(word, len(numbers)) for word in (row.op, row.path, row.line)]
        shapes = " ".join(map(str, row.shapes[:4])) + (" ..." if len(row.shapes) > 4 else "")
        errors = [_number(error) for error in row.errors]
        rows.append([row.call, *words, shapes, _number(row.carried), errors, row.verdict])
    heads = [
        "call",
        "op",
        "module",
        "line",
        "shapes",
        "difference",
        *(f"error on {x}" for x in report.sides),
        "verdict",
    ]
    notes = "".join(f"<li>{html.escape(note)}" for note in report.notes)
    found = "".join(_divergence(x, report.sides) for x in report.divergences)
    said = report.environment.items()
    return _PAGE.format(
        title=html.escape(f"{' and '.join(report.sides)}: a comparison"),
        sides=html.escape(" and ".join(report.sides)),
        color="#2e7d32" if report.ok else "#b00020",
        summary=html.escape(report.summary()),
        notes=f"<ul class=note>{notes}</ul>" if notes else "",
        divergences=found or "<p>None.</p>",
        count=len(report.rows),
        environment="".join(f"<tr><td>{html.escape(k)}<td>{html.escape(v)}" for k, v in said),
        heads=_script(heads),
        names=_script(list(numbers)),
        rows=_script(rows),
    )


def _script(value: Any) -> str:
    """Returns JSON that may stand in a script: without `</`, which would end it."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def _number(x: float | None) -> float | str | None:
    if x is None or math.isnan(x):
        return None
    return "inf" if math.isinf(x) else float(f"{x:.3g}")


def _divergence(found: "Divergence", sides: tuple[str, ...]) -> str:
    errors = "".join(
        f"<tr><td>error on {html.escape(side)}<td>{found.error[side]:.3g} times the allowed one"
        for side in sides
        if side in found.error
    )
    kinds = found.dtypes or ("",) * len(found.shapes)
    given = ", ".join(f"{kind}{list(shape)}" for shape, kind in zip(found.shapes, kinds, strict=False))
    facts = [("inputs", given), ("difference", f"{found.carried:.2g} of the largest element"), ("judge", found.judge)]
    lines = "".join(f"<tr><td>{name}<td>{html.escape(text)}" for name, text in facts if text)
    kind = "wrong" if found.is_wrong else "parted" if found.cause == "control flow" else found.cause
    return (
        f"<details><summary class={kind}>{html.escape(found.message)}</summary><table>{lines}{errors}</table>"
        f"{_inside(found)}</details>\n"
    )


def _inside(found: "Divergence") -> str:
    if not found.inside:
        return ""
    lines = "".join(
        f"<tr class={'ok' if error <= 1 else 'wrong'}><td><code>{html.escape(op)}</code><td>{error:.3g}"
        for op, error in found.inside
    )
    table = f"<table><tr><th>op<th>error{lines}</table>"
    return f"<details><summary>{len(found.inside)} calls inside</summary>{table}</details>"
