"""Annotations: the kinds of values that they imply."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = """
import typing
import collections.abc as cabc
from typing import *
from typing import TypedDict
from pathlib import Path
import torch
import numpy.typing as npt
from emberharmony.core.types import Tensor, TensorLike, Tensors
from house import Matrix
Alias = Tensor
Pair = tuple[Tensor, int]
T = TypeVar("T", bound=Tensor)
Name = NewType("Name", str)

class Own:
    pass

class Keyed(TypedDict):
    image: Tensor
    size: int

class More(Keyed, total=False):
    name: str
"""


@pytest.mark.parametrize(
    "annotation, expected",
    [
        ("Tensor", "A"),
        ("TensorLike", "A"),
        ("'Tensor'", "A"),
        ("torch.Tensor", "A"),
        ("'torch.Tensor'", "A"),
        ("npt.NDArray[float]", "A"),
        ("Optional[Tensor]", "A"),
        ("Tensor | None", "A"),
        ("Union[Tensor, float]", "A"),
        ("torch.Tensor | Any", "C"),
        ("Union[Matrix, Tensor]", "C"),
        ("Tensor | Own", "unknown"),
        ("Annotated[Tensor, 'shape']", "A"),
        ("Final[Tensor]", "A"),
        ("Alias", "A"),
        ("T", "A"),
        ("list[Tensor]", "tensors"),
        ("typing.Sequence[Tensor]", "tensors"),
        ("cabc.Iterable[Tensor]", "tensors"),
        ("tuple[Tensor, ...]", "tensors"),
        ("Pair", "tensors"),
        ("dict[str, Tensor]", "tensors"),
        ("dict[str, list[Tensor]]", "tensors"),
        ("Tensors", "tensors"),
        ("list[int]", "container"),
        ("list", "container"),
        ("int", "number"),
        ("float | None", "number"),
        ("str", "string"),
        ("Name", "string"),
        ("None", "none"),
        ("Path", "other"),
        ("Literal['Tensor']", "other"),
        ("type[Tensor]", "other"),
        ("Own", "instance"),
        ("'Own'", "instance"),
        ("Any", "unknown"),
        ("object", "unknown"),
        ("Matrix", "unknown"),
        ("'not ( code'", "unknown"),
    ],
)
def test_the_kind_of_an_annotated_parameter(held: Held, annotation: str, expected: str) -> None:
    assert held(f"{START}def f(y: {annotation}):\n    y") == expected


@pytest.mark.parametrize(
    "annotation, expression, expected",
    [
        ("Pair", "y[0]", "B"),
        ("Pair", "y[1]", "number"),
        ("dict[str, Tensor]", "y['a']", "B"),
        ("dict[str, Tensor]", "[*y][0]", "string"),
        ("Callable[[int], Tensor]", "y(1)", "B"),
        ("Iterator[Tensor]", "next(y)", "B"),
        ("Keyed", "y['image']", "B"),
        ("Keyed", "y['size']", "number"),
        ("Keyed", "y.get('image')", "B"),
        ("More", "y['name']", "string"),
        ("More", "y['image']", "B"),
        ("Keyed", "Keyed(image=y['image'], size=3)['size']", "number"),
        ("Tensor | list[float]", "y", "container"),
    ],
)
def test_the_kind_of_an_expression_with_an_annotated_parameter(
    held: Held, annotation: str, expression: str, expected: str
) -> None:
    assert held(f"{START}def f(y: {annotation}):\n    {expression}") == expected


def test_the_annotation_of_a_starred_parameter_holds_for_each_value(held: Held) -> None:
    assert held(START + "def f(*y: Tensor):\n    y[0]") == "A"
    assert held(START + "def f(**y: Tensor):\n    y['a']") == "A"


def test_a_tensor_type_known_by_its_name_only_has_tier_c(held: Held) -> None:
    assert held("from house.types import Tensor\ndef f(y: Tensor):\n    y") == "C"
    assert held("from house.types import Tensor\ndef f(y: Tensor):\n    y", tensor_types=("house.types.Tensor",)) == "A"


def test_a_subclass_of_a_tensor_type_is_a_tensor_type(held: Held) -> None:
    source = "import torch\nclass W(torch.Tensor):\n    pass\n"
    assert held(source + "def f(y: W):\n    y") == "A"
    assert held(source + "W()") == "B"
