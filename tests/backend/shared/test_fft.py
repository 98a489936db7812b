"""Checks of the axes and lengths of Fourier transforms."""

import pytest

from emberharmony.backend.shared.fft import along, along_all
from emberharmony.errors import ArgumentError, AxisError


def test_a_missing_length_is_that_of_the_axis() -> None:
    assert along((3, 4), None, -1, "backward") == (1, 4)
    assert along((3, 4), 7, 0, "ortho") == (0, 7)
    assert along((3, 5), None, -1, "forward", halved=True) == (1, 8)


def test_only_the_last_of_several_axes_is_halved_by_a_real_transform() -> None:
    assert along_all((3, 5), None, None, "backward", halved=True) == [(0, 3), (1, 8)]
    assert along_all((2, 3, 4), (6, 8), None, "backward") == [(1, 6), (2, 8)]


def test_a_wrong_norm_length_or_axis_is_refused() -> None:
    with pytest.raises(ArgumentError, match="norm"):
        along((3,), None, 0, "unit")
    with pytest.raises(ArgumentError):
        along((3,), 0, 0, "backward")
    with pytest.raises(AxisError):
        along((3,), None, 1, "backward")
    with pytest.raises(ArgumentError):
        along_all((3, 4), (2,), (0, 1), "backward")
    with pytest.raises(ArgumentError):
        along_all((), None, None, "backward")
