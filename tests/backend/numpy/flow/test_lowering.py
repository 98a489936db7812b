"""Functions compiled on NumPy give the bits and layouts of the ops, whatever native calls their programs make."""

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.numpy.flow.compilation import NumpyFunction
from emberharmony.core import selection


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"), np.errstate(all="ignore"):
        yield


def f(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng([seed, *shape]).normal(3.0, 1.0, shape), dtype)


def again(x: Any) -> Any:
    """Returns other values of the same kind in the same layout."""
    return np.multiply(x, x.dtype.type(2), out=np.empty_like(x))


def same(found: Any, wanted: Any) -> bool:
    """Returns whether results are equal in dtype, shape, layout and values."""
    return all(
        (x.dtype, x.shape) == (y.dtype, y.shape)
        and (not x.size or x.strides == y.strides)
        and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")
        for x, y in zip(ops.tree_leaves(found), ops.tree_leaves(wanted), strict=True)
    )


def natives(function: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns the functions that a program calls, after checks that it gives what the function gives."""
    compiled = NumpyFunction(function, selection.current())
    for given in (args, args, tuple(map(again, args))):
        assert same(compiled(*given), function(*given))
    program = compiled._last_program
    assert program is not None
    scope = inspect.getclosurevars(vars(program)["replay"]).nonlocals
    return [x for name, x in scope.items() if name.startswith("k") and callable(x)]


T = np.transpose
# A function, its arguments, and the calls of NumPy in its program; None if it calls the op's own function.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str | None]] = {
    **{
        f"{name} of {x.shape} {x.dtype} along {axis}{' kept' if kept else ''}": (
            lambda x, name=name, axis=axis, kept=kept: getattr(ops, name)(x, axis=axis, keepdims=kept),
            (x,),
            None
            if (x.size > 4096 and axis != 1) or x.dtype.char not in "fd"
            else "divide reduce"
            if name == "mean"
            else "reduce",
        )
        for name in ("sum", "mean", "max", "min")
        for x, axis, kept in (
            (f(64, 64), 0, False),
            (f(64, 65), 0, False),
            (f(64, 65), 1, True),
            (f(3, 4), None, False),
            (f(3, 4), [0, 1], True),
            (f(3, 4), (), False),
            (f(3, 0), 0, False),
            (f(), None, False),
            (T(f(3, 4)), 0, False),
            (f(3, 4, dtype="float64"), -1, True),
            (f(3, 4, dtype="float16"), 0, False),
            (f(3, 4, dtype="int32"), 0, False),
        )
    },
    "sum in a dtype": (lambda x: ops.sum(x, dtype="float64"), (f(3),), None),
    "max with an initial value": (lambda x: ops.max(x, initial=99.0), (f(3),), None),
    "logsumexp": (
        lambda x: ops.logsumexp(x, 0),
        (f(3, 4),),
        "add exp isfinite log reduce squeeze subtract where",
    ),
    "logsumexp kept": (
        lambda x: ops.logsumexp(x, 0, True),
        (f(3, 4),),
        "add exp isfinite log reduce subtract where",
    ),
    "logsumexp of many": (lambda x: ops.logsumexp(x, 0), (f(64, 65),), None),
    "softmax": (lambda x: ops.softmax(x), (f(3, 4),), "divide exp reduce subtract"),
    "softmax of few": (lambda x: ops.softmax(x, 0), (f(64, 64),), "divide exp reduce subtract"),
    "softmax of many": (lambda x: ops.softmax(x, 0), (f(64, 65),), None),
    "softmax of nothing": (lambda x: ops.softmax(x), (f(3, 0),), None),
    "softmax without axes": (lambda x: ops.softmax(x, ()), (f(),), None),
    "softmax in half precision": (lambda x: ops.softmax(x), (f(3, 4, dtype="float16"),), None),
    "softmax of integers": (lambda x: ops.softmax(x), (f(3, 4, dtype="int64"),), None),
    "log_softmax": (lambda x: ops.log_softmax(x, 0), (f(3, 4),), "exp log reduce subtract"),
    "log_softmax of many": (lambda x: ops.log_softmax(x, 0), (f(64, 65),), None),
    "log_softmax without axes": (lambda x: ops.log_softmax(x, ()), (f(),), None),
    "softmax of many along the last axis": (lambda x: ops.softmax(x), (f(64, 65),), None),
    "sum of many, transposed": (lambda x: ops.sum(x, axis=1), (T(f(64, 65)),), None),
    "sum of many": (lambda x: ops.sum(x), (f(4160),), "reduce"),
    "sum of many with two axes": (lambda x: ops.sum(x), (f(64, 65),), None),
    "fft": (lambda x: ops.fft.fft(x, 5), (f(3, 4),), "fft"),
    "ifft": (lambda x: ops.fft.ifft(x, axis=0), (f(3, 4, dtype="complex64"),), "ifft"),
    "rfft": (lambda x: ops.fft.rfft(x, norm="ortho"), (f(3, 4),), "rfft"),
    "irfft": (lambda x: ops.fft.irfft(x, fft_length=5), (f(3, 4, dtype="complex128"),), "irfft"),
    "rfft of integers": (lambda x: ops.fft.rfft(x), (f(3, 4, dtype="int64"),), None),
    "irfft of nothing": (lambda x: ops.fft.irfft(x, 4), (f(3, 0, dtype="complex64"),), None),
    "a complex and a real factor": (lambda x, y: ops.multiply(x, y), (f(3, dtype="complex64"), f(3)), "multiply"),
    "a narrow and a wide factor": (lambda x, y: ops.multiply(x, y), (f(3), f(3, dtype="float64")), "multiply"),
    "an integer and a real factor": (lambda x, y: ops.multiply(x, y), (f(3, dtype="int64"), f(3)), None),
    "integers of two dtypes": (lambda x, y: ops.divide(x, y), (f(3, dtype="int64"), f(3, dtype="int32")), None),
    "linear": (lambda x, w: ops.linear(x, w), (f(2, 3), f(3, 4)), "matmul"),
    "linear transposed": (lambda x, w, b: ops.linear(x, w, b, True), (f(2, 3), f(4, 3), f(4)), "add matmul transpose"),
    "linear of a vector": (lambda x, w: ops.linear(x, w), (f(3), f(3, 4)), None),
    "linear of three axes": (lambda x, w: ops.linear(x, w), (f(2, 2, 3), f(3, 4)), None),
    "linear of nothing": (lambda x, w: ops.linear(x, w), (f(0, 3), f(3, 4)), None),
    "linear in half precision": (
        lambda x, w: ops.linear(x, w),
        (f(2, 3, dtype="float16"), f(3, 4, dtype="float16")),
        None,
    ),
    "linear of two dtypes": (lambda x, w: ops.linear(x, w), (f(2, 3), f(3, 4, dtype="float64")), None),
    "linear with a wide bias": (lambda x, w, b: ops.linear(x, w, b), (f(2, 3), f(3, 4), f(4, dtype="float64")), None),
    "rsqrt": (lambda x: ops.rsqrt(x), (f(3),), "divide sqrt"),
    "rsqrt in half precision": (lambda x: ops.rsqrt(x), (f(3, dtype="float16"),), None),
    "cast": (lambda x: ops.cast(x, "float64"), (f(3),), "astype"),
    "cast of complex numbers": (lambda x: ops.cast(x, "float64"), (f(3, dtype="complex64"),), None),
    "cast to the same": (lambda x: ops.add(ops.cast(x, "float32"), x), (f(3),), "add"),
    "a number first": (lambda x: ops.subtract(1.5, x), (f(3),), "subtract"),
    "an integer first": (lambda x: ops.divide(1, x), (f(3, dtype="float64"),), "divide"),
    "a boolean first": (lambda x: ops.add(True, x), (f(3),), None),
    "a number before half precision": (lambda x: ops.subtract(1.5, x), (f(3, dtype="float16"),), None),
    "a number before integers": (lambda x: ops.subtract(1.5, x), (f(3, dtype="int32"),), None),
    "a number too large": (lambda x: ops.multiply(x, 1e39), (f(3),), "multiply"),
    "an infinite number": (lambda x: ops.add(x, float("inf")), (f(3),), "add"),
    "zeros of both signs": (lambda x: (ops.divide(x, 0.0), ops.divide(x, -0.0)), (f(3),), "divide"),
    "expand_dims": (lambda x: ops.expand_dims(x, (0, -1)), (f(2, 3),), "reshape"),
    "squeeze": (lambda x: ops.squeeze(x, [0]), (f(1, 3),), "squeeze"),
    "squeeze without axes": (lambda x: ops.add(ops.squeeze(x), 1.0), (f(),), "add"),
    "get_item": (lambda x: x[1:, ..., None, 0], (f(3, 4),), "getitem"),
    "get_item by indices": (lambda x: ops.get_item(x, [0, 1]), (f(3, 4),), None),
    "get_item by a boolean": (lambda x: ops.get_item(x, (True, 0)), (f(3, 4),), None),
    "reshape": (lambda x: ops.reshape(x, (-1,)), (T(f(3, 4)),), "reshape"),
    "reshape with a copy": (lambda x: ops.reshape(x, (-1,), copy=True), (f(3, 4),), None),
    "transpose": (lambda x: ops.transpose(x, (1, 0)), (f(3, 4),), "transpose"),
    "matrix_transpose": (lambda x: ops.matrix_transpose(x), (f(2, 3, 4),), "swapaxes"),
    "swapaxes": (lambda x: ops.swapaxes(x, 0, -1), (f(2, 3, 4),), "swapaxes"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_program_makes_the_calls_of_numpy_where_these_give_the_same(name: str) -> None:
    function, args, wanted = CASES[name]
    found = natives(function, *args)
    assert any(isinstance(x, FunctionType | MethodType) for x in found) is (wanted is None)
    if wanted is not None:
        assert {x.__name__ for x in found} == {*wanted.split()}


UNARY = (ops.tanh, ops.negative, ops.square, ops.transpose, lambda x: x[::-1], lambda x: ops.get_item(x, slice(0, 99)))
BINARY = (ops.add, ops.multiply, ops.subtract, ops.maximum, ops.minimum, ops.matmul)
OTHERS = (
    lambda x: ops.multiply(x, 0.5),
    lambda x: ops.subtract(1.0, x),
    lambda x: ops.sum(x, axis=0, keepdims=True),
    lambda x: ops.reshape(ops.reshape(x, (-1,)), x.shape),
    lambda x: ops.where(ops.greater(x, 0.0), x, 0.25),
    lambda x: ops.broadcast_to(ops.max(x, axis=1, keepdims=True), x.shape),
    lambda x: ops.concatenate([x[1:], x[:1]]),
    lambda x: ops.take(x, [0, 0], 0),
)


def program(seed: int) -> Callable[[Any, Any], Any]:
    """Returns a function of random ops, some of which it calls twice, with some of their results as its results."""

    def function(x: Any, y: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = [x, y]
        for _ in range(14):
            some = [values[i] for i in rng.integers(0, len(values), 2)]
            kind = rng.integers(0, 3)
            if kind == 0:
                made = UNARY[rng.integers(len(UNARY))](some[0])
            elif kind == 1:
                op = BINARY[rng.integers(len(BINARY))]
                pair = some if op is ops.matmul or some[0].shape == some[1].shape else [some[0], some[0]]
                made = op(*(pair if pair[0].shape[-1] == pair[1].shape[0] else [x, y]))
            else:
                made = OTHERS[rng.integers(len(OTHERS))](some[0])
            values.append(ops.clip(made, -9.0, 9.0) if kind == 1 else made)
        return [values[i] for i in rng.integers(0, len(values), 4)], values[-1]

    return function


@pytest.mark.parametrize("length", [1, 5, 160])
def test_random_programs_give_what_the_functions_give(length: int) -> None:
    for seed in range(40 if length < 100 else 12):
        function = program(seed)
        compiled = NumpyFunction(function, selection.current())
        given = [f(length, length, dtype="float32" if seed % 3 else "float64", seed=i) - 3 for i in range(2)]
        given = [T(given[0]), given[1]] if seed % 4 == 0 else given
        before = [x.copy() for x in given]
        earlier = [compiled(*given) for _ in range(3)]
        copies = [[x.copy() for x in ops.tree_leaves(each)] for each in earlier]
        for each in (*earlier, compiled(*given)):
            assert same(each, function(*given)), seed
        other = [again(x) for x in given]
        found, wanted = compiled(*other), function(*other)
        assert same(found, wanted), seed
        assert shared(found) == shared(wanted), seed
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(given, before, strict=True))
        for one, copied in zip(earlier, copies, strict=True):
            assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(ops.tree_leaves(one), copied, strict=True))


def shared(results: Any) -> list[bool]:
    leaves = ops.tree_leaves(results)
    return [np.may_share_memory(x, y) for i, x in enumerate(leaves) for y in leaves[:i]]


@pytest.mark.parametrize(
    "chosen",
    [
        lambda x: ops.get_item(x, ops.greater(x, 0.0)),
        lambda x: ops.cast(ops.nonzero(ops.greater(x, 0.0))[0], "float32"),
        lambda x: ops.unique(ops.sign(x)),
    ],
)
def test_what_follows_a_shape_that_depends_on_values_is_computed_anew(chosen: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        return ops.mean(chosen(x)), ops.reshape(chosen(x), (-1, 1)), ops.sum(ops.ones_like(chosen(x)))

    compiled = ops.compile(function)
    for x in ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [-1.0, 2.0, -3.0, 4.0], [1.0, 0.0, -3.0, 9.0]):
        given = np.array(x, np.float32)
        assert same(compiled(given), function(given))
