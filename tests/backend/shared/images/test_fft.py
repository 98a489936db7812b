"""Checks of the axes and lengths of Fourier transforms."""

import numpy as np
import pytest

from emberharmony.backend.shared.images.fft import axes_and_lengths, axis_and_length, frequencies
from emberharmony.core.dtypes import as_dtype
from emberharmony.errors import ArgumentError, ArgumentTypeError, AxisError, OutOfMemoryError


def test_a_missing_length_is_that_of_the_axis() -> None:
    assert axis_and_length((3, 4), None, -1, "backward") == (1, 4)
    assert axis_and_length((3, 4), 7, 0, "ortho") == (0, 7)
    assert axis_and_length((3, 5), None, -1, "forward", halved=True) == (1, 8)


def test_only_the_last_of_several_axes_is_halved_by_a_real_transform() -> None:
    assert axes_and_lengths((3, 5), None, None, "backward", halved=True) == [(0, 3), (1, 8)]
    assert axes_and_lengths((2, 3, 4), (6, 8), None, "backward") == [(1, 6), (2, 8)]


def test_a_wrong_norm_length_or_axis_is_refused() -> None:
    with pytest.raises(ArgumentError, match="norm"):
        axis_and_length((3,), None, 0, "unit")
    with pytest.raises(ArgumentError):
        axis_and_length((3,), 0, 0, "backward")
    with pytest.raises(AxisError):
        axis_and_length((3,), None, 1, "backward")
    with pytest.raises(ArgumentError):
        axes_and_lengths((3, 4), (2,), (0, 1), "backward")
    with pytest.raises(ArgumentError):
        axes_and_lengths((), None, None, "backward")


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("d", [1.0, 0.3, -2, 2**70])
def test_frequencies_are_those_of_numpy(n: int, d: float) -> None:
    double = as_dtype("float64")
    assert np.allclose(frequencies(n, d, False, double), np.fft.fftfreq(n, float(d)), 1e-15, 0.0)
    assert np.allclose(frequencies(n, d, True, double), np.fft.rfftfreq(n, float(d)), 1e-15, 0.0)


@pytest.mark.parametrize(
    ("dtype", "kept"), [("float64", "f8"), ("complex128", "f8"), ("int32", "f8"), ("float32", "f4"), ("bfloat16", "f4")]
)
def test_frequencies_are_as_precise_as_their_dtype_needs(dtype: str, kept: str) -> None:
    assert frequencies(3, 1.0, False, as_dtype(dtype)).dtype == kept


def test_frequencies_of_no_transform() -> None:
    single = as_dtype("float32")
    with pytest.raises(ArgumentError, match="n of at least 1"):
        frequencies(0, 1.0, False, single)
    with pytest.raises(ArgumentTypeError, match="an integer n"):
        frequencies(2.5, 1.0, False, single)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="d other than 0"):
        frequencies(4, 0.0, True, single)
    with pytest.raises(OutOfMemoryError):
        frequencies(2**60, 1.0, True, single)
