"""The checks of the Python array API standard: their form, their expected results and the comparison.

`functions.csv` lists every name of the standard, with its parameters and, for elementwise functions, the dtypes that
they must accept. `deviations.csv` lists the checks that fail on each backend, with reasons.

Expected dtypes and shapes are those of array-api-strict for the same arguments. Expected values are those that
array-api-strict computes in float64 and complex128, or NumPy where array-api-strict is wrong.
"""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import array_api_strict as strict
import numpy as np

from emberharmony import ops
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import DTypeError
from emberharmony.testing.sample import error_in_eps

HERE = Path(__file__).parent
strict.set_array_api_strict_flags(api_version="2025.12")

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGRAL = (*SIGNED, *UNSIGNED)
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed": SIGNED,
    "integral": INTEGRAL,
    "integral or bool": (*INTEGRAL, "bool"),
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "floating": (*FLOATS, *COMPLEX),
    "real": (*INTEGRAL, *FLOATS),
    "numeric": (*INTEGRAL, *FLOATS, *COMPLEX),
    "any": ("bool", *INTEGRAL, *FLOATS, *COMPLEX),
}
WIDE = {"float32": "float64", "complex64": "complex128"}
DEFAULTS = {"float64": ops.default_float, "complex128": ops.default_complex}
"""The default dtypes of `ops`, by those of array-api-strict."""
EPSILONS = 64.0
"""The admitted error, in eps of the result's dtype, where the standard leaves the precision to the implementation."""


@dataclass(frozen=True)
class Function:
    """A row of `functions.csv`."""

    category: str
    name: str
    signature: str
    dtypes: str


@dataclass(frozen=True)
class Check:
    """One requirement of the standard for a function; `run` raises if it is not met."""

    function: str
    label: str
    run: Callable[[], None]


def functions() -> list[Function]:
    """Returns all names of the standard."""
    with (HERE / "functions.csv").open(newline="") as file:
        return [Function(**row) for row in csv.DictReader(file)]


def deviations() -> dict[tuple[str, str], dict[str, str]]:
    """Returns the labels of the failing checks and their reasons, by backend and function."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    with (HERE / "deviations.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["backend"], row["function"]), {})[row["check"]] = row["reason"]
    return found


def resolve(name: str) -> Any:
    """Returns the object of `ops` that a name of `functions.csv` refers to."""
    namespace: Any = ops
    for part in name.split("."):
        namespace = getattr(namespace, part.removesuffix("()"))
        if part.endswith("()"):
            namespace = namespace()
    return namespace


def supported() -> set[str]:
    """Returns the names of the dtypes that the active backend reports."""
    return set(ops.__array_namespace_info__().dtypes())


def array(namespace: Any, values: Any, dtype: str) -> Any:
    """Returns a host array converted to an array of a namespace."""
    host = np.asarray(values).astype(dtype)
    return namespace.asarray(host, dtype=getattr(namespace, dtype)) if namespace is not None else host


def parts(result: Any) -> Iterator[Any]:
    """Yields the arrays of a result."""
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from parts(item)
    else:
        yield result


def dtype_name(result: Any) -> str:
    """Returns the name of the dtype of an array of `ops` or of array-api-strict."""
    if isinstance(result, strict._array_object.Array):
        return str(np.asarray(result).dtype)
    assert ops.is_tensor(result), f"{type(result).__name__} is no array of the backend"
    return as_dtype(ops.dtype(result)).name


def expect(got: Any, shaped: Any, valued: Any, defaults: bool = False, values: bool = True) -> None:
    """Checks that a result has structure, dtype and shape of `shaped` and the values of `valued`.

    Args:
        defaults: whether float64 and complex128 stand for the default dtypes.
        values: whether values are compared.
    """
    if isinstance(shaped, tuple):
        assert isinstance(got, tuple), f"a tuple is wanted, not a {type(got).__name__}"
        names = getattr(shaped, "_fields", None)
        assert names is None or getattr(got, "_fields", None) == names, f"the fields {names} are wanted"
        assert len(got) == len(shaped)
    for mine, theirs, exact in zip(parts(got), parts(shaped), parts(valued), strict=True):
        if not isinstance(theirs, strict._array_object.Array):
            assert _plain(mine) == _plain(theirs), f"got {mine!r}, wanted {theirs!r}"
            continue
        wanted = dtype_name(theirs)
        if defaults and wanted in DEFAULTS:
            wanted = DEFAULTS[wanted]().name
        assert dtype_name(mine) == wanted, f"dtype {dtype_name(mine)}, wanted {wanted}"
        assert tuple(mine.shape) == theirs.shape, f"shape {tuple(mine.shape)}, wanted {theirs.shape}"
        if values:
            close(mine, np.asarray(exact), wanted)


def refused(call: Callable[[], Any], dtypes: set[str]) -> bool:
    """Returns whether the backend lacks a dtype of a result, and checks that it then refuses the call."""
    lacking = dtypes - supported()
    if not lacking:
        return False
    try:
        got = call()
    except DTypeError:
        return True
    raise AssertionError(f"gives {[dtype_name(part) for part in parts(got)]} instead of {', '.join(sorted(lacking))}")


def close(got: Any, wanted: np.ndarray, dtype: str) -> None:
    """Checks the values of an array, exactly for integers and booleans."""
    host = np.asarray(ops.to_numpy(got))
    off = error_in_eps(host, wanted, dtype, 1.0)
    assert off <= EPSILONS, f"off by {off:.3g} eps: got {host.tolist()!r:.120}, wanted {wanted.tolist()!r:.120}"


def _plain(value: Any) -> Any:
    """Returns the name of a dtype, and any other object unchanged."""
    return str(value).rpartition(".")[2] if hasattr(value, "name") or "dtype" in type(value).__name__.lower() else value
