"""Special functions, on MLX, which has none of them natively."""

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.derivatives import elementwise_function
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.elementwise.elementary_ops import (
    MLXElementaryOps,
    cos_of_double,
    exp_of_double,
    on_cpu,
    sin_of_double,
)
from emberharmony.backend.mlx.tracing import COMPILING
from emberharmony.backend.shared.compilation import UncompiledError
from emberharmony.backend.shared.elementwise import special_integrals
from emberharmony.backend.shared.elementwise.special_binding import (
    partial_derivatives,
    promoted_operands,
    shared_function_of,
    smooth_namespace,
    special_namespace,
    special_ops_class,
)

_PLAIN = special_namespace(
    mx,
    lambda numbers, x: mx.array(numbers, x.dtype).reshape(-1, *(1,) * x.ndim),
    lambda table, index: mx.array(table, index.dtype)[index.astype(mx.int32)],
    special_integrals.DOUBLE,
)
# MLX computes these functions of float64 with the precision of float32, so take our own.
_DOUBLE = types.SimpleNamespace(**(vars(_PLAIN) | {"cos": cos_of_double, "exp": exp_of_double, "sin": sin_of_double}))
_SINGLE = types.SimpleNamespace(**(vars(_DOUBLE) | {"digits": special_integrals.SINGLE}))


def _compute_namespace(dtype: mx.Dtype) -> tuple[types.SimpleNamespace, mx.Dtype]:
    """Returns the namespace for results of this dtype, and the dtype that it computes in."""
    if not on_cpu():
        return _PLAIN, mx.float32
    return _DOUBLE if dtype == mx.float64 else _SINGLE, mx.float64


def _special_op(name: str) -> Callable[..., mx.array]:
    """Returns an op that computes a function of `backend.shared` in float64 on the CPU, else in float32."""
    shared_function = shared_function_of(name)

    def compute_in_wide_dtype(*tensors: mx.array) -> mx.array:
        if COMPILING.traced and on_cpu():
            # MLX 0.32 compiles C++ for each few of the hundred operators, half a second for each, and saves no time.
            raise UncompiledError(f"{name} runs uncompiled on a CPU")
        xp, wide_dtype = _compute_namespace(tensors[0].dtype)
        wide_result = shared_function(xp, *mx.broadcast_arrays(*(x.astype(wide_dtype) for x in tensors)))
        return wide_result.astype(tensors[0].dtype)

    return partial(
        _call_promoted,
        name,
        elementwise_function(compute_in_wide_dtype, *partial_derivatives(name, lambda: DERIVED, _missing_derivative)),
    )


def _call_promoted(name: str, smooth_op: Callable[..., mx.array], *arguments: Any) -> mx.array:
    return smooth_op(*promoted_operands(name, promotion, arguments))


def _missing_derivative(argument: str, y: mx.array) -> mx.array:
    """Returns the derivative by an argument that has none; MLX asks for it also where nobody needs it."""
    return _full_like(y, math.nan)


def _full_like(x: mx.array, number: float) -> mx.array:
    return mx.full(x.shape, number, x.dtype)


OPS: Any = special_ops_class(_special_op)
"""The special functions."""

DERIVED = smooth_namespace(OPS, mx, _special_op, exp=MLXElementaryOps.exp, full_like=_full_like, i0=MLXElementaryOps.i0)
"""What their derivatives compute with; it has those of `special_derivatives.INNER`, with derivatives of their own."""
