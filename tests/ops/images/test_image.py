"""Colour conversion, margins and patches of images, the namespace, and the arguments that they refuse."""

import colorsys
import itertools

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError

CORNERS = np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=3)), np.float32).reshape(1, 27, 3)
SHOT = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)


def test_the_namespace_contains_the_flat_ops(backend: str) -> None:
    for name in ("resize", "ssim", "map_coordinates", "elastic_transform", "rgb_to_hsv", "extract_patches_3d"):
        assert getattr(ops.image, name) is getattr(ops, name)


def test_hues_of_greys_and_pure_colours_agree_with_colorsys(backend: str) -> None:
    wanted = [colorsys.rgb_to_hsv(*colour) for colour in CORNERS[0].tolist()]
    assert np.allclose(ops.to_numpy(ops.rgb_to_hsv(CORNERS))[0], wanted, atol=1e-6)


def test_hsv_to_rgb_undoes_rgb_to_hsv(backend: str) -> None:
    for data_format in ("channels_last", "channels_first"):
        images = CORNERS if data_format == "channels_last" else np.moveaxis(CORNERS, -1, 0).copy()
        back = ops.hsv_to_rgb(ops.rgb_to_hsv(images, data_format), data_format)
        assert np.allclose(ops.to_numpy(back), images, atol=1e-6)


def test_a_hue_is_taken_modulo_one(backend: str) -> None:
    colours = [ops.hsv_to_rgb([[[turn + 0.25, 1.0, 1.0]]]).tolist() for turn in (0.0, 1.0, -3.0)]
    assert colours == [[[[0.5, 1.0, 0.0]]]] * 3


def test_the_grey_of_integer_colours_is_rounded(backend: str) -> None:
    grey = ops.rgb_to_grayscale(np.array([[[255, 255, 255], [1, 0, 0], [0, 1, 0]]], np.uint8))
    assert ops.dtype(grey) == ops.uint8
    assert grey.tolist() == [[[255], [0], [1]]]


def test_images_without_three_colours_are_refused(backend: str) -> None:
    for convert in (ops.rgb_to_grayscale, ops.rgb_to_hsv, ops.hsv_to_rgb):
        with pytest.raises(ShapeError, match=r"expected 3 channels on axis -1, got shape \(1, 2, 4\)"):
            convert(np.ones((1, 2, 4)))
        with pytest.raises(ShapeError, match="one image has 3 axes, a batch 4"):
            convert(np.ones((2, 3)))
        with pytest.raises(ArgumentError, match="data_format is"):
            convert(np.ones((1, 2, 3)), "HWC")


def test_hues_of_integer_images_are_refused(backend: str) -> None:
    for convert in (ops.rgb_to_hsv, ops.hsv_to_rgb):
        with pytest.raises(DTypeError, match="expected floating images with values from 0 to 1, got int64"):
            convert([[[1, 2, 3]]])


def test_cropping_undoes_padding(backend: str) -> None:
    for data_format in ("channels_last", "channels_first"):
        padded = ops.pad_images(SHOT, 1, 2, target_height=8, target_width=9, data_format=data_format)
        height, width = (-3, -2) if data_format == "channels_last" else (-2, -1)
        assert (ops.shape(padded)[height], ops.shape(padded)[width]) == (8, 9)
        sizes = {"target_height": SHOT.shape[height], "target_width": SHOT.shape[width]}
        assert ops.crop_images(padded, 1, 2, **sizes, data_format=data_format).tolist() == SHOT.tolist()


def test_margins_that_do_not_determine_a_size_are_refused(backend: str) -> None:
    for change in (ops.pad_images, ops.crop_images):
        with pytest.raises(ArgumentError, match=r"expected exactly two of top_.*, got 3"):
            change(SHOT, 1, 0, 0, 0, target_height=3)
        with pytest.raises(ArgumentError, match=r"expected exactly two of left_.*, got 1"):
            change(SHOT, 0, 0, 0)
    with pytest.raises(ArgumentError, match="nor the new length: an axis of length 2 has 0 and -1 at its ends"):
        ops.pad_images(SHOT, 0, 0, None, 0, target_height=1)
    with pytest.raises(ArgumentError, match="nor the new length: an axis of length 2 has 3 and 0 at its ends"):
        ops.crop_images(SHOT, 3, 0, 0, 0)
    with pytest.raises(ArgumentError, match="nor the new length: an axis of length 4 has -1 and 0 at its ends"):
        ops.crop_images(SHOT, 0, None, 0, 0, target_width=5)


def test_adjacent_patches_contain_each_pixel_once(backend: str) -> None:
    patches = ops.extract_patches(SHOT, 2)
    assert ops.shape(patches) == (1, 2, 12)
    assert sorted(ops.to_numpy(patches).ravel().tolist()) == SHOT.ravel().tolist()


def test_patches_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="a window of 3 does not fit an axis of length 2"):
        ops.extract_patches(SHOT, 3)
    with pytest.raises(ArgumentError, match="size is an integer of at least 1"):
        ops.extract_patches(SHOT, (0, 1))
    with pytest.raises(ShapeError, match="one image has 4 axes, a batch 5"):
        ops.extract_patches_3d(SHOT, 2)
    with pytest.raises(ArgumentError, match="padding is 'valid' or 'same'"):
        ops.extract_patches(SHOT, 1, padding="full")
