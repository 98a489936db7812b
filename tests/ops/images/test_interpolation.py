"""Interpolation: options that do not fit, dtypes, and derivatives."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError


def test_wrong_options_are_refused(backend: str) -> None:
    x = ops.ones((1, 4, 2))
    for options, message in (
        ({}, "give either size or scale_factor"),
        ({"size": 3, "scale_factor": 2.0}, "give either size or scale_factor"),
        ({"size": 3, "mode": "cubic"}, "mode is one of 'nearest', .*, not 'cubic'"),
        ({"size": 3, "align_corners": False}, "align_corners belongs to 'linear', .*, not to 'nearest'"),
        ({"size": 3, "recompute_scale_factor": True}, "recompute_scale_factor needs scale_factor"),
        ({"size": 0}, "size is a positive integer, or one for each axis, not 0"),
        ({"size": 2.5}, r"size is a positive integer, or one for each axis, not 2\.5"),
        ({"scale_factor": float("inf")}, "scale_factor is a positive number, or one for each axis, not inf"),
    ):
        with pytest.raises(ArgumentError, match=message):
            ops.interpolate(x, **options)
    for shape, options, message in (
        ((1, 4, 2), {"size": 3, "mode": "bilinear"}, "takes a batch, channels and 2 spatial axes"),
        ((1, 4, 2), {"size": (3, 4)}, r"size=\(3, 4\) does not fit 1 spatial axes"),
        ((1, 0, 2), {"size": 3}, "expected spatial axes with elements"),
        ((1, 4, 2), {"scale_factor": 0.2}, r"leaves no elements of spatial axes \(4,\)"),
    ):
        with pytest.raises(ShapeError, match=message):
            ops.interpolate(ops.ones(shape), **options)
    with pytest.raises(DTypeError, match="mode 'linear' takes a floating tensor, got int32"):
        ops.interpolate(ops.ones((1, 4, 2), "int32"), 3, mode="linear")


def test_half_precision_is_rounded_once(backend: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 5, 6, 3)).astype(np.float16)
    for mode in ("nearest", "bilinear", "bicubic"):
        found = ops.interpolate(x, (9, 4), mode=mode)  # type: ignore[arg-type]
        assert ops.dtype(found).name == "float16"
        wanted = ops.to_numpy(ops.interpolate(x.astype(np.float32), (9, 4), mode=mode))  # type: ignore[arg-type]
        assert np.abs(ops.to_numpy(found) - wanted).max() <= 2.0**-10 * np.abs(wanted).max()
    assert ops.shape(ops.interpolate(np.ones((0, 4, 2), np.float32), 3)) == (0, 3, 2)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_derivatives_and_vmap(mode: Any, backend: str) -> None:
    x = ops.convert_to_tensor(np.sin(np.arange(24.0)).reshape(1, 3, 4, 2))
    tangent = ops.convert_to_tensor(np.cos(np.arange(24.0)).reshape(1, 3, 4, 2))

    def cubes(x: Any) -> Any:
        return ops.sum(ops.power(ops.interpolate(x, (5, 3), mode=mode), 3))

    _, along = ops.jvp(cubes, (x,), (tangent,))
    assert np.isclose(float(along), float(ops.sum(ops.multiply(ops.grad(cubes)(x), tangent))))
    made = ops.interpolate(x, (5, 3), mode=mode)
    second = ops.grad(lambda x: ops.sum(ops.multiply(ops.grad(cubes)(x), tangent)))(x)
    moved = ops.interpolate(tangent, (5, 3), mode=mode)
    wanted = ops.grad(lambda x: ops.sum(ops.multiply(ops.interpolate(x, (5, 3), mode=mode), 6 * made * moved)))(x)
    assert np.allclose(ops.to_numpy(second), ops.to_numpy(wanted), rtol=1e-4, atol=1e-5)
    rows = ops.stack([x, tangent])
    mapped = ops.vmap(lambda x: ops.interpolate(x, (5, 3), mode=mode))(rows)
    assert np.allclose(ops.to_numpy(mapped), np.stack([ops.to_numpy(made), ops.to_numpy(moved)]), atol=1e-6)
