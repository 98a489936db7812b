"""Checks of segment ids, and the values of segments without elements."""

import math

import numpy as np
import pytest

from emberharmony.backend.shared.reductions import segments
from emberharmony.core.dtypes import bool_, complex64, float32, int8, uint8
from emberharmony.errors import ArgumentTypeError, DTypeError, IndexOutOfBoundsError, ShapeError


def test_the_default_number_of_segments_is_the_greatest_id_plus_one() -> None:
    assert segments.count_segments(np.array([0, 3, 1]), None) == 4
    assert segments.count_segments(np.array([], np.int64), None) == 0
    assert segments.count_segments(np.array([0]), 7) == 7


@pytest.mark.parametrize("ids", [[0, 4], [-1, 0]])
def test_an_id_out_of_range_is_refused(ids: list[int]) -> None:
    with pytest.raises(IndexOutOfBoundsError):
        segments.count_segments(np.array(ids), 4)


def test_a_negative_or_fractional_number_of_segments_is_refused() -> None:
    with pytest.raises(ShapeError):
        segments.segment_count(-1)
    with pytest.raises(ArgumentTypeError):
        segments.segment_count(1.5)


def test_there_must_be_one_id_for_each_slice() -> None:
    segments.check_segments((3,), (3, 2))
    for ids, data in (((2,), (3, 2)), ((3, 1), (3, 2)), ((1,), ())):
        with pytest.raises(ShapeError):
            segments.check_segments(ids, data)


def test_the_neutral_element_depends_on_dtype_and_reduction() -> None:
    assert segments.neutral_element(int8, "add") == 0
    assert segments.neutral_element(int8, "mul") == 1
    assert segments.neutral_element(float32, "max") == -math.inf
    assert (segments.neutral_element(int8, "max"), segments.neutral_element(uint8, "min")) == (-128, 255)
    assert (segments.neutral_element(bool_, "max"), segments.neutral_element(bool_, "min")) == (False, True)
    with pytest.raises(DTypeError):
        segments.neutral_element(complex64, "max")
