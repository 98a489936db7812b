"""Conversion of calls and their inputs to Python source, which runs with the imports of a snippet."""

import base64
import functools
import zlib
from types import ModuleType
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.core.registry import OPS
from emberharmony.testing.inputs import Stranger, Strided

WRITTEN_OUT = 400
"""The number of elements above which an array is written as compressed bytes."""


@functools.cache
def spell_op(op: str) -> str:
    """Returns how a user writes an op: `ops.sin`, `ops.linalg.diagonal`."""
    op_function = OPS[op].function
    attribute_by_name = {f"ops.{name}": getattr(ops, name) for name in dir(ops)}
    namespace_by_name = {"ops": ops} | {
        name: namespace for name, namespace in attribute_by_name.items() if isinstance(namespace, ModuleType)
    }
    for namespace_name, module in namespace_by_name.items():
        for name in (op, op.partition("_")[2]):
            if getattr(module, name, None) is op_function:
                return f"{namespace_name}.{name}"
    return f"OPS[{op!r}].function"


def source(value: Any) -> str:
    """Returns a Python expression that evaluates to `value`.

    Raises:
        TypeError: if there is no such expression, as for a function of a sample row.
    """
    if isinstance(value, Strided):
        return f"non_contiguous_tensor({source(value.array)})"
    if isinstance(value, np.ndarray):
        return _array_source(value)
    if isinstance(value, np.generic):
        return f"{_array_source(np.asarray(value))}[()]"
    if isinstance(value, (list, tuple)):
        items_text = ", ".join(source(item) for item in value)
        return (
            f"[{items_text}]"
            if isinstance(value, list)
            else f"({items_text},)"
            if len(value) == 1
            else f"({items_text})"
        )
    if isinstance(value, slice):
        return f"slice({source(value.start)}, {source(value.stop)}, {source(value.step)})"
    if value is None or isinstance(value, (bool, int, float, complex, str, Stranger)):
        return repr(value)
    if value is Ellipsis:
        return "..."
    raise TypeError(f"{value!r} cannot be written as a Python expression")


def _array_source(array: np.ndarray[Any, Any]) -> str:
    dtype_name = array.dtype.name
    is_exact = array.dtype.kind in "biuf" or (array.dtype.kind == "c" and bool(np.isfinite(array).all()))
    if array.dtype.kind == "U":
        return f"np.array({array.tolist()!r})"
    if array.size > WRITTEN_OUT or array.dtype.byteorder == ">" or not (is_exact or dtype_name == "bfloat16"):
        packed_text = base64.b85encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 9)).decode()
        return f"unpack({packed_text!r}, {dtype_name!r}, {array.shape})"
    if array.size == 0:
        return f"np.zeros({array.shape}, {_dtype_source(dtype_name)})"
    return f"np.array({array.tolist()!r}, {_dtype_source(dtype_name)})"


def _dtype_source(name: str) -> str:
    return "bfloat16_of_numpy()" if name == "bfloat16" else repr(name)


def unpack(packed_text: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Returns the array that `source` has written as compressed text."""
    numpy_dtype = bfloat16_of_numpy() if dtype == "bfloat16" else np.dtype(dtype)
    return np.frombuffer(zlib.decompress(base64.b85decode(packed_text)), numpy_dtype).reshape(shape)
