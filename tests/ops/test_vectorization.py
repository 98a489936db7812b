"""`vmap` and `vectorize`: axes, random draws, and other transforms inside and outside."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from tests.ops.trees import lists, near


def test_vmap_maps_and_returns_the_given_axes(backend: str) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    assert near(ops.vmap(ops.dot, in_axes=(0, None))(ops.array(x), ops.array(y)), x @ y)
    assert near(ops.vmap(ops.add, in_axes=(-1, 0))(ops.array(x), ops.array(y)), (x + y).T)
    tree = ops.vmap(
        lambda d, s: {"k": ops.multiply(d["x"], s), "one": 1}, in_axes=({"x": 1, "y": None}, 0), out_axes=-1
    )
    assert near(tree({"x": ops.array(x), "y": "unmapped"}, ops.array(y))["k"], x * y)
    assert lists(tree({"x": ops.array(x), "y": "unmapped"}, ops.array(y))["one"]) == [1, 1, 1]


def test_vmap_combines_with_derivatives_and_with_itself(backend: str) -> None:
    x = ops.array([0.1, 0.7, -0.3])
    assert near(ops.vmap(ops.grad(ops.tanh))(x), 1 - np.tanh([0.1, 0.7, -0.3]) ** 2)
    assert near(ops.grad(lambda x: ops.sum(ops.vmap(ops.tanh)(x)))(x), 1 - np.tanh([0.1, 0.7, -0.3]) ** 2)
    outer = ops.vmap(ops.vmap(ops.multiply, in_axes=(None, 0)), in_axes=(0, None))(x, x)
    assert near(outer, ops.outer(x, x))


def test_vmap_works_for_functions_that_the_library_cannot_vectorize(backend: str) -> None:
    branch = ops.vmap(ops.grad(lambda x: ops.sin(x) if x > 0 else ops.negative(x)))
    assert near(branch([1.0, -2.0]), np.array([np.cos(1.0), -1.0]))
    reads = ops.vmap(lambda x: ops.multiply(x, float(ops.sum(x))))
    assert lists(reads([[1.0, -2.0], [3.0, 4.0]])) == [[-1.0, 2.0], [21.0, 28.0]]
    matrices = np.array([[[2.0, 0.3], [0.1, 1.5]], [[1.0, 0.2], [0.4, 3.0]]])
    gradient = ops.grad(lambda a: ops.sum(ops.square(ops.vmap(ops.inv)(a))))(ops.array(matrices))
    assert near(gradient, ops.grad(lambda a: ops.sum(ops.square(ops.inv(a))))(ops.array(matrices)))


@pytest.mark.parametrize("reduction", [None, "add", "max", "min", "mul"])
def test_vmap_over_the_indices_of_scatter_update(reduction: str | None, backend: str) -> None:
    x, updates = ops.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), ops.array([10.0, 0.5])
    places = ops.array([[[0], [1]], [[2], [1]]])

    def f(x: Any, at: Any) -> Any:
        return ops.scatter_update(x, at, updates, reduction)

    for mapped, one in ((f, f), (ops.grad(lambda x, at: ops.sum(ops.square(f(x, at)))),) * 2):
        wanted = [lists(one(ops.get_item(x, i), ops.get_item(places, i))) for i in range(2)]
        assert lists(ops.vmap(mapped)(x, places)) == wanted


def test_vmap_draws_different_numbers_for_each_slice(backend: str) -> None:
    drawn = lists(ops.vmap(lambda x: ops.add(x, ops.random.uniform(())))(ops.zeros(4)))
    assert len(set(drawn)) == 4
    generator = ops.random.Generator(3)
    mapped = ops.vmap(lambda x: ops.add(x, ops.random.uniform((), generator=generator)))(ops.zeros(3))
    generator = ops.random.Generator(3)
    assert lists(mapped) == [lists(ops.random.uniform((), generator=generator)) for _ in range(3)]


def test_vectorized_map_and_vectorize_agree_with_numpy(backend: str) -> None:
    pairs = ops.vectorized_map(lambda t: ops.subtract(t[0], t[1]), (ops.ones((3,)), ops.array([1.0, 2.0, 3.0])))
    assert lists(pairs) == [0.0, -1.0, -2.0]
    product = ops.vectorize(ops.matmul, signature="(m,n),(n)->(m)")
    a, b = np.random.default_rng(0).normal(size=(3, 1, 2, 4)), np.random.default_rng(1).normal(size=(5, 4))
    assert near(product(ops.array(a), ops.array(b)), np.vectorize(np.matmul, signature="(m,n),(n)->(m)")(a, b))
    scaled = ops.vectorize(lambda x, k: ops.multiply(x, len(k)), excluded=[1])
    assert lists(scaled([[1.0, 2.0]], "abc")) == [[3.0, 6.0]]


@pytest.mark.parametrize("in_axes", [(None, 0), (None, {"x": 0})], ids=["plain", "tree"])
def test_a_list_that_the_function_changes_is_its_own(in_axes: Any, backend: str) -> None:
    weights = [ops.array([1.0, 2.0]), ops.array([3.0, 4.0])]

    def total(weights: list[Any], x: Any) -> Any:
        found = ops.multiply(weights.pop(), x["x"] if isinstance(x, dict) else x)
        weights.append(found)
        return ops.sum(found)

    x = ops.array([1.0, 2.0, 3.0])
    found = ops.vmap(total, in_axes=in_axes)(weights, x if in_axes == (None, 0) else {"x": x})
    assert found.tolist() == [7.0, 14.0, 21.0]
    assert [weight.tolist() for weight in weights] == [[1.0, 2.0], [3.0, 4.0]]


def test_vmap_refuses_axes_of_different_lengths_also_if_they_broadcast(backend: str) -> None:
    for other in (ops.ones(1), ops.ones(2)):
        with pytest.raises(ShapeError, match="must be equal"):
            ops.vmap(ops.add)(ops.ones(3), other)


def test_a_mapped_function_takes_trees_of_several_structures(backend: str) -> None:
    total = ops.vmap(lambda tree: sum(map(ops.sum, tree.values()), ops.zeros(())))
    x = ops.array([[1.0, 2.0], [3.0, 4.0]])
    for tree in ({"a": x}, {"a": x, "b": x}, {"a": x}, {"a": x, "b": x, "c": x}):
        assert lists(total(tree)) == [3.0 * len(tree), 7.0 * len(tree)]


def test_a_jacobian_belongs_to_one_draw(backend: str) -> None:
    def noisy(a: Any, b: Any) -> Any:
        return ops.multiply(ops.add(ops.sum(a), b), ops.random.uniform(()))

    for jacobian in (ops.jacfwd, ops.jacobian):
        by_a, by_b = jacobian(noisy, (0, 1))(ops.ones(2), 1.0)
        assert lists(by_a) == [lists(by_b)] * 2
