"""Backends say what their own definitions have over the bodies of ops."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emberharmony import rules
from emberharmony.backend import base
from emberharmony.core.registry import OPS, complete

FOLDER = Path(base.__file__).parent
REASON = re.compile(r"\bbod(?:y|ies)\b")
SHARED = ("Decimals", "HostMade", "WithUnique")
"""Classes that the backends share."""
WAY_OUT = (
    "say in a comment above the definition, in its docstring or in that of its class what it has over the body of the "
    "op (less time, with the figure of benchmarks/bodies.py; a gradient; digits; a fault of the library), or delete it"
)


class Source:
    """A file of a backend, whose classes hold definitions of ops."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self.tree = ast.parse("\n".join(self.lines))
        self.functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        imported = [node for node in self.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.libraries = {
            name.asname or name.name.partition(".")[0]
            for node in imported
            for name in node.names
            if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("emberharmony"))
        }

    def without_reason(self) -> Iterator[str]:
        """Yields the ops with a body that a class defines, not by a function of the library, and gives no reason."""
        for owner in self.tree.body:
            if not isinstance(owner, ast.ClassDef) or not _holds_ops(owner):
                continue
            if REASON.search(ast.get_docstring(owner) or ""):
                continue
            for node in owner.body:
                names = [name for name in _names(node) if name in OPS and OPS[name].composite]
                if names and not self._is_native(node) and not REASON.search(self._said(node)):
                    yield from names

    def _is_native(self, node: ast.stmt) -> bool:
        """Returns whether a definition is a function or a method of the library alone, such as `direct(np.add)`."""
        call = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            return False
        function = call.args[0]
        if isinstance(function, ast.Lambda):
            own = {argument.arg for argument in function.args.args} | self.libraries
            return all(name.id in own for name in ast.walk(function.body) if isinstance(name, ast.Name))
        while isinstance(function, ast.Attribute):
            function = function.value
        return isinstance(function, ast.Name) and function.id in self.libraries and function is not call.args[0]

    def _said(self, node: ast.stmt) -> str:
        """Returns the comments at the head of the group of a definition, and in it, and the docstrings of functions."""
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        first = min(one.lineno for one in (node, *decorators)) - 1
        while self.lines[first - 1].strip():
            first -= 1
        lines = self.lines[first : node.end_lineno]
        docstrings = [ast.get_docstring(node) or ""] if isinstance(node, ast.FunctionDef) else []
        named = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        docstrings += [ast.get_docstring(self.functions[name]) or "" for name in named & self.functions.keys()]
        return "\n".join([*(line.partition("# ")[2] for line in lines), *docstrings])


def _holds_ops(owner: ast.ClassDef) -> bool:
    """Returns whether a class is a part of a backend, by its name or by the name of its base."""
    bases = {name.id for base in owner.bases for name in ast.walk(base) if isinstance(name, ast.Name)}
    return owner.name.endswith(("Ops", "Backend")) or "Definitions" in bases or owner.name in SHARED


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def sources() -> list[Path]:
    """Returns the files of the backends; the abstract one has rules, not definitions."""
    folders = ("arrayapi", "dask", "jax", "mlx", "numpy", "shared", "torch")
    return [path for folder in folders for path in sorted((FOLDER / folder).rglob("*.py"))]


def test_each_definition_of_an_op_with_a_body_says_why() -> None:
    complete()
    found = {str(path.relative_to(FOLDER)): list(Source(path).without_reason()) for path in sources()}
    missing = [f"{path}: {', '.join(names)}" for path, names in found.items() if names]
    assert not missing, "\n".join([WAY_OUT, *missing])


def ruled(path: Path) -> set[str]:
    """Returns the ops that a module of `rules` has gradient rules, or batching rules, of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.parent.name == "batching":
        called = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "batches"]
        return {argument.value for call in called for argument in call.args if isinstance(argument, ast.Constant)}
    name = ".".join(["emberharmony", *path.relative_to(FOLDER.parent).with_suffix("").parts])
    own: dict[str, Any] = getattr(importlib.import_module(name), "RULES", {})
    return set() if own is rules.RULES else set(own)


def test_the_rules_of_ops_with_bodies_say_why() -> None:
    complete()
    found: dict[str, set[str]] = {}
    for path in Path(rules.__file__).parent.rglob("[a-z]*.py"):
        composites = {op for op in ruled(path) if OPS[op].composite}
        if composites and not REASON.search(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""):
            found[path.name] = composites
    assert not found, f"say in the docstring of the module what the rules have over the bodies, or delete them: {found}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hypot = direct(np.hypot)", []),
        ("hypot = direct(np.hypot, guard='{0}.size')", []),
        ("hypot = direct(np.hypot, _hypot)", ["hypot"]),
        ("hypot = staticmethod(_hypot)", ["hypot"]),
        ("hypot = staticmethod(lambda x: x.hypot())", []),
        ("hypot = staticmethod(lambda x: _hypot(x))", ["hypot"]),
        ("# 3 µs, the body 40.\n    hypot = staticmethod(_hypot)", []),
        ("# 3 µs, the body 40.\n    add = direct(np.add)\n    hypot = staticmethod(_hypot)", []),
        ("# 3 µs, the body 40.\n    add = direct(np.add)\n\n    hypot = staticmethod(_hypot)", ["hypot"]),
        ("def hypot(x):\n        return x", ["hypot"]),
        ("def hypot(x):\n        '''Returns more digits than the body does.'''", []),
        ("def multiply(x):  # a primitive\n        return x", []),
    ],
)
def test_a_definition_without_a_reason_is_named(text: str, wanted: list[str], tmp_path: Path) -> None:
    complete()
    path = tmp_path / "math_ops.py"
    path.write_text(
        f"import numpy as np\n\ndef _hypot(x): ...\n\nclass MathOps:\n    '''Ops.'''\n\n    {text}\n", encoding="utf-8"
    )
    assert list(Source(path).without_reason()) == wanted
