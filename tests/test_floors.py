"""Import contracts and documentation name the same floors (layers) of the package in the same order."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FIRST = "floors: each imports only from those below"


def layers(tool: str) -> list[set[str]]:
    contract = next(one for one in PROJECT["tool"][tool]["contracts"] if one["name"] == FIRST)
    return [set(re.findall(r"emberharmony\.(\w+)", layer)) for layer in contract["layers"]]


def named(page: str) -> list[set[str]]:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    floors = re.search(r"cli > demo > [\w |>]*core", text)
    assert floors is not None, f"{page} does not name the floors"
    return [{name.strip() for name in floor.split("|")} for floor in floors[0].split(">")]


def test_contracts_and_pages_name_the_same_floors() -> None:
    floors = layers("importlinter")
    assert floors == layers("emberlint")
    assert floors == named("docs/design.md")
    assert floors == named(".clinerules-code")


def test_every_folder_of_the_package_belongs_to_a_floor() -> None:
    folders = {path.parent.name for path in (ROOT / "emberharmony").glob("*/__init__.py")}
    assert folders - {"data", "_pyinstaller"} <= set().union(*layers("importlinter"))
