"""Argument checks and result dtypes of linear algebra."""

import numpy as np
import pytest

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared import solver
from emberharmony.core.results import QRResult
from emberharmony.errors import ArgumentError, AxisError, ShapeError


def test_float16_is_computed_in_float32_and_cast_back() -> None:
    seen = []

    @solver.cast_to_inexact(promotion)
    def pair(x: np.ndarray) -> QRResult:
        seen.append(x.dtype)
        return QRResult(x, np.zeros(2, np.int32))

    q, r = pair(np.ones(2, np.float16))
    assert seen == [np.float32]
    assert (q.dtype, r.dtype) == (np.float16, np.int32)
    assert pair(np.ones(2, np.int8)).Q.dtype == np.float32
    assert pair(np.ones(2, np.float64)).Q.dtype == np.float64


def test_a_matrix_that_is_not_square_is_refused() -> None:
    assert solver.require_square(np.zeros((2, 3, 3))).shape == (2, 3, 3)
    for wrong in (np.zeros(3), np.zeros((2, 3))):
        with pytest.raises(ShapeError):
            solver.require_square(wrong)


def test_a_right_hand_side_that_does_not_fit_is_refused() -> None:
    solver.check_sides(np.zeros((3, 3)), np.zeros(3))
    solver.check_sides(np.zeros((2, 3, 3)), np.zeros((2, 3, 4)))
    for b in (np.zeros(2), np.zeros((2, 4)), np.zeros(())):
        with pytest.raises(ShapeError):
            solver.check_sides(np.zeros((3, 3)), b)


def test_paired_axes_must_have_equal_lengths() -> None:
    solver.check_equal_lengths(np.zeros((2, 3)), np.zeros((3,)), -1)
    with pytest.raises(ShapeError):
        solver.check_equal_lengths(np.zeros(3), np.zeros(1), 0)
    with pytest.raises(AxisError):
        solver.check_equal_lengths(np.zeros(3), np.zeros(3), 1)


def test_an_unknown_mode_of_qr_is_refused() -> None:
    solver.check_qr_mode("reduced")
    with pytest.raises(ArgumentError):
        solver.check_qr_mode("full")
