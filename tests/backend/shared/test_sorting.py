"""Checks of the arguments of sorts and searches."""

import pytest

from emberharmony.backend.shared.sorting import side_of, top
from emberharmony.errors import ArgumentError, ShapeError


def test_the_side_of_a_search() -> None:
    assert side_of("left") == "left"
    with pytest.raises(ArgumentError, match="'middle'"):
        side_of("middle")


@pytest.mark.parametrize(("shape", "k"), [((), 1), ((3,), 4), ((3,), -1)])
def test_as_many_elements_as_there_are(shape: tuple[int, ...], k: int) -> None:
    top((2, 3), 3)
    with pytest.raises(ShapeError):
        top(shape, k)
