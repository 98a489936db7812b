"""Layering: chains of imports, groups in a layer, independence, protected modules."""

from pathlib import Path

import pytest

from emberlint.config.settings import Contract, Settings
from emberlint.contracts import Breach, breaches
from emberlint.source.project import Project

ROOT = Path("/nowhere")


def broken(contract: Contract, **modules: str) -> list[Breach]:
    """Returns the breaches among modules of a package `lib`, given as name and source; `__` in a name means a dot."""
    texts = {f"lib/{name.replace('__', '/')}.py": source for name, source in modules.items()}
    return [*breaches(Project(Settings(root=ROOT, contracts=(contract,)), texts=texts))]


def chains(contract: Contract, **modules: str) -> list[str]:
    return [" -> ".join(one.chain) for one in broken(contract, **modules)]


FLOORS = Contract("floors", "layers", layers=("lib.top", "lib.left | lib.right", "lib.low : lib.bottom"))


@pytest.mark.parametrize(
    "modules, expected",
    [
        ({"top": "import lib.left, lib.low", "left": "import lib.low", "low": ""}, []),
        ({"low": "import lib.top", "top": ""}, ["lib.low -> lib.top"]),
        ({"low": "from lib import top", "top": ""}, ["lib.low -> lib.top"]),
        ({"low": "from . import top", "top": ""}, ["lib.low -> lib.top"]),
        ({"low": "from .top import name", "top": ""}, ["lib.low -> lib.top"]),
        ({"low": "def f():\n    import lib.top", "top": ""}, ["lib.low -> lib.top"]),
        ({"left": "import lib.right", "right": ""}, ["lib.left -> lib.right"]),
        ({"right": "import lib.left", "left": ""}, ["lib.right -> lib.left"]),
        ({"low": "import lib.bottom", "bottom": "import lib.low"}, []),
        ({"low": "import lib.other", "other": "import lib.top", "top": ""}, ["lib.low -> lib.other -> lib.top"]),
        (
            {"low": "import lib.left", "left": "import lib.top", "top": ""},
            ["lib.low -> lib.left", "lib.left -> lib.top"],
        ),
        ({"low": "import lib.lowest, lib.topmost", "lowest": "", "topmost": ""}, []),
        ({"low": "import elsewhere.top", "top": ""}, []),
        ({"low__inner": "import lib.top.inner", "top__inner": ""}, ["lib.low.inner -> lib.top.inner"]),
        ({"low": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lib.top", "top": ""}, []),
        (
            {
                "low": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import lib.top",
                "top": "",
            },
            ["lib.low -> lib.top"],
        ),
        ({"low": "import lib.a", "a": "import lib.b", "b": "import lib.a"}, []),
    ],
)
def test_a_layer_imports_only_from_lower_layers(modules: dict[str, str], expected: list[str]) -> None:
    assert sorted(chains(FLOORS, **modules)) == sorted(expected)


def test_a_breach_names_the_first_import_of_its_chain() -> None:
    (one,) = broken(FLOORS, low="x = 1\nimport os, lib.top as t", top="")
    assert (one.path, one.at.line, one.at.target, one.contract) == ("lib/low.py", 2, "lib.top", "floors")


def test_independent_modules_do_not_import_each_other() -> None:
    apart = Contract("apart", "independence", modules=("lib.lint", "lib.ops : lib.core"))
    assert chains(apart, lint="import lib.core", core="") == ["lib.lint -> lib.core"]
    assert chains(apart, core="import lib.lint", lint="") == ["lib.core -> lib.lint"]
    assert chains(apart, ops="import lib.core", core="import lib.ops") == []
    assert chains(apart, lint="import lib.between", between="import lib.ops", ops="") == [
        "lib.lint -> lib.between -> lib.ops"
    ]


def test_only_allowed_modules_import_a_protected_module() -> None:
    inner = Contract("inner", "protected", modules=("lib.core.raw",), allowed=("lib.backend",))
    assert chains(inner, backend__a="import lib.core.raw", core__raw="") == []
    assert chains(inner, ops="import lib.core.raw", core__raw="") == ["lib.ops -> lib.core.raw"]
    assert chains(inner, ops="import lib.core", core="", core__raw="") == []


def test_without_contracts_there_are_no_breaches() -> None:
    assert [*breaches(Project(Settings(root=ROOT), texts={"lib/low.py": "import lib.top"}))] == []


def test_a_contract_spans_several_source_folders(tmp_path: Path) -> None:
    contract = Contract("apart", "independence", modules=("first", "second"))
    for name, text in (("one/src/first/a.py", "import second.b\n"), ("two/second/b.py", "")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    settings = Settings(root=tmp_path, src=("one/src", "two"), contracts=(contract,))
    (breach,) = breaches(Project(settings))
    assert breach.chain == ("first.a", "second.b")
