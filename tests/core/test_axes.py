"""Axes as integers from 0, and the shapes to which others broadcast."""

import numpy as np
import pytest

from emberharmony.core.axes import as_length, broadcast_shape, nonnegative_axes, python_integers
from emberharmony.core.errors import ArgumentTypeError, AxisError, ShapeError


@pytest.mark.parametrize(
    "axis, axes",
    [
        (0, (0,)),
        (-1, (2,)),
        (-3, (0,)),
        (None, (0, 1, 2)),
        ((), ()),
        ((-1, 0), (2, 0)),
        ([-2, -3], (1, 0)),
        (np.int64(-1), (2,)),
    ],
)
def test_axes_count_from_either_end(axis, axes):
    assert nonnegative_axes(axis, 3) == axes


@pytest.mark.parametrize("axis", [3, -4, (0, 3), (-4,), np.int64(3)])
def test_an_axis_out_of_range(axis):
    with pytest.raises(AxisError, match="is out of range for a tensor of 3 axes"):
        nonnegative_axes(axis, 3)


@pytest.mark.parametrize("axis", [(0, 0), (0, -3), (2, 1, -1)])
def test_an_axis_that_is_named_twice(axis):
    with pytest.raises(AxisError, match="name one axis more than once"):
        nonnegative_axes(axis, 3)


@pytest.mark.parametrize("axis", [True, (0, False)])
def test_a_boolean_is_no_axis(axis):
    with pytest.raises(ArgumentTypeError, match="not a boolean"):
        nonnegative_axes(axis, 2)
    with pytest.raises(ArgumentTypeError, match="not a boolean"):
        as_length(True)


def test_integers_in_tensors_become_those_of_python():
    option = (np.array(2), np.array([[0, -1], [1, 2]]), [np.int8(3), 4], "same", 0.5, None)
    assert python_integers("axes", option) == (2, [[0, -1], [1, 2]], [3, 4], "same", 0.5, None)
    with pytest.raises(TypeError, match="axes must be an integer, or a sequence of integers"):
        python_integers("axes", np.array([0.0]))


SHAPES = [(), (1,), (0,), (3,), (1, 3), (2, 1), (2, 3), (0, 3), (2, 0), (4, 1, 1), (1, 2, 3)]


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_shapes_broadcast_as_in_numpy(a, b):
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast_shape([a, b])
    else:
        assert broadcast_shape([a, b]) == wanted
        assert broadcast_shape([a, b, ()]) == wanted
