"""Clipping of gradients against torch and NumPy."""

import math
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops, optim
from tests.ops.trees import lists

GRADIENTS: list[Any] = [[[3.0, -4.0], [0.5, 0.0]], [12.0], 0.25]


def model(dtype: str = "float32") -> list[Parameter]:
    cells = [Parameter(ops.zeros(np.shape(each), dtype)) for each in (*GRADIENTS, [1.0])]
    for cell, gradient in zip(cells, GRADIENTS, strict=False):
        cell.grad = ops.convert_to_tensor(gradient, dtype)
    return cells


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("limit", [0.0, 1.0, 100.0])
def test_the_global_norm_is_that_of_torch(limit: float, norm_type: float, backend: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = [torch.zeros(np.shape(each), requires_grad=True) for each in GRADIENTS]
    for cell, gradient in zip(theirs, GRADIENTS, strict=True):
        cell.grad = torch.tensor(gradient)
    expected = torch.nn.utils.clip_grad_norm_(theirs, limit, norm_type)
    cells = model()
    norm = optim.clip_by_global_norm({"cells": cells, "mean": Buffer(1.0)}, limit, norm_type=norm_type)
    assert float(norm) == pytest.approx(float(expected), rel=1e-6)
    assert tuple(norm.shape) == ()
    for cell, their_cell in zip(cells, theirs, strict=False):
        np.testing.assert_allclose(ops.to_numpy(cell.grad), their_cell.grad.numpy(), rtol=1e-6)
    assert cells[-1].grad is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values_and_single_norms_are_clipped(dtype: str, backend: str) -> None:
    cells = model(dtype)
    optim.clip_by_value(cells, 3.5)
    assert lists([cell.grad for cell in cells[:3]]) == [[[3.0, -3.5], [0.5, 0.0]], [3.5], 0.25]
    optim.clip_by_norm(cells, 1.0)
    norms = [float(np.linalg.norm(ops.to_numpy(cell.grad).astype("f8").ravel())) for cell in cells[:3]]
    assert norms == pytest.approx([1.0, 1.0, 0.25], rel=2e-3 if dtype == "float16" else 1e-5)
    assert ops.dtype(cells[0].grad) == dtype


def test_the_norm_of_half_precision_is_computed_in_float32(backend: str) -> None:
    cell = Parameter(ops.zeros((16,), "float16"))
    cell.grad = ops.full((16,), 3e4, "float16")
    norm = optim.clip_by_global_norm(cell, 1.0)
    assert float(norm) == pytest.approx(12e4, rel=1e-3)  # which float16 cannot hold
    assert np.allclose(ops.to_numpy(cell.grad), 0.25, atol=1e-3)
    cell = Parameter(ops.zeros((7,), "float16"))
    cell.grad = ops.full((7,), 0.1, "float16")
    assert float(optim.clip_by_global_norm(cell, 1.0)) == pytest.approx(
        math.sqrt(7.0) * float(np.float16(0.1)), rel=1e-6
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_gradients_that_are_not_finite(value: float, backend: str) -> None:
    cells = [Parameter([1.0], name="good"), Parameter([1.0, 2.0], name="bad")]

    def spoilt() -> list[Parameter]:
        cells[0].grad, cells[1].grad = ops.ones((1,)), ops.convert_to_tensor([1.0, value])
        return cells

    with pytest.raises(optim.NonFiniteGradientError, match=r"those of Parameter\('bad'.* are not finite"):
        optim.clip_by_global_norm(spoilt(), 1.0)
    assert lists(cells[0].grad) == [1.0]
    assert not math.isfinite(float(optim.clip_by_global_norm(spoilt(), 1.0, nonfinite="zero")))
    assert lists([cell.grad for cell in cells]) == [[0.0], [0.0, 0.0]]
    optim.clip_by_global_norm(spoilt(), 1.0, nonfinite="skip")
    assert [cell.grad for cell in cells] == [None, None]


def test_squares_out_of_range_are_told_apart(backend: str) -> None:
    cell = Parameter([1.0])
    cell.grad = ops.full((1,), 3e38)
    other = Parameter([1.0])
    other.grad = ops.full((1,), 3e38)
    with pytest.raises(optim.NonFiniteGradientError, match="exceed the range"):
        optim.clip_by_global_norm([cell, other], 1.0)


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1.0, 1e10, 1e30])
def test_gradients_of_any_size_have_their_norm(scale: float, backend: str) -> None:
    cells = [Parameter([0.0]), Parameter([0.0])]
    cells[0].grad, cells[1].grad = ops.convert_to_tensor([3.0 * scale]), ops.convert_to_tensor([4.0 * scale])
    assert float(optim.clip_by_global_norm(cells, math.inf)) == pytest.approx(5.0 * scale, rel=1e-6, abs=0.0)


def test_nothing_to_clip(backend: str) -> None:
    assert float(optim.clip_by_global_norm([Parameter([1.0])], 1.0)) == 0.0
    empty = Parameter(ops.zeros((0,)))
    empty.grad = ops.zeros((0,))
    assert float(optim.clip_by_global_norm(empty, 1.0, norm_type=math.inf)) == 0.0


def test_wrong_arguments_are_refused() -> None:
    for clip in (optim.clip_by_value, optim.clip_by_norm, optim.clip_by_global_norm):
        with pytest.raises(errors.ArgumentError, match=r"the limit is -1\.0, expected a number >= 0"):
            clip([], -1.0)
    with pytest.raises(errors.ArgumentError, match="nonfinite is 'ignore'"):
        optim.clip_by_global_norm([], 1.0, nonfinite="ignore")
