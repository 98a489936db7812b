"""Checks of the subscripts of einsum."""

import pytest

from emberharmony.backend.shared.algebra.products import check_subscripts
from emberharmony.errors import ArgumentError, ShapeError


@pytest.mark.parametrize(
    ("subscripts", "shapes", "terms"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)], 3),
        ("ij->", [(2, 3)], 6),
        ("...i,...i", [(5, 4), (5, 4)], 4),
        ("ii", [(3, 3)], 3),
    ],
)
def test_the_number_of_summed_products_follows_from_the_subscripts(
    subscripts: str, shapes: list[tuple[int, ...]], terms: int
) -> None:
    assert check_subscripts(subscripts, *shapes) == terms


@pytest.mark.parametrize(
    ("subscripts", "shapes", "error"),
    [
        ("ij,jk", [(2, 3)], ArgumentError),
        ("i1->i", [(2, 3)], ArgumentError),
        ("ij->ik", [(2, 3)], ArgumentError),
        ("ij->ii", [(2, 3)], ArgumentError),
        ("ij", [(2,)], ShapeError),
        ("i", [(2, 3)], ShapeError),
        ("i->i", [(2, 3)], ShapeError),
        ("...ij", [(2,)], ShapeError),
        ("ij,jk", [(2, 3), (4, 5)], ShapeError),
    ],
)
def test_wrong_subscripts_are_refused(subscripts: str, shapes: list[tuple[int, ...]], error: type[Exception]) -> None:
    with pytest.raises(error):
        check_subscripts(subscripts, *shapes)
