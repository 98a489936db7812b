"""Normalisations, on NumPy: the steps of the composites, computed in place in one array."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.numpy.folding import fold
from emberharmony.core.deferred import Deferred
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import normalization as shared_normalization
else:
    shared_normalization = Deferred("emberharmony.backend.shared.neural.normalization")


def _is_supported(x: np.ndarray, epsilon: Any, *weights: np.ndarray | None) -> bool:
    """Returns whether all tensors are float32, or all float64, and `x` has elements."""
    dtype = x.dtype
    return (
        dtype.char in "fd" and x.size > 0 and is_number(epsilon) and all(w is None or w.dtype == dtype for w in weights)
    )


def _centred_mean_and_variance(x: np.ndarray, axes: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns a tensor less its mean over axes, the mean and the variance."""
    element_count = math.prod(x.shape[a] for a in axes)
    mean = fold(np.add, x, axes, True)
    mean /= element_count
    centred_x = np.subtract(x, mean)
    if axes == (x.ndim - 1,):
        variance = np.vecdot(centred_x, centred_x).reshape(mean.shape)  # without a tensor of the squares
    else:
        variance = fold(np.add, np.square(centred_x), axes, True)
    variance /= element_count
    return centred_x, mean, variance


class NumpyNormalizationOps:
    """Holds the ops of `ops/neural/normalization.py`.

    The bodies take 1.2 to 1.6 times as long, for few elements, because they make an array at each step.
    """

    composed: Callable[[str], Callable[..., Any]]

    def layer_normalization(
        self,
        x: np.ndarray,
        gamma: np.ndarray | None = None,
        beta: np.ndarray | None = None,
        axis: Any = -1,
        epsilon: Any = None,
        *,
        rms_scaling: bool = False,
    ) -> np.ndarray:
        epsilon_value = shared_normalization.EPSILON if epsilon is None else epsilon
        last_shape = x.shape[-1:]
        is_suited = axis == -1 and not rms_scaling and all(w is None or w.shape == last_shape for w in (gamma, beta))
        if not is_suited or not last_shape or not _is_supported(x, epsilon_value, gamma, beta):
            composed_result: np.ndarray = self.composed("layer_normalization")(
                x, gamma, beta, axis, epsilon, rms_scaling=rms_scaling
            )
            return composed_result
        normalized_x, _, variance = _centred_mean_and_variance(x, (x.ndim - 1,))
        variance += epsilon_value
        normalized_x *= np.reciprocal(np.sqrt(variance, variance), variance)
        if gamma is not None:
            normalized_x *= gamma
        if beta is not None:
            normalized_x += beta
        return normalized_x

    def batch_normalization_training(
        self,
        x: np.ndarray,
        axis: int,
        offset: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        epsilon: Any = 1e-3,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        channel_axis = shared_normalization.check_channels(x.shape, axis, scale, offset)
        if x.ndim < 2 or not _is_supported(x, epsilon, offset, scale):
            outputs: tuple[np.ndarray, np.ndarray, np.ndarray]
            outputs = self.composed("batch_normalization_training")(x, axis, offset, scale, epsilon)
            return outputs
        normalized_x, mean, variance = _centred_mean_and_variance(x, [a for a in range(x.ndim) if a != channel_axis])
        factor = variance + epsilon
        np.reciprocal(np.sqrt(factor, factor), factor)
        if scale is not None:
            factor *= scale.reshape(factor.shape)
        normalized_x *= factor
        if offset is not None:
            normalized_x += offset.reshape(factor.shape)
        return normalized_x, mean.reshape(-1), variance.reshape(-1)
