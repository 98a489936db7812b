"""Gradients, vmap, compile and loops over functions of arrays."""

from typing import Any

import numpy as np

from emberharmony import ops


def test_derivatives(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0])

    def cube(a: Any) -> Any:
        return xp.sum(a**3)

    assert np.allclose(np.asarray(xp.grad(cube)(x)), [3.0, 12.0])
    value, slope = xp.value_and_grad(cube)(x)
    assert type(value) is type(slope) is xp.Array
    assert np.allclose(float(value), 9.0)
    assert np.allclose(np.asarray(xp.jacobian(lambda a: a * a)(x)), [[2.0, 0.0], [0.0, 4.0]])
    assert np.allclose(np.asarray(xp.hessian(cube)(x)), [[6.0, 0.0], [0.0, 12.0]])
    result, pull = xp.vjp(lambda a: a * 2.0, x)
    assert (result.tolist(), pull(x)[0].tolist()) == ([2.0, 4.0], [2.0, 4.0])
    result, slope = xp.jvp(lambda a: a * 2.0, (x,), (x,))
    assert (result.tolist(), slope.tolist()) == ([2.0, 4.0], [2.0, 4.0])


def test_arguments_may_be_trees_of_arrays(xp: Any) -> None:
    tree = {"w": xp.asarray([1.0, 2.0]), "b": xp.asarray(3.0)}
    slopes = xp.grad(lambda t: xp.sum(t["w"] * t["b"]))(tree)
    assert {name: type(x) for name, x in slopes.items()} == dict.fromkeys(tree, xp.Array)
    assert (slopes["w"].tolist(), slopes["b"].tolist()) == ([3.0, 3.0], 3.0)


def test_vmap_and_compile(xp: Any) -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert xp.vmap(lambda row: row * row[0])(x).tolist() == [[1.0, 2.0], [9.0, 12.0]]
    double = xp.compile(lambda a: a * 2.0)
    for _ in range(2):
        assert type(double(x)) is xp.Array
        assert double(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_functions_written_with_ops_differentiate_arrays(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0])
    assert type(ops.grad(lambda a: ops.sum(ops.square(a)))(x)) is xp.Array
    assert type(xp.grad(lambda a: ops.sum(a) * xp.sum(a))(x)) is xp.Array
    assert ops.vmap(lambda a: ops.multiply(a, 2.0))(x).tolist() == [2.0, 4.0]


def test_an_array_beside_a_tensor_that_is_differentiated(xp: Any) -> None:
    weight = xp.asarray([1.0, 2.0])
    slope = ops.grad(lambda t: ops.sum(ops.multiply(t, weight)))(ops.ones(2))
    assert np.asarray(ops.to_numpy(slope)).tolist() == [1.0, 2.0]


def test_loops_and_conditions(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0])
    assert xp.cond(xp.asarray(True), lambda a: a * 2.0, lambda a: a, x).tolist() == [2.0, 4.0]
    total, parts = xp.scan(lambda carry, a: (carry + a, carry), xp.asarray(0.0), x)
    assert (float(total), parts.tolist()) == (3.0, [0.0, 1.0])


def test_random_numbers(xp: Any) -> None:
    drawn = xp.random.normal((3,), seed=xp.random.Generator(0))
    assert type(drawn) is xp.Array
    assert drawn.shape == (3,)


def test_a_write_into_an_argument_does_not_reach_the_caller(xp: Any) -> None:
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])

    def written(a: Any) -> Any:
        a[0] = 9.0
        a += 1.0
        return xp.sum(a)

    for call in (xp.grad(written), xp.vmap(written), xp.compile(written), xp.value_and_grad(written)):
        call(x)
        assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
