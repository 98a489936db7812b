"""Draws docs/house.svg: the rooms of the package, each with its sentence, and the arrows of their imports.

`python docs/house.py` reads the floors from the import contracts of pyproject.toml, the sentences from the docstrings
of the packages and the imports from their files. A room has arrows to the rooms that it imports from; those to rooms
that it reaches through others are left out.
"""

import ast
import functools
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "emberharmony"
PICTURE = Path(__file__).with_name("house.svg")
CONTRACT = "floors: each imports only from those below"
BESIDE = {"data": "core"}
"""The rooms that no contract names, and the floor on which they stand."""
WIDTH, HEIGHT, GAP, LINE, MARGIN = 1040, 80, 34, 14, 12
INK, EDGE, PAPER = "#431407", "#c2410c", "#fff7ed"
PLACES = {
    "cli": (300, 740),
    "demo": (30, 400),
    "testing": (660, 1028),
    "interop": (310, 640),
    "nn": (30, 388),
    "optim": (30, 510),
    "io": (426, 758),
    "xp": (796, 1028),
    "distributed": (170, 630),
    "rules": (650, 930),
    "ops": (250, 800),
    "backend": (250, 860),
    "transforms": (250, 860),
    "core": (410, 860),
    "data": (30, 390),
}
"""Where each room begins and ends, from the left."""
LANES = {
    ("cli", "testing"): 700,
    ("demo", "data"): 16,
    ("testing", "nn"): 286,
    ("testing", "io"): 700,
    ("io", "distributed"): 570,
    ("testing", "rules"): 777,
    ("xp", "backend"): 960,
}
"""Where the arrows go down that pass other rooms."""


def floors() -> list[list[str]]:
    """Returns the rooms of each floor, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"] == CONTRACT)
    rooms = [re.findall(r"emberharmony\.(\w+)", layer) for layer in layers]
    return [[*floor, *(room for room, under in BESIDE.items() if under in floor)] for floor in rooms]


def sentence(room: str) -> str:
    """Returns what a room is for: the first line of its docstring."""
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".").replace("`", "")


@functools.cache
def imports() -> dict[str, set[str]]:
    """Returns the rooms from which the modules of each room import, also late, but not for type checkers alone."""
    rooms = {room for floor in floors() for room in floor}
    known: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for path in (PACKAGE / room).rglob("*.py"):
            known[room] |= _names(path.read_text(encoding="utf-8")) & rooms - {room}
    return known


def _names(text: str) -> set[str]:
    """Returns the first names below the package that a file imports while it runs."""
    text = re.sub(r"^( *)if (?:\w+\.)?TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", "", text, flags=re.MULTILINE)
    names = re.findall(
        r"""^ *(?:from|import) emberharmony\.(\w+)|\bDeferred\("emberharmony\.(\w+)""", text, re.MULTILINE
    )
    public = re.findall(r"^ *from emberharmony import (.*)", text, re.MULTILINE)
    return {name for pair in names for name in pair} | {name for line in public for name in re.findall(r"\w+", line)}


def arrows() -> list[tuple[str, str]]:
    """Returns the imports between rooms without those that follow from others."""
    found = imports()

    def reached(room: str) -> set[str]:
        return found[room].union(*(reached(other) for other in found[room]))

    direct = []
    for floor in floors():
        for room in floor:
            indirect = set().union(*(reached(other) for other in found[room]))
            direct += [(room, other) for other in sorted(found[room] - indirect)]
    return direct


def drawing() -> str:
    """Returns the picture."""
    boxes, texts = [], []
    for row, floor in enumerate(floors()):
        for room in floor:
            left, right = PLACES[room]
            middle, top = (left + right) / 2, MARGIN + row * (HEIGHT + GAP)
            boxes.append(f'<rect x="{left}" y="{top}" width="{right - left}" height="{HEIGHT}" rx="8"/>')
            lines = textwrap.wrap(sentence(room), (right - left) // 7)
            y = top + (HEIGHT - LINE * len(lines)) / 2 + 5
            texts.append(f'<text x="{middle:.0f}" y="{y:.0f}" font-size="15" font-weight="600">{room}</text>')
            for number, line in enumerate(lines, 1):
                texts.append(f'<text x="{middle:.0f}" y="{y + LINE * number:.0f}">{line}</text>')
    height = 2 * MARGIN + len(floors()) * (HEIGHT + GAP) - GAP
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-size="12" '
        'aria-label="The rooms of the package, whose imports go down" font-family="system-ui, sans-serif">',
        "<!-- written by docs/house.py -->",
        f'<defs>{tip}<path d="M0 0L8 4L0 8z" fill="{EDGE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#ffffff"/>',
        f'<g fill="none" stroke="{EDGE}" stroke-width="1.2" marker-end="url(#tip)">',
        *(_arrow(room, other) for room, other in arrows()),
        f'</g>\n<g fill="{PAPER}" stroke="{EDGE}" stroke-width="1.5">',
        *boxes,
        f'</g>\n<g fill="{INK}" text-anchor="middle">',
        *texts,
        "</g>\n</svg>\n",
    ]
    return "\n".join(parts)


def _arrow(room: str, other: str) -> str:
    """Returns an arrow from the lower edge of a room to the upper edge of another, in a lane beside those between."""
    rows = {name: row for row, floor in enumerate(floors()) for name in floor}
    start, end = (MARGIN + rows[name] * (HEIGHT + GAP) for name in (room, other))
    (left, right), (to_left, to_right) = PLACES[room], PLACES[other]
    middle = (max(left, to_left) + min(right, to_right)) // 2  # of what both have above each other
    lane = LANES.get((room, other), min(max(middle, left + 12), right - 12))
    x, to = (min(max(lane, low + 12), high - 12) for low, high in ((left, right), (to_left, to_right)))
    between = [(lane, start + HEIGHT + GAP - 8), (lane, end - GAP + 8)] if end - start > HEIGHT + GAP else []
    points = [(x, start + HEIGHT), *between, (to, end - 2)]
    path = "L".join(f"{x} {y}" for x, y in points)
    return f'<path data-rooms="{room} {other}" d="M{path}"/>'


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
