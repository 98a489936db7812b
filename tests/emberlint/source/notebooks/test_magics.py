"""The lines of a cell that only IPython understands."""

import pytest

from emberlint.source.notebooks.magics import cell_magic, python_of_magics


@pytest.mark.parametrize(
    "cell, replaced",
    [
        ("%matplotlib inline\nx = 1\n", {0: "pass"}),
        ("if x:\n    !pip install y\n", {1: "    pass"}),
        ("files = !ls\n", {0: "files = get_ipython()"}),
        ("a, b = %timeit -o f()\n", {0: "a, b = get_ipython()"}),
        ("?ops.sin\nops.sin?\n  ops.sin??  \n", {0: "pass", 1: "pass", 2: "  pass"}),
        (",f a b\n;f a b\n/f a\n", {0: "pass", 1: "pass", 2: "pass"}),
        ("!pip install \\\n    x \\\n    y\nz = 1\n", {0: "pass", 1: "pass", 2: "pass"}),
        ("\n%%time\nx = 1\n", {1: ""}),
        ("%%time\n%matplotlib inline\n", {0: "", 1: "pass"}),
    ],
)
def test_lines_of_ipython_become_python(cell: str, replaced: dict[int, str]) -> None:
    assert python_of_magics(cell) == replaced


@pytest.mark.parametrize(
    "cell",
    [
        "x = (a\n     % b)\n",
        "x = a \\\n    % b\n",
        "x = '''\n%matplotlib inline\n!ls\n'''\n",
        'x = """a\n\\""" % \n%time f()\n"""\n',
        "x = [  # ]\n    a\n    % b]\n",
        "x = 'it?'\n# why?\ny = 1  # really?\n",
        "assert x != y\nx %= 3\nx = 3 % 2\nx = '= !'\n",
        "x = '\\'('\ny = (1\n% 2)\n",
        "x = 'a \\\n% b'\n",
        "",
    ],
)
def test_python_stays_as_it_is(cell: str) -> None:
    assert python_of_magics(cell) == {}


def test_a_cell_magic_has_a_name() -> None:
    assert cell_magic("%%bash\nls\n") == "bash"
    assert cell_magic("\n%%timeit -n 3\nf()\n") == "timeit"
    assert cell_magic("%time f()\n") is None
    assert cell_magic("x = 1\n%%bash\n") is None
