"""The quick tests by which rules skip files."""

import pytest

from emberlint.config.settings import Settings
from emberlint.source.source_file import SourceFile


@pytest.mark.parametrize(
    "text", ["x.cpu()", "x . cpu ()", "(x.\n  cpu())", "(x.  # a comment\n  cpu())", "x.\\\ncpu()"]
)
def test_a_call_of_a_method_is_seen_in_any_layout(text: str):
    assert SourceFile("a.py", f"y = {text}\n", Settings()).calls_method(frozenset({"cpu", "to"}))


@pytest.mark.parametrize("text", ["cpu()", "x.cpus()", "x.xcpu()", "x.cpu", "x.total()"])
def test_other_names_do_not_count(text: str):
    assert not SourceFile("a.py", f"y = {text}\n", Settings()).calls_method(frozenset({"cpu", "to"}))
