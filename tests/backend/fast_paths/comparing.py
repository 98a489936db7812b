"""Calls an op by the way that its arguments choose on the active backend, and by its general way."""

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import emberharmony
from emberharmony import ops
from emberharmony.core import op_globals
from emberharmony.core.dispatch import call_with_conversion
from emberharmony.core.errors import EmberError
from emberharmony.core.registry import EMPTY, OPS
from emberharmony.testing.inputs import non_contiguous_tensor
from emberharmony.testing.sample import as_reference, error_in_eps
from tests.sampling import portion

_PACKAGE = str(Path(emberharmony.__file__).parent)
Array = np.ndarray[Any, Any]
FORMS: dict[str, Callable[[Any], Any]] = {
    "contiguous": ops.convert_to_tensor,
    "transposed": lambda x: ops.transpose(ops.convert_to_tensor(np.array(np.transpose(x), order="C"))),
    "strided": non_contiguous_tensor,
}
"""Functions that return the elements of a host array as a tensor of the active backend, in several layouts."""


def spread(*shape: int, low: float = -3.0, high: float = 3.0) -> Array:
    """Returns numbers in no order, which float16 can represent."""
    return np.random.default_rng(shape).uniform(low, high, shape).astype(np.float16).astype(np.float64)


def made(value: Any, dtype: str, form: str = "contiguous") -> Any:
    """Returns host arrays, also in lists and tuples, as tensors; those of float64 get the dtype."""
    if isinstance(value, dict):
        return {name: made(item, dtype, form) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(made(item, dtype, form) for item in value)
    if not isinstance(value, np.ndarray):
        return value
    return FORMS[form](value.astype(dtype) if value.dtype == np.float64 else value)


def rounded(value: Any, dtype: str) -> Any:
    """Returns host arrays of float64, also in lists and tuples, rounded to a dtype, but still in float64."""
    if isinstance(value, dict):
        return {name: rounded(item, dtype) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(rounded(item, dtype) for item in value)
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return value
    return np.asarray(value.astype(dtype), np.float64)


def general(name: str) -> Callable[..., Any]:
    """Returns the general way of an op: the body of a composite, the full implementation of a primitive."""
    backend, spec = op_globals.active().backend, OPS[name]

    def called(*args: Any, **kwargs: Any) -> Any:
        if spec.composite:
            try:
                return backend.composed(name)(*args, **kwargs)
            except Exception as error:
                raise backend.translate(name, error, args) from error
        given = dict(zip([p.name for p in spec.parameters], args, strict=False)) | kwargs
        arguments = tuple(given.get(p.name, p.default) for p in spec.parameters)
        assert EMPTY not in arguments
        return call_with_conversion(backend, name, arguments)

    return called


def outcome(call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """Returns the host arrays of a result, or the class of the typed error."""
    try:
        result = call(*args, **(kwargs or {}))
    except EmberError as error:
        return type(error)
    return [ops.to_numpy(x) for x in (result if isinstance(result, (list, tuple)) else [result])]


def differs(got: Any, exact: Any, plain: Any, eps: float, floor: float = 1.0) -> str:
    """Returns how results differ from exact ones in their values, or from plain ones in dtype or error; "" if not.

    Args:
        got: the results, or the class of the error.
        exact: the same in float64.
        plain: the same in the dtype of the results.
        eps: the allowed error, in eps of the dtype.
        floor: the least magnitude of which this is a part.
    """
    if not isinstance(got, list) or not isinstance(plain, list):
        return "" if got is plain else f"{got} in place of {plain}"
    for a, b, c in zip(got, exact, plain, strict=True):
        if (a.shape, a.dtype) != (c.shape, c.dtype):
            return f"{a.dtype} of shape {a.shape} in place of {c.dtype} of shape {c.shape}"
        error = error_in_eps(a, as_reference(b), a.dtype.name, floor)
        if not error <= eps:
            return f"{error} eps"
    return ""


def calls(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Returns how many functions the package enters or calls for a call, when it is made for the third time.

    No garbage is collected meanwhile: it may hold objects of the package, whose finalizers would count.
    """
    count = 0

    def seen(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call":
            count += _is_own(frame) or (frame.f_back is not None and _is_own(frame.f_back))
        elif event == "c_call":
            count += _is_own(frame)

    for _ in range(2):
        function(*args, **kwargs)
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(seen)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def _is_own(frame: Any) -> bool:
    return str(frame.f_code.co_filename).startswith(_PACKAGE)


Case = tuple[tuple[Any, ...], dict[str, Any]]
MANY = 100
"""Of a list of more calls a run tries half."""


def case(*args: Any, **kwargs: Any) -> Case:
    """Returns the arguments of a call."""
    return args, kwargs


def unlike_general(op: str, cases: Sequence[Case], backend: str, eps: float, floor: float = 1.0) -> list[str]:
    """Returns the calls whose results are not those of the general way in float64, or whose errors are others.

    A run tries half of the cases if they are many, each in several dtypes and layouts. With float16 the general way
    computes in it too.

    Args:
        op: the op.
        cases: arguments, in which arrays of float64 stand for tensors of any floating dtype.
        backend: the active backend.
        eps: the allowed error, in eps of the dtype.
        floor: the least magnitude of which this is a part.
    """
    wide = "float32" if backend == "mlx" else "float64"
    found = []
    for args, kwargs in portion(cases, 2 if len(cases) > MANY else 1):
        for dtype, form in [(wide, "contiguous"), ("float32", "contiguous"), ("float32", "strided"), ("float16", "")]:
            given = rounded(args, dtype), rounded(kwargs, dtype)
            exact = outcome(general(op), *made(given, wide))
            plain = outcome(general(op), *made(given, dtype))
            got = outcome(OPS[op].function, *made(given, dtype, form or "contiguous"))
            text = differs(got, exact, plain, eps, floor)
            if text:
                brief = [x.shape if isinstance(x, np.ndarray) else x for x in args]
                found.append(f"{op}{brief} {list(kwargs.items())} in {dtype} {form}: {text}")
    return found
