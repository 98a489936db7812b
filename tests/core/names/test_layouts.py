"""The check of the tag of a layout."""

import pytest

from emberharmony.core.errors import ArgumentError
from emberharmony.core.names.layouts import LAYOUTS, require_layout


@pytest.mark.parametrize(("layout", "rest"), [("tourch", "'tourch'; did you mean 'torch'?"), (3, "3"), (None, "None")])
def test_an_unknown_layout_is_refused_with_the_nearest(layout: object, rest: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        require_layout(layout, "source")
    assert str(caught.value) == f"source must be one of 'torch', 'mlx', 'keras', got {rest}"


def test_known_layouts_are_accepted() -> None:
    for layout in LAYOUTS:
        require_layout(layout)
