"""Names, attributes, subscripts, displays and comprehensions."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = "from emberharmony import ops\nx = ops.ones(3)\n"


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("ops.ones(3)", "A"),
        ("x", "B"),
        ("1", "number"),
        ("None", "none"),
        ("'a'", "string"),
        ("f'{x}'", "string"),
        ("unheard_of", "unknown"),
        ("x.shape", "container"),
        ("x.shape[0]", "number"),
        ("x.ndim", "number"),
        ("x.dtype", "number"),
        ("x.device", "number"),
        ("x.T", "B"),
        ("x.real.shape", "container"),
        ("x[0]", "B"),
        ("x[1:, None]", "B"),
        ("[x, 1][0]", "B"),
        ("[x, 1][-1]", "number"),
        ("[x, 1][n]", "B"),
        ("(1, x)", "tensors"),
        ("(1, 2)", "container"),
        ("{'a': x, 'b': 1}['b']", "number"),
        ("{'a': x, 'b': 1}['a']", "B"),
        ("{'a': x}[name]", "B"),
        ("{**{'a': x}}[name]", "B"),
        ("[*[x], 1]", "tensors"),
        ("[y for y in x]", "tensors"),
        ("[y for y in [x]][0]", "B"),
        ("{k: v for k, v in {'a': x}.items()}['a']", "B"),
        ("[i for i, _ in enumerate(x)][0]", "number"),
        ("(y := x)", "B"),
        ("lambda: x", "other"),
        ("(lambda: x)()", "B"),
        ("(lambda y: y)(x)", "B"),
    ],
)
def test_the_kind_of_an_expression(held: Held, expression: str, expected: str) -> None:
    assert held(START + expression) == expected


def test_inner_functions_use_the_names_of_outer_functions(held: Held) -> None:
    assert held(START + "def f():\n    def g():\n        return x\n    return g()\nf()") == "B"
    assert held("from emberharmony import ops\ndef f(x):\n    return 1\nx") == "unknown"


def test_the_variable_of_a_comprehension_stays_inside(held: Held) -> None:
    assert held(START + "y = [x for x in (1, 2)]\nx") == "B"


def test_names_that_match_tensor_names_are_tensors(held: Held) -> None:
    assert held("import keras\ndef f(t_in):\n    t_in", tensor_names=("t_*",)) == "C"
    assert held("import keras\ndef f(t_in: int):\n    t_in", tensor_names=("t_*",)) == "number"
