"""Sample rows of `ops/fft.py`."""

from typing import Any

import numpy as np

from emberharmony.testing.sample import Sample, case, grid

_X = grid(-2, 3, 12).reshape(3, 4)
_Z = _X + 1j * _X[::-1]
C: dict[str, Any] = {"dtypes": ("float32", "complex64"), "result": "complex64", "tolerance": 16, "floor": 16}
R: dict[str, Any] = {"dtypes": ("float32",), "tolerance": 16, "floor": 16, "differentiable": True}
F: dict[str, Any] = {"dtypes": ("float32",), "result": "float32"}
_ONE = (case(_X), case(_X, 6, 0), case(_X, 3, 1, "ortho"), case(_X, None, -1, "forward"))

SAMPLES = [
    Sample("fft", np.fft.fft, _ONE, **C),
    Sample("ifft", np.fft.ifft, _ONE, **C),
    Sample("rfft", np.fft.rfft, _ONE, result="complex64", **R),
    Sample(
        "irfft",
        np.fft.irfft,
        (case(_Z), case(_Z, 5), case(_Z, None, 0, "ortho")),
        dtypes=("complex64",),
        result="float32",
        tolerance=16,
        floor=16,
    ),
    Sample(
        "fftn",
        lambda x, s=None, axes=None: np.fft.fftn(x, s, range(x.ndim) if axes is None else axes),
        (case(_X), case(_X, (2, 6), (0, 1))),
        **C,
    ),
    Sample(
        "ifftn",
        lambda x, s=None, axes=None: np.fft.ifftn(x, s, range(x.ndim) if axes is None else axes),
        (case(_X), case(_X, None, (1,))),
        **C,
    ),
    Sample("fft2", np.fft.fft2, (case(_X),), **C),
    Sample("ifft2", np.fft.ifft2, (case(_X),), **C),
    Sample("fftfreq", np.fft.fftfreq, (case(5), case(4, 0.5)), **F),
    Sample("rfftfreq", np.fft.rfftfreq, (case(5), case(4, 0.5)), **F),
    Sample("fftshift", np.fft.fftshift, (case(_X), case(_X, 1)), dtypes=("float32",)),
    Sample("ifftshift", np.fft.ifftshift, (case(_X), case(_X, (0, 1))), dtypes=("float32",)),
]
