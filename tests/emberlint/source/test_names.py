"""Names and origins: different names of the same object, and equal names of different objects."""

import ast

import pytest

from emberlint.config.settings import Settings
from emberlint.source.source_file import SourceFile


def origin(source: str, path: str = "library/module.py") -> str | None:
    """Returns the origin of the last expression of a source."""
    file = SourceFile(path, source, Settings())
    last = file.tree.body[-1]
    while isinstance(last, ast.FunctionDef | ast.ClassDef):
        last = last.body[-1]
    assert isinstance(last, ast.Expr)
    return file.names.origin(last.value)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("import numpy as np\nnp.sin", "numpy.sin"),
        ("import numpy.linalg\nnumpy.linalg.norm", "numpy.linalg.norm"),
        ("from numpy import sin as s\ns", "numpy.sin"),
        ("import numpy as np\nxp = np\nxp.sin", "numpy.sin"),
        ("import numpy as np\na, b = 1, np\nb.sin", "numpy.sin"),
        ("import numpy as np\nf = np.sin\nf", "numpy.sin"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ntorch.sin", "torch.sin"),
        ("import numpy as np\nnp = 3\nnp.sin", None),
        ("np = 3\nimport numpy as np\nnp.sin", "numpy.sin"),
        ("import numpy as np\ndef f(np):\n    np.sin", None),
        ("import numpy as np\ndef f():\n    np.sin", "numpy.sin"),
        ("import numpy as np\nclass A:\n    np = 3\n    def f(self):\n        np.sin", "numpy.sin"),
        ("import numpy as np\nclass A:\n    np = 3\n    np.sin", None),
        ("class A:\n    import numpy as np\n    def f(self):\n        self.np.sin", "numpy.sin"),
        ("def f():\n    global np\n    import numpy as np\nnp.sin", "numpy.sin"),
        ("def f():\n    import numpy\n    return numpy\nf().sin", "numpy.sin"),
        ("import importlib as i\ni.import_module('jax.numpy').sin", "jax.numpy.sin"),
        ("__import__('jax.numpy').lax", "jax.lax"),
        ("import numpy as np\ngetattr(np, 'sin')", "numpy.sin"),
        ("import numpy as np\nif True:\n    xp = np\nelse:\n    xp = None\nxp.sin", "numpy.sin"),
        ("(lambda: 0)().sin", None),
    ],
)
def test_the_origin_of_an_expression(source: str, expected: str | None) -> None:
    assert origin(source) == expected


@pytest.mark.parametrize(
    "path, source, expected",
    [
        ("a/b/c.py", "from . import ops\nops.sin", "a.b.ops.sin"),
        ("a/b/c.py", "from ..ops import sin\nsin", "a.ops.sin"),
        ("a/b/__init__.py", "from .ops import sin\nsin", "a.b.ops.sin"),
        ("src/a/b.py", "from . import ops\nops.sin", "a.ops.sin"),
    ],
)
def test_relative_imports_are_made_absolute(path: str, source: str, expected: str) -> None:
    assert origin(source, path) == expected


@pytest.mark.parametrize(
    "source", ["x = x.y\nx", "x = f(x)\ny = x.z\nx = y.z\nx.t", "def f():\n    return f()\nf().x", "a = b\nb = a\na"]
)
def test_a_name_defined_by_itself_has_no_origin(source: str) -> None:
    assert origin(source) is None


def test_comprehensions_have_a_scope_of_their_own() -> None:
    file = SourceFile("m.py", "import numpy as np\n[np.a for np in np.b]\n", Settings())
    origins = {node.attr: file.names.origin(node) for node in file.index.nodes(ast.Attribute)}
    assert origins == {"a": None, "b": "numpy.b"}


def test_a_walrus_in_a_comprehension_binds_outside_of_it() -> None:
    assert origin("import numpy as np\n[(xp := np) for i in range(3)]\nxp.sin") == "numpy.sin"


@pytest.mark.parametrize(
    "source, expected",
    [
        ("'a' + 'b'", "ab"),
        ("A = 'torch'\nB = A + '.nn'\nB", "torch.nn"),
        ("A = 'a'\nA = 'b' if A else 'c'\nA", None),
        ("f'{1}'", None),
        ("3", None),
    ],
)
def test_the_constant_string_of_an_expression(source: str, expected: str | None) -> None:
    file = SourceFile("m.py", source, Settings())
    last = file.tree.body[-1]
    assert isinstance(last, ast.Expr)
    assert file.names.constant(last.value) == expected


def test_an_import_under_type_checking_is_for_typing_only() -> None:
    source = "import typing as t\nif t.TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    file = SourceFile("m.py", source, Settings())
    alone = {node.names[0].name: file.names.is_typing_only(node) for node in file.index.nodes(ast.Import)}
    assert alone == {"typing": False, "a": True, "b": False}


@pytest.mark.parametrize(
    "source, origins",
    [
        ("m = a\nm = b\nm", {"b"}),
        ("m = a\nif flag:\n    m = b\nm", {"a", "b"}),
        ("if flag:\n    m = a\nelse:\n    m = b\n    m", {"b"}),
        ("m = a\nif flag:\n    m = b\n    m", {"b"}),
        ("if flag:\n    m = a\nelif m:\n    m = b\nelse:\n    m", {"a", "b"}),
        ("try:\n    m = a\nexcept E:\n    m = b\nm", {"a", "b"}),
        ("try:\n    m = a\n    m = b\n    m\nexcept E:\n    pass", {"b"}),
        ("match flag:\n    case 1:\n        m = a\n        m\n    case _:\n        m = b", {"a"}),
        ("for i in flag:\n    m = a\nelse:\n    m = b\nm", {"a", "b"}),
    ],
)
def test_a_later_binding_overwrites_earlier_ones(source: str, origins: set[str]) -> None:
    file = SourceFile("m.py", f"import a, b\n{source}\n", Settings())
    use = max((one for one in ast.walk(file.tree) if isinstance(one, ast.Expr)), key=lambda one: one.lineno)
    assert set(file.names.origins(use.value)) == origins


def test_a_use_after_many_bindings_has_one_binding() -> None:
    file = SourceFile("m.py", "import a\nm = a\n" + "m = m.f\n" * 3000, Settings())
    last = file.tree.body[-1]
    assert isinstance(last, ast.Assign)
    assert [len(file.names.bindings(one)) for one in ast.walk(last.value) if isinstance(one, ast.Name)] == [1]


BASED = (
    "import numpy, jax.numpy\n\nclass A:\n    def __init__(self):\n        self.np = numpy\n\n"
    "class B(A):\n    def __init__(self):\n        self.onp = self.np\n        self.np = jax.numpy\n"
    "\n    def f(self):\n        "
)


@pytest.mark.parametrize("word, expected", [("self.onp.asarray", "numpy.asarray"), ("self.np.sin", "jax.numpy.sin")])
def test_an_attribute_kept_before_it_is_replaced_has_the_value_of_the_base(word: str, expected: str) -> None:
    assert origin(BASED + word) == expected


@pytest.mark.parametrize("source", ["from .torch import sin\nsin", "from . import torch\ntorch.sin"])
def test_a_relative_import_outside_a_package_does_not_name_a_library(source: str) -> None:
    assert origin(source, "script.py") == ".torch.sin"
