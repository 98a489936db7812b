"""Gradient rules of the ops in `ops/images/fft_ops.py`.

The matrix of a discrete Fourier transform is symmetric, so a transform is its own VJP.

The bodies compute on the host, where the tape cannot follow.
"""

from typing import Any

from emberharmony.ops.arrays.creation import ones
from emberharmony.ops.arrays.indexing import get_item
from emberharmony.ops.arrays.shape import concatenate, pad, reshape
from emberharmony.ops.elementwise.complex_numbers import conj, real
from emberharmony.ops.images.fft_ops import fft, ifft, rfft
from emberharmony.ops.math import multiply

T = Any
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _fit_length(g: T, n: int, axis: int) -> T:
    """Returns `g` cut, or padded with zeros, to length `n` along an axis."""
    rank = len(g.shape)
    axis %= rank
    length = g.shape[axis]
    if length > n:
        return get_item(g, (*(slice(None),) * axis, slice(n)))
    return pad(g, [(0, n - length if i == axis else 0) for i in range(rank)]) if length < n else g


def _transform_rule(function: Any) -> Any:
    return lambda g, y, x, n=None, axis=-1, norm="backward": _fit_length(
        function(g, None, axis, norm), x.shape[axis], axis
    )


def _rfft_gradient(
    g: T, y: T, x: T, n: int | None = None, axis: int = -1, norm: str = "backward", fft_length: int | None = None
) -> T:
    length_option = fft_length if n is None else n
    length = x.shape[axis] if length_option is None else length_option
    # The result lacks the second half of the spectrum, so the cotangent has zeros there.
    full_transform = fft(_fit_length(g, length, axis), None, axis, norm)  # type: ignore[arg-type]
    return _fit_length(real(full_transform), x.shape[axis], axis)


def _irfft_gradient(
    g: T, y: T, x: T, n: int | None = None, axis: int = -1, norm: str = "backward", fft_length: int | None = None
) -> T:
    length = y.shape[axis]
    half_spectrum = conj(rfft(g, None, axis, _OPPOSITE[norm]))  # type: ignore[arg-type]
    term_count = half_spectrum.shape[axis]
    # Each term also stands for its conjugate at the negative frequency, so it counts twice, except for the term of
    # frequency 0 and, if the length is even, the last one.
    doubled_count = term_count - 1 - (length % 2 == 0) if term_count > 1 else 0
    weight_parts = [ones((1,)), multiply(ones((doubled_count,)), 2), ones((term_count - 1 - doubled_count,))]
    rank = len(half_spectrum.shape)
    weights = reshape(concatenate(weight_parts), [-1 if i == axis % rank else 1 for i in range(rank)])
    return _fit_length(multiply(half_spectrum, weights), x.shape[axis], axis)


RULES: dict[str, Any] = {
    "fft": (_transform_rule(fft),),
    "ifft": (_transform_rule(ifft),),
    "rfft": (_rfft_gradient,),
    "irfft": (_irfft_gradient,),
}
