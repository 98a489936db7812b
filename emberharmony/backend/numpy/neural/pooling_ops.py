"""Pooling, on NumPy: few elements in adjacent windows by one reduction, which takes less time than calls for slices."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.numpy.neural.convolution_ops import windows_of
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.options import USUAL_POOL

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import convolution as shared_convolution
else:
    shared_convolution = Deferred("emberharmony.backend.shared.neural.convolution")

_FEW = 2**10
"""From this many elements on, to reduce strided slices is faster than a reduction over several axes."""


def _quick_max_pool(x: np.ndarray, size: int, *_usual: Any) -> np.ndarray:
    """Returns the largest element of each window; windows are adjacent, and no element is left over."""
    window_shape, window_axes = shared_convolution.window_shape_and_axes(x.shape, size)
    return np.maximum.reduce(x.reshape(window_shape), window_axes)


@functools.lru_cache(maxsize=256)
def _plan_without_padding(shape: tuple[int, ...], size: int, strides: int | None) -> "shared_convolution.Windows":
    return shared_convolution.pool_windows(shape[1:-1], size, strides, "valid").plan


def _quick_average_pool(x: np.ndarray, size: int, strides: int | None, *_usual: Any) -> np.ndarray:
    """Returns the mean of each window, without padding."""
    plan, n = _plan_without_padding(x.shape, size, strides), x.ndim - 2
    window_means: np.ndarray = np.add.reduce(windows_of(x, plan), tuple(range(n + 1, 2 * n + 1)))
    window_means /= size**n
    return window_means


_PLAIN = f"{{0}}.dtype.char in 'fd' and {{0}}.ndim > 2 and 0 < {{0}}.size < {_FEW}"


class NumpyPoolingOps:
    """Holds the ops of `ops/neural/pooling.py`.

    For few elements, in adjacent windows or windows of one length, the bodies take 6.6 times (max_pool) and 2.4 times
    as long.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    @fast(_quick_max_pool, f"{USUAL_POOL} and {_PLAIN}")
    def max_pool(
        self,
        inputs: np.ndarray,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        ceil_mode: bool = False,
    ) -> np.ndarray:
        return self.composed("max_pool")(inputs, pool_size, strides, padding, data_format, dilation_rate, ceil_mode)

    @fast(
        _quick_average_pool,
        "{1}.__class__ is int and ({2} is None or {2}.__class__ is int) and {3}.__class__ is str and {3} == 'valid' "
        f"and {{4}} is None and {{5}} is False and {{6}} is False and {{7}} is None and {_PLAIN}",
    )
    def average_pool(
        self,
        inputs: np.ndarray,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        divisor_override: int | None = None,
    ) -> np.ndarray:
        options = ceil_mode, count_include_pad, divisor_override
        return self.composed("average_pool")(inputs, pool_size, strides, padding, data_format, *options)
