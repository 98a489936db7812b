"""MLX's dtypes by neutral name, and the promotion rule of MLX's ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlx.core as mx

from emberharmony.backend.promote import Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import NativeDTypes

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

# A flag: whether no uint64 or float64, which MLX promotes in its own way, has passed through an op.
op_globals.publish(wide_unseen=True)
op_globals.publish_type("plain_array", mx.array, "wide_unseen", "float32_default")


def _start_comparing_dtypes() -> None:
    """Turns on the comparison of dtypes in fast paths, when uint64 or float64 is used for the first time."""
    op_globals.set_flag("wide_unseen", False)


DTYPES = NativeDTypes(
    "mlx",
    {d: getattr(mx, "bool_" if d.name == "bool" else d.name) for d in neutral.ALL if d.name != "complex128"},
    on_first_use={neutral.uint64: _start_comparing_dtypes, neutral.float64: _start_comparing_dtypes},
)


def of_host(array: np.ndarray, dtype: mx.Dtype | None = None) -> mx.array:
    """Returns a copy of a host array as a tensor.

    The array is passed as a memoryview, which MLX reads by the buffer protocol. MLX 0.32 reads a NumPy array by its
    `__dlpack__`, and suppresses the exception that a signal handler raises meanwhile: a third of all interruptions were
    lost.
    """
    return mx.array(memoryview(array), dtype)  # type: ignore[arg-type]


def cast(x: mx.array, dtype: mx.Dtype) -> mx.array:
    """Returns `x` in a dtype; complex numbers lose their imaginary part."""
    return x.astype(dtype)


def _scalar_tensor(number: float | complex, dtype: mx.Dtype) -> mx.array:
    # MLX 0.32 does not accept Python integers beyond int64.
    is_above_int64 = type(number) is int and number >= 2**63
    return of_host(np.asarray(number), dtype) if is_above_int64 else mx.array(number, dtype=dtype)


promotion = Promotion(
    DTYPES,
    cast,
    _scalar_tensor,
    # MLX promotes as the table says, except uint64 with a signed integer (to float32) and float64 with complex64.
    # Comparing MLX dtypes costs 800 instructions; skip it until a uint64 or float64 array has been seen.
    same="(wide_unseen or {0}.dtype == {1}.dtype)",
    weak="({1}.__class__ is float and float32_default or {1}.__class__ is int and -1 < {1} < 128 and {0}.itemsize > 1)",
    inexact="float32_default",
    weak_inexact="(({1}.__class__ is float or {1}.__class__ is int and -1 < {1} < 128) and float32_default)",
    plain_same="plain_array",
    plain_inexact="plain_array",
)
