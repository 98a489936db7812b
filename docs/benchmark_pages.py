"""Writes the tables of docs/benchmarks.md from the results in `benchmarks/results`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(FOLDER.parent))

from benchmarks.__main__ import questions  # noqa: E402

ELSEWHERE = {"peers": "The pictures are on the page [Performance](performance.md)."}
"""Where results are shown that are too many for tables."""


def benchmark_tables() -> str:
    """Returns a section for each benchmark: what it measures, and its recorded results."""
    parts = []
    for name, question in questions().items():
        path = FOLDER / "results" / f"{name}.json"
        parts.append(f"## {name}\n\n{question} `python -m benchmarks {name}`\n")
        if name == "check":
            parts.append(_counts(json.loads((FOLDER / "instructions.json").read_text(encoding="utf-8"))))
        elif name in ELSEWHERE:
            parts.append(f"{ELSEWHERE[name]}\n")
        elif path.is_file():
            parts.append(_sections(json.loads(path.read_text(encoding="utf-8"))))
    return "\n".join(parts)


def _sections(result: Mapping[str, Any]) -> str:
    """Returns a line about the machine, and a table for each group of a result."""
    about = ", ".join(f"{name} {value}" for name, value in result["machine"].items() if name != "date")
    parts = [f"Measured {result['machine']['date']}: {about}.\n"]
    parts += [f"**{group}**\n\n{_table(rows)}\n" for group, rows in result["figures"].items() if rows]
    return "\n".join(parts)


def _table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Returns a table whose columns are those of all rows together."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [["", *columns], ["---"] * (len(columns) + 1)]
    lines += [[title, *(shown(row[c]) if c in row else "" for c in columns)] for title, row in rows.items()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _counts(record: Mapping[str, Mapping[str, float]]) -> str:
    """Returns the recorded instructions, with a column for each combination of versions."""
    titles = dict.fromkeys(title for rows in record.values() for title in rows)
    return (
        _table({title: {key: rows[title] for key, rows in record.items() if title in rows} for title in titles}) + "\n"
    )


def shown(number: float) -> str:
    """Returns a number with three significant digits, or all digits before the point."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
