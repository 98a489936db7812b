"""A plugin of pytest that writes which functions of the package each test calls, and which branches it takes.

`server.py` loads it in a copy of the tree, where its folder is on the path and the package `mutants` is not.
"""

import ast
import json
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest


class Reached:
    """Writes one file for each test file: the functions that its tests enter, between set-up and tear-down.

    The tracer of `coverage` sees them, because it is written in C: a test takes half as long again.

    Args:
        folder: the folder to write to.
        root: the root of the repository.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self._root = root
        # Only what a test imports is read, so `source`, which adds all other modules as empty, is not given.
        self._coverage = coverage.Coverage(
            data_file=None, branch=True, include=[f"{root}/*"], omit=[f"{root}/tests/*"], config_file=False
        )
        self._seconds: dict[str, float] = {}
        self._coverage.start()  # modules are imported when tests are collected

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        """Runs a test as a context of its own."""
        start_time = time.monotonic()
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = round(time.monotonic() - start_time, 3)
            file = item.nodeid.partition("::")[0]
            if nextitem is None or nextitem.nodeid.partition("::")[0] != file:
                self._write_record(file)

    def _write_record(self, file: str) -> None:
        """Writes the record of a file whose tests have all run, and begins anew."""
        self._coverage.stop()
        data = self._coverage.get_data()
        functions_by_test: dict[str, set[str]] = defaultdict(set)
        branches: dict[str, list[tuple[int, int]]] = {}
        for path in data.measured_files():
            module = Path(path).relative_to(self._root).as_posix()
            branches[module] = sorted(data.arcs(path) or ())
            function_by_line = dict(_function_lines(path))
            for line, tests_at in data.contexts_by_lineno(path).items():
                for name in tests_at if line in function_by_line else ():
                    functions_by_test[name].add(f"{module}:{function_by_line[line]}")
        number_by_function: dict[str, int] = {}
        number_by_set: dict[tuple[int, ...], int] = {}
        tests: list[tuple[str, float, int]] = []
        for test, seconds in self._seconds.items():
            function_numbers = tuple(
                sorted(number_by_function.setdefault(name, len(number_by_function)) for name in functions_by_test[test])
            )
            tests.append((test, seconds, number_by_set.setdefault(function_numbers, len(number_by_set))))
        content = {"functions": [*number_by_function], "sets": [*number_by_set], "tests": tests, "branches": branches}
        (self.folder / f"{file.replace('/', '+')}.json").write_text(json.dumps(content), encoding="utf-8")
        self._seconds.clear()
        self._coverage.erase()
        self._coverage.start()


@cache
def _function_lines(path: str) -> tuple[tuple[int, str], ...]:
    """Returns the lines inside of the functions of a file, with the qualified name of the innermost function."""
    return tuple(_lines_inside(ast.parse(Path(path).read_text(encoding="utf-8")), ""))


def _lines_inside(node: ast.AST, name: str) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        inner_name = name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner_name = f"{name}.{child.name}".removeprefix(".")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first, last = child.body[0].lineno, child.body[-1].end_lineno
            yield from ((line, inner_name) for line in range(first, (last or first) + 1))
        yield from _lines_inside(child, inner_name)
