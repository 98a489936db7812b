"""Runs the examples in the docstrings of all ops on every backend."""

import doctest

from emberharmony import ops
from emberharmony.core.registry import OPS
from tests.together import together

PARSER = doctest.DocTestParser()
DOCUMENTED = sorted(name for name, spec in OPS.items() if ">>>" in (spec.declared.__doc__ or ""))


@together("name", DOCUMENTED)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(name: str, backend: str) -> None:
    text = OPS[name].declared.__doc__ or ""
    example = PARSER.get_doctest(text, {"ops": ops}, name, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)
