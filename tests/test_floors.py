"""Import contracts and documentation name the same floors (layers) of the package in the same order."""

import fnmatch
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FIRST = "floors: each imports only from those below"


def layers() -> list[set[str]]:
    contract = next(one for one in PROJECT["tool"]["importlinter"]["contracts"] if one["name"] == FIRST)
    return [set(re.findall(r"emberharmony\.(\w+)", layer)) for layer in contract["layers"]]


def named(page: str) -> list[set[str]]:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    floors = re.search(r"cli > demo > [\w |>]*core", text)
    assert floors is not None, f"{page} does not name the floors"
    return [{name.strip() for name in floor.split("|")} for floor in floors[0].split(">")]


def test_the_rules_and_the_drawing_show_the_floors_of_the_contract() -> None:
    assert named(".clinerules-code") == layers()
    assert named("docs/design.md") == layers()


def test_every_folder_of_the_package_belongs_to_a_floor() -> None:
    folders = {path.parent.name for path in (ROOT / "emberharmony").glob("*/__init__.py")}
    assert folders - {"data", "_pyinstaller"} <= set().union(*layers())


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
    "transforms/backward.py": "loads the rules, which fill the table of the tape",
    "transforms/batch_tape.py": "loads the batching rules, which fill the table of the batch",
    "xp/scipy.py": "reaches into SciPy, and only when asked to",
}
"""The files that import a module whose name is in a string, which no contract sees, and why they do."""


def test_only_plugins_and_lazy_names_are_imported_by_a_string() -> None:
    package = ROOT / "emberharmony"
    by_string = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\b(import_module|__import__)\(", path.read_text(encoding="utf-8"))
    }
    assert by_string == set(BY_NAME)


def test_deferred_modules_are_on_the_floors_below() -> None:
    floors = layers()
    height = {name: -i for i, floor in enumerate(floors) for name in floor}
    for path in (ROOT / "emberharmony").rglob("*.py"):
        for floor in re.findall(r"Deferred\(\"emberharmony\.(\w+)", path.read_text(encoding="utf-8")):
            assert height[floor] <= height[path.relative_to(ROOT / "emberharmony").parts[0]], path


SHELVES = (
    "rules",
    "testing/samples",
    "backend/shared",
    *(f"backend/{name}" for name in ("numpy", "torch", "mlx", "jax")),
)
"""The folders that have a file for each category of ops, or for some."""


def test_a_category_is_in_the_same_wing_on_every_shelf() -> None:
    package = ROOT / "emberharmony"
    wings = {
        path.stem.removesuffix("_ops"): path.parent.name
        for path in (package / "ops").glob("*/*.py")
        if path.name != "__init__.py"
    }
    for shelf in SHELVES:
        for path in (package / shelf).rglob("*.py"):
            category = path.stem.removesuffix("_ops")
            is_one = category in wings and path.parent.name != "batching"
            assert not is_one or path.relative_to(package / shelf).parent == Path(wings[category]), path


OF_TYPES = {
    "backend.abstract.* -> backend.abstract": "its rules are functions of the backend whose ops they are",
    "backend.base -> backend.array_namespace": "a backend has a namespace, which is loaded on first use",
    "backend.discovery -> backend.protocol": "the protocol is made from the declarations, which are loaded later",
    "core.cells.* -> core.cells.cell": "blocks and writers watch the cells that use them",
    "core.registry -> core.op_code.prologue": "an op gets its prologue at its first call",
    "interop.torch.* -> interop.torch.captured": "a captured model saves and checks itself",
    "ops.* -> ops.*": "the bodies of ops call other ops",
    "testing.differences.* -> testing.differences.report": "the page and the repro are written from a report",
}
"""The imports for type checkers alone that close a circle, and why they stay; no other circle may be added."""


def test_no_other_import_for_types_closes_a_circle() -> None:
    grimp = pytest.importorskip("grimp")
    names = ("emberharmony", "emberlint")
    every, run = (
        grimp.build_graph(*names, exclude_type_checking_imports=left, cache_dir=None) for left in (False, True)
    )
    imported = {module: every.find_modules_directly_imported_by(module) for module in every.modules}

    def reaches(start: str, end: str) -> bool:
        seen, pending = {"emberharmony"}, [start]  # the package has all public names
        while pending:
            more = imported[pending.pop()] - seen
            seen |= more
            pending += more
        return end in seen

    closing = {
        f"{module} -> {other}".replace("emberharmony.", "")
        for module in every.modules - {"emberharmony"}
        for other in imported[module] - run.find_modules_directly_imported_by(module)
        if reaches(other, module)
    }
    kept = {name: [each for each in closing if fnmatch.fnmatchcase(each, name)] for name in OF_TYPES}
    assert closing - set().union(*kept.values()) == set(), "import at run time, or move the type below both"
    assert not [name for name, each in kept.items() if not each], "open by now"
