"""The index of a syntax tree holds the same nodes as `ast.walk`, with their parents, in source order."""

import ast
from pathlib import Path

import pytest

from emberlint.source.tree import Tree

LEFT_OUT = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
FILES = [Path(one) for one in (ast.__file__, __file__, pytest.__file__)]
PATTERNS = """
match x:
    case {"a": [1, *rest], **others} if rest: pass
    case Point(x=0, y=None) | (-1 as z): pass
lambda *a, k=1, **b: {**a, 'b': [*b]}
async def f(x): global y; await x
"""


@pytest.mark.parametrize("text", [PATTERNS, *(one.read_text(encoding="utf-8") for one in FILES)], ids=range(4))
def test_the_index_holds_every_node(text):
    module = ast.parse(text)
    tree = Tree(module)
    wanted = {node for node in ast.walk(module) if not isinstance(node, LEFT_OUT)}
    found = [node for nodes in tree.by_type.values() for node in nodes]
    assert set(found) == wanted
    assert len(found) == len(wanted)
    parents = {child: node for node in wanted for child in ast.iter_child_nodes(node) if child in wanted}
    assert tree.parents == parents
    for nodes in tree.by_type.values():
        lines = [one.lineno for one in nodes if isinstance(one, ast.stmt)]
        assert lines == sorted(lines)
