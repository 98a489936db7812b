"""Argument checks of DLPack imports, copies and views."""

import numpy as np
import pytest

from emberharmony.backend.shared.tensor import check_view, dlpack_exporter, refuse_copy
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError


def test_an_object_without_dlpack_is_refused() -> None:
    x = np.ones(2)
    assert dlpack_exporter(x) is x
    with pytest.raises(ArgumentTypeError, match="list does not"):
        dlpack_exporter([1.0])


def test_copy_false_raises_when_a_copy_is_needed() -> None:
    refuse_copy(None)
    refuse_copy(True)
    with pytest.raises(ArgumentError):
        refuse_copy(False)


def test_a_view_of_another_width_needs_a_last_axis_that_fits() -> None:
    check_view((2, 3), 8, 4)
    check_view((), 4, 4)
    for shape in ((2, 3), ()):
        with pytest.raises(ShapeError):
            check_view(shape, 4, 8)
