"""Checks of the functions that are not elementwise, by the calls in `calls.txt`.

Each section of that file has a name of the standard, the dtypes in which its calls are run, and one call per line.
"=>" precedes the expected result where array-api-strict is wrong or raises. After "~" only dtype and shape of the
result are compared, because its values are not unique. "once" marks calls that do not depend on the dtype of the
arrays; their float64 results stand for the default float. The function `arrays` makes the arrays in the calls.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any

import array_api_strict as strict
import numpy as np

from emberharmony import ops
from tests.standard.harness import (
    DEFAULTS,
    HERE,
    KINDS,
    WIDE,
    Check,
    array,
    expect,
    functions,
    parts,
    refused,
    supported,
)

_RANDOM = np.random.default_rng(5)
_VALUES = np.array([3.0, -1.0, 2.0, 0.0, 1.0])


def _integers(*shape: int) -> np.ndarray:
    return np.asarray(_RANDOM.integers(-4, 5, shape), np.float64)


def _invertible(*shape: int) -> np.ndarray:
    return _integers(*shape) + 9 * np.eye(shape[-1])


OF_DTYPE: dict[str, np.ndarray] = {
    "s": np.asarray(3.0),
    "v": _VALUES,
    "w": np.array([1.0, 2.0, 2.0, -3.0, 0.0]),
    "y": np.array([0.0, 1.0, 1.0, 2.0, 5.0]),
    "m": _integers(3, 4),
    "n": _integers(4, 2),
    "t": _integers(2, 3, 4),
    "e": np.zeros(0),
    "z": np.zeros((0, 3)),
    "q": _invertible(3, 3),
    "p": _integers(3, 3),
    "b": _invertible(2, 3, 3),
}
"""Small integers that every dtype holds; complex dtypes add an imaginary part, unsigned dtypes drop the sign."""
INDICES: dict[str, np.ndarray] = {
    "i": np.array([2, 0, 1]),
    "j": np.array([[1, -1], [0, 3], [2, 2]]),
    "r": np.array([2, 0, 1]),
}
NAMES = {
    function.name.partition(".")[0].removesuffix("()")
    for function in functions()
    if function.category != "array object"
}
GRAMS = {"h": "q", "c": "b"}
"""The products of a matrix and its conjugate transpose."""
MASK = np.arange(12).reshape(3, 4) % 3 == 1


def arrays(words: frozenset[str], namespace: Any, dtype: str, wide: bool = False) -> dict[str, Any]:
    """Returns the arrays that are among some words, by name, in a dtype or in the widest dtype of its kind."""
    kept = WIDE.get(dtype, dtype) if wide else dtype
    made = {name: array(namespace, _adapted(OF_DTYPE[name], dtype), kept) for name in words & OF_DTYPE.keys()}
    made |= {name: array(namespace, INDICES[name], "int64") for name in words & INDICES.keys()}
    for name in words & GRAMS.keys():
        # Hermitian and positive-definite.
        host = _adapted(OF_DTYPE[GRAMS[name]], dtype)
        gram = host @ np.conj(host.swapaxes(-1, -2)) if dtype != "bool" else host
        made[name] = array(namespace, gram, kept)
    if "o" in words:
        made["o"] = array(namespace, np.argsort(_adapted(_VALUES, dtype), stable=True), "int64")
    if "k" in words:
        made["k"] = array(namespace, MASK, "bool")
    return made


def _adapted(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype.startswith("complex"):
        return values + 0.5j * np.roll(values.reshape(-1), 1).reshape(values.shape)
    return np.abs(values) if dtype.startswith("uint") else values


def sections() -> Iterator[tuple[str, str, list[str]]]:
    """Yields each name of `calls.txt`, its kind of dtypes, and its calls."""
    for section in (HERE / "calls.txt").read_text().strip().split("\n\n"):
        head, *calls = section.splitlines()
        match = re.fullmatch(r"(\S+) \((.+)\)", head)
        assert match is not None, head
        yield match[1], match[2], [call.strip() for call in calls]


def checks() -> Iterator[Check]:
    """Yields a check of each call in each of its dtypes."""
    for name, kind, calls in sections():
        for call in calls:
            if kind == "once":
                yield Check(name, call, lambda c=call: _compare(c, "float32", defaults="dtype=" not in c))
                continue
            for dtype in KINDS[kind]:
                yield Check(name, f"{dtype}: {call}", lambda c=call, d=dtype: _compare(c, d))


@functools.cache
def _words(call: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d]\w*", call))


def _evaluate(call: str, namespace: Any, dtype: str, wide: bool = False) -> Any:
    words = _words(call)
    names = {name: getattr(namespace, name, name) for name in words & NAMES}  # it lacks dtypes that its backend lacks
    return eval(call.removeprefix("~"), names | arrays(words, namespace, dtype, wide) | {"bytearray": bytearray})


@functools.cache
def _expected(call: str, dtype: str, wide: bool = False) -> Any:
    """Returns the result of array-api-strict, which is that for every backend."""
    return _evaluate(call, strict, dtype, wide)


def _compare(call: str, dtype: str, defaults: bool = False) -> None:
    if dtype not in supported():
        return
    with np.errstate(all="ignore"):
        call, _, wanted = call.partition(" => ")
        shaped = _expected(wanted or call, dtype)
        named = {str(np.asarray(part).dtype) for part in parts(shaped) if isinstance(part, strict._array_object.Array)}
        if defaults:
            named = {DEFAULTS[name]().name if name in DEFAULTS else name for name in named}
        if refused(lambda: _evaluate(call, ops, dtype), named):
            return
        valued = _expected(wanted or call, dtype, wide=True)
        expect(_evaluate(call, ops, dtype), shaped, valued, defaults, not call.startswith("~"))
