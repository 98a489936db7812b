"""The HTML page of a comparison's report: the wrong calls, and a table of all calls that a script draws."""

import html
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emberharmony.testing.differences.report import Divergence, Report

_PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; --text: #222; --back: #fff; --soft: #f4f5f7; --line: #999; --faint: #555;
  --wrong: #b00020; --grown: #8a5200; --right: #2e7d32; --bar: #7f9fc4 }}
@media (prefers-color-scheme: dark) {{ :root {{ --text: #ddd; --back: #16181c; --soft: #22262c; --line: #666;
  --faint: #aaa; --wrong: #ff7b85; --grown: #e8b04a; --right: #6fc276; --bar: #5f86b3 }} }}
body {{ font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em;
  color: var(--text); background: var(--back) }}
table {{ border-collapse: collapse; width: 100% }} .wide {{ overflow-x: auto }}
th, td {{ text-align: left; padding: 2px 8px; vertical-align: top }} th {{ border-bottom: 1px solid var(--line) }}
tr:nth-child(even) {{ background: var(--soft) }} td.number {{ text-align: right }} th.number {{ text-align: right }}
code {{ font-family: ui-monospace, monospace; font-size: 13px }} .whole {{ white-space: nowrap }}
summary {{ cursor: pointer; padding: 3px 0; overflow-wrap: anywhere }}
.wrong, .error, .unknown {{ color: var(--wrong); font-weight: 600 }}
.amplified, .options, .parted {{ color: var(--grown) }}
.verdict {{ font-size: 1.2em; padding: .6em 1em; border-left: 5px solid {color}; background: var(--soft);
  overflow-wrap: anywhere }}
.bar {{ display: inline-block; height: 9px; background: var(--bar); margin-right: 6px }}
.bar.wrong {{ background: var(--wrong) }} td.bars {{ white-space: nowrap; min-width: 11em }}
.note {{ color: var(--faint) }} details table {{ margin: 4px 0 1em }}
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
<div class="wide"><table>{environment}</table></div>
<script>
const heads = {heads}, names = {names}, rows = {rows}, size = 200;
const safe = s => String(s).replace(/[&<>"]/g, c => ({{"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}})[c]);
const wide = x => x === "inf" ? 100 : Math.max(0, Math.min(100, 100 * (16 + Math.log10(x)) / 16));
const shown = x => x === null ? "-" : typeof x === "string" ? x : x === 0 ? "0"
  : x >= 0.001 && x < 10000 ? String(+x.toPrecision(2)) : x.toExponential(1);
function line(r) {{
  const bar = r[5] ? `<span class="bar ${{r[7]}}" style="width:${{wide(r[5])}}px"></span>${{shown(r[5])}}` : "0";
  const of = r[8] < 0 ? "" : `<span class="note"> gradient of</span> <code>${{safe(names[r[8]])}}</code>`;
  const at = names[r[3]], file = at.slice(Math.max(at.lastIndexOf("/"), at.lastIndexOf("\\\\")) + 1);
  return `<tr><td>${{r[0]}}<td class="whole"><code>${{safe(names[r[1]])}}</code>${{of}}<td>${{safe(names[r[2]])}}`
    + `<td class="whole" title="${{safe(at)}}">${{safe(file)}}<td>${{safe(r[4]).replace(/\\) \\(/g, ")<wbr> (")}}`
    + `<td class="bars">${{bar}}${{r[6].map(x => `<td class="number">${{shown(x)}}`).join("")}}`
    + `<td class="${{r[7]}}">${{r[7]}}`;
}}
const last = heads.length - 1;
const head = heads.map((h, i) => `<th${{i > 5 && i < last ? ' class="number"' : ""}}>${{safe(h)}}`).join("");
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
        `<div class="wide"><table><tr>${{head}}</tr>${{part.map(line).join("")}}</table></div>`);
  }});
  place.append(box);
  if (counts.wrong && !place.querySelector("details[open]") || rows.length <= size) box.open = true;
}}
</script></html>
"""


def page(report: "Report") -> str:
    """Returns the report of a comparison as one HTML page."""
    number_by_word: dict[str, int] = {}
    rows = []
    for row in report.rows:
        word_ids = [number_by_word.setdefault(word, len(number_by_word)) for word in (row.op, row.path, row.line)]
        shapes_text = " ".join(map(str, row.shapes[:4])) + (" ..." if len(row.shapes) > 4 else "")
        errors = [_json_number(error) for error in row.errors]
        gradient_number = number_by_word.setdefault(row.gradient_of, len(number_by_word)) if row.gradient_of else -1
        rows.append([row.call, *word_ids, shapes_text, _json_number(row.carried), errors, row.verdict, gradient_number])
    column_heads = [
        "call",
        "op",
        "module",
        "line",
        "shapes",
        "difference",
        *(f"error on {x}" for x in report.sides),
        "verdict",
    ]
    notes_html = "".join(f"<li>{html.escape(note)}" for note in report.notes)
    divergences_html = "".join(_divergence_html(x, report.sides, x is report.first) for x in report.divergences)
    fact_items = report.environment.items()
    return _PAGE.format(
        title=html.escape(f"{' and '.join(report.sides)}: a comparison"),
        sides=html.escape(" and ".join(report.sides)),
        color="var(--right)" if report.ok else "var(--wrong)",
        summary=html.escape(report.summary()),
        notes=f"<ul class=note>{notes_html}</ul>" if notes_html else "",
        divergences=divergences_html or "<p>None.</p>",
        count=len(report.rows),
        environment="".join(f"<tr><td>{html.escape(k)}<td>{html.escape(v)}" for k, v in fact_items),
        heads=_json_for_script(column_heads),
        names=_json_for_script(list(number_by_word)),
        rows=_json_for_script(rows),
    )


def _json_for_script(value: Any) -> str:
    """Returns JSON that may stand in a script: without `</`, which would end it."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def _json_number(x: float | None) -> float | str | None:
    if x is None or math.isnan(x):
        return None
    return "inf" if math.isinf(x) else float(f"{x:.3g}")


