"""Draws docs/performance_*.svg from the figures that `python -m benchmarks peers` recorded.

`python docs/performance_plots.py [FILE]` reads benchmarks/results/peers.json unless another file is named. A bar is a
ratio to the reference of its row, or for calls the time that is added to the native call; a grey line marks the noise.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "benchmarks" / "results" / "peers.json"
TITLES = {
    "calls": "Nanoseconds that a call adds to the native call, on one element",
    "imports": "CPU time of an import and one call over those of NumPy",
    "models": "Time of a forward pass over the native one, batch 4",
    "gradients": "Time of value and gradient over NumPy code written by hand",
    "training": "Time of a training step with AdamW over torch.nn",
}
OWN = {"ours": "#c2410c", "ours on numpy": "#c2410c", "ours on torch": "#ea580c", "ours on mlx": "#fb923c"}
OWN["compiled on numpy"] = "#7c2d12"
PEERS = ("#475569", "#64748b", "#94a3b8", "#0f766e", "#14b8a6", "#5eead4", "#a3a3a3")
Row = dict[str, float]


def figures_of(part: str, row: Row) -> tuple[Row, float]:
    """Returns the bars of a row, and its noise floor in the same unit."""
    if part == "calls":
        base = row["native"]
        bars = {name: (time - base) * 1e9 for name, time in row.items() if name not in ("native", "native again")}
        return bars, abs(row["native again"] - base) * 1e9
    base = next(iter(row.values()))
    bars = {name: time / base for name, time in row.items() if time != base and name != "again"}
    return bars, row["again"] / base


def caption(machine: dict[str, Any]) -> str:
    """Returns what was measured where."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    absent = f"; not installed: {', '.join(machine['absent'])}" if machine["absent"] else ""
    return (
        f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, load {machine['load']} at the start, "
        f"one thread for each library,\nleast of {machine['rounds']} interleaved rounds; Python {machine['python']}, "
        f"{versions}{absent}"
    )


def draw(part: str, rows: dict[str, Row], machine: dict[str, Any]) -> None:
    """Writes the picture of a part."""
    names = list(dict.fromkeys(name for row in rows.values() for name in figures_of(part, row)[0]))
    peers = iter(PEERS * 2)
    colours = {name: OWN.get(name) or next(peers) for name in names}
    count = sum(len(figures_of(part, row)[0]) + 1 for row in rows.values())
    height = 0.19 * count + 1.2
    figure, axes = plt.subplots(figsize=(9, height))
    place, ticks = 0.0, []
    for title, row in rows.items():
        bars, noise = figures_of(part, row)
        ticks.append((place + (len(bars) - 1) / 2, title))
        axes.plot([noise] * 2, [place - 0.5, place + len(bars) - 0.5], color="#a3a3a3", linewidth=1, zorder=3)
        for name, value in bars.items():
            axes.barh(place, value, color=colours[name], height=0.9)
            label = f"{value:,.0f}" if part == "calls" else f"{value:.2f}"
            axes.annotate(label, (max(value, 0), place), (3, 0), textcoords="offset points", va="center", fontsize=6)
            place += 1
        place += 1
    if part == "calls":
        axes.set_xscale("symlog", linthresh=100)
    else:
        axes.set_xscale("log")
        axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([at for at, _ in ticks], [title for _, title in ticks], fontsize=7)
    axes.set_ylim(place, -1)
    axes.set_title(TITLES[part], fontsize=10)
    axes.tick_params(axis="x", labelsize=7)
    handles = [mpl.patches.Patch(color=colours[name], label=name) for name in names]
    axes.legend(handles=handles, fontsize=7, loc="upper left", bbox_to_anchor=(1.06, 1), frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.text(0.01, 0.002, caption(machine), fontsize=6, va="bottom")
    figure.tight_layout(rect=(0, 0.45 / height, 1, 1))
    figure.savefig(FOLDER / f"performance_{part}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Draws all parts that the file has."""
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "performance", "svg.fonttype": "none"}
    recorded = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else RESULTS).read_text(encoding="utf-8"))
    for part in TITLES:
        if part in recorded["figures"]:
            draw(part, recorded["figures"][part], recorded["machine"])


if __name__ == "__main__":
    main()
