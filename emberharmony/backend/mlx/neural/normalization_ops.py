"""Normalisations, on MLX: the fused kernels on a GPU, and on the CPU that of `rms_normalization` for short rows.

On the CPU `mx.fast.layer_norm` and `mx.fast.rms_norm` (MLX 0.32) add float32 sequentially, which loses digits. Squares
have one sign, so a short row of them keeps its digits; a layer normalisation also subtracts. For very short rows it
makes the calls of the composite, without their dispatch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.mlx.elementwise.elementary_ops import on_cpu
from emberharmony.backend.mlx.neural.activation_ops import SHORT, computes_in_float32
from emberharmony.backend.mlx.reductions.reduction_ops import FEW
from emberharmony.core.deferred import Deferred
from emberharmony.core.options import is_number

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import normalization as shared_normalization
else:
    shared_normalization = Deferred("emberharmony.backend.shared.neural.normalization")


def _fits_fused_kernels(x: mx.array, axis: Any, *weights: mx.array | None) -> bool:
    """Returns whether the fused kernels can normalise `x` along `axis`, with these scales and offsets, accurately."""
    if axis != -1 or x.ndim == 0 or x.size == 0 or not computes_in_float32(x):
        return False
    return all(w is None or (w.dtype == x.dtype and w.shape == x.shape[-1:]) for w in weights)


class MLXNormalizationOps:
    """Holds the ops of `ops/neural/normalization.py`.

    MLX's kernels read each element once; the bodies take 1.1 to 1.3 times as long, for few
    elements.
    """

    composed: Callable[[str], Callable[..., mx.array]]

    def layer_normalization(
        self,
        x: mx.array,
        gamma: mx.array | None = None,
        beta: mx.array | None = None,
        axis: Any = -1,
        epsilon: Any = None,
        *,
        rms_scaling: bool = False,
    ) -> mx.array:
        fits_fast_path = not rms_scaling and (epsilon is None or is_number(epsilon))
        if fits_fast_path and _fits_fused_kernels(x, axis, gamma, beta):
            epsilon_value = shared_normalization.EPSILON if epsilon is None else epsilon
            if not on_cpu():
                return mx.fast.layer_norm(x, gamma, beta, epsilon_value)
            if x.dtype == mx.float32 and x.shape[-1] <= FEW:
                centred_x = x - mx.mean(x, -1, True)
                normalized_x = centred_x * mx.rsqrt(mx.mean(mx.square(centred_x), -1, True) + epsilon_value)
                normalized_x = normalized_x if gamma is None else normalized_x * gamma
                return normalized_x if beta is None else normalized_x + beta
        return self.composed("layer_normalization")(x, gamma, beta, axis, epsilon, rms_scaling=rms_scaling)

    def rms_normalization(
        self, x: mx.array, scale: mx.array | None = None, axis: Any = -1, epsilon: Any = None
    ) -> mx.array:
        fits_fast_path = _fits_fused_kernels(x, axis, scale) and (epsilon is None or is_number(epsilon))
        if fits_fast_path and (x.shape[-1] <= SHORT or not on_cpu()):
            return mx.fast.rms_norm(x, scale, shared_normalization.EPSILON if epsilon is None else epsilon)
        return self.composed("rms_normalization")(x, scale, axis, epsilon)
