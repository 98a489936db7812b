"""Options that are read as numbers: a traced tensor raises and is never silently taken for a constant."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, EmberError, UnsupportedOpError
from emberharmony.core.options import as_integer, as_number, constant
from emberharmony.core.registry import OPS
from emberharmony.core.trees.tree import tree_flatten, tree_unflatten
from emberharmony.testing.sample import Case
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()
_OFTEN = 3
"""How many numbers of one sample row are differentiated, one after the other."""


def test_numbers_and_constant_tensors_are_read(backend: str) -> None:
    assert as_number("x", 2) == 2.0
    assert as_number("x", ops.array(2.0)) == 2.0
    assert constant("x", None) is None
    assert constant("x", [1.0, (2.0, np.float64(3.0))]) == [1.0, (2.0, 3.0)]


def test_integers_are_exact_and_no_smaller_than_the_least() -> None:
    assert as_integer("n", np.int64(3), 1) == as_integer("n", 2**70, 1) - 2**70 + 3 == 3
    assert as_integer("n", True, 1) == 1
    for wrong in (2.0, "2", None, [2]):
        with pytest.raises(ArgumentTypeError, match="expected an integer n, got "):
            as_integer("n", wrong, 1)
    with pytest.raises(ArgumentError, match="expected n of at least 1, got 0"):
        as_integer("n", 0, 1)


@pytest.mark.parametrize("value", [lambda v: v, lambda v: [1.0, v], lambda v: [(v, 2.0)]])
def test_a_traced_tensor_is_refused(value: Callable[[Any], Any], backend: str) -> None:
    with pytest.raises(UnsupportedOpError, match="no gradient with respect to 'width'"):
        ops.grad(lambda v: (constant("width", value(v)), v)[1])(1.0)


def floats() -> Iterator[tuple[str, Case, int]]:
    """Yields op, case and position of the first finite Python floats in the arguments of all sample rows."""
    for op, sample in SAMPLES.items():
        for item in sample.cases:
            leaves, _ = tree_flatten((list(item.args), item.kwargs))
            places = [i for i, leaf in enumerate(leaves) if type(leaf) is float and math.isfinite(leaf)]
            yield from ((op, item, place) for place in places[:_OFTEN])


CALLS: dict[str, list[tuple[Case, int]]] = {}
for _op, _item, _place in floats():
    CALLS.setdefault(_op, []).append((_item, _place))


@pytest.mark.parametrize("op", CALLS)
def test_a_gradient_by_an_option_is_right_or_refused(op: str, backend: str) -> None:

    for item, place in CALLS[op]:
        # The difference of two random draws in float32 has too few digits for a numerical derivative.
        precise = {"dtype": "float64"} if op.startswith("random_") else {}
        leaves, structure = tree_flatten((list(item.args), {**item.kwargs, **precise}))

        def total(value: Any, leaves: Any = leaves, structure: Any = structure, place: int = place) -> Any:
            args, kwargs = tree_unflatten(structure, [*leaves[:place], value, *leaves[place + 1 :]])
            return weighted(OPS[op].function(*args, **kwargs))

        at = float(leaves[place])
        try:
            gradient = float(ops.to_numpy(ops.grad(total)(ops.convert_to_tensor(np.float64(at)))))
        except EmberError:
            continue
        below, above = (difference_quotient(total, at, h) for h in (-1e-5, 1e-5))
        if abs(below - above) <= 1e-3 * max(abs(above), 1.0):  # otherwise the function has a kink or a jump here
            assert gradient == pytest.approx((below + above) / 2, rel=2e-3, abs=2e-3), (item, place)


def difference_quotient(function: Callable[[Any], Any], at: float, step: float) -> float:
    step *= max(abs(at), 1e-2)
    there, here = (float(ops.to_numpy(function(ops.convert_to_tensor(np.float64(at + h))))) for h in (step, 0.0))
    return (there - here) / step


def weighted(result: Any) -> Any:
    """Returns the sum of all floating elements of a result in float64, each with a different weight."""
    total = ops.zeros((), dtype="float64")
    for leaf in tree_flatten(result)[0]:
        if current().is_tensor(leaf) and ops.dtype(leaf).is_floating:
            weights = np.sin(np.arange(math.prod(leaf.shape)) * 1.7 + 0.3).reshape(tuple(leaf.shape))
            total = ops.add(total, ops.sum(ops.multiply(ops.cast(leaf, "float64"), ops.convert_to_tensor(weights))))
    return total


def test_a_flag_is_a_boolean_an_integer_or_a_tensor_without_axes(backend: str) -> None:
    x = ops.ones((2, 3))
    for flag in (True, 1, np.True_, ops.asarray(True), ops.asarray(1)):
        assert ops.sum(x, axis=0, keepdims=flag).shape == (1, 3)
        assert ops.isin(x, [2.0], invert=flag).tolist() == [[True] * 3] * 2
        assert ops.argsort(ops.array([1.0, 2.0]), descending=flag).tolist() == [1, 0]
    for flag in (False, 0, np.False_, ops.asarray(False)):
        assert ops.sum(x, axis=0, keepdims=flag).shape == (3,)
        assert ops.isin(x, [2.0], invert=flag).tolist() == [[False] * 3] * 2
    for flag in ("no", 0.0, [True], ops.asarray([True])):
        with pytest.raises(ArgumentTypeError, match="must be True or False"):
            ops.sum(x, axis=0, keepdims=flag)
