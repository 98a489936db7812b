"""Narrowing: the kinds of names inside and after a branch whose condition tests them."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = "import numpy as np\nfrom emberharmony import ops\nfrom emberharmony.core.types import Tensor\n"


@pytest.mark.parametrize(
    "annotation, test, inside, after",
    [
        ("Tensor | None", "y is None", "none", "A"),
        ("Tensor | None", "y is not None", "A", "none"),
        ("Tensor | float", "isinstance(y, float)", "number", "A"),
        ("Tensor | float", "isinstance(y, (int, float))", "other", "A"),
        ("Tensor | float", "isinstance(y, Tensor)", "A", "other"),
        ("Tensor | float", "not isinstance(y, Tensor)", "other", "A"),
        ("Tensor | float", "type(y) is float", "number", "A"),
        ("Tensor | list[float]", "isinstance(y, list)", "container", "A"),
        ("Tensor | dict[str, float]", "isinstance(y, dict)", "container", "A"),
        ("np.ndarray | list[Tensor]", "isinstance(y, np.ndarray)", "A", "tensors"),
        ("Tensor | str", "callable(y)", "other", "A"),
        ("object", "ops.is_tensor(y)", "A", "unknown"),
        ("object", "not ops.is_tensor(y)", "unknown", "A"),
        ("Tensor | None", "y is None or flag", "A", "A"),
        ("Tensor | None", "y is None and flag", "none", "A"),
    ],
)
def test_a_condition_narrows_kinds_inside_and_after_its_branch(
    held: Held, annotation: str, test: str, inside: str, after: str
) -> None:
    head = f"{START}def f(y: {annotation}):\n    if {test}:\n        "
    assert held(f"{head}y") == inside
    assert held(f"{head}return\n    y") == after


def test_narrowing_ends_with_the_branch(held: Held) -> None:
    assert held(START + "def f(y: Tensor):\n    if isinstance(y, float):\n        pass\n    y") == "A"


def test_after_a_while_loop_its_condition_is_false(held: Held) -> None:
    source = START + "def f(y: Tensor | None):\n    while y is None:\n        y = make()\n    y"
    assert held(source) in ("A", "B")
    assert held(START + "def f(y: Tensor | list[int]):\n    while isinstance(y, list):\n        y.pop()\n    y") == "A"


def test_later_parts_of_a_condition_use_the_earlier_ones(held: Held) -> None:
    assert held(START + "def f(y: Tensor | None):\n    z = y is not None and y\n    z") == "B"
    assert held(START + "def f(y):\n    z = y * 2 if ops.is_tensor(y) else 0\n    z") == "B"
