"""Operators: which of them work on a tensor, and which prove that an operand is not one."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = """
from emberharmony import ops

class Money:
    def __add__(self, other):
        return self

    def __radd__(self, other):
        return self

    def __lt__(self, other):
        return True

x, money = ops.ones(3), Money()
"""


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("x + 1", "B"),
        ("1 - x", "B"),
        ("ops.ones(3) @ x", "A"),
        ("-x", "B"),
        ("~x", "B"),
        ("not x", "number"),
        ("x < 1", "B"),
        ("0 < x < 1", "B"),
        ("x is None", "number"),
        ("1 in [x]", "number"),
        ("x.shape[0] * 2", "number"),
        ("1 + 2 * 3", "number"),
        ("'%s' % x", "string"),
        ("'a' + 'b'", "string"),
        ("'a' * 3", "string"),
        ("text % x", "unknown"),
        ("[x] + [x]", "tensors"),
        ("[x] * 2", "tensors"),
        ("3 * [1]", "container"),
        ("{'a': x} | {'b': x}", "tensors"),
        ("money + x", "instance"),
        ("money + money", "instance"),
        ("money < x", "number"),
        ("x and 1", "B"),
        ("x if flag else 1", "B"),
        ("x if flag else [1]", "container"),
        ("1 if flag else 2", "number"),
        ("1 if flag else 'a'", "other"),
        ("None or x", "B"),
    ],
)
def test_the_kind_of_an_operation(held: Held, expression: str, expected: str) -> None:
    assert held(START + expression) == expected


def test_long_sums_need_no_recursion(held: Held) -> None:
    assert held(START + " + ".join(["x"] * 400)) == "B"


def test_deep_nesting_is_inferred_or_unknown(held: Held) -> None:
    assert held(START + "(" * 80 + "x" + " + 1)" * 80) in ("B", "unknown")


def test_the_kind_after_an_augmented_assignment(held: Held) -> None:
    assert held(START + "n = 1\nn += x\nn") == "B"
    assert held(START + "n = 1\nn += 2\nn") == "number"
    assert held(START + "parts = []\nparts += [x]\nparts[0]") == "B"


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("x ** ω", "unknown"),
        ("(x ** ω) * (x ** ω)", "unknown"),
        ("x * ω", "B"),
        ("x ** RATE", "B"),
        ("x ** math.pi", "B"),
        ("x ** np.float64(2)", "B"),
        ("list(x.devices())[0]", "number"),
    ],
)
def test_an_exponent_from_another_package_defines_the_operator(held: Held, expression: str, expected: str) -> None:
    imports = "import math\nimport numpy as np\nfrom equinox.internal import ω\nfrom .rates import RATE\n"
    assert held(f"{imports}{START}{expression}\n") == expected
