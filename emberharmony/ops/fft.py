"""Discrete Fourier transforms, by the array API standard's names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from emberharmony.core.names.spaces import fill_namespace
from emberharmony.ops import _modules

if _TYPE_CHECKING:  # as in `ops/__init__.py`, where `fft` is this namespace
    from emberharmony.ops.images.fft_ops import fft as fft

fill_namespace(globals(), _modules, ("images.fft_ops",))
