"""JAX's dtypes by neutral name, and the promotion rule of JAX's ops. JAX's dtypes are those of NumPy and ml_dtypes."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend import promote
from emberharmony.backend.promote import Native, Promotion
from emberharmony.core import dtypes as neutral
from emberharmony.core.dtypes import NativeDTypes
from emberharmony.core.errors import BackendUnavailableError, DTypeError

F = TypeVar("F", bound=Callable[..., Any])
_FEW = 64
"""Up to this number of terms float32 adds accurately in any order; XLA adds one term after the other on the CPU."""


def compile_by_jit(*static: str) -> Callable[[F], F]:
    """Returns a decorator that compiles a function by `jax.jit`, with static arguments of these names."""
    return lambda function: jax.jit(function, static_argnames=static)


def enable_x64() -> None:
    """Makes JAX compute in 64 bits, without which it narrows int64, the dtype of indices, and float64 silently.

    Raises:
        BackendUnavailableError: if the environment variable JAX_ENABLE_X64 forbids it.
    """
    if jax.config.jax_enable_x64:
        return
    import os  # imported here, because most programs decide before

    if os.environ.get("JAX_ENABLE_X64", "").lower() in ("0", "false", "no", "off"):
        raise BackendUnavailableError(
            "backend 'jax' computes indices in int64, which JAX_ENABLE_X64 forbids JAX: unset it, or set it to 1"
        )
    jax.config.update("jax_enable_x64", True)
    warnings.warn(
        "backend 'jax' has set jax_enable_x64 for the process, because indices are int64; JAX's own functions now make "
        "float64 of Python numbers. Set JAX_ENABLE_X64=1, or jax.config.update('jax_enable_x64', True) yourself, and "
        "this warning ends",
        UserWarning,
        stacklevel=2,
    )


DTYPES = NativeDTypes("jax", {d: np.dtype(jnp.bfloat16 if d is neutral.bfloat16 else d.name) for d in neutral.ALL})


def cast(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns `x` in a dtype; a complex tensor gives its real part, except to bool, which tests for non-zero."""
    if x.dtype == dtype:
        return x
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)


def of_host(array: Any, dtype: Any = None, device: Any = None) -> jax.Array:
    """Returns a copy of a host array as a tensor.

    Raises:
        DTypeError: if JAX narrows the dtype, because somebody has switched off `jax_enable_x64`.
    """
    host_copy = np.array(array, dtype)
    tensor: jax.Array = jax.device_put(host_copy, device)
    if isinstance(tensor, jax.core.Tracer):  # in a function that is compiled; as a constant a cell may keep it
        with jax.ensure_compile_time_eval():
            tensor = jax.device_put(host_copy, device)
    if tensor.dtype != host_copy.dtype:
        raise DTypeError(
            f"JAX narrows {host_copy.dtype} to {tensor.dtype}, because jax_enable_x64 was switched off after the "
            f"backend was loaded: call jax.config.update('jax_enable_x64', True)"
        )
    return tensor


# JAX has one object per dtype of NumPy, so test `is`, which is faster than `==`. `x.dtype` is a property in Python, and
# takes twice as long.
SAME, FLOAT = (test.replace(".dtype", ".aval.dtype") for test in (promote.SAME, promote.FLOAT))
_ORDERED = f"({FLOAT} or {{0}}.aval.dtype.kind in 'biu')"
_NUMBER = "({1}.__class__ is float or {1}.__class__ is int)"

promotion = Promotion(
    DTYPES,
    cast,
    lambda number, dtype: of_host(number, dtype),
    same=SAME,
    weak=f"({_NUMBER} and ({FLOAT}) or {{1}}.__class__ is int and -1 < {{1}} < 128 and {{0}}.aval.dtype.kind in 'iu')",
    inexact=f"({FLOAT}) or {{0}}.aval.dtype.kind == 'c'",
    weak_inexact=f"{_NUMBER} and ({FLOAT})",
    guards={"real": _ORDERED},
)


def kind_of(x: Any) -> str:
    """Returns the kind of a tensor's dtype: "bool", "signed", "unsigned", "float" or "complex"."""
    return promotion.kinds[x.dtype]


def is_float(x: Any) -> bool:
    """Returns whether the dtype of `x` is real and floating."""
    return promotion.kinds[x.dtype] == "float"


def is_complex(x: Any) -> bool:
    """Returns whether the dtype of `x` is complex."""
    return bool(x.dtype.kind == "c")


def widen(x: jax.Array) -> jax.Array:
    """Returns half precision as float32, other tensors unchanged."""
    return lax.convert_element_type(x, np.dtype(np.float32)) if x.dtype.itemsize == 2 and is_float(x) else x


def widen_for_sum(x: jax.Array, count: int) -> jax.Array:
    """Returns a tensor in a dtype in which the sum of `count` of its elements loses no digits."""
    if is_float(x) and x.dtype.itemsize <= 4:
        return x.astype(jnp.float64 if count > _FEW else jnp.float32)
    return x.astype(jnp.complex128) if is_complex(x) and count > _FEW else x


def float32_version(native: Native) -> Native:
    """Returns a float function that computes half precision in float32."""

    def call_in_float32(x: jax.Array) -> jax.Array:
        return cast(native(widen(x)), x.dtype)

    return call_in_float32
