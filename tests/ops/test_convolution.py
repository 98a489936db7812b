"""Convolutions: what they are adjoint to, and the arguments they refuse."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError

X = np.sin(np.arange(64.0)).reshape(2, 8, 4)
W = np.cos(np.arange(60.0)).reshape(3, 4, 5)


@pytest.mark.parametrize(("strides", "padding", "dilation"), [(1, "valid", 1), (2, "same", 1), (1, "same", 2)])
def test_conv_transpose_is_the_adjoint_of_conv(strides: int, padding: str, dilation: int, backend: str) -> None:
    forward = ops.to_numpy(ops.conv(X, W, strides, padding, None, dilation))
    y = np.cos(np.arange(forward.size)).reshape(forward.shape)
    back = ops.to_numpy(ops.conv_transpose(y, W, strides, padding, None, None, dilation))
    assert np.isclose((forward * y).sum(), (X * back).sum())


def test_fold_is_the_adjoint_of_unfold(backend: str) -> None:
    x = np.sin(np.arange(60.0)).reshape(1, 2, 6, 5)
    columns = ops.to_numpy(ops.unfold(x, (2, 3), 1, 1, 2))
    y = np.cos(np.arange(columns.size)).reshape(columns.shape)
    back = ops.to_numpy(ops.fold(y, (6, 5), (2, 3), 1, 1, 2))
    assert np.isclose((columns * y).sum(), (x * back).sum())


def test_a_shift_of_the_input_shifts_the_result(backend: str) -> None:
    whole = ops.to_numpy(ops.conv(X, W))
    shifted = ops.to_numpy(ops.conv(X[:, 1:], W))
    assert np.array_equal(whole[:, 1:], shifted)


def test_bad_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="padding is 'valid' or 'same', not 'full'"):
        ops.conv(X, W, 1, "full")
    with pytest.raises(ArgumentError, match="data_format is"):
        ops.conv(X, W, data_format="NHWC")
    with pytest.raises(ArgumentError, match="strides is an integer from 1 on"):
        ops.conv(X, W, 0)
    with pytest.raises(ArgumentError, match="strides is an integer from 1 on, or one for each of 1 spatial axes"):
        ops.conv(X, W, (1, 2))
    with pytest.raises(ArgumentError, match="padding is 'valid' or 'same', not 'full'"):
        ops.conv_transpose(X, W.swapaxes(1, 2), 1, "full")


def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="a tensor of 4 channels does not suit a kernel of shape"):
        ops.conv(X, W[:, :3])
    with pytest.raises(ShapeError, match="need the same number of spatial axes"):
        ops.conv(X, W[None])
    with pytest.raises(ShapeError, match="a window of 13 does not fit an axis of length 8"):
        ops.conv(X, W, dilation_rate=6)
    with pytest.raises(ShapeError, match=r"are not \(batch, channels \* 3, 5\)"):
        ops.fold(np.ones((1, 6, 4)), (7,), 3)
