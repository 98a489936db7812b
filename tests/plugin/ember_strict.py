"""A third-party backend over array-api-strict: it binds some ops of the standard and declares the rest unsupported."""

from collections.abc import Callable
from typing import Any

import array_api_strict as xp
import numpy as np

from emberharmony.backend import DTYPES as NEUTRAL
from emberharmony.backend import OPS, Backend, NativeDTypes, Promotion, as_dtype, unsupported
from emberharmony.errors import AxisError, DTypeError, ShapeError
from emberharmony.types import DType

NAMES = ["bool", *(d.name for d in NEUTRAL if d.name not in ("bool", "float16", "bfloat16"))]
DTYPES = NativeDTypes("strict", {as_dtype(name): getattr(xp, name) for name in NAMES})
promotion = Promotion(
    DTYPES,
    lambda x, dtype: xp.astype(x, dtype),
    lambda number, dtype: xp.asarray(number, dtype=dtype),
    same="{0}.dtype == {1}.dtype",
    weak="",
    inexact="{0}.dtype == native_float32",
    weak_inexact="",
)
PLAIN = ("negative", "sign", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite")
ORDER = ("less", "less_equal", "greater", "greater_equal")
INEXACT = ("divide", "hypot", "logaddexp")
BINARY = (
    *("add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater"),
    *("greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", *INEXACT),
)
UNARY = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt"),
    *("reciprocal",),
)
ALIASED = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}


class StrictBackend(Backend):
    """A backend over array-api-strict."""

    name = "strict"
    tensor_type = type(xp.asarray(0))
    dtypes = DTYPES
    errors = (
        (TypeError, "dtypes are allowed", DTypeError),
        (ValueError, "duplicate value in 'axis'", AxisError),
        (ValueError, "no identity|cannot reshape|one unknown dimension|broadcast", ShapeError),
    )

    @property
    def version(self) -> str:
        return str(xp.__version__)

    def from_numpy(self, array: np.ndarray) -> Any:
        return xp.asarray(array, dtype=DTYPES[array.dtype.name])

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x._array)

    def dtype(self, x: Any) -> DType:
        return DTYPES.neutral[x.dtype]

    def get_available_devices(self) -> list[str]:
        return ["cpu"]

    def where(self, condition: Any, x1: Any, x2: Any) -> Any:
        return xp.where(xp.astype(condition, xp.bool), *promotion.common(x1, x2))

    def logical_not(self, x: Any) -> Any:
        return x == xp.zeros((), dtype=x.dtype)

    def absolute(self, x: Any) -> Any:
        return x if x.dtype == xp.bool else xp.abs(x)

    def square(self, x: Any) -> Any:
        return x if x.dtype == xp.bool else xp.square(x)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Any:
        return xp.sum(xp.astype(x, xp.int64) if x.dtype == xp.bool else x, axis=axis, keepdims=keepdims, dtype=dtype)

    def max(self, x: Any, axis: Any = None, keepdims: bool = False, initial: float | None = None) -> Any:
        return xp.astype(xp.max(_number(x), axis=axis, keepdims=keepdims), x.dtype)

    def reshape(self, x: Any, shape: Any, copy: bool | None = None) -> Any:
        return xp.reshape(x, (shape,) if isinstance(shape, int) else tuple(shape), copy=copy)


def _number(x: Any) -> Any:
    return xp.astype(x, xp.uint8) if x.dtype == xp.bool else x


def _of_numbers(native: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that also accepts booleans, which the standard leaves out of comparisons by order."""
    return lambda *tensors: native(*map(_number, tensors))


def _expm1(x: Any) -> Any:
    """Returns exp(x) - 1 without NumPy's expm1 for complex infinities, for which it gives NaN."""
    near = xp.expm1(x)
    if not xp.isdtype(x.dtype, "complex floating"):
        return near
    return xp.where(xp.isfinite(x), near, xp.subtract(xp.exp(x), xp.asarray(1.0, dtype=x.dtype)))


def _bind() -> None:
    for name in BINARY:
        native: Callable[..., Any] = getattr(xp, name)
        native = _of_numbers(native) if name in ORDER else native
        setattr(StrictBackend, name, staticmethod(promotion.binary(native, inexact=name in INEXACT, weak=False)))
    for name in (*UNARY, *ALIASED):
        native = _expm1 if name == "expm1" else getattr(xp, ALIASED.get(name, name))
        bound = promotion.binary(native, inexact=True, weak=False) if name == "arctan2" else promotion.unary(native)
        setattr(StrictBackend, name, staticmethod(bound))
    for name in PLAIN:
        native = getattr(xp, name)
        setattr(StrictBackend, name, staticmethod(_of_numbers(native) if name.startswith("is") else native))
    for spec in OPS.values():
        if not spec.composite and getattr(StrictBackend, spec.name, None) is None:
            reason = unsupported("this test plugin binds a part of the array API standard")
            reason.__set_name__(StrictBackend, spec.name)
            setattr(StrictBackend, spec.name, reason)


def make() -> StrictBackend:
    """Returns the backend. The entry point of the plugin names this function."""
    _bind()
    return StrictBackend()