def _divergence_html(divergence: "Divergence", sides: tuple[str, ...], is_open: bool) -> str:
    errors_html = "".join(
        f"<tr><td>error on {html.escape(side)}<td>{divergence.error[side]:.3g} times the allowed one"
        for side in sides
        if side in divergence.error
    )
    dtype_names = divergence.dtypes or ("",) * len(divergence.shapes)
    arguments_text = ", ".join(
        f"{dtype_name}{list(shape)}" for shape, dtype_name in zip(divergence.shapes, dtype_names, strict=False)
    )
    detail_rows = [
        ("inputs", arguments_text),
        ("difference", f"{divergence.carried:.2g} of the largest element"),
        ("judge", divergence.judge),
    ]
    lines_html = "".join(f"<tr><td>{name}<td>{html.escape(text)}" for name, text in detail_rows if text)
    cause_class = "wrong" if divergence.is_wrong else "parted" if divergence.parts else divergence.cause
    return (
        f"<details{' open' * is_open}><summary class={cause_class}>{html.escape(divergence.message)}</summary>"
        f"<div class=wide><table>{lines_html}{errors_html}</table></div>"
        f"{_inner_calls_html(divergence)}</details>\n"
    )


def _inner_calls_html(divergence: "Divergence") -> str:
    if not divergence.inside:
        return ""
    lines_html = "".join(
        f"<tr class={'ok' if error <= 1 else 'wrong'}><td><code>{html.escape(op)}</code><td>{error:.3g}"
        for op, error in divergence.inside
    )
    table_html = f"<table><tr><th>op<th>error{lines_html}</table>"
    return f"<details><summary>{len(divergence.inside)} calls inside</summary>{table_html}</details>"
