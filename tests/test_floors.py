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


BY_NAME = {
    "backend/discovery.py": "loads a backend as a plugin",
    "cli/models.py": "imports a module of the user, which an option names",
    "core/deferred.py": "delays imports from floors below",
    "core/names/lazy.py": "loads the public names of a package on first use",
    "core/registry.py": "loads the declarations, which fill the registry",
    "distributed/transports/__init__.py": "loads a transport as a plugin",
    "ops/__init__.py": "loads `ops.distributed` on first use",
    "testing/models/libraries.py": "loads the adapter of a library when a model of it is given",
    "testing/samples/__init__.py": "loads every file of the folder",
    "transforms/batch_tape.py": "loads the batching rules, which fill the table of the batch",
    "transforms/tape.py": "loads the rules, which fill the table of the tape",
    "xp/scipy.py": "reaches into SciPy, and only when asked to",
}
"""The files that import a module whose name is in a string, which no contract sees, and why they do."""


def test_only_plugins_and_lazy_names_are_imported_by_a_string() -> None:
    package = ROOT / "emberharmony"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\b(import_module|__import__)\(", path.read_text(encoding="utf-8"))
    }
    assert found == set(BY_NAME)


def test_deferred_modules_are_on_the_floors_below() -> None:
    floors = layers("importlinter")
    height = {name: -i for i, floor in enumerate(floors) for name in floor}
    for path in (ROOT / "emberharmony").rglob("*.py"):
        for floor in re.findall(r"Deferred\(\"emberharmony\.(\w+)", path.read_text(encoding="utf-8")):
            assert height[floor] <= height[path.relative_to(ROOT / "emberharmony").parts[0]], path


BACKENDS = {f"backend/{name}" for name in ("numpy", "torch", "mlx", "jax", "dask")}
SHELVES = {"ops", *BACKENDS, "backend/shared", "rules", "testing/samples"}
"""The folders that have one file for each category of ops."""


def test_no_folder_but_a_shelf_has_more_than_20_modules() -> None:
    for top, shelves in ((ROOT / "emberharmony", SHELVES), (ROOT / "emberlint" / "src" / "emberlint", {"rules"})):
        folders = {path.parent for path in top.rglob("*.py")}
        wide = {folder.relative_to(top).as_posix() for folder in folders if len(list(folder.glob("*.py"))) > 20}
        assert wide <= shelves
