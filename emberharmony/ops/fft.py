"""Discrete Fourier transforms, by the array API standard's names."""

from emberharmony.core.names.spaces import fill
from emberharmony.ops import _modules

fill(globals(), _modules, ("images.fft_ops",))
