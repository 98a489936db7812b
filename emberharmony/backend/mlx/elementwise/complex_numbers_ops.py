"""Complex numbers and their parts, on MLX."""

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import Arrays, Function, with_own_derivatives
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.backend.shared.arrays.shape import check_complex_pairs
from emberharmony.core.errors import DTypeError


def _push_pair(primals: Arrays, outputs: Arrays, tangents: Arrays) -> Arrays:
    return (paired(tangents[0]),)


def _pull_pair(primals: Arrays, outputs: Arrays, cotangents: Arrays) -> Arrays:
    return (mx.stack([mx.real(cotangents[0]), mx.imag(cotangents[0])], axis=-1),)


paired: Function = with_own_derivatives(lambda x: x.view(mx.complex64)[..., 0], _push_pair, _pull_pair)
"""Returns pairs of float32, on the last axis, as complex64. MLX's own `view` (0.32) has no gradient."""


class MLXComplexNumbersOps:
    """Holds the ops of `ops/elementwise/complex_numbers.py`.

    MLX differentiates its own functions; the body of `conj` takes 3.8 times as long, for few elements, and that of
    `view_as_complex` reads the values.
    """

    @staticmethod
    def real(x: mx.array) -> mx.array:
        return mx.real(x) if is_complex(x) else x

    @staticmethod
    def imag(x: mx.array) -> mx.array:
        return mx.imag(x) if is_complex(x) else mx.zeros_like(x)

    @staticmethod
    def conj(x: mx.array) -> mx.array:
        return mx.conj(x) if is_complex(x) else x

    @staticmethod
    def view_as_complex(x: mx.array) -> mx.array:
        promotion.refuse(x, ("complex",))
        check_complex_pairs(x.shape)
        if x.dtype == mx.float64:
            raise DTypeError("float64 makes complex128, which MLX does not have; cast to float32 (ops.cast)")
        return paired(x.astype(mx.float32))
