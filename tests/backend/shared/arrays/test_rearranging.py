"""Checks of the patterns of `rearrange`."""

import numpy as np
import pytest

from emberharmony.backend.shared.arrays.rearranging import is_channels_last, rearrangement
from emberharmony.errors import ArgumentError, ShapeError


def applied(pattern: str, x: np.ndarray, **lengths: int) -> np.ndarray:
    plan = rearrangement(pattern, x.shape, lengths)
    return x.reshape(plan.split_shape).transpose(plan.order).reshape(plan.joined_shape)


def test_axes_are_split_moved_and_joined() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert applied("a b c -> c (a b)", x).tolist() == x.transpose(2, 0, 1).reshape(4, 6).tolist()
    assert applied("(k a) ... -> a k ...", x, k=2).shape == (1, 2, 3, 4)
    assert applied("a ... -> (...) a", x).shape == (12, 2)
    assert applied("a b c -> a 1 b c", x).shape == (2, 1, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("a b c", ArgumentError),
        ("a b -> b a", ShapeError),
        ("a b c -> a b", ArgumentError),
        ("a b (c d) -> a b c d", ArgumentError),
        ("a (b c -> a", ArgumentError),
        ("... ... -> ...", ArgumentError),
        ("a b a -> a b", ArgumentError),
        ("1 b c -> b c", ShapeError),
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        rearrangement(pattern, (2, 3, 4), {})


def test_an_unknown_data_format_is_refused() -> None:
    assert is_channels_last("channels_last")
    assert not is_channels_last("channels_first")
    with pytest.raises(ArgumentError):
        is_channels_last("last")
