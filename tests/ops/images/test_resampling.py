"""Resampling of images: exact cases, clipping to the range of the dtype, and the arguments that are refused."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, AxisError, DTypeError, ShapeError

SHOT = np.sin(np.arange(60.0, dtype=np.float32)).reshape(4, 5, 3)
LENGTHS = st.integers(1, 9)
law = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
METHODS = ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"]


@pytest.mark.parametrize("method", METHODS)
def test_resizing_to_the_same_size_changes_nothing(method: str, backend: str) -> None:
    assert ops.resize(SHOT, (4, 5), method).tolist() == SHOT.tolist()


@pytest.mark.parametrize("method", METHODS)
@law
@given(st.tuples(LENGTHS, LENGTHS), st.tuples(LENGTHS, LENGTHS), st.booleans())
def test_a_constant_image_stays_constant(
    method: str, backend: str, size: tuple[int, int], target: tuple[int, int], antialias: bool
) -> None:
    resized = ops.resize(np.full((1, *size, 2), 0.75, np.float32), target, method, antialias)
    assert ops.shape(resized) == (1, *target, 2)
    assert np.allclose(ops.to_numpy(resized), 0.75, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@law
@given(LENGTHS, LENGTHS, st.booleans())
def test_resizing_a_mirrored_image_gives_the_mirrored_result(
    method: str, backend: str, length: int, target: int, antialias: bool
) -> None:
    row = np.cos(np.arange(float(length))).reshape(1, length, 1)
    resized = ops.to_numpy(ops.resize(row, (1, target), method, antialias))
    mirrored = ops.to_numpy(ops.resize(row[:, ::-1].copy(), (1, target), method, antialias))[:, ::-1]
    # Halfway between two pixels "nearest" takes the right one, in the mirrored image too, so such ties differ.
    ties = ((2 * np.arange(target) + 1) * length % (2 * target) == 0) & (method == "nearest")
    assert np.allclose(resized[:, ~ties], mirrored[:, ~ties], atol=1e-14)


def test_nearest_keeps_dtypes_and_values(backend: str) -> None:
    image = np.array([[2**62 + 1, -1], [0, 3]]).reshape(2, 2, 1)
    resized = ops.resize(image, (2, 4), "nearest")
    assert ops.dtype(resized) == ops.int64
    assert resized.tolist() == np.repeat(image, 2, 1).tolist()
    assert ops.resize(image > 0, (1, 2), "nearest").tolist() == [[[False], [True]]]
    assert ops.resize(np.array([[[True], [False]]]), (1, 4)).tolist() == [[[True], [True], [False], [False]]]


def test_integer_pixels_are_rounded_and_clipped_to_their_range(backend: str) -> None:
    image = np.array([0, 0, 255, 255, 0, 0], np.uint8).reshape(1, 6, 1)
    resized = ops.resize(image, (1, 24), "lanczos3")
    assert ops.dtype(resized) == ops.uint8
    floating = ops.to_numpy(ops.resize(image.astype(np.float32), (1, 24), "lanczos3"))
    assert floating.min() < -1
    assert floating.max() > 256
    assert ops.to_numpy(resized).tolist() == np.clip(np.rint(floating), 0, 255).tolist()


def test_nan_and_infinity_spread_only_as_far_as_the_kernel(backend: str) -> None:
    row = np.array([1.0, 1.0, np.nan, 1.0, 1.0, np.inf, 1.0, 1.0], np.float32).reshape(1, 8, 1)
    resized = ops.to_numpy(ops.resize(np.concatenate([row, np.ones_like(row)]), (4, 16)))[..., 0]
    finite = np.isfinite(resized)
    assert finite[0].tolist() == [True] * 3 + [False] * 4 + [True] * 2 + [False] * 4 + [True] * 3
    assert finite[3].all()


def test_half_precision_is_summed_in_float32(backend: str) -> None:
    image = np.full((1, 601, 1), 0.1, np.float16)
    halves = (image[0, :, 0] * np.float16(1 / 601)).cumsum(dtype=np.float16)[-1]
    assert abs(halves - image[0, 0, 0]) > 5e-4
    assert ops.to_numpy(ops.resize(image, (1, 1), "bilinear", True)) == image[0, 0, 0]


def test_the_ratio_is_kept_by_cropping_or_padding(backend: str) -> None:
    wide = np.broadcast_to(np.arange(8.0, dtype=np.float32)[:, None], (4, 8, 1))
    assert ops.resize(wide, (4, 4), crop_to_aspect_ratio=True).tolist() == wide[:, 2:6].tolist()
    padded = ops.to_numpy(ops.resize(wide, (8, 8), pad_to_aspect_ratio=True, fill_value=-1.0))
    assert padded[[0, 1, 6, 7]].tolist() == np.full((4, 8, 1), -1.0).tolist()
    assert padded[2:6].tolist() == wide.tolist()


def test_a_shift_by_whole_pixels_moves_them(backend: str) -> None:
    moved = ops.scale_and_translate(SHOT, SHOT.shape, 1.0, [1.0, -2.0], (0, 1), "bicubic")
    assert np.allclose(ops.to_numpy(moved)[1:, :3], SHOT[:3, 2:], atol=1e-6)
    assert np.all(ops.to_numpy(moved)[:1] == 0)
    assert np.all(ops.to_numpy(moved)[:, 3:] == 0)


def test_scale_and_translation_may_be_tensors(backend: str) -> None:
    shape, axes = (8, 5, 3), (0,)
    numbers = ops.scale_and_translate(SHOT, shape, 2.0, 0.5, axes, "linear")
    tensors = ops.scale_and_translate(SHOT, shape, ops.array([2.0]), ops.array([0.5]), axes, "linear")
    assert numbers.tolist() == tensors.tolist()


def test_a_kernel_far_larger_than_the_image_counts_only_pixels_of_the_image(backend: str) -> None:
    row = np.array([2.0, 8.0, 5.0])[None, :, None]
    weights = np.exp(-0.5 * ((np.arange(10**6) - (10**6 - 1) / 2) / 1e5) ** 2)
    weights /= weights.sum()
    before = (10**6 - 1) // 2
    expected = [sum(weights[before + j - i] * x for j, x in enumerate((2.0, 8.0, 5.0))) for i in range(3)]
    blurred = ops.to_numpy(ops.gaussian_blur(row, (1, 10**6), 1e5))[0, :, 0]
    assert np.allclose(blurred, expected, rtol=1e-12)
    assert ops.shape(ops.gaussian_blur(row[:, :0], (1, 10**6), 1e5)) == (1, 0, 1)


def test_a_blur_spreads_a_point_into_the_window(backend: str) -> None:
    point = np.zeros((5, 7, 1))
    point[2, 3] = 1.0
    blurred = ops.to_numpy(ops.gaussian_blur(point, (3, 5), (0.5, 2.0)))[..., 0]
    down, across = np.exp(-2.0 * np.array([1, 0, 1.0])), np.exp(-np.array([4.0, 1.0, 0.0, 1.0, 4.0]) / 8.0)
    wanted = np.outer(down / down.sum(), across / across.sum())
    assert np.allclose(blurred[1:4, 1:6], wanted, atol=1e-15)
    assert np.count_nonzero(blurred) == 15


def test_a_narrow_gaussian_between_two_pixels_gives_their_mean(backend: str) -> None:
    row = np.array([1.0, 3.0, 7.0], np.float32).reshape(1, 3, 1)
    assert ops.gaussian_blur(row, (1, 2), 0.001).tolist() == [[[2.0], [5.0], [3.5]]]


def test_sobel_edges_of_a_linear_image_are_its_gradients(backend: str) -> None:
    edges = ops.to_numpy(ops.sobel_edges(np.add.outer(3 * np.arange(4), 5 * np.arange(5))[..., None].astype(np.uint8)))
    assert edges.dtype == np.float32
    assert np.all(edges[1:-1, 1:-1, 0] == [24.0, 40.0])


def test_ssim_is_1_for_equal_images_and_negative_for_inverted_ones(backend: str) -> None:
    image = 0.5 + 0.5 * np.sin(np.arange(2 * 12 * 13.0, dtype=np.float32)).reshape(2, 12, 13, 1)
    assert ops.ssim(image, image).tolist() == [1.0, 1.0]
    assert np.all(ops.to_numpy(ops.ssim(image, 1.0 - image)) < -0.9)
    assert ops.shape(ops.ssim(image[0], image[0])) == ()
    first = np.moveaxis(image, -1, 1)
    assert ops.ssim(first, first, data_format="channels_first").tolist() == [1.0, 1.0]


def test_wrong_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="the method is one of nearest, bilinear, bicubic, lanczos3, lanczos5"):
        ops.resize(SHOT, (2, 2), "area")
    with pytest.raises(ArgumentError, match="size is an integer of at least 1"):
        ops.resize(SHOT, (0, 2))
    with pytest.raises(ArgumentError, match="expected fill_mode 'constant'"):
        ops.resize(SHOT, (2, 2), fill_mode="wrap")
    with pytest.raises(ArgumentError, match="crop_to_aspect_ratio or pad_to_aspect_ratio, got both"):
        ops.resize(SHOT, (2, 2), crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)
    with pytest.raises(ArgumentError, match="the method is one of linear"):
        ops.scale_and_translate(SHOT, SHOT.shape, 1.0, 0.0, (0,), "nearest")
    with pytest.raises(ArgumentError, match="scale is positive, not -1"):
        ops.scale_and_translate(SHOT, SHOT.shape, -1.0, 0.0, (0,), "linear")
    with pytest.raises(ArgumentError, match="translation is one finite number or 2"):
        ops.scale_and_translate(SHOT, SHOT.shape, 1.0, [0.0, 1.0, 2.0], (0, 1), "linear")
    with pytest.raises(ArgumentError, match="sigma is positive"):
        ops.gaussian_blur(SHOT, 3, 0.0)
    with pytest.raises(ArgumentError, match="filter_size is an integer of at least 1"):
        ops.ssim(SHOT, SHOT, filter_size=0)


def test_shapes_and_dtypes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match=r"expected images with pixels, got shape \(0, 2, 3\)"):
        ops.resize(np.ones((0, 2, 3)), (2, 2))
    with pytest.raises(ShapeError, match=r"got output_shape \(8, 5, 4\)"):
        ops.scale_and_translate(SHOT, (8, 5, 4), 2.0, 0.0, (0,), "linear")
    with pytest.raises(AxisError):
        ops.scale_and_translate(SHOT, SHOT.shape, 1.0, 0.0, (3,), "linear")
    with pytest.raises(ShapeError, match="expected images of the same shape"):
        ops.ssim(SHOT, SHOT[:3])
    with pytest.raises(ShapeError, match="are smaller than filter_size=11"):
        ops.ssim(SHOT, SHOT)
    with pytest.raises(DTypeError, match="pixels are real numbers, not complex64"):
        ops.resize(SHOT.astype(np.complex64), (2, 2))


def test_an_image_without_pixels_is_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="expected images with pixels"):
        ops.scale_and_translate(np.ones((0, 5, 3)), (3, 4, 3), [0.5, 0.75], [0.0, 0.0], (0, 1), "linear")
