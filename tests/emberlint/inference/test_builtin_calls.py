"""Python's builtins on tensors and on containers of them."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = "from emberharmony import ops\nx = ops.ones(3)\n"


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("len(x)", "number"),
        ("float(x)", "number"),
        ("isinstance(x, int)", "number"),
        ("str(x)", "string"),
        ("print(x)", "none"),
        ("abs(x)", "B"),
        ("abs(-1)", "number"),
        ("divmod(x, 2)", "tensors"),
        ("sum([x, x])", "B"),
        ("sum([1, 2])", "number"),
        ("max(x, 1)", "B"),
        ("max([x, x], key=len)", "B"),
        ("min(1, 2)", "number"),
        ("list(x)", "tensors"),
        ("sorted([2, 1])", "container"),
        ("next(iter([x]))", "B"),
        ("[a for a, b in zip([x], [1])][0]", "B"),
        ("[b for a, b in zip([x], [1])][0]", "number"),
        ("list(map(ops.sin, [1]))[0]", "B"),
        ("list(map(float, [x]))[0]", "number"),
        ("list(filter(None, [x]))[0]", "B"),
        ("list(range(3))[0]", "number"),
        ("dict(zip(['a'], [x]))['a']", "B"),
        ("dict(a=1)['a']", "number"),
        ("list(reversed([x]))[0]", "B"),
    ],
)
def test_the_kind_of_a_builtin_call(held: Held, expression: str, expected: str) -> None:
    assert held(START + expression) == expected


def test_a_shadowed_builtin_is_not_a_builtin(held: Held) -> None:
    assert held(START + "def len(y):\n    return y\nlen(x)") == "B"


@pytest.mark.parametrize("name, expected", [("a", "tensors"), ("n", "container")])
def test_zip_of_unpacked_pairs_gives_their_columns(held: Callable[..., str], name: str, expected: str) -> None:
    source = "from emberharmony import Tensor\n\ndef f(pairs: list[tuple[Tensor, int]]):\n    a, n = zip(*pairs)\n    "
    assert held(source + name) == expected
