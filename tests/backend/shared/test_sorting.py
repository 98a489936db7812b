"""Argument checks of sorts and searches."""

import pytest

from emberharmony.backend.shared.sorting import side_of, top
from emberharmony.errors import ArgumentError, ShapeError


def test_an_unknown_side_of_a_search_is_refused() -> None:
    assert side_of("left") == "left"
    with pytest.raises(ArgumentError, match="'middle'"):
        side_of("middle")


@pytest.mark.parametrize(("shape", "k"), [((), 1), ((3,), 4), ((3,), -1)])
def test_more_elements_than_the_axis_has_are_refused(shape: tuple[int, ...], k: int) -> None:
    top((2, 3), 3)
    with pytest.raises(ShapeError):
        top(shape, k)
