"""Checks of shapes, axes and the arguments that follow from them."""

from typing import Any

import numpy as np
import pytest

from emberharmony.backend.shared.arrays import shape
from emberharmony.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError


@pytest.mark.parametrize(("given", "expected"), [(3, (3,)), ((2, 0), (2, 0)), ([np.int64(4)], (4,)), ((), ())])
def test_a_shape_may_be_a_number_or_a_sequence(given: Any, expected: tuple[int, ...]) -> None:
    assert shape.as_shape(given) == expected


@pytest.mark.parametrize(
    ("given", "error"), [((2, -1), ShapeError), (2.5, ArgumentTypeError), (["a"], ArgumentTypeError)]
)
def test_a_negative_or_fractional_length_is_refused(given: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        shape.as_shape(given)


@pytest.mark.parametrize("sections", [1, 2, 3, 6])
def test_cuts_into_equal_parts_agree_with_numpy(sections: int) -> None:
    parts = [list(range(6))[start:stop] for start, stop in shape.part_bounds(6, sections)]
    assert parts == [part.tolist() for part in np.split(np.arange(6), sections)]


@pytest.mark.parametrize("points", [[2], [1, 4], [-2], [0, 9], [4, 2]])
def test_cuts_at_given_points_agree_with_numpy(points: list[int]) -> None:
    parts = [list(range(6))[start:stop] for start, stop in shape.part_bounds(6, points)]
    assert parts == [part.tolist() for part in np.split(np.arange(6), points)]


def test_a_length_that_does_not_split_equally_is_refused() -> None:
    with pytest.raises(ShapeError, match="does not split into 4 equal parts"):
        shape.part_bounds(6, 4)


@pytest.mark.parametrize("parts", [1, 3, 4, 9])
def test_uneven_cuts_agree_with_numpy(parts: int) -> None:
    points = shape.cut_indices_of(7, parts)
    assert [p.tolist() for p in np.split(np.arange(7), points)] == [
        p.tolist() for p in np.array_split(np.arange(7), parts)
    ]


def test_a_split_into_zero_parts_is_refused() -> None:
    with pytest.raises(ShapeError):
        shape.cut_indices_of(7, 0)


@pytest.mark.parametrize("parts", [10**6, 10**400, 10**5000], ids=["10**6", "10**400", "10**5000"])
def test_more_empty_parts_than_a_list_should_hold_are_refused(parts: int) -> None:
    for cut, length in ((shape.cut_indices_of, 7), (shape.part_bounds, 0)):
        with pytest.raises(ArgumentError, match=f"at most 65536 parts of an axis of length {length}, got"):
            cut(length, parts)
    assert len(shape.cut_indices_of(10**5, 10**5)) == 10**5 - 1
    assert len(shape.part_bounds(0, 10)) == 10


def test_a_plane_needs_two_different_axes() -> None:
    assert shape.plane_axes((0, -1), 3) == (0, 2)
    with pytest.raises(AxisError):
        shape.plane_axes((0, 1, 2), 3)
    with pytest.raises(AxisError):
        shape.plane_axes((1, 1), 3)


@pytest.mark.parametrize(
    ("width", "expected"), [(1, [(1, 1), (1, 1)]), ((1, 2), [(1, 2), (1, 2)]), ([(0, 1), (2, 0)], [(0, 1), (2, 0)])]
)
def test_pad_widths_broadcast_to_one_pair_for_each_axis(width: Any, expected: list[tuple[int, int]]) -> None:
    assert shape.pad_pairs(width, 2) == expected


@pytest.mark.parametrize("width", [-1, [(0, 1)] * 3, [(1, -1), (0, 0)]])
def test_pad_widths_that_do_not_fit_are_refused(width: Any) -> None:
    with pytest.raises(ShapeError):
        shape.pad_pairs(width, 2)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize(("length", "before", "after"), [(1, 2, 3), (4, 0, 0), (4, 9, 2), (3, 1, 7)])
def test_pad_indices_agree_with_numpy(mode: str, length: int, before: int, after: int) -> None:
    expected = np.pad(np.arange(length), (before, after), mode=mode)  # type: ignore[call-overload]
    assert shape.pad_indices(length, before, after, mode).tolist() == expected.tolist()


def test_an_empty_axis_cannot_be_padded_with_its_own_elements() -> None:
    with pytest.raises(ShapeError, match="empty axis"):
        shape.pad_indices(0, 1, 0, "edge")


def test_a_wrong_option_of_pad_is_refused() -> None:
    shape.check_pad("constant", 2.0)
    with pytest.raises(ArgumentError, match="mode is one of"):
        shape.check_pad("mirror", None)
    with pytest.raises(ArgumentError, match="constant_values"):
        shape.check_pad("edge", 1.0)
    with pytest.raises(ArgumentTypeError):
        shape.check_pad("constant", "a")  # type: ignore[arg-type]


def test_shapes_broadcast_or_are_refused() -> None:
    assert shape.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    with pytest.raises(ShapeError, match="do not broadcast"):
        shape.broadcast_shapes((2,), (3,))


def test_repeats_are_one_number_or_one_for_each_element() -> None:
    assert shape.counts_per_slice(2, 3).tolist() == [2, 2, 2]
    assert shape.counts_per_slice([0, 1, 2], 3).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError):
        shape.counts_per_slice(-1, 3)
    with pytest.raises(ShapeError):
        shape.counts_per_slice([1, 2], 3)


@pytest.mark.parametrize(
    ("shift", "axes", "expected"),
    [(1, (0,), ((1,), (0,))), (1, (0, 1), ((1, 1), (0, 1))), ((1, 2), (0,), ((1, 2), (0, 0))), (3, (), ((), ()))],
)
def test_each_shift_is_paired_with_its_axis(shift: Any, axes: tuple[int, ...], expected: Any) -> None:
    assert shape.shifts_and_axes(shift, axes) == expected


def test_shifts_and_axes_of_different_numbers_are_refused() -> None:
    with pytest.raises(ShapeError):
        shape.shifts_and_axes((1, 2, 3), (0, 1))


def test_an_order_of_axes_must_be_a_permutation() -> None:
    assert shape.axis_order((-1, 0, 1), 3) == (2, 0, 1)
    with pytest.raises(AxisError):
        shape.axis_order((0, 1), 3)


@pytest.mark.parametrize("axis", [0, -1, (0, 2), (-1, -3)])
def test_expanded_shapes_agree_with_numpy(axis: Any) -> None:
    assert tuple(shape.expanded_shape((4, 5), axis)) == np.expand_dims(np.zeros((4, 5)), axis).shape


def test_only_axes_of_length_one_are_squeezed() -> None:
    assert shape.squeezed_shape((1, 3, 1), (0, 2)) == [3]
    with pytest.raises(ShapeError, match="axis 1 has length 3"):
        shape.squeezed_shape((1, 3, 1), (1,))


def test_a_vector_is_not_a_matrix() -> None:
    with pytest.raises(ShapeError):
        shape.require_matrices(np.zeros(3))
