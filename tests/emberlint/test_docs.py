"""The documentation page of emberlint: it is up to date and complete, and its examples are correct."""

import ast
import re
import tomllib
from pathlib import Path

import click
import pytest

from emberlint.cli import main
from emberlint.commands import COMMANDS
from emberlint.config.configuration import READERS, settings_from_table
from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.docs import KEYS, pages
from emberlint.reporters import REPORTERS
from emberlint.run.check import source_file
from emberlint.run.registry import GROUPS, all_rules

ROOT = Path(__file__).parents[2]
PAGES = pages()
PAGE = "\n".join(PAGES.values())


def fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_in_the_docs_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name]


def test_the_guide_is_short_enough_to_read() -> None:
    for name in ("emberlint.md", "emberlint_settings.md"):
        assert len(PAGES[name].splitlines()) <= 320


def test_every_key_of_the_settings_has_its_row() -> None:
    assert KEYS.keys() == READERS.keys()
    for key in READERS:
        assert f"\n| `{key}` | " in PAGE, key


def test_every_rule_has_its_row_and_its_section() -> None:
    for rule in all_rules().values():
        assert f"\n| [{rule.code}](#{rule.code.lower()}-{rule.name}) | {rule.name} | " in PAGE
        assert f"\n## {rule.code} {rule.name}\n" in PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_switch_is_named(name: str) -> None:
    assert f"emberlint {name}" in PAGE
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for option in command.params:
        for word in option.opts if isinstance(option, click.Option) else ():
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", PAGE), word


def test_groups_formats_tiers_and_exit_statuses_are_named() -> None:
    for word in (*(f"--{group}-only" for group in GROUPS), *REPORTERS):
        assert f"`{word}`" in PAGE, word
    assert all(f"- **{tier}**: " in PAGE for tier in Tier.__members__)
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == ["0", "1", "2", "130"]


def test_the_configuration_shown_is_valid() -> None:
    (text,) = fenced("toml")
    table = tomllib.loads(text)["tool"]["emberlint"]
    settings = settings_from_table(table, ROOT)
    assert settings.functions == {"library.load": "tensor"}
    assert [one.type for one in settings.contracts] == ["layers", "independence", "protected"]
    assert settings.role("library/engines/torch/math.py").backend == "torch"


def test_the_example_of_the_tiers_has_the_stated_tiers() -> None:
    source = next(one for one in fenced("python") if "def tiers" in one)
    file = source_file("library/module.py", source, Settings(root=ROOT))
    wanted = {number: line[-1:] for number, line in _tiers(source)}
    found = {}
    for node in ast.walk(file.tree):
        if isinstance(node, ast.BinOp):
            evidence = file.inference.evidence(node)
            assert evidence is not None
            found[node.lineno] = evidence.tier.name
    assert found == wanted
    assert sorted(wanted.values()) == ["A", "B", "C"]


def _tiers(source: str) -> list[tuple[int, str]]:
    lines = enumerate(source.splitlines(), 1)
    return [(number, match[0]) for number, line in lines if (match := re.search(r"tier [ABC]", line))]


def test_the_page_lists_the_hooks_of_the_manifest() -> None:
    ids = re.compile(r"- id: ([\w-]+)")
    hooks = ids.findall((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [*dict.fromkeys(ids.findall("".join(fenced("yaml"))))] == hooks
