"""Checks of the array object. Its attributes, methods and operators belong to the native library."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np

from emberharmony import ops
from tests.standard.harness import Check, array, expect

_INTEGERS = (("int32", (5,), "int32", (5,)), ("uint16", (5,), "uint16", (5,)), ("int64", (), "int8", (5,)))
_NUMBERS = (*_INTEGERS, ("float32", (5,), "float32", (5,)), ("float64", (), "float32", (5,)))
_BITS = (*_INTEGERS, ("bool", (5,), "bool", (5,)))
BINARY: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "__add__": (operator.add, _NUMBERS),
    "__and__": (operator.and_, _BITS),
    "__eq__": (operator.eq, _NUMBERS),
    "__floordiv__": (operator.floordiv, _NUMBERS),
    "__ge__": (operator.ge, _NUMBERS),
    "__gt__": (operator.gt, _NUMBERS),
    "__le__": (operator.le, _NUMBERS),
    "__lshift__": (operator.lshift, _INTEGERS),
    "__lt__": (operator.lt, _NUMBERS),
    "__matmul__": (operator.matmul, (("int32", (5,), "int32", (5,)), ("float32", (5,), "float64", (5,)))),
    "__mod__": (operator.mod, _NUMBERS),
    "__mul__": (operator.mul, _NUMBERS),
    "__ne__": (operator.ne, _NUMBERS),
    "__or__": (operator.or_, _BITS),
    "__pow__": (operator.pow, _NUMBERS),
    "__rshift__": (operator.rshift, _INTEGERS),
    "__sub__": (operator.sub, _NUMBERS),
    "__truediv__": (operator.truediv, _NUMBERS[3:]),
    "__xor__": (operator.xor, _BITS),
}
UNARY: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "__abs__": (operator.abs, ("int32", "uint16", "float32", "complex64")),
    "__invert__": (operator.invert, ("int32", "uint16", "bool")),
    "__neg__": (operator.neg, ("int32", "float32", "complex64")),
    "__pos__": (operator.pos, ("int32", "uint16", "float32", "complex64")),
}
SCALAR: dict[str, tuple[Callable[[Any], Any], str, Any]] = {
    "__bool__": (bool, "bool", True),
    "__complex__": (complex, "complex64", 1 + 0j),
    "__float__": (float, "float32", 1.0),
    "__index__": (operator.index, "int32", 1),
    "__int__": (int, "int32", 1),
}
KEYS: dict[str, Callable[[Any], Any]] = {
    "x[1, ...]": lambda x: x[1, ...],
    "x[-1, 2]": lambda x: x[-1, 2],
    "x[0:2, ::2]": lambda x: x[0:2, ::2],
    "x[::-1, ...]": lambda x: x[::-1, ...],
    "x[..., 0]": lambda x: x[..., 0],
    "x[None, ...]": lambda x: x[None, ...],
    "x[x > 2]": lambda x: x[x > 2],
}


def _values(dtype: str, shape: tuple[int, ...], start: int) -> np.ndarray:
    return np.resize(np.array([start, 2, 1, 3, 2]) > 2 if dtype == "bool" else np.array([start, 2, 1, 3, 2]), shape)


def _operands(namespace: Any, case: tuple[Any, ...]) -> list[Any]:
    first, a, second, b = case
    return [array(namespace, _values(first, a, 3), first), array(namespace, _values(second, b, 1), second)]


def _binary(call: Callable[[Any, Any], Any], case: tuple[Any, ...]) -> None:
    wanted = call(*_operands(strict, case))
    expect(call(*_operands(ops, case)), wanted, wanted)


def _unary(call: Callable[[Any], Any], dtype: str) -> None:
    given = _values(dtype, (5,), 3)
    wanted = call(array(strict, given, dtype))
    expect(call(array(ops, given, dtype)), wanted, wanted)


def _scalar(call: Callable[[Any], Any], dtype: str, wanted: Any) -> None:
    found = call(array(ops, wanted, dtype))
    assert found == wanted
    assert type(found) is type(wanted)


def _read(call: Callable[[Any], Any]) -> None:
    given = np.arange(12).reshape(3, 4)
    wanted = call(array(strict, given, "int32"))
    expect(call(array(ops, given, "int32")), wanted, wanted)


def _written() -> None:
    x = array(ops, np.zeros((2, 3)), "float32")
    x[1, ::2] = 5.0
    assert x.tolist() == [[0.0, 0.0, 0.0], [5.0, 0.0, 5.0]]


def _attribute(name: str) -> None:
    x = array(ops, np.arange(6).reshape(2, 3), "float32")
    found = getattr(x, name)
    if name in ("T", "mT"):
        assert found.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    elif name == "device":
        assert found in ops.__array_namespace_info__().devices()
    else:
        assert found == {"ndim": 2, "shape": (2, 3), "size": 6, "dtype": ops.float32}[name]


def _method(name: str) -> None:
    x = array(ops, [1.0], "float32")
    found = getattr(x, name)(*((ops.get_device(x),) if name == "to_device" else ()))
    if name == "__array_namespace__":
        assert found is ops


def checks() -> Iterator[Check]:
    """Yields the checks of the attributes, operators and methods of the array object."""
    for name in ("T", "device", "dtype", "mT", "ndim", "shape", "size"):
        yield Check(f"array.{name}", "value", lambda n=name: _attribute(n))
    for name in ("__array_namespace__", "__dlpack__", "__dlpack_device__", "to_device"):
        yield Check(f"array.{name}", "call", lambda n=name: _method(n))
    for name, (call, cases) in BINARY.items():
        for case in cases:
            label = " with ".join(f"{'0-d ' if not shape else ''}{dtype}" for dtype, shape in (case[:2], case[2:]))
            yield Check(f"array.{name}", label, lambda c=call, k=case: _binary(c, k))
    for name, (one, dtypes) in UNARY.items():
        for dtype in dtypes:
            yield Check(f"array.{name}", dtype, lambda c=one, d=dtype: _unary(c, d))
    for name, (convert, dtype, wanted) in SCALAR.items():
        yield Check(f"array.{name}", dtype, lambda c=convert, d=dtype, w=wanted: _scalar(c, d, w))
    for label, read in KEYS.items():
        yield Check("array.__getitem__", label, lambda r=read: _read(r))
    yield Check("array.__setitem__", "x[1, ::2] = 5.0", _written)
