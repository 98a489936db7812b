"""On NumPy, ops of few elements, or of usual ones, have the results and errors of their complete implementations."""

import tracemalloc
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.choice import use_backend
from emberharmony.core import op_globals
from emberharmony.core.dispatch import call_with_conversion
from emberharmony.core.errors import EmberError, ShapeError

SHAPES = [(), (1,), (3,), (0,), (3, 2), (1, 2), (3, 0), (0, 2), (80, 2)]


def counted(shape: tuple[int, ...]) -> Any:
    return np.arange(1.0, 1 + prod(shape), dtype=np.float32).reshape(shape)


def ids(*shape: int, start: int) -> Any:
    """Returns indices that repeat, from -1 on if `start` is -1, and out of range if it is 7."""
    return np.arange(prod(shape)).reshape(shape) % 2 + start


LINE = np.concatenate([np.linspace(-9, 9, 61), [-79, -81, -90, -1000, 1000, np.nan, -np.inf, np.inf, -0.0]])
"""Few arguments without the last ones, some of which have exponentials that overflow."""
LINES = [(x.astype(np.float32),) for x in (LINE[:1], LINE[:61], LINE[:62], LINE[61:], LINE, np.tile(LINE, 9))]

CASES: dict[str, list[tuple[Any, ...]]] = {
    "relu": [*LINES, (counted(()),)],
    "sum": [
        (counted(shape), axis, keepdims)
        for shape, axis, keepdims in product([*SHAPES, (70, 60)], [None, 0, -1, 2, True, (0,), 1.5], [False, True])
    ],
    "segment_sum": [
        (counted(shape), ids(*at, start=start), count)
        for shape, at, start, count in product(
            SHAPES, [(), (0,), (1,), (2,), (3,), (80,), (1, 1)], [0, -1, 7], [0, 1, 4, -1, None]
        )
    ],
    "average_pool": [
        (counted(shape), size, strides, padding)
        for shape, size, strides, padding in product(
            [(3, 2), (1, 4, 1), (2, 6, 5, 3), (1, 0, 2), (1, 3, 3, 3, 2)],
            [0, 1, 2, 3],
            [None, 0, 1, 2],
            ["valid", "same", "else"],
        )
    ],
    "take_along_axis": [
        (counted(shape), ids(*at, start=start))
        for shape, at, start in product(
            [(3,), (3, 4), (1, 4), (3, 0), (2, 3, 4)], [(3,), (3, 2), (1, 2), (3, 0), (2, 3, 1)], [0, -1, 7]
        )
    ],
    "one_hot": [
        (ids(*shape, start=start), count, -1, None, sparse)
        for shape, start, count, sparse in product(SHAPES, [0, -1, 7], [0, 1, 3, -1], [False, True])
    ],
    "sigmoid": LINES,
    "silu": LINES,
    "softplus": LINES,
    "elu": LINES,
    "erf": LINES,
    "gelu": [(*line, exact) for line in LINES for exact in (False, True)],
    "gammaln": LINES,
}


def outcome(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except EmberError as error:
        return type(error), str(error).partition(" (given")[0]


@pytest.mark.parametrize("name", CASES)
def test_a_fast_path_does_what_the_complete_implementation_does(name: str) -> None:
    # The complete implementations of activations are their bodies.
    with use_backend("numpy"), np.errstate(all="ignore"):
        backend, called = op_globals.active().backend, getattr(ops, name)
        for case in CASES[name]:
            result, wanted = outcome(called, *case), outcome(call_with_conversion, backend, name, case)
            if isinstance(wanted, tuple):
                assert result == wanted, case
                continue
            assert result.shape == wanted.shape, case
            assert result.dtype == wanted.dtype == np.float32, case
            np.testing.assert_allclose(result, wanted, rtol=4e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "softplus", "elu", "erf", "gelu", "gammaln"])
@pytest.mark.filterwarnings("error")
def test_no_argument_makes_numpy_warn(name: str) -> None:
    with use_backend("numpy"):
        for x, *options in CASES[name]:
            getattr(ops, name)(x[np.abs(x) < 100], *options)


@pytest.mark.parametrize("x", [-60.0, -79.0, -81.0, -100.0])
def test_small_sigmoids_keep_their_digits(x: float) -> None:
    with use_backend("numpy"):
        for count in (1, 1000, 5000):
            got = ops.sigmoid(np.full(count, x, np.float32))
            np.testing.assert_allclose(got, np.exp(x), rtol=3e-7, atol=1e-45)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.bool_])
def test_an_element_of_an_array_gives_the_result_of_a_tensor_without_axes(kind: type) -> None:
    with use_backend("numpy"):
        for called in (ops.sqrt, ops.exp, ops.absolute, ops.reciprocal):
            found, wanted = called(kind(1)), called(np.asarray(kind(1)))
            assert type(found) is np.ndarray
            assert (found.dtype, found.shape, found.item()) == (wanted.dtype, (), wanted.item())


def test_a_view_of_more_elements_than_any_memory_holds_is_one() -> None:
    with use_backend("numpy"):
        view = ops.broadcast_to(np.ones(1, np.int8), (2**41,))
        assert (view.shape, view.strides, view[-1]) == ((2**41,), (0,), 1)
        assert not view.flags.writeable
        few = ops.broadcast_to(np.ones(1, np.int8), (2,))
        assert (few.strides, few.flags.writeable) == ((0,), False)


@pytest.mark.parametrize("copy", [None, True, False])
def test_a_shape_of_another_size_is_no_question_of_a_copy(copy: bool | None) -> None:
    with use_backend("numpy"), pytest.raises(ShapeError):
        ops.reshape(np.ones((3, 2)), (7,), copy)


def test_the_peak_of_the_memory_stays_until_it_is_restarted() -> None:
    with use_backend("numpy"):
        backend = op_globals.active().backend
        backend.peak_memory(restart=True)
        np.ones(10**6).sum()
        assert backend.peak_memory()[1] >= 8 * 10**6
        assert backend.peak_memory(restart=True)[1] >= 8 * 10**6
        assert backend.peak_memory()[1] < 8 * 10**6
        tracemalloc.stop()


def test_a_program_computes_floats_of_the_usual_widths_alone() -> None:
    with use_backend("numpy"):
        backend = op_globals.active().backend
        for kind, taken in (("f4", True), ("f8", True), ("f2", True), ("i4", False), ("c8", False)):
            assert backend.traits_of([[np.ones(3, kind)], [np.full(3, 2, kind)]]).fit_programs is taken
        assert not backend.traits_of([[np.ones(3, "f4")], [np.ones(3)]]).fit_programs
        assert not backend.traits_of([[np.ma.ones(3)], [np.ones(3)]]).fit_programs
