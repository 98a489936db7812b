"""The examples in the docstrings of `emberharmony.nn` run on every backend."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

from emberharmony import nn, ops, optim
from tests.together import together


def documented() -> Iterator[object]:
    """Yields the public classes, methods and functions of `nn` whose docstrings have examples."""
    for info in pkgutil.walk_packages(nn.__path__, "emberharmony.nn."):
        module = importlib.import_module(info.name)
        for name, each in vars(module).items():
            if name[0] != "_" and getattr(each, "__module__", "") == module.__name__:
                methods = vars(each).values() if isinstance(each, type) else ()
                yield from (x for x in (each, *methods) if inspect.isroutine(x) or isinstance(x, type))


WITH_EXAMPLES = {x.__qualname__: x for x in documented() if ">>>" in (getattr(x, "__doc__", None) or "")}  # type: ignore[attr-defined]


@together("name", WITH_EXAMPLES)
def test_the_examples_of_a_docstring_give_the_results_that_they_show(name: str, backend: str) -> None:
    text = inspect.getdoc(WITH_EXAMPLES[name]) or ""
    names = {"ops": ops, "nn": nn, "optim": optim, "__name__": "page"}
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    lines: list[str] = []
    failures, attempted = doctest.DocTestRunner(verbose=False).run(example, out=lines.append)
    assert attempted
    assert not failures, "".join(lines)
