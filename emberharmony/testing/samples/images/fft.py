"""Sample rows of `ops/images/fft_ops.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, AxisError
from emberharmony.testing.left_out import NO_WINDOW, SUMMED
from emberharmony.testing.refused import ONES_4
from emberharmony.testing.sample import COMPLEX, Sample, case, grid

_X = grid(-2, 3, 12).reshape(3, 4)
_Y = grid(-2, 3, 24).reshape(2, 3, 4)
_Z = _X + 1j * _X[::-1]
_SIGNAL = grid(-2, 3, 80).reshape(2, 40)
_ONE = (case(_X), case(_X, 6, 0), case(_X, 3, 1, "ortho"), case(_X, None, -1, "forward"), case(_X[:, :1]))
_NO_BATCH = (case(_X[:0]), case(_X[:, :0], 3))
_REAL = ("float32", "float64", "float16", "bfloat16")
C: dict[str, Any] = {
    "dtypes": _REAL + COMPLEX,
    "integers": ("int32", "uint8"),
    "result": "float complex",
    "narrows": True,
}
C |= {"floor": 16, "differentiable": True}
R: dict[str, Any] = C | {"dtypes": _REAL}
I: dict[str, Any] = C | {"dtypes": (*COMPLEX, "float32", "float64"), "result": "float real"}  # noqa: E741
F: dict[str, Any] = {"result": "float32"}
S: dict[str, Any] = {"dtypes": _REAL + COMPLEX, "integers": ("int64", "uint8")}


def _inverse_transform_oracle(function: Any) -> Any:
    """Returns an inverse transform that gives zeros for an empty spectrum; NumPy gives uninitialized memory."""

    def oracle(x: Any, *args: Any, **kwargs: Any) -> Any:
        inverse_transform = function(x, *args, **kwargs)
        return inverse_transform if x.size else np.zeros_like(inverse_transform)

    return oracle


def _transformed_axes(x: Any, s: Any, axes: Any) -> Any:
    return axes if axes is not None else range(x.ndim) if s is None else range(-len(s), 0)


def _function_with_given_axes(function: Any) -> Any:
    """Returns NumPy's function with `axes` always given, because NumPy 2 deprecates `s` without `axes`."""
    return lambda x, s=None, axes=None, norm="backward": function(x, s, _transformed_axes(x, s, axes), norm)


_SEVERAL = (case(_X), case(_X, (2, 6), (0, 1)), case(_Y, None, (1,)), case(_Y, (2, 5)), case(_Y, None, (2, 0), "ortho"))


def _periodic_window(window: Any, n: int) -> Any:
    mean_by_window = {"hann": 0.5, "hamming": 0.54}
    if isinstance(window, str):
        return mean_by_window[window] - (1 - mean_by_window[window]) * np.cos(2 * np.pi * np.arange(n) / n)
    return np.ones(n) if window is None else np.asarray(window)


def _stft_oracle(x: Any, length: int, stride: int, n: int, window: Any = "hann", center: bool = True) -> Any:
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)], "reflect")
    left_zeros = (n - length) // 2
    padded_window = np.pad(_periodic_window(window, length), (left_zeros, n - length - left_zeros))
    frame_starts = range(0, x.shape[-1] - n + 1, stride)
    return np.stack([np.fft.rfft(x[..., start : start + n] * padded_window) for start in frame_starts], -2)


def _istft_oracle(
    x: Any, length: int, stride: int, n: int, output_length: Any = None, window: Any = "hann", center: bool = True
) -> Any:
    left_zeros = (n - length) // 2
    padded_window = np.pad(_periodic_window(window, length), (left_zeros, n - length - left_zeros))
    signal_length = n + stride * (x.shape[-2] - 1)
    signal, weight = np.zeros((*x.shape[:-2], signal_length)), np.zeros(signal_length)
    for frame_index in range(x.shape[-2]):
        frame_slice = slice(frame_index * stride, frame_index * stride + n)
        signal[..., frame_slice] += np.fft.irfft(x[..., frame_index, :], n) * padded_window
        weight[frame_slice] += padded_window**2
    first_index = n // 2 if center else 0
    signal = (signal / np.where(weight > 1e-10, weight, 1))[..., first_index : signal_length - first_index]
    return signal if output_length is None else signal[..., :output_length]


_SPECTRA = _stft_oracle(_SIGNAL, 8, 3, 10)

