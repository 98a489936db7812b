"""The bodies of creation: ranges and windows are computed on the host, in float64, as the backends do it.

Bodies that are long, or over ops of categories that import their own, stand in modules that are imported at the first
use: otherwise a body of 5 lines costs the import of `ops` 10,000 instructions.
"""

from __future__ import annotations

from typing import Any

from emberharmony.backend.shared.arrays import creation as shared
from emberharmony.backend.shared.arrays.shape import as_shape, require_matrices
from emberharmony.core import op_globals
from emberharmony.core.dtypes import bfloat16, default_float
from emberharmony.core.errors import DTypeError
from emberharmony.core.numeric.promotion import check_fits
from emberharmony.core.types import Tensor
from emberharmony.ops.arrays.indexing import diagonal, take, where
from emberharmony.ops.arrays.shape import broadcast_to, concatenate, moveaxis
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.math import add, divide, multiply, power, sign, subtract
from emberharmony.ops.tensor import cast, convert_to_tensor


class _Made(shared.HostMade):
    """The creation functions that the backends share, bound to the ops of the active backend."""

    add, subtract, multiply = staticmethod(add), staticmethod(subtract), staticmethod(multiply)
    divide, power, sign = staticmethod(divide), staticmethod(power), staticmethod(sign)
    cast, moveaxis, convert = staticmethod(cast), staticmethod(moveaxis), staticmethod(convert_to_tensor)
    get_device, to_device = staticmethod(get_device), staticmethod(to_device)

    @property
    def dtypes(self) -> Any:
        """The dtypes of the active backend."""
        return op_globals.active().backend.dtypes

    def _place_array(self, array: Any, dtype: Any, device: Any) -> Tensor:
        neutral_dtype = self.dtypes.neutral[dtype]
        if array.dtype.kind == "c" and neutral_dtype.kind not in ("complex", "bool"):
            array = array.real
        if neutral_dtype is bfloat16:
            return cast(convert_to_tensor(array.astype("float32"), device=device), dtype)
        # All dtypes exist on the host.
        return convert_to_tensor(array.astype(neutral_dtype.name, copy=False), device=device)

    def eye(self, N: int, M: int | None, k: int, dtype: Any, device: Any) -> Tensor:
        """Returns a matrix with ones on a diagonal."""
        native_dtype = self.dtypes[default_float() if dtype is None else dtype]
        return self._place_array(shared.ones_on_diagonal(N, M, k), native_dtype, device)


MADE = _Made()
"""The ops; not `made`, which is an attribute of `Deferred`."""


def full(shape: Any, fill_value: Any, dtype: Any, device: Any) -> Tensor:
    """Returns a number, or a tensor, broadcast to a shape."""
    full_tensor = broadcast_to(_fill_tensor(fill_value, dtype), as_shape(shape))
    return full_tensor if device is None else to_device(full_tensor, device)


def _fill_tensor(value: Any, dtype: Any) -> Tensor:
    """Returns a number or a tensor as a tensor of a dtype; an integer dtype drops the fraction of a number.

    Raises:
        DTypeError: if a number is complex and the dtype is real.
        RangeError: if an integer does not fit the dtype.
    """
    if not isinstance(value, (int, float, complex)):
        return value if dtype is None else cast(value, dtype)
    if dtype is None:
        return convert_to_tensor(value)
    neutral_dtype = op_globals.active().backend.dtypes.neutral[dtype]
    if type(value) is complex and neutral_dtype.kind not in ("complex", "bool"):
        raise DTypeError(f"the complex number {value} does not fit {neutral_dtype.name}")
    if type(value) is int:
        check_fits(value, neutral_dtype)
    class_by_kind: dict[str, Any] = {"bool": bool, "float": float, "complex": complex}
    return convert_to_tensor(class_by_kind.get(neutral_dtype.kind, int)(value), dtype)


def triangle(x: Tensor, k: int, lower: bool) -> Tensor:
    """Returns matrices with zeros above or below a diagonal."""
    mask = convert_to_tensor(shared.triangle_mask(require_matrices(x).shape[-2:], k, lower), device=get_device(x))
    return where(mask, x, False if dtype_of(x).kind == "bool" else 0)


def diag(x: Tensor, k: int) -> Tensor:
    """Returns the diagonal of a matrix, or a matrix with a vector on its diagonal."""
    diagonal_positions = shared.diagonal_sources(x.shape, k, dtype_of(x).itemsize)
    if diagonal_positions is None:
        return diagonal(x, k)
    zero_tensor = convert_to_tensor([0], dtype_of(x), device=get_device(x))
    return take(concatenate([x, zero_tensor]), diagonal_positions)
