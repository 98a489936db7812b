"""Statements: the values of names after branches, loops, exceptions and matches."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = "from emberharmony import ops\nx = ops.ones(3)\n"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("y = 1\ny = x\ny", "B"),
        ("y = x\ny = 1\ny", "number"),
        ("a, b = x, 1\nb", "number"),
        ("a, *b = x, x\nb", "tensors"),
        ("(a, b), c = (1, x), 2\nb", "B"),
        ("a, b = x\na", "B"),
        ("a = b = x\na", "B"),
        ("y: int = x\ny", "number"),
        ("if flag:\n    y = x\nelse:\n    y = 1\ny", "B"),
        ("if flag:\n    y = x\nelse:\n    raise E\ny", "B"),
        ("if flag:\n    y = x\nelif other:\n    y = []\ny", "container"),
        ("y = 1\nif flag:\n    y = x\n    raise E\ny", "number"),
        ("y = None\nif flag:\n    y = x\ny", "B"),
        ("for y in x:\n    y", "B"),
        ("for y in [x]:\n    pass\ny", "B"),
        ("for i in range(3):\n    i", "number"),
        ("total = 0\nfor y in [x]:\n    total += y\ntotal", "B"),
        ("y = 1\nwhile y:\n    z = y\n    y = x\nz", "B"),
        ("y = 1\nfor _ in z:\n    if flag:\n        y = x\n        break\ny", "B"),
        ("try:\n    y = x\nexcept E:\n    y = None\ny", "B"),
        ("try:\n    y = x\nexcept E as y:\n    raise\nelse:\n    y = 1\ny", "number"),
        ("try:\n    pass\nfinally:\n    y = x\ny", "B"),
        ("match x:\n    case y:\n        y", "B"),
        ("match z:\n    case 1:\n        y = x\n    case _:\n        y = 1\ny", "B"),
        ("match z:\n    case int() as y:\n        y", "number"),
        ("del x\nx", "unknown"),
        ("import x\nx", "other"),
        ("def f():\n    global y\n    y = x\nf()\ny", "B"),
        ("def f():\n    y = 1\n    def g():\n        nonlocal y\n        y = x\n    g()\n    y", "B"),
        ("z.w = x\nz.w", "B"),
        ("z.w = x\nz = 1\nz.w", "number"),
        ("z.w = x\nz.w = 1\nz.w", "unknown"),
        ("table = {}\ntable['a'] = x\ntable['a']", "B"),
        ("rows = [[]]\nrows[0].append(x)\nrows[0][0]", "B"),
        ("with open('f') as y:\n    y", "unknown"),
        ("y = x if flag else None\nassert y is not None\ny", "B"),
    ],
)
def test_the_kind_of_a_name_after_statements(held: Held, source: str, expected: str) -> None:
    assert held(START + source) == expected


def test_the_kind_of_the_value_of_a_context_manager(held: Held) -> None:
    manager = "class M:\n    def __enter__(self):\n        return x\n    def __exit__(self, *a):\n        pass\n"
    assert held(START + manager + "with M() as y:\n    y") == "B"
    assert held(START + "@contextmanager\ndef m():\n    yield x\nwith m() as y:\n    y") == "B"
