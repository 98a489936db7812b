"""Argument checks of sorts and searches."""

from typing import Any

import pytest

from emberharmony.backend.shared.reductions.sorting import WithUnique, check_top_k, checked_side
from emberharmony.errors import ArgumentError, ShapeError


def test_an_unknown_side_of_a_search_is_refused() -> None:
    assert checked_side("left") == "left"
    with pytest.raises(ArgumentError, match="'middle'"):
        checked_side("middle")


@pytest.mark.parametrize(("shape", "k"), [((), 1), ((3,), 4), ((3,), -1)])
def test_more_elements_than_the_axis_has_are_refused(shape: tuple[int, ...], k: int) -> None:
    check_top_k((2, 3), 3)
    with pytest.raises(ShapeError):
        check_top_k(shape, k)


def test_the_library_finds_unique_elements_unless_an_option_asks_for_more() -> None:
    class Ops(WithUnique):
        def composed(self, op: str) -> Any:
            return lambda *arguments: (op, *arguments)

        def _unique(self, x: Any) -> Any:
            return "plain", x

    assert Ops().unique(1) == Ops().unique(1, sorted=False, fill_value=2.0) == ("plain", 1)
    assert Ops().unique(1, axis=0) == ("unique", 1, True, False, False, False, 0, None, None)
