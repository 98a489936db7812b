"""The page about array libraries: its worked example runs, its recipe names ops, its figures and lists are right."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend import OPS, Backend, array_api_type, discovery
from emberharmony.backend.arrayapi import ops_read_on_host
from emberharmony.errors import UnsupportedOpError

TEXT = (Path(__file__).parents[2] / "docs" / "array_libraries.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """Returns the code below a comment of the page."""
    return re.split(rf"<!-- {mark} -->\n```python\n", TEXT)[1].split("```")[0]


def test_the_worked_example_is_a_backend_in_less_than_60_lines() -> None:
    pytest.importorskip("array_api_strict")
    source = block("adapter")
    assert len(source.splitlines()) < 60
    names: dict[str, Any] = {}
    exec(compile(source, "ember_example", "exec"), names)
    made = names["make"]()
    discovery.check_backend(made)
    with ops.use_backend(made):
        assert ops.to_numpy(ops.diagonal([[1, 2], [3, 4]], 1)).tolist() == [2]
        assert ops.to_numpy(ops.sort([[3, 1], [2, 4]], 0, descending=True)).tolist() == [[3, 4], [2, 1]]
        assert ops.to_numpy(ops.sort([True, False])).tolist() == [False, True]
        slope = ops.grad(lambda x: ops.sum(ops.logsumexp(ops.diagonal(x))))(ops.zeros((2, 2)))
        assert ops.to_numpy(slope).tolist() == [[0.5, 0.0], [0.0, 0.5]]
        with pytest.raises(UnsupportedOpError, match="has no LU decomposition"):
            ops.lu_factor([[1.0]])


def test_the_recipe_for_cupy_defines_ops() -> None:
    tree = ast.parse(block("cupy, untested"))
    table = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert isinstance(table, ast.Dict)
    for key in table.keys:
        assert isinstance(key, ast.Constant)
        assert key.value in OPS


def test_the_figures_are_those_of_the_ops() -> None:
    primitives = {name for name, spec in OPS.items() if not spec.composite}
    needed = primitives - set(dir(Backend))
    assert f"A library needs {len(needed)} functions" in TEXT
    for page in ("CONTRIBUTING.md", "docs/backends.md", "docs/glossary.md"):
        text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
        assert set(re.findall(r"(\d+) primitives", text)) == {str(len(needed))}, page


def test_the_page_lists_the_ops_whose_default_bodies_read() -> None:
    listed = re.findall(r"`(\w+)`", TEXT.split("<!-- reading -->\n")[1].split("\n\n")[0])
    assert listed == sorted(ops_read_on_host())


def test_the_number_of_bound_ops_is_that_of_the_strictest_library() -> None:
    xp = pytest.importorskip("array_api_strict")
    made = array_api_type("counted", xp, tensor_type=type(xp.asarray(0)))
    bound = [name for name in OPS if hasattr(made, name) and not hasattr(Backend, name)]
    assert f"it binds {len(bound)} ops" in TEXT
