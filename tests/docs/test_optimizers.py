"""The page of the optimizers: its examples run on every backend, and its tables are complete."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

from emberharmony import ops, optim
from emberharmony.optim import schedules
from emberharmony.optim.groups import ParameterGroups

PAGE = Path(__file__).parents[2] / "docs" / "optimizers.md"
TEXT = PAGE.read_text(encoding="utf-8")
KINDS = [
    each for each in map(optim.__dict__.get, optim.__all__) if isinstance(each, type) and each is not optim.Optimizer
]
DOCUMENTED = [
    *(each for each in KINDS if ">>>" in (each.__doc__ or "")),
    optim.Optimizer.update,
    *(each for each in vars(schedules).values() if inspect.isfunction(each) and ">>>" in (each.__doc__ or "")),
]


def run(text: str, name: str, **names: object) -> None:
    example = doctest.DocTestParser().get_doctest(text, {"__name__": "page", **names}, name, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)


def test_the_examples_of_the_page_give_the_results_that_they_show(backend: str) -> None:
    run(TEXT, "optimizers.md")


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda each: each.__name__)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(documented: object, backend: str) -> None:
    run(inspect.getdoc(documented) or "", documented.__name__, ops=ops)


def row(kind: type) -> str:
    found = [p for p in inspect.signature(kind).parameters.values() if p.name != "params"]
    return f"| `{kind.__name__}` | `{', '.join(f'{p.name}={p.default!r}' for p in found)}` |"


def test_the_table_has_each_optimizer_with_its_defaults() -> None:
    rows = [row(kind) for kind in KINDS if issubclass(kind, ParameterGroups)]
    assert re.findall(r"^\| `[A-Z]\w+` \| .*$", TEXT, re.MULTILINE) == rows, "\n".join(rows)


def test_the_table_has_each_schedule() -> None:
    public = {
        name
        for name, each in vars(schedules).items()
        if inspect.isfunction(each) and each.__module__ == schedules.__name__ and name[0] != "_"
    }
    assert set(re.findall(r"^\| `([a-z_]+)\(", TEXT, re.MULTILINE)) == public
