"""Every op and its gradient give the same bits under `ops.compile` on NumPy as without it."""

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.numpy.flow.compilation import NumpyFunction
from emberharmony.core import selection
from emberharmony.core.registry import OPS
from emberharmony.testing import checks
from emberharmony.testing.inputs import as_argument
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()
COMPILED = sorted(op for op, row in SAMPLES.items() if row.reference != "tests" and OPS[op].category != "random_ops")
PROGRAMS: Counter[str] = Counter()
"""How many of the functions compared were recorded, and how many were not (None)."""
EACH = 60
"""The quick test makes the first call of a row and every sixtieth one."""


def bits(tree: Any) -> list[Any]:
    """Returns dtype, shape and bytes of each array in a tree, and the text of each other leaf."""
    leaves = ops.tree_leaves(tree)
    return [(x.dtype, x.shape, x.tobytes()) if isinstance(x, np.ndarray) else repr(x) for x in leaves]


def turned(value: Any) -> Any:
    """Returns floating arrays with the elements of their first axis in reverse, in the same layout."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.ndim:
        found = copy.copy(value)
        found[...] = value[::-1]
        return found
    return type(value)(map(turned, value)) if type(value) in (list, tuple) else value


def outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Returns the bits of a result, or the class and the message of the error."""
    try:
        return bits(function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001  (any error must be the same)
        return type(error), str(error)


def compare(function: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """Returns what differs between a function and the compiled one, in two calls and one with other values."""
    compiled, found = NumpyFunction(function, selection.current()), []
    for values in ((args, kwargs), (args, kwargs), (turned(args), {name: turned(x) for name, x in kwargs.items()})):
        wanted, before = outcome(function, *values), bits(values)
        if outcome(compiled, *values) != wanted:
            found.append(f"another result for {values!r:.300}")
        if bits(values) != before:
            found.append(f"a changed argument for {values!r:.300}")
    PROGRAMS.update(type(program).__name__ for program in compiled._program_by_key.values())
    return found


def calls_of(op: str) -> list[Any]:
    row = SAMPLES[op]
    ways = (checks.value_calls, checks.non_contiguous_calls, checks.special_value_calls, checks.promotion_calls)
    return [call for way in ways for call in way(row)]


def differing(op: str, each: int) -> list[str]:
    found = []
    with np.errstate(all="ignore"):
        for call in calls_of(op)[::each]:
            try:
                args, kwargs = tuple(as_argument(call.args)), {name: as_argument(x) for name, x in call.kwargs.items()}
            except Exception:  # noqa: BLE001  (NumPy lacks the dtype, or the row wants an error)
                continue
            found += compare(OPS[op].function, args, kwargs | call.options)
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_op_gives_the_same_bits() -> None:
    with ops.use_backend("numpy"):
        found = {op: differing(op, EACH) for op in COMPILED}
    assert PROGRAMS["_Program"] > 15 * PROGRAMS["NoneType"]
    assert not {op: texts for op, texts in found.items() if texts}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", COMPILED)
def test_all_calls_of_a_compiled_op_give_the_same_bits(op: str) -> None:
    with ops.use_backend("numpy"):
        assert not differing(op, 1)


def weighted(function: Callable[..., Any], args: Any, kwargs: Any, places: list[int]) -> Callable[..., Any]:
    """Returns the sum of all elements of the results of an op, each with another weight."""

    def loss(*tensors: Any) -> Any:
        filled = list(args)
        for i, tensor in zip(places, tensors, strict=True):
            filled[i] = tensor
        total: Any = 0.0
        for y in ops.tree_leaves(function(*filled, **kwargs)):
            if ops.is_tensor(y) and (ops.dtype(y).is_floating or ops.dtype(y).is_complex):
                y = ops.reshape(ops.real(y), (-1,))
                total = ops.add(ops.sum(ops.multiply(y, ops.arange(1, 1 + ops.size(y), dtype="float32"))), total)
        return total

    return loss


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [0, *[pytest.param(i, marks=pytest.mark.slow) for i in range(1, 6)]])
def test_a_compiled_gradient_gives_the_same_bits(part: int) -> None:
    found = {}
    with ops.use_backend("numpy"), np.errstate(all="ignore"):
        for op in [op for op in COMPILED if SAMPLES[op].differentiable and "float32" in SAMPLES[op].dtypes][part::6]:
            item = SAMPLES[op].cases[0]
            args, kwargs = (
                cast_to_dtype(item.args, "float32"),
                {k: cast_to_dtype(v, "float32") for k, v in item.kwargs.items()},
            )
            places = [i for i, x in enumerate(args) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
            loss = weighted(OPS[op].function, args, kwargs, places)
            gradient = ops.value_and_grad(loss, argnums=tuple(range(len(places))))
            found[op] = compare(gradient, tuple(args[i] for i in places), {})
    assert not {op: texts for op, texts in found.items() if texts}
