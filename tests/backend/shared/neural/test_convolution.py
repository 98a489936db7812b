"""Positions, counts and padding of the windows of convolutions and pooling."""

from typing import Any

import numpy as np
import pytest

from emberharmony.backend.shared.neural.convolution import (
    check_channels,
    distinct_window_indices,
    has_channels_last,
    integers_per_axis,
    padding_pairs,
    recent_windows,
    spatial_axis_count,
    transposed_geometry,
    windows,
)
from emberharmony.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(
    ("length", "size", "stride", "dilation"), [(7, 3, 1, 1), (8, 3, 2, 1), (9, 2, 1, 3), (5, 5, 3, 1)]
)
def test_every_window_is_inside_the_padded_axis(
    padding: str, length: int, size: int, stride: int, dilation: int
) -> None:
    found = windows((length,), (size,), stride, padding, dilation)
    ((before, after),) = found.padding
    places = np.arange(before + length + after)
    columns = [places[part] for part in found.slices_along(0)]
    assert {len(column) for column in columns} == {found.counts[0]}
    assert columns[-1][-1] <= before + length + after - 1
    assert found.counts[0] == (
        -(-length // stride) if padding == "same" else (length - (size - 1) * dilation - 1) // stride + 1
    )
    assert after - before in (0, 1)


def test_windows_of_several_elements_that_touch_are_side_by_side() -> None:
    assert windows((4, 6), (2, 3), (2, 3), "valid").are_side_by_side
    assert windows((4, 6), (2, 1), (2, 1), "same").are_side_by_side
    for size, strides, dilation in [((2, 3), (2, 2), 1), ((1, 1), (1, 1), 1), ((2, 2), (2, 2), 2), ((2, 3), (3, 3), 1)]:
        assert not windows((4, 6), size, strides, "valid", dilation).are_side_by_side


def test_windows_are_remembered_for_single_numbers_and_a_word_alone() -> None:
    first = recent_windows((4, 6), (2, 3), 2, "valid", 1)
    assert first is recent_windows([4, 6], [2, 3], 2, "valid", 1)
    others: list[tuple[Any, Any, Any]] = [([2, 2], "valid", 1), (2, [(0, 0), (0, 0)], 1), (2, "valid", [1, 1])]
    for strides, padding, dilation in others:
        found = recent_windows((4, 6), (2, 3), strides, padding, dilation)
        assert found is not first
        assert found == first


@pytest.mark.parametrize(
    ("padding", "pairs"),
    [
        (1, ((1, 1), (1, 1))),
        ([np.int64(1), np.array(2)], ((1, 1), (2, 2))),
        ([(0, 1), np.array([2, 3])], ((0, 1), (2, 3))),
        (np.array([[0, 1], [2, 3]]), ((0, 1), (2, 3))),
        (np.array([1, 2]), ((1, 1), (2, 2))),
    ],
)
def test_padding_is_a_number_or_one_or_a_pair_for_each_axis(padding: Any, pairs: Any) -> None:
    assert padding_pairs(padding, 2) == pairs


def test_offsets_visit_every_position_of_a_window() -> None:
    found = windows((4, 5), (2, 3), 1, "valid")
    assert [place for place, _ in found.positions_and_slices()] == [(i, j) for i in range(2) for j in range(3)]
    assert found.pad_widths() == [(0, 0)] * 4
    assert not found.has_padding


def test_a_window_that_is_too_long_or_an_unknown_padding_is_refused() -> None:
    with pytest.raises(ShapeError, match="does not fit an axis of length 2"):
        windows((2,), (3,), 1, "valid")
    with pytest.raises(ArgumentError, match="padding"):
        windows((2,), (1,), 1, "full")


def test_an_option_is_one_number_or_one_for_each_axis() -> None:
    assert integers_per_axis(2, 3, "strides") == (2, 2, 2)
    assert integers_per_axis([1, np.int64(2)], 2, "strides") == (1, 2)
    for wrong in (0, (1, 2, 3), 1.5, "a"):
        with pytest.raises(ArgumentError, match="strides"):
            integers_per_axis(wrong, 2, "strides")


def test_data_format_and_number_of_axes_are_checked() -> None:
    assert has_channels_last(None)
    assert not has_channels_last("channels_first")
    with pytest.raises(ArgumentError):
        has_channels_last("channels")
    assert spatial_axis_count(4) == 2
    with pytest.raises(ShapeError):
        spatial_axis_count(2)


def test_the_number_of_groups_follows_from_the_channels() -> None:
    assert check_channels((1, 8, 6), (3, 2, 9)) == 3
    for kernel in ((3, 4, 8), (3, 2, 8), (3, 3, 6, 6)):
        with pytest.raises(ShapeError):
            check_channels((1, 8, 6), kernel)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("length", "size", "stride"), [(5, 3, 1), (5, 3, 2), (4, 2, 3)])
def test_a_transposed_convolution_restores_the_length(padding: str, length: int, size: int, stride: int) -> None:
    plan = transposed_geometry((length,), (size,), stride, padding)
    spread_out = (length - 1) * stride + 1 + sum(plan.padding[0])
    result = spread_out - size + 1
    assert windows((result,), (size,), stride, padding).counts == (length,)


@pytest.mark.parametrize("length", [1, 3, 4, 10])
@pytest.mark.parametrize("count", [1, 3, 4, 7, 25])
def test_the_first_of_equal_adaptive_windows(length: int, count: int) -> None:
    reaches = [(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]
    different = [i for i in range(count) if i == 0 or reaches[i] != reaches[i - 1]]
    assert list(distinct_window_indices(length, count)) == different
    assert len(distinct_window_indices(length, 10**30)) <= 2 * length
