"""Runs the examples in the docstrings of the names of `emberharmony.nn` on every backend."""

import doctest
import inspect

import pytest

from emberharmony import nn, ops, optim

DOCUMENTED = [name for name in sorted(nn.__all__) if ">>>" in (getattr(nn, name).__doc__ or "")]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(name: str, backend: str) -> None:
    text = inspect.getdoc(getattr(nn, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"nn": nn, "ops": ops, "optim": optim}, name, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)
