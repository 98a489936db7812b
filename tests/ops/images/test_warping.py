"""Warping of images: positions on and beyond the edges, fields from a seed, and the arguments that are refused."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, LinAlgError, ShapeError

SHOT = np.sin(np.arange(60.0, dtype=np.float32)).reshape(4, 5, 3)
SAME = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
SQUARE = [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [4.0, 3.0]]
LINE = [1.0, 2.0, 4.0, 8.0]


def test_nearest_takes_the_element_farther_from_zero_in_a_tie(backend: str) -> None:
    places = [[-1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 3.5]]
    assert ops.map_coordinates(LINE, places, 0, "nearest").tolist() == [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert ops.map_coordinates(LINE, places, 0).tolist() == [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 0.0]
    # For the number just below 0.5, adding 0.5 in float32 would round up to 1.
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert ops.map_coordinates(LINE, np.array([[below]]), 0).tolist() == [1.0]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("constant", [9, 9, 9, 1, 2, 4, 8, 9, 9, 9]),
        ("nearest", [1, 1, 1, 1, 2, 4, 8, 8, 8, 8]),
        ("wrap", [2, 4, 8, 1, 2, 4, 8, 1, 2, 4]),
        ("mirror", [8, 4, 2, 1, 2, 4, 8, 4, 2, 1]),
        ("reflect", [4, 2, 1, 1, 2, 4, 8, 8, 4, 2]),
    ],
)
@pytest.mark.parametrize("order", [0, 1])
def test_integer_positions_give_the_elements_themselves(
    mode: str, expected: list[float], order: int, backend: str
) -> None:
    places = np.arange(-3.0, 7.0)[None]
    assert ops.map_coordinates(LINE, places, order, mode, 9.0).tolist() == expected
    far = places + 24.0 * (mode in ("wrap", "mirror", "reflect"))
    assert ops.map_coordinates(LINE, far, order, mode, 9.0).tolist() == expected


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_a_tensor_of_one_element_is_sampled_in_every_mode(mode: str, backend: str) -> None:
    shown = ops.map_coordinates([5.0], [[-3.0, 0.0, 2.0]], 1, mode).tolist()
    assert shown == ([0.0, 5.0, 0.0] if mode == "constant" else [5.0] * 3)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_nan_infinite_and_huge_positions_never_read_outside_the_tensor(mode: str, order: int, backend: str) -> None:
    shown = ops.to_numpy(ops.map_coordinates(LINE, [[np.nan, np.inf, -np.inf, 1e30]], order, mode, -1.0))
    assert np.all(np.isnan(shown) | np.isin(shown, [*LINE, -1.0]))
    if mode == "constant":
        assert shown[1:].tolist() == [-1.0] * 3


def test_integer_and_boolean_tensors_keep_their_dtype(backend: str) -> None:
    table = np.array([0, 255, 3], np.uint8)
    for order, wanted in ((1, [64, 128, 255, 255]), (0, [0, 255, 255, 255])):
        shown = ops.map_coordinates(table, [[0.25, 0.5, 1.0, 9.0]], order, "constant", 300.0)
        assert ops.dtype(shown) == ops.uint8
        assert shown.tolist() == wanted
    exact = ops.map_coordinates(np.array([2**62 + 1, 5]), [[0.2, 7.0]], 0, "constant", 7.0)
    assert exact.tolist() == [2**62 + 1, 7]
    assert ops.map_coordinates([True, False], [[0, 1, 2]], 0, "constant", 1.0).tolist() == [True, False, True]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_the_identity_transform_changes_nothing(interpolation: str, backend: str) -> None:
    assert ops.affine_transform(SHOT, SAME, interpolation).tolist() == SHOT.tolist()
    assert ops.perspective_transform(SHOT, SQUARE, SQUARE, interpolation).shape == SHOT.shape
    still = ops.elastic_transform(SHOT, 0.0, interpolation=interpolation, seed=1)
    assert still.tolist() == SHOT.tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from(["nearest", "bilinear"]))
def test_a_shift_by_whole_pixels_with_wrap_is_a_roll(backend: str, across: int, down: int, interpolation: str) -> None:
    shift = [1.0, 0.0, float(across), 0.0, 1.0, float(down), 0.0, 0.0]
    shown = ops.affine_transform(SHOT, shift, interpolation, "wrap")
    assert shown.tolist() == np.roll(SHOT, (-down, -across), (0, 1)).tolist()


def test_a_rotation_by_a_right_angle_agrees_with_rot90(backend: str) -> None:
    square = SHOT[:, :4]
    turned = ops.affine_transform(square, [0.0, 1.0, 0.0, -1.0, 0.0, 3.0, 0.0, 0.0])
    assert turned.tolist() == np.rot90(square, -1).tolist()


def test_a_perspective_transform_moves_its_points_to_their_targets(backend: str) -> None:
    wanted = [[1.0, 0.0], [3.0, 1.0], [0.0, 3.0], [4.0, 2.0]]
    seen = ops.to_numpy(ops.perspective_transform(SHOT, SQUARE, wanted))
    for (x, y), (u, v) in zip(SQUARE, wanted, strict=True):
        assert np.allclose(seen[int(v), int(u)], SHOT[int(y), int(x)], atol=1e-5)


def test_pixels_at_the_horizon_have_the_fill_value(backend: str) -> None:
    tilted = [1.0, 0.0, -2.0, 0.0, 1.0, 0.0, -0.5, 0.0]
    assert np.all(ops.to_numpy(ops.affine_transform(SHOT, tilted, fill_value=7.0))[:, 2] == 7.0)
    assert np.all(np.isfinite(ops.to_numpy(ops.affine_transform(SHOT, tilted, fill_mode="reflect"))))


def test_elastic_transforms_of_one_seed_agree_on_all_backends(backend: str) -> None:
    batch = np.stack([SHOT, SHOT])
    bent = ops.elastic_transform(batch, 3.0, 1.5, seed=5)
    assert bent.tolist() == ops.elastic_transform(batch, 3.0, 1.5, generator=ops.random.Generator(5)).tolist()
    assert not np.array_equal(ops.to_numpy(bent)[0], ops.to_numpy(bent)[1])
    first = ops.elastic_transform(np.moveaxis(batch, -1, 1), 3.0, 1.5, seed=5, data_format="channels_first")
    assert ops.moveaxis(first, 1, -1).tolist() == bent.tolist()
    ops.set_backend("numpy")
    assert np.allclose(ops.elastic_transform(batch, 3.0, 1.5, seed=5), np.asarray(bent.tolist()), atol=1e-5)


def test_wrong_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="expected order 0 or 1, got 3"):
        ops.map_coordinates(LINE, [[0.0]], 3)
    with pytest.raises(ArgumentError, match="expected fill_mode to be one of constant, nearest, wrap, mirror, reflect"):
        ops.map_coordinates(LINE, [[0.0]], 1, "edge")
    with pytest.raises(ArgumentError, match="expected interpolation to be one of nearest, bilinear"):
        ops.affine_transform(SHOT, SAME, "bicubic")
    with pytest.raises(ArgumentError, match="sigma is positive"):
        ops.elastic_transform(SHOT, sigma=0.0)


def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="expected 1 rows of coordinates"):
        ops.map_coordinates(LINE, [[0.0], [1.0]], 1)
    with pytest.raises(ShapeError, match="expected a tensor with elements"):
        ops.map_coordinates(np.ones(0), [[0.0]], 1)
    with pytest.raises(ShapeError, match=r"expected transforms of shape \(8,\) or \(1, 8\), got \(2, 8\)"):
        ops.affine_transform(SHOT, [SAME, SAME])
    with pytest.raises(ShapeError, match=r"start and end points of shape \(4, 2\)"):
        ops.perspective_transform(SHOT, SQUARE[:3], SQUARE[:3])
    with pytest.raises(LinAlgError, match="three of four points lie on a line"):
        ops.perspective_transform(SHOT, SQUARE, [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])


@pytest.mark.parametrize("corners", [False, True])
def test_shares_of_a_size_are_its_ends(corners: bool, backend: str) -> None:
    images = ops.array([[[1.0, 2.0, 4.0, 8.0]]])[..., None]
    ends = [-1.0, 0.0, 1.0] if corners else [-0.75, 0.0, 0.75]
    found = ops.image.grid_sample(images, [[[[x, 0.0] for x in ends]]], align_corners=corners)
    assert ops.reshape(found, (-1,)).tolist() == [1.0, 3.0, 8.0]
    halves = ops.image.grid_sample(images, [[[[x, 0.0] for x in (-0.5, 0.0, 0.5)]]], "nearest")
    assert ops.reshape(halves, (-1,)).tolist() == [1.0, 4.0, 4.0]  # positions 0.5, 1.5 and 2.5


def test_positions_of_other_images_are_refused(backend: str) -> None:
    for shape in ((2, 3, 4, 2), (1, 3, 4, 3), (1, 3, 2), (1, 2)):
        with pytest.raises(ShapeError, match="expected positions of shape"):
            ops.image.grid_sample(SHOT[None], ops.zeros(shape))
