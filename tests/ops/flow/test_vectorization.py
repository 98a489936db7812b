"""`vmap` and `vectorize`: axes, random draws, and other transforms inside and outside."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import EmberError, ShapeError
from tests.ops.trees import lists, near
from tests.together import together


def test_vmap_maps_and_returns_the_given_axes(backend: str) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    assert near(ops.vmap(ops.dot, in_axes=(0, None))(ops.array(x), ops.array(y)), x @ y)
    assert near(ops.vmap(ops.add, in_axes=(-1, 0))(ops.array(x), ops.array(y)), (x + y).T)
    tree = ops.vmap(
        lambda d, s: {"k": ops.multiply(d["x"], s), "one": 1}, in_axes=({"x": 1, "y": None}, 0), out_axes=-1
    )
    assert near(tree({"x": ops.array(x), "y": "unmapped"}, ops.array(y))["k"], x * y)
    assert lists(tree({"x": ops.array(x), "y": "unmapped"}, ops.array(y))["one"]) == [1, 1, 1]


@pytest.mark.parametrize("axes", [(0,), 0])
def test_vmap_maps_all_leaves_of_an_argument_by_its_axis(backend: str, axes: Any) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(2.0)
    found = ops.vmap(lambda tree: ops.multiply(tree["x"], tree["y"][0]), in_axes=axes)({"x": x, "y": [y]})
    assert near(found, x * y[:, None])


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


X, M = np.arange(24.0).reshape(2, 3, 4), np.array([[2.0, 0.3, 0.1], [0.4, 3.0, 0.2], [0.5, 0.6, 4.0]])
V, PLACES, SCALARS = np.arange(1.0, 7.0).reshape(2, 3), np.array([0, 2]), np.array([1.5, -2.0])
RARE: dict[str, tuple[Any, ...]] = {
    "places in all elements": (lambda x, i: ops.take_along_axis(x, i, axis=None), X, [[0, 5], [7, 1]]),
    "places of another rank": (lambda x, i: ops.take_along_axis(x, i, axis=0), X, [[0, 1], [2, 1]]),
    "a truth value as index": (lambda x: ops.get_item(x, True), X),
    "lists apart": (lambda x: ops.get_item(x, ([0, 1], slice(None, 1), [1, 0])), np.arange(48.0).reshape(2, 3, 2, 4)),
    "mapped places apart": (lambda x, i: ops.get_item(x, (i, slice(None), i)), np.ones((2, 3, 4, 3)), PLACES),
    "a mapped place and a list": (lambda x, i: ops.get_item(x, (i, [0, 1])), X, PLACES),
    "a mapped place and a mask": (lambda x, i: ops.get_item(x, (i, ops.array([True, False, True, False]))), X, PLACES),
    "a mapped mask": (lambda x, i: ops.sum(ops.get_item(x, i)), V, V > 2),
    "a list of mapped places": (lambda x, i: ops.take(x, [i, i], axis=0), X, PLACES),
    "places that are no integers": (lambda x, i: ops.take(x, i, axis=0), X, SCALARS),
    "mapped starts": (lambda x, i: ops.slice(x, (i, 0), (1, 2)), X, [0, 1]),
    "starts of one tensor": (lambda i: ops.slice(ops.array(X[0]), i, (1, 2)), [[0, 1], [1, 2]]),
    "a tensor of starts": (lambda x, i: ops.slice_update(x, i, ops.ones((1, 2), "float64")), X, [[0, 1], [1, 2]]),
    "a list of starts": (lambda x, i: ops.slice_update(x, (i, i), ops.ones((1, 2), "float64")), X, [0, 1]),
    "indices without axes": (lambda x, i: ops.scatter_update(x, i, 9.0), V, PLACES),
    "updates that broadcast": (lambda x, u: ops.scatter_update(x, [[0], [2]], u), X, SCALARS),
    "no axis to sum": (lambda x: ops.sum(x, axis=0), SCALARS),
    "no axis to add along": (lambda x: ops.cumsum(x, axis=0), SCALARS),
    "a mapped option": (lambda x, i: ops.var(x, axis=0, correction=i), X, SCALARS),
    "a product of numbers": (lambda x: ops.matmul(x, x), SCALARS),
    "a product of other lengths": (lambda x: ops.matmul(x, ops.ones((5, 2), "float64")), X),
    "a column times a row": (lambda x: ops.matmul(ops.reshape(x, (3, 1)), ops.reshape(x, (1, 3))), V),
    "a matrix times a vector": (lambda x: ops.matmul(ops.array(M), x), V),
    "subscripts that are no text": (lambda x: ops.einsum(3, x), V),
    "a term too many": (lambda x: ops.einsum("i,i->i", x), V),
    "the first axes": (lambda x, v: ops.vecdot(x, v, axis=0), np.arange(18.0).reshape(2, 3, 3), V),
    "dot products of numbers": (lambda x: ops.vecdot(x, x), SCALARS),
    "a mapped tensor as a list": (lambda x: (ops.stack(x), ops.concatenate(x)), X),
    "a mapped shift": (lambda x, i: (ops.roll(x, i, 0), ops.roll(x, i)), X, PLACES),
    "a mapped filling": (lambda x, c: ops.pad(x, 1, constant_values=c), X, SCALARS),
    "a diagonal by a NumPy integer": (lambda x: ops.diag(x, np.int64(1)), V),
    "a diagonal of a number": (lambda x: ops.diag(x), SCALARS),
    "a vector on the right": (lambda a, b: ops.solve(a, b), np.stack([M, M + 1]), V),
    "one matrix": (lambda b: ops.solve(ops.array(M), b), V),
    "no matrix": (lambda a: ops.solve(a, ops.ones(3, "float64")), V),
    "too few axes to permute": (lambda x: ops.transpose(x, (0,)), X),
    "too few lengths": (lambda x: ops.broadcast_to(x, (4,)), X),
    "the transpose of a vector": (lambda x: ops.matrix_transpose(x), V),
}


@together("rare", list(RARE))
def test_a_rare_call_under_vmap_gives_or_raises_what_it_does_for_slices(rare: str, backend: str) -> None:
    function, *arrays = RARE[rare]
    given = [ops.array(np.asarray(array)) for array in arrays]
    slices = [[ops.get_item(x, i) for x in given] for i in range(2)]
    try:
        results = [ops.tree_leaves(function(*each)) for each in slices]
    except EmberError as error:
        with pytest.raises(type(error)):
            ops.vmap(function)(*given)
        return
    for got, *wanted in zip(ops.tree_leaves(ops.vmap(function)(*given)), *results, strict=True):
        want = np.stack([ops.to_numpy(x) for x in wanted])
        assert ops.to_numpy(got).dtype == want.dtype
        np.testing.assert_allclose(ops.to_numpy(got), want, rtol=1e-12)
