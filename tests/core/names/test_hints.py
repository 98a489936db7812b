"""What the tables of hints advise exists."""

import ast
import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import emberharmony
from emberharmony import io, nn, ops, optim
from emberharmony.core.display import raised
from emberharmony.core.names import elsewhere, members, op_names, relatives, spellings
from emberharmony.nn.training import arguments
from emberharmony.transforms import parameterless

SPACES = {"io": io, "nn": nn, "ops": ops, "optim": optim, "emberharmony": emberharmony}
MODULES = (raised, elsewhere, members, op_names, relatives, spellings, parameterless, arguments)
NAME = re.compile(r"(?<![\w.])(io|nn|ops|optim|emberharmony)((?:\.[A-Za-z_]\w*)+)(?![\w{])")


def test_each_name_that_a_hint_mentions_exists() -> None:
    wrong = []
    for module in MODULES:
        for space, path in NAME.findall(inspect.getsource(module)):
            if f"{space}{path}" in elsewhere.NAMES:  # the name of a package in a table
                continue
            value = SPACES[space]
            for part in path.split(".")[1:]:
                if space == "emberharmony" and part not in vars(emberharmony):
                    break  # the import of a module
                if not hasattr(value, part):
                    wrong.append(f"{module.__name__}: {space}{path}")
                    break
                value = getattr(value, part)
    assert not wrong, wrong


def test_each_op_that_replaces_a_name_exists() -> None:
    for name, call in spellings.NAMES.items():
        value = ops
        for part in re.match(r"[\w.]+", call)[0].split("."):  # type: ignore[index]
            assert hasattr(value, part), (name, call)
            value = getattr(value, part)


def calls(text: str) -> Iterator[ast.Call]:
    """Yields the calls of our functions that a text has, if Python can parse them."""
    for match in re.finditer(r"(?<![\w.{])(?:io|nn|ops|optim)(?:\.\w+)+\(", text):
        depth, stop = 1, match.end()
        while depth and stop < len(text):
            depth += {"(": 1, ")": -1}.get(text[stop], 0)
            stop += 1
        with contextlib.suppress(SyntaxError):
            call = ast.parse(text[match.start() : stop], mode="eval").body
            if isinstance(call, ast.Call):
                yield call


def strings(module: Any) -> Iterator[str]:
    """Yields the texts that stand in a module, with those that its tables make."""
    for value in vars(module).values():
        values = [value]
        while values:
            item = values.pop()
            if isinstance(item, str):
                yield item
            elif isinstance(item, (dict, tuple)):
                values += item.values() if isinstance(item, dict) else item


def test_each_call_that_a_hint_mentions_has_arguments_that_fit() -> None:
    wrong, seen = [], 0
    texts = {text for module in MODULES for text in strings(module)} | {
        f"ops.{call}" for call in op_names.NAMES.values()
    }
    for text in sorted(texts):
        for call in calls(text):
            called = eval(ast.unparse(call.func), dict(SPACES))
            seen += 1
            try:
                inspect.signature(called).bind_partial(*call.args, **{each.arg or "": 0 for each in call.keywords})
            except TypeError as error:
                wrong.append(f"{ast.unparse(call)}: {error}")
    assert seen > 200
    assert not wrong, wrong
