"""A plugin of pytest that writes which functions of the package each test calls.

`server.py` loads it in a copy of the tree, where its folder is on the path and the package `mutants` is not.
"""

import json
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest


class Reached:
    """Writes one file for each test file: the functions that its tests call, between set-up and tear-down.

    Args:
        folder: the folder to write to.
        root: the root of the repository.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self._root = f"{root}/"
        self._codes: set[CodeType] = set()
        self._files: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        """Runs a test with a trace function that sees each call."""
        started = time.monotonic()
        self._codes.clear()
        threading.settrace(self._see)
        sys.settrace(self._see)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            file = item.nodeid.partition("::")[0]
            self._keep(file, item.nodeid, round(time.monotonic() - started, 3))
            if nextitem is None or nextitem.nodeid.partition("::")[0] != file:
                self._write(file)

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        self._codes.add(frame.f_code)

    def _keep(self, file: str, test: str, seconds: float) -> None:
        names = {_name(code, self._root) for code in self._codes if code.co_filename.startswith(self._root)}
        called = {name for name in names if not name.startswith("tests/")}
        record = self._files.setdefault(file, {"functions": {}, "sets": {}, "tests": []})
        functions, sets = record["functions"], record["sets"]
        numbers = tuple(sorted(functions.setdefault(name, len(functions)) for name in called))
        record["tests"].append((test, seconds, sets.setdefault(numbers, len(sets))))

    def _write(self, file: str) -> None:
        record = self._files[file]
        content = {"functions": [*record["functions"]], "sets": [*record["sets"]], "tests": record["tests"]}
        (self.folder / f"{file.replace('/', '+')}.json").write_text(json.dumps(content), encoding="utf-8")


def _name(code: CodeType, root: str) -> str:
    """Returns the path and the qualified name of a function; a lambda or comprehension counts as where it stands."""
    return f"{code.co_filename.removeprefix(root)}:{code.co_qualname.replace('.<locals>', '').partition('.<')[0]}"
