"""The public names: documentation, examples and third-party code import nothing else."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import emberharmony
from emberharmony import errors, types

ROOT = Path(__file__).parents[1]
PUBLIC = (
    "emberharmony",
    "emberharmony.backend",
    "emberharmony.data",
    "emberharmony.distributed",
    "emberharmony.errors",
    "emberharmony.io",
    "emberharmony.nn",
    "emberharmony.optim",
    "emberharmony.testing",
    "emberharmony.types",
    "emberharmony.xp",
)
XP = tuple(f"emberharmony.xp.{backend}" for backend in ("jax", "mlx", "numpy", "torch"))
OPS = tuple(f"emberharmony.ops{part}" for part in ("", ".nn", ".linalg", ".fft", ".image", ".random"))
FOR_CONTRIBUTORS = {
    "design.md",
    "life_of_a_call.md",
    "emberlint.md",
    "emberlint_rules.md",
}  # these pages describe internals or quote lint examples, so they may import private names
CODE = re.compile(
    r"^ *(?:>>> |\.\.\. )?((?:from emberharmony[\w.]* import .*)|(?:import emberharmony[\w.]*.*))$", re.MULTILINE
)


def _sources() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if path.name not in FOR_CONTRIBUTORS:
            for line in CODE.findall(path.read_text(encoding="utf-8")):
                yield path.name, line
    for path in (*sorted((ROOT / "examples").glob("*.py")), ROOT / "tests" / "plugin" / "ember_strict.py"):
        yield path.name, path.read_text(encoding="utf-8")


def _imported(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "emberharmony":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "emberharmony")


@pytest.mark.parametrize(("place", "source"), [*_sources()])
def test_only_public_names_are_imported(place: str, source: str) -> None:
    for module, name in _imported(source):
        assert module in (*PUBLIC, *OPS, *XP), f"{place} imports the private module {module}"
        public = getattr(importlib.import_module(module), "__all__", None)
        if name and public is not None and f"{module}.{name}" not in XP:
            assert name in public, f"{place} imports {name}, which {module} does not offer"


@pytest.mark.parametrize("module", [*PUBLIC, "emberharmony.ops"])
def test_every_name_in_all_of_a_public_module_exists(module: str) -> None:
    found = importlib.import_module(module)
    assert len(found.__all__) == len(set(found.__all__))
    for name in found.__all__:
        assert getattr(found, name) is not None or name == "newaxis"


def test_the_public_modules_export_every_error_and_every_type() -> None:
    from emberharmony.core import errors as inner_errors
    from emberharmony.core import types as inner_types

    own = {
        name
        for name, value in vars(inner_errors).items()
        if isinstance(value, type) and name == value.__name__ and value.__module__ == "emberharmony.errors"
    }
    assert own == set(errors.__all__)
    named = {name for name in vars(inner_types) if name[0].isupper()} - {
        "TYPE_CHECKING",
        "Annotated",
        "Any",
        "Literal",
        "NewType",
        "Protocol",
        "Sequence",
        "TypeAlias",
    }
    assert named | {"DType"} == set(types.__all__)


def test_dir_of_the_package_shows_only_public_names() -> None:
    assert dir(emberharmony) == sorted(emberharmony.__all__)


def test_an_error_names_its_public_module() -> None:
    assert str(errors.ShapeError) == "<class 'emberharmony.errors.ShapeError'>"


def test_the_page_on_stability_names_every_public_module_and_name() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    for module in PUBLIC:
        assert f"\n| `{module}` |" in page, module
    row = next(line for line in page.splitlines() if line.startswith("| `emberharmony` |"))
    modules = {name.removeprefix("emberharmony.") for name in PUBLIC if "." in name}
    assert set(re.findall(r"`(\w+)`", row)) - {"emberharmony"} >= set(emberharmony.__all__) - {"__version__"} - modules