SAMPLES = [
    Sample(
        "fft",
        np.fft.fft,
        (*_ONE, *_NO_BATCH),
        **C,
        tolerance=1,
        left_out={"large offsets": SUMMED},
        refuses=((ArgumentError, case(ONES_4, 0)), (AxisError, case(np.array(1.0)))),
    ),
    Sample("ifft", np.fft.ifft, (*_ONE, *_NO_BATCH), **C, tolerance=1, left_out={"large offsets": SUMMED}),
    Sample("rfft", np.fft.rfft, (*_ONE, *_NO_BATCH), **R, tolerance=1, left_out={"large offsets": SUMMED}),
    Sample(
        "irfft",
        _inverse_transform_oracle(np.fft.irfft),
        (
            case(_Z),
            case(_Z, 5),
            case(_Z, None, 0, "ortho"),
            case(_Z, 9, 1, "forward"),
            case(_Z[:0]),
            case(_Z[:, :1], 1),
        ),
        **I,
        tolerance=2,
        left_out={"large offsets": SUMMED},
        refuses=((ArgumentError, case(ONES_4, 0)),),
    ),
    Sample(
        "hfft",
        _inverse_transform_oracle(np.fft.hfft),
        (case(_Z), case(_Z, 5), case(_Z, None, 0, "ortho"), case(_Z, 4, 1, "forward")),
        **I,
        tolerance=3,
        left_out={"large offsets": SUMMED},
    ),
    Sample("ihfft", np.fft.ihfft, _ONE, **R, tolerance=1, left_out={"large offsets": SUMMED}),
    Sample(
        "fftn",
        _function_with_given_axes(np.fft.fftn),
        (*_SEVERAL, case(_Y[:0], None, (1, 2))),
        **C,
        tolerance=2,
        left_out={"large offsets": SUMMED},
    ),
    Sample(
        "ifftn",
        _function_with_given_axes(np.fft.ifftn),
        (*_SEVERAL, case(_Y[:0], None, (1, 2))),
        **C,
        tolerance=1,
        left_out={"large offsets": SUMMED},
    ),
    Sample(
        "rfftn", _function_with_given_axes(np.fft.rfftn), _SEVERAL, **R, tolerance=1, left_out={"large offsets": SUMMED}
    ),
    Sample(
        "irfftn",
        _inverse_transform_oracle(_function_with_given_axes(np.fft.irfftn)),
        (case(_Z), case(_Z, (2, 5), (0, 1)), case(_Z, None, (0,), "ortho"), case(_Z, None, (1, 0))),
        **I,
        tolerance=1,
        left_out={"large offsets": SUMMED},
    ),
    Sample("fft2", np.fft.fft2, (case(_X), case(_Y, (2, 2))), **C, tolerance=2, left_out={"large offsets": SUMMED}),
    Sample(
        "ifft2", np.fft.ifft2, (case(_X), case(_Y, None, (0, 1))), **C, tolerance=1, left_out={"large offsets": SUMMED}
    ),
    Sample("rfft2", np.fft.rfft2, (case(_X), case(_Y, (2, 2))), **R, tolerance=1, left_out={"large offsets": SUMMED}),
    Sample(
        "irfft2",
        _inverse_transform_oracle(np.fft.irfft2),
        (case(_Z), case(_Z, (3, 5))),
        **I,
        tolerance=1,
        left_out={"large offsets": SUMMED},
    ),
    Sample("fftfreq", np.fft.fftfreq, (case(5), case(4, 0.5), case(1)), **F, tolerance=1),
    Sample("rfftfreq", np.fft.rfftfreq, (case(5), case(4, 0.5), case(1)), **F, tolerance=1),
    Sample("fftshift", np.fft.fftshift, (case(_X), case(_X, 1), case(_Y, (0, -1))), **S, differentiable=True),
    Sample("ifftshift", np.fft.ifftshift, (case(_X), case(_X, 1), case(_Y, (0, -1))), **S, differentiable=True),
    Sample(
        "stft",
        _stft_oracle,
        (
            case(_SIGNAL, 8, 3, 10),
            case(_SIGNAL[0], 8, 4, 8, "hamming"),
            case(_SIGNAL, 5, 2, 8, None, False),
            case(_SIGNAL, 4, 4, 7, [0.5, 1.0, 1.0, 0.25]),
        ),
        **(R | {"dtypes": ("float32", "float64")}),
        tolerance=1,
        left_out={"large offsets": SUMMED},
    ),
    Sample(
        "istft",
        _istft_oracle,
        (
            case(_SPECTRA, 8, 3, 10),
            case(_SPECTRA[0], 8, 3, 10, 20),
            case(_SPECTRA, 6, 2, 10, None, "hamming", False),
            case(_SPECTRA, 10, 5, 10, None, None),
        ),
        **(I | {"dtypes": COMPLEX, "integers": ()}),
        tolerance=2,
        left_out={"results of empty axes": NO_WINDOW, "large offsets": SUMMED},
    ),
]
