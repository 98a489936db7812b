"""Composites compiled as one program each: op by op, JAX would compile and start a program for each of their steps."""

import functools
from collections.abc import Callable
from typing import Any

import jax

from emberharmony.core.dtypes import default_float
from emberharmony.core.state.checked_mode import checking
from emberharmony.core.state.draws import WithoutDraws
from emberharmony.core.tracing import TensorProxy

NAMES = (
    *("isposinf", "isneginf", "append", "hstack", "vstack", "dstack", "meshgrid", "block_diag", "diagflat", "select"),
    *("divmod", "fmax", "fmin", "step", "lcm", "fabs", "saturate_cast", "deg2rad", "rad2deg", "cbrt", "sinc"),
    *("cumulative_sum", "cumulative_prod", "count_nonzero", "logcumsumexp", "moments", "ptp", "lexsort", "in_top_k"),
    *("angle", "isreal", "iscomplex", "polar", "view_as_real", "relu6", "leaky_relu", "elu", "selu", "celu"),
    *("softsign", "silu", "gelu", "hard_tanh"),
    *("hard_shrink", "soft_shrink", "tanh_shrink", "threshold", "squareplus", "glu", "softmax", "log_softmax"),
    *("sparse_plus", "sparse_sigmoid", "sparsemax", "max_pool", "max_pool_indices", "average_pool", "lp_pool"),
    *("adaptive_average_pool", "adaptive_max_pool", "layer_normalization", "rms_normalization", "batch_normalization"),
    *("batch_normalization_training", "group_normalization", "local_response_normalization", "dot", "tensordot"),
    *("vdot", "inner", "outer", "multi_dot", "kron", "trace", "cross", "dot_product_attention", "rope", "conv"),
    *("depthwise_conv", "separable_conv", "conv_transpose", "unfold", "fold", "extract_sequences", "hfft", "ihfft"),
    *("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2", "fftshift", "ifftshift", "stft", "istft"),
    *("resize", "scale_and_translate", "gaussian_blur", "sobel_edges", "ssim", "rgb_to_grayscale", "rgb_to_hsv"),
    *("hsv_to_rgb", "pad_images", "crop_images", "extract_patches", "extract_patches_3d", "interpolate", "linear"),
    *("binary_crossentropy", "categorical_crossentropy", "psnr", "vector_norm", "normalize", "cdist", "quantize"),
    *("dequantize", "quantized_matmul", "fliplr", "flipud", "rot90", "space_to_depth", "depth_to_space", "diff"),
    *("trapezoid", "correlate", "convolve", "polyval", "entr", "logit", "average", "nansum", "nanprod", "nancumsum"),
    *("nancumprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "cov", "corrcoef", "map_coordinates"),
    *("affine_transform", "perspective_transform"),
)
"""The composites whose bodies read no values: neither to check arguments nor to choose what to compute.

`hard_sigmoid` and `hard_silu` are not among them: in one program XLA multiplies and adds with a single rounding, so
that `x / 6 + 1 / 2` is not 0 at -3, and the derivative there would be another one.
"""
_TENSOR = object()
_MOST = 64
"""The most programs of a composite, each for other arguments; beyond them its steps are programs.

A number that changes at each call would otherwise compile the composite at each call.
"""


class _Fused:
    """A composite compiled once for each structure and each argument that is not a tensor.

    Args:
        name: the name of the composite.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: dict[Any, Callable[..., Any] | None] = {}

    def __call__(self, backend: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the result of the composite on a backend."""
        leaves, structure = jax.tree.flatten((args, kwargs))
        kinds = [_TENSOR if isinstance(leaf, jax.Array) else (leaf.__class__, leaf) for leaf in leaves]
        key = id(backend), default_float(), structure, *kinds
        tensors = [leaf for leaf, kind in zip(leaves, kinds, strict=True) if kind is _TENSOR]
        try:
            program = self._made[key]
        except KeyError:
            # Tensors must not be kept here.
            others = [None if kind is _TENSOR else leaf for leaf, kind in zip(leaves, kinds, strict=True)]
            body = functools.partial(_run, backend.composed(self.name), structure, others, kinds)
            program = jax.jit(body) if len(self._made) < _MOST else None
        except TypeError:  # an argument that is not hashable cannot be part of the key
            program = None
        if program is None or checking() or any(isinstance(leaf, TensorProxy) for leaf in leaves):
            return backend.composed(self.name)(*args, **kwargs)
        try:
            with WithoutDraws():
                result = program(tensors)
        except Exception as error:
            if not backend.cannot_transform(error):
                raise
            self._made[key] = None
            return backend.composed(self.name)(*args, **kwargs)
        self._made[key] = program
        return result


def _run(body: Callable[..., Any], structure: Any, leaves: list[Any], kinds: list[Any], tensors: list[Any]) -> Any:
    """Returns the result of a composite whose tensors take their places among the other arguments."""
    given = iter(tensors)
    filled = [next(given) if kind is _TENSOR else leaf for leaf, kind in zip(leaves, kinds, strict=True)]
    args, kwargs = jax.tree.unflatten(structure, filled)
    return body(*args, **kwargs)


def _fused(name: str) -> Callable[..., Any]:
    fused = _Fused(name)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return fused(self, *args, **kwargs)

    called.__name__ = called.__qualname__ = name
    return called


JAXFusedOps: Any = type("JAXFusedOps", (), {name: _fused(name) for name in NAMES} | {"__doc__": __doc__})
"""The mixin that holds these composites."""
