"""Checks and dtypes of linear algebra."""

import numpy as np
import pytest

from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared import solver
from emberharmony.core.results import QRResult
from emberharmony.errors import ArgumentError, AxisError, ShapeError


def test_half_precision_is_computed_in_single_and_narrowed_again() -> None:
    seen = []

    @solver.inexact(promotion)
    def pair(x: np.ndarray) -> QRResult:
        seen.append(x.dtype)
        return QRResult(x, np.zeros(2, np.int32))

    q, r = pair(np.ones(2, np.float16))
    assert seen == [np.float32]
    assert (q.dtype, r.dtype) == (np.float16, np.int32)
    assert pair(np.ones(2, np.int8)).Q.dtype == np.float32
    assert pair(np.ones(2, np.float64)).Q.dtype == np.float64


def test_square_matrices() -> None:
    assert solver.square(np.zeros((2, 3, 3))).shape == (2, 3, 3)
    for wrong in (np.zeros(3), np.zeros((2, 3))):
        with pytest.raises(ShapeError):
            solver.square(wrong)


def test_right_hand_sides_fit() -> None:
    solver.check_sides(np.zeros((3, 3)), np.zeros(3))
    solver.check_sides(np.zeros((2, 3, 3)), np.zeros((2, 3, 4)))
    for b in (np.zeros(2), np.zeros((2, 4)), np.zeros(())):
        with pytest.raises(ShapeError):
            solver.check_sides(np.zeros((3, 3)), b)


def test_paired_axes_have_one_length() -> None:
    solver.check_paired(np.zeros((2, 3)), np.zeros((3,)), -1)
    with pytest.raises(ShapeError):
        solver.check_paired(np.zeros(3), np.zeros(1), 0)
    with pytest.raises(AxisError):
        solver.check_paired(np.zeros(3), np.zeros(3), 1)


def test_modes_of_qr() -> None:
    solver.check_qr_mode("reduced")
    with pytest.raises(ArgumentError):
        solver.check_qr_mode("full")
