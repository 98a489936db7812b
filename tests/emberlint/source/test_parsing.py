"""Parsing: syntax of another Python, and expressions nested deeply."""

import sys
from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run.check import check_text
from emberlint.run.registry import all_rules

CODES = frozenset(all_rules())
USE = "from emberharmony import ops\n\nx = ops.ones(3)\n"


def found(text: str, **settings: object) -> list[str]:
    result = check_text("library/module.py", text, Settings(root=Path("/nowhere")).with_changes(**settings), CODES)
    return [f"{one.code}: {one.message}" for one in result.findings]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python parses the text")
@pytest.mark.parametrize(
    "text, version, what",
    [
        ("def f[T](x: T): pass\n", "3.12", "type parameters"),
        ("type X = int\n", "3.12", "type parameters"),
        ("d = {}\nx = f'{d['b']}'\n", "3.12", "quotes or lines inside an f-string"),
    ],
)
def test_a_file_for_a_later_python_names_that_python(text: str, version: str, what: str) -> None:
    (one,) = found(text)
    assert one.startswith("EMB000")
    assert f"Python {version} parses it ({what})" in one


def test_a_wrong_file_is_not_taken_for_one_of_a_later_python() -> None:
    (one,) = found("def f(:\n")
    assert "Python 3" not in one


def test_syntax_newer_than_the_target_version_is_reported() -> None:
    text = "try:\n    pass\nexcept* ValueError:\n    pass\n"
    assert found(text) == []
    (one,) = found(text, target_version=(3, 10))
    assert "(target-version is 3.10)" in one


@pytest.mark.parametrize("terms", [50, 2_500])  # Python 3.12 itself reads 3,000 terms at most
def test_a_long_sum_is_checked(terms: int) -> None:
    assert len(found(f"{USE}y = {' + '.join(['x'] * terms)}\n")) == terms - 1


def test_a_long_chain_of_signs_is_checked() -> None:
    assert len(found(f"{USE}y = {'-' * 2000}x\n")) == 2000


@pytest.mark.parametrize("opening, closing", ["()", "[]", "{}", ("f(", ")"), ("(')', ", ")")])
@pytest.mark.parametrize("after", ["", "\ny = = 2\n"])
def test_brackets_nested_beyond_the_stack_of_the_parser_are_reported(opening: str, closing: str, after: str) -> None:
    for depth in (1_500, 5_000):
        (one,) = found(f"x = {opening * depth}1{closing * depth}{after}\n")
        assert one.startswith("EMB000")
        assert "nested" in one
        assert "later Python" not in one
    (one,) = found(f"x = {opening * 5_000}{after}\n")
    assert one.startswith("EMB000")


@pytest.mark.parametrize("prefix", ["-", "not ", "lambda: ", "x if x else ", "x ** "])
def test_prefixes_nested_beyond_the_stack_of_the_parser_are_reported(prefix: str) -> None:
    for text in (f"y = {prefix * 20_000}x\n", f"y = {prefix * 20_000}x\nz = = 2\n"):
        (one,) = found(text)
        assert one.startswith("EMB000")
        assert "nested" in one or "too complex" in one or "invalid syntax" in one


@pytest.mark.parametrize("chain", ["()", "[0]", ".b", " + 1", " if y else z"])
def test_a_long_chain_in_a_wrong_file_is_reported_at_once(chain: str) -> None:
    (one,) = found(f"x = y{chain * 3_000}\nz = = 2\n")
    assert one.startswith("EMB000")


def test_a_chain_that_the_parser_of_newer_syntax_does_not_survive_costs_only_the_hint() -> None:
    text = "type X = int\nif X: pass\n" + "elif X: pass\n" * 20_000 + "z = = 2\n"
    (one,) = found(text)
    assert one.startswith("EMB000")
    assert "later Python" not in one
