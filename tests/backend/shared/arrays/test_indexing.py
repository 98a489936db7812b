"""Checks of indices and keys on the host."""

from typing import Any

import numpy as np
import pytest

from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.arrays import indexing
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    IndexOutOfBoundsError,
    RangeError,
    ShapeError,
)


def test_indices_known_to_the_host_are_int64() -> None:
    assert host_indices([1, 2]).dtype == np.int64
    assert host_indices([]).dtype == np.int64
    for wrong in ([1.5], np.zeros(2), np.zeros(0)):
        with pytest.raises(ArgumentTypeError):
            host_indices(wrong)


def test_negative_indices_count_from_the_end() -> None:
    assert indexing.nonnegative_indices(np.array([-1, 0, -3]), 3).tolist() == [2, 0, 0]
    assert indexing.nonnegative_index(-1, 3) == 2


@pytest.mark.parametrize("index", [3, -4, 2**62, -(2**63)])
def test_an_index_out_of_bounds_is_named(index: int) -> None:
    with pytest.raises(IndexOutOfBoundsError, match=f"index {index} is out of bounds for an axis of length 3"):
        indexing.nonnegative_indices(np.array([0, index]), 3)
    with pytest.raises(IndexOutOfBoundsError):
        indexing.nonnegative_index(index, 3)


def test_a_block_must_be_inside_the_tensor() -> None:
    assert indexing.block_slices((4, 5), (1, 0), (2, 5)) == (slice(1, 3), slice(0, 5))
    with pytest.raises(IndexOutOfBoundsError):
        indexing.block_slices((4, 5), (3, 0), (2, 5))
    with pytest.raises(ShapeError):
        indexing.block_slices((4, 5), (1,), (2,))


@pytest.mark.parametrize("key", [1, slice(1, 3), (0, None, slice(None)), (slice(None), -1)])
def test_integers_none_and_forward_slices_make_a_plain_key(key: Any) -> None:
    assert indexing.is_basic_key(key, (4, 5))


@pytest.mark.parametrize("key", [4, -5, (0, 0, 0), [0], slice(None, None, -1), slice(2**31), Ellipsis, True])
def test_other_keys_are_not_plain(key: Any) -> None:
    assert not indexing.is_basic_key(key, (4, 5))


@pytest.mark.parametrize(
    "part", [slice(None, None, -1), slice(10, -10, -3), slice(2**40), slice(-(2**40), 2), slice(-9, -9, -1)]
)
def test_a_slice_cut_to_the_length_selects_the_same_elements(part: slice) -> None:
    array = np.arange(7)
    assert array[indexing.slice_within(part, 7)].tolist() == array[part].tolist()


def test_a_step_along_an_axis_too_long_for_32_bits_is_refused() -> None:
    with pytest.raises(RangeError):
        indexing.slice_within(slice(0, None, 2), 2**30)


def parts(key: Any, shape: tuple[int, ...]) -> list[tuple[Any, int, bool]]:
    return [*indexing.key_parts_of(key, shape, lambda part: None)]


def test_each_part_of_a_key_has_its_axis() -> None:
    found = parts((..., None, [0, -1], 2), (3, 4, 5))
    assert [axis for _, axis, _ in found] == [0, 1, 1, 2]
    assert found[2][0].tolist() == [0, 3]


def test_a_mask_takes_as_many_axes_as_it_has() -> None:
    ((mask, axis, is_mask), (rest, after, _)) = parts((np.ones((3, 4), bool), slice(None)), (3, 4, 5))
    assert (mask.shape, axis, is_mask, rest, after) == ((3, 4), 0, True, slice(None), 2)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ((0, 0, 0, 0), AxisError),
        ((..., ...), ArgumentError),
        (slice(None, None, 0), ArgumentError),
        (slice("a"), ArgumentTypeError),
        ("a", ArgumentTypeError),
        (np.ones((2, 4), bool), ShapeError),
        ([3], IndexOutOfBoundsError),
        (-4, IndexOutOfBoundsError),
    ],
)
def test_a_wrong_key_is_refused(key: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        parts(key, (3, 4, 5))


def test_columns_of_indices_are_checked_against_the_first_axes() -> None:
    rows, columns = indexing.index_columns([[0, -1], [2, 1]], (3, 4, 5))
    assert (rows.tolist(), columns.tolist()) == ([0, 2], [3, 1])
    with pytest.raises(ShapeError):
        indexing.index_columns([[0, 0, 0, 0]], (3, 4, 5))


def test_a_flat_position_becomes_one_index_for_each_axis() -> None:
    assert [a.tolist() for a in indexing.unravel(np.array([0, 5]), (2, 3))] == [[0, 1], [0, 2]]
    assert indexing.unravel(np.array(0), ()) == ()
    with pytest.raises(IndexOutOfBoundsError, match="6 elements"):
        indexing.unravel(np.array([6]), (2, 3))


def test_no_index_is_inside_an_empty_axis() -> None:
    indexing.require_elements(0, 0)
    with pytest.raises(IndexOutOfBoundsError):
        indexing.require_elements(0, 1)


def test_an_unknown_reduction_is_refused() -> None:
    assert indexing.checked_reduction("add", ("add",)) == "add"
    with pytest.raises(ArgumentError):
        indexing.checked_reduction("mean", ("add",))


def test_a_negative_number_of_classes_is_refused() -> None:
    ids = np.array([1, 0])
    assert indexing.class_count(0, ids) == 0
    with pytest.raises(ArgumentError):
        indexing.class_count(-1, ids)
