"""Loops and branches of `ops/flow/control.py` over trees, also inside transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors


def lists(tree: Any) -> Any:
    """Returns a tree with numbers and lists instead of tensors."""
    return ops.tree_map(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, tree)


def test_cond_runs_only_the_chosen_branch(backend: str) -> None:
    ran = []

    def branch(name: str) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            ran.append(name)
            return ops.square(x) if name == "true" else ops.negative(x)

        return run

    def f(x: Any) -> Any:
        return ops.cond(ops.greater(x, 0.0), branch("true"), branch("false"), x)

    assert lists(f(ops.array(3.0))) == 9.0
    assert lists(ops.grad(f)(-2.0)) == -1.0
    assert ran == ["true", "false"]
    assert lists(ops.cond(False, lambda: 1, lambda: 2)) == 2


def test_branches_under_vmap_are_chosen_for_each_slice(backend: str) -> None:
    x = ops.array([1.0, -2.0, 3.0])

    def f(x: Any) -> Any:
        return ops.cond(ops.greater(x, 0.0), lambda: {"y": ops.square(x)}, lambda: {"y": ops.negative(x)})["y"]

    assert lists(ops.vmap(f)(x)) == [1.0, 2.0, 9.0]
    assert lists(ops.vmap(ops.grad(f))(x)) == [2.0, -1.0, 6.0]
    branches = [lambda: ops.array(10.0), lambda: ops.array(20.0), lambda: ops.array(30.0)]
    wanted = [10.0, 10.0, 20.0, 30.0, 30.0]
    assert lists(ops.vmap(lambda i: ops.switch(i, branches))(ops.array([-1, 0, 1, 2, 9]))) == wanted
    assert [lists(ops.switch(ops.array(i), branches)) for i in (-1, 0, 1, 2, 9)] == wanted


def test_while_loop_stops_and_has_gradients_and_maps(backend: str) -> None:
    found = ops.while_loop(
        lambda i, s: ops.less(i, 5), lambda i, s: (ops.add(i, 1), ops.add(s, i)), [ops.array(0), ops.array(0)]
    )
    assert lists(found) == (5, 10)
    assert lists(ops.while_loop(lambda i: True, lambda i: ops.add(i, 1), ops.array(0), maximum_iterations=4)) == 4

    def f(x: Any) -> Any:
        return ops.while_loop(lambda y: ops.less(y, 100.0), lambda y: ops.multiply(y, x), x)

    assert lists(ops.grad(f)(3.0)) == 405.0
    assert lists(ops.vmap(f)([2.0, 3.0, 5.0])) == [128.0, 243.0, 125.0]


def test_fori_loop_carries_its_value_and_map_returns_trees(backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0])
    assert lists(ops.fori_loop(0, 3, lambda i, v: ops.add(ops.multiply(v, 10.0), ops.get_item(x, i)), 0.0)) == 123.0
    assert ops.fori_loop(3, 3, lambda i, v: None, "untouched") == "untouched"
    assert lists(ops.map(lambda e: {"double": ops.add(e, e)}, x)) == {"double": [2.0, 4.0, 6.0]}


def test_scan_carries_a_tree_in_both_directions(backend: str) -> None:
    x = ops.array([1.0, 2.0, 3.0])

    def f(carry: Any, element: Any) -> Any:
        total = ops.add(carry["n"], element[0])
        return {"n": total}, (total, None)

    assert lists(ops.scan(f, {"n": 1.0}, (x, x))) == ({"n": 7.0}, ([2.0, 4.0, 7.0], None))
    assert lists(ops.scan(f, {"n": 1.0}, (x, x), reverse=True, unroll=2)) == ({"n": 7.0}, ([7.0, 6.0, 4.0], None))
    assert lists(ops.scan(lambda c, _: (ops.add(c, 1.0), c), 0.0, length=3)) == (3.0, [0.0, 1.0, 2.0])
    product = ops.grad(lambda x: ops.scan(lambda c, e: (ops.multiply(c, e), None), ops.array(1.0), x)[0])
    assert lists(product(x)) == [6.0, 3.0, 2.0]


@given(st.integers(1, 9), st.booleans(), st.sampled_from([0, 1, -1]))
def test_associative_scan_with_add_is_the_cumulative_sum(n: int, reverse: bool, axis: int) -> None:
    host = np.random.default_rng(n).integers(-5, 5, (n, n, n))
    flipped = np.flip(host, axis) if reverse else host
    wanted = np.cumsum(flipped, axis=axis)
    found = ops.associative_scan(ops.add, ops.array(host), reverse=reverse, axis=axis)
    assert np.array_equal(ops.to_numpy(found), np.flip(wanted, axis) if reverse else wanted)


def test_associative_scan_keeps_the_order_of_matrix_products(backend: str) -> None:
    matrices = np.random.default_rng(0).normal(size=(6, 2, 2))
    products = [matrices[0]]
    for matrix in matrices[1:]:
        products.append(products[-1] @ matrix)
    found = ops.associative_scan(lambda a, b: {"m": ops.matmul(a["m"], b["m"])}, {"m": ops.array(matrices)})
    assert np.allclose(ops.to_numpy(found["m"]), np.stack(products))
    gradient = ops.grad(lambda x: ops.sum(ops.associative_scan(ops.multiply, x)))([1.0, 2.0, 3.0, 4.0])
    assert lists(gradient) == [33.0, 16.0, 10.0, 6.0]


def refusals() -> list[Any]:
    ones = np.ones(3, np.float32)
    return [
        (lambda: ops.cond(ones, lambda: 1, lambda: 2), errors.ShapeError, r"cond\(\) expects a scalar"),
        (lambda: ops.switch(0, []), errors.ArgumentError, "at least one branch"),
        (lambda: ops.while_loop(lambda x: ones, lambda x: x, ones), errors.ShapeError, r"while_loop\(\)"),
        (lambda: ops.while_loop(lambda a, b: True, lambda a, b: a, (1, 2)), errors.ArgumentError, "2 variables"),
        (lambda: ops.scan(lambda c, x: (c, x), 0.0), errors.ArgumentError, "xs or length"),
        (lambda: ops.scan(lambda c, x: (c, x), 0.0, ones, length=2), errors.ShapeError, r"\[2, 3\]"),
        (lambda: ops.scan(lambda c, x: (c, x), 0.0, length=0), errors.ShapeError, "an axis of length 0"),
        (lambda: ops.scan(lambda c, x: ((c, c), x), 0.0, ones), errors.ArgumentError, "carry"),
        (lambda: ops.map(lambda x: x, 3.0), errors.ShapeError, "first axis"),
        (lambda: ops.associative_scan(lambda a, b: a, 3.0), errors.AxisError, "axis 0 is out of range"),
        (lambda: ops.associative_scan(lambda a, b: a, (ones, ones[:2])), errors.ShapeError, r"\[2, 3\]"),
        (lambda: ops.vmap(lambda x: ops.cond(x > 1, lambda: x, lambda: (x, x)))(ones), None, "same tree"),
    ]


@pytest.mark.parametrize("call,kind,message", refusals())
def test_wrong_arguments_are_refused(
    call: Callable[[], Any], kind: type[Exception] | None, message: str, backend: str
) -> None:
    if kind is None:
        # NumPy and Dask map slices one by one, so only one branch runs and the trees are not compared.
        kind = errors.ArgumentError
        if backend in ("numpy", "dask"):
            pytest.skip("only one branch runs")
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ops.cond(True, 1, 2), r"cond\(\) takes a function, not int"),
        (lambda: ops.switch(0, [1]), r"switch\(\) takes a function, not int"),
        (lambda: ops.scan(lambda c, x: c, 0.0, [1.0]), r"expected f to return a pair \(carry, y\)"),
    ],
)
def test_an_argument_that_is_not_a_function_is_refused(call: Any, told: str, backend: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=told):
        call()


def test_scan_without_a_tensor_in_xs_is_refused(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match="this xs holds no tensor"):
        ops.scan(lambda c, x: (c, x), 0.0, [])


WRONG: dict[str, tuple[Callable[[], object], type[errors.EmberError], str]] = {
    "a branch": (lambda: ops.cond(True, 1, ops.sin), errors.ArgumentTypeError, "takes a function, not int"),
    "a condition": (lambda: ops.while_loop(3, ops.sin, 1.0), errors.ArgumentTypeError, "takes a function, not int"),
    "a body": (lambda: ops.while_loop(ops.sin, None, 1.0), errors.ArgumentTypeError, "takes a function"),
    "a count": (lambda: ops.while_loop(ops.sin, ops.sin, 1.0, "9"), errors.ArgumentTypeError, "str"),
    "a bound": (lambda: ops.fori_loop(0, "9", ops.add, 1.0), errors.ArgumentTypeError, "str"),
    "no loop": (lambda: ops.fori_loop(0, 9, [1], 1.0), errors.ArgumentTypeError, "takes a function, not list"),
    "no list": (lambda: ops.switch(1, ops.sin, 1.0), errors.ArgumentTypeError, "takes a list of branches"),
    "an index": (lambda: ops.switch([1], [ops.sin], 1.0), errors.ArgumentTypeError, "list"),
    "an index that is no number": (lambda: ops.switch(float("nan"), [ops.sin], 1.0), errors.ArgumentError, "NaN"),
    "a length": (lambda: ops.scan(lambda c, x: (c, x), 0.0, None, "a"), errors.ArgumentTypeError, "str"),
    "no scan": (lambda: ops.scan(2, 0.0, [1.0]), errors.ArgumentTypeError, "takes a function"),
    "no map": (lambda: ops.map([], [1.0]), errors.ArgumentTypeError, "takes a function"),
    "an axis": (lambda: ops.associative_scan(ops.add, [1.0, 2.0], axis=2), errors.AxisError, "axis 2"),
    "axes": (lambda: ops.associative_scan(ops.add, [1.0, 2.0], axis=(0,)), errors.ArgumentTypeError, "tuple"),
    "scalars": (lambda: ops.associative_scan(ops.add, 1.0), errors.AxisError, "axis 0"),
    "a signature": (lambda: ops.vectorize(ops.sin, signature=3), errors.ArgumentTypeError, "such as"),
    "positions": (lambda: ops.vectorize(ops.sin, excluded=3), errors.ArgumentTypeError, "as a list, not int"),
    "aux": (lambda: ops.grad(ops.sum, has_aux=[1, 2] == np.ones(2)), errors.ArgumentError, "truth value"),
    "primals": (lambda: ops.custom_vjp(ops.sin, ops.sin, 3), errors.ArgumentTypeError, "int"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arguments_of_ops_that_take_functions_raise_typed_errors(what: str, backend: str) -> None:
    call, kind, message = WRONG[what]
    with pytest.raises(kind, match=message):
        call()


class ChosenError(Exception):
    """An exception class of the caller."""


def failing(*args: Any) -> Any:
    raise ChosenError


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.cond(True, failing, ops.sin),
        lambda: ops.while_loop(failing, ops.sin, 1.0),
        lambda: ops.scan(failing, 0.0, [1.0]),
        lambda: ops.vjp(failing, ops.ones((2,))),
        lambda: ops.vectorized_map(failing, ops.ones((2,))),
        lambda: ops.custom_vjp(failing, ops.sin, [ops.ones((2,))]),
        lambda: ops.map(lambda x: np.reshape(np.ones(3), (2, 2)), [1.0]),
        lambda: ops.map(lambda x: {}["absent"], [1.0]),
    ],
)
def test_an_exception_of_the_callers_function_reaches_the_caller_unchanged(
    call: Callable[[], object], backend: str
) -> None:
    with pytest.raises((ChosenError, ValueError, KeyError)) as caught:
        call()
    assert not isinstance(caught.value, errors.EmberError)


def test_loops_hand_arrays_on_as_tensors(backend: str) -> None:
    one, zero = np.array([1.0], np.float32), np.array([0.0], np.float32)
    count, total = ops.while_loop(lambda i, _: i < 3, lambda i, total: (i + 1, total + ops.multiply(one, i)), (0, zero))
    assert count == 3
    assert total.tolist() == [3.0]
    assert ops.fori_loop(0, 3, lambda i, value: value + ops.multiply(one, i), zero).tolist() == [3.0]
    carry, sums = ops.scan(lambda carry, x: ({"a": carry["a"] + x}, carry["a"]), {"a": zero}, np.stack([one, one]))
    assert carry["a"].tolist() == [2.0]
    assert sums.tolist() == [[0.0], [1.0]]
    assert all(ops.is_tensor(x) for x in (total, carry["a"], sums))
