"""Resampling weights, geometry and argument checks of image ops."""

import numpy as np
import pytest

from emberharmony.backend.shared.images import image
from emberharmony.core.dtypes import complex64, float16, float64, int8, uint8
from emberharmony.errors import ArgumentError, DTypeError, LinAlgError, ShapeError


@pytest.mark.parametrize("method", image.KERNELS)
@pytest.mark.parametrize(("length", "target"), [(4, 9), (9, 4), (5, 5), (1, 3)])
def test_the_weights_of_each_pixel_add_up_to_one(method: str, length: int, target: int) -> None:
    taps = image.resampling_taps(length, target, length / target, 0.0, method, antialias=True)
    np.testing.assert_allclose(taps.weights.sum(0), 1.0, rtol=1e-12)
    assert ((taps.places >= 0) & (taps.places < length)).all()


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3"])
def test_an_axis_that_keeps_its_length_keeps_its_pixels(method: str) -> None:
    taps = image.resampling_taps(6, 6, 1.0, 0.0, method, antialias=False)
    x = np.arange(6.0) ** 2
    np.testing.assert_allclose((x[taps.places] * taps.weights).sum(0), x, atol=1e-12)


def test_a_homography_maps_four_points_to_four_others() -> None:
    start, end = [[0, 0], [4, 1], [0, 3], [5, 5]], [[1, 0], [4, 0], [0, 4], [6, 6]]
    a, b, c, d, e, f, g, h = image.homography(start, end)
    for (u, v), (x, y) in zip(start, end, strict=True):
        scale = g * x + h * y + 1
        np.testing.assert_allclose([(a * x + b * y + c) / scale, (d * x + e * y + f) / scale], [u, v], atol=1e-9)
    with pytest.raises(LinAlgError):
        image.homography(start, [[0, 0], [1, 1], [2, 2], [3, 3]])
    with pytest.raises(ShapeError):
        image.homography(start[:3], end[:3])


def test_spatial_and_colour_axes_follow_the_data_format() -> None:
    assert image.spatial_axes((2, 8, 9, 3), None) == (-3, -2)
    assert image.spatial_axes((3, 8, 9), "channels_first") == (-2, -1)
    assert image.colour_axis((3, 8, 9), "channels_first") == -3
    with pytest.raises(ShapeError):
        image.spatial_axes((8, 9), None)
    with pytest.raises(ShapeError):
        image.colour_axis((8, 9, 4), None)


def test_pixels_are_computed_in_floats_and_clipped_to_their_dtype() -> None:
    assert image.pixel_compute_dtype(float16).name == "float32"
    assert image.pixel_compute_dtype(float64).name == "float64"
    assert image.pixel_compute_dtype(uint8).name == "float32"
    with pytest.raises(DTypeError):
        image.pixel_compute_dtype(complex64)
    assert (
        image.clipped_pixel(300.4, uint8),
        image.clipped_pixel(-300.0, int8),
        image.clipped_pixel(0.4, float16),
    ) == (255, -128, 0.4)


def test_margins_need_two_of_the_three_numbers() -> None:
    assert image.margins(1, None, 10, 6, 1, "top, bottom, height") == (1, 3)
    assert image.margins(1, 2, None, 6, -1, "top, bottom, height") == (1, 2)
    for arguments in ((1, 2, 9), (None, None, 9), (9, None, 10), (4, 4, None)):
        with pytest.raises(ArgumentError):
            image.margins(*arguments, 6, -1 if arguments == (4, 4, None) else 1, "top, bottom, height")


def test_sigma_is_one_positive_number_or_one_for_each_axis() -> None:
    assert image.numbers_per_axis(2, 3, "sigma") == [2.0, 2.0, 2.0]
    for wrong in ((1, 2), 0.0, np.nan):
        with pytest.raises(ArgumentError, match="sigma"):
            image.numbers_per_axis(wrong, 3, "sigma")


@pytest.mark.parametrize("sigma", [1e-3, 0.5, 4.0])
def test_a_gaussian_window_is_symmetric_and_sums_to_one(sigma: float) -> None:
    size = image.smoothing_size(sigma)
    weights = image.gaussian_window(size, sigma)
    assert size % 2 == 1
    assert weights == weights[::-1]
    assert sum(weights) == pytest.approx(1.0)
    assert sum(image.gaussian_window(4, 1e-3)) == pytest.approx(1.0)


def test_nearest_pixels_are_repeated_and_lengths_keep_their_proportion() -> None:
    assert image.nearest_indices(2, 4).tolist() == [0, 0, 1, 1]
    assert image.proportional_size((6, 8), (1, 2)) == (4, 12)
    with pytest.raises(ArgumentError, match="linear"):
        image.check_method("quadratic")
