"""Writes the figures of other libraries into README.md, from those that `python -m benchmarks peers` recorded.

`python docs/performance_table.py [FILE]` reads benchmarks/results/peers.json unless another file is named.
"""

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
COLUMNS = {"ours": "EmberHarmony", "keras": "keras.ops", "array-api-compat": "array-api-compat", "autoray": "autoray"}
"""The titles of the columns, by the names of the contenders."""


def rows(recorded: dict[str, Any]) -> dict[str, list[str]]:
    """Returns the cells of the rows of figures, by the beginning of the row; a peer that was not installed has none.

    A call is given by the median of all calls on NumPy, of what each adds to NumPy's own.
    """
    calls = [row for title, row in recorded["figures"]["calls"].items() if title.startswith("numpy: ")]
    times = recorded["figures"]["imports"]["import and one call"]
    added, imported = [], []
    for name in COLUMNS:
        key = name.replace("-", "_")  # calls are recorded by modules
        found = [row[key] - row["native"] for row in calls if key in row]
        added.append(f"{_rounded(statistics.median(found) * 1e6)} µs" if found else "not measured")
        imported.append(f"{_rounded(times[name] * 1e3)} ms" if name in times else "not measured")
    title = f"CPU time of the import and one call (NumPy's: {_rounded(times['numpy'] * 1e3)} ms)"
    return {
        "one call on one element adds": ["one call on one element adds (NumPy)", *added],
        "CPU time": [title, *imported],
    }


def _rounded(number: float) -> str:
    """Returns a number with two significant digits."""
    return f"{float(f'{number:.2g}'):,g}"


def titles(recorded: dict[str, Any]) -> list[str]:
    """Returns the titles of the columns, with versions, of the libraries whose versions are recorded."""
    versions = recorded["machine"]["versions"]
    return [f"{COLUMNS[name]} {'.'.join(versions[name].split('.')[:2])}" for name in COLUMNS if name in versions]


def written(text: str, recorded: dict[str, Any]) -> str:
    """Returns the text of the README with the rows of figures and the versions of the libraries.

    Raises:
        ValueError: if the text lacks a row.
    """
    for beginning, cells in rows(recorded).items():
        text, count = re.subn(rf"^\| {beginning}.*\|$", f"| {' | '.join(cells)} |", text, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"expected one row that begins with {beginning!r}, found {count}")
    for title in titles(recorded):
        text = re.sub(rf"\| {re.escape(title.split()[0])} [\d.]+ \|", f"| {title} |", text)
    return text


def main() -> None:
    """Writes the rows."""
    recorded = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else RESULTS).read_text(encoding="utf-8"))
    readme = ROOT / "README.md"
    readme.write_text(written(readme.read_text(encoding="utf-8"), recorded), encoding="utf-8")


if __name__ == "__main__":
    main()
