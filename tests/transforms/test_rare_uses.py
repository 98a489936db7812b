"""Rare arguments of transforms: what they give on every backend, and the errors that name what is wrong."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core import errors
from tests.another import another

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def lists(tree: Any) -> Any:
    return ops.tree_map(lambda x: ops.to_numpy(x).tolist(), tree)


SIGNED: dict[str, tuple[Callable[..., Any], str, tuple[Any, ...], type[Exception], str]] = {
    "arguments": (lambda a, b: a, "(n)->()", (X, X), errors.ArgumentError, "names 1 arguments, 2 were given"),
    "axes": (ops.sum, "(n,m)->()", (X[0],), errors.ShapeError, "has fewer axes than"),
    "nothing": (ops.sum, "(n)->()", (X[:0],), errors.ShapeError, r"the leading axes \(0,\) are empty"),
    "results": (lambda a: (a, a), "(n)->(n)", (X,), errors.ArgumentError, "names 1 results, the function returns 2"),
    "shapes": (lambda a: a, "(n)->()", (X,), errors.ShapeError, r"a result has shape \(3,\), but the signature has"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_what_does_not_fit_a_signature_is_named(name: str, backend: str) -> None:
    function, signature, given, error, message = SIGNED[name]
    with pytest.raises(error, match=message):
        ops.vectorize(function, signature=signature)(*given)


def test_a_signature_may_take_the_whole_tensor(backend: str) -> None:
    total = ops.vectorize(ops.sum, signature="(n)->()")
    assert lists(total(X[0])) == 3.0
    assert lists(total(X)) == [3.0, 12.0]


def test_a_slice_may_be_copied_and_has_no_length_without_axes(backend: str) -> None:
    assert lists(ops.vmap(lambda row: ops.add(copy.copy(row), 1.0))(X)) == (X + 1).tolist()
    assert lists(ops.vmap(lambda row: ops.multiply(row, len(row)))(X)) == (X * 3).tolist()
    with pytest.raises(TypeError, match=r"length|len\(\)|0-d|0-dimensional"):
        ops.vmap(lambda x: ops.multiply(x, len(x)))(X[0])


def test_shapes_may_be_asked_for_inside_of_transforms(quick: str) -> None:
    def padded(row: Any) -> Any:
        (spec,) = ops.tree_leaves(ops.eval_shape(lambda: ops.concatenate([row, row])))
        return ops.add(ops.sum(row), ops.ones(spec.shape))

    wanted = [[float(row.sum()) + 1] * 6 for row in X]
    assert lists(ops.vmap(padded)(X)) == wanted
    assert lists(ops.grad(lambda row: ops.sum(padded(row)))(X[0])) == [6.0] * 3
    compiled = ops.compile(padded)
    assert [lists(compiled(row)) for row in (X[0], X[0], X[1])] == [wanted[0], wanted[0], wanted[1]]


def test_slices_of_nested_maps_meet_in_one_op(backend: str) -> None:
    def joined(row: Any) -> Any:
        return ops.vmap(lambda x: ops.concatenate([ops.reshape(x, (1,)), ops.multiply(row, 2.0)]))(row)

    wanted = [[[x, *(2 * row)] for x in row] for row in X]
    assert lists(ops.vmap(joined)(X)) == np.asarray(wanted).tolist()
    assert lists(ops.vmap(lambda row: ops.stack([row, X[0]]))(X)) == [[row.tolist(), X[0].tolist()] for row in X]


def test_ops_in_a_mapped_function_may_be_recorded(backend: str) -> None:
    def recorded(row: Any) -> Any:
        with ops.record() as log:
            found = ops.exp(row)
        assert log.calls("exp")
        return found

    np.testing.assert_allclose(ops.to_numpy(ops.vmap(recorded)(X)), np.exp(X), rtol=1e-6)


class Doubled:
    """A gradient function that is an object, whose parameters are not known."""

    def __call__(self, *args: Any, upstream: Any = None) -> Any:
        return ops.multiply(upstream, 2.0)


def test_a_gradient_function_may_be_an_object(backend: str) -> None:
    doubled = ops.custom_gradient(lambda x: (ops.exp(x), Doubled()))
    assert lists(ops.grad(doubled)(ops.asarray(1.0))) == 2.0


def test_wrong_results_of_a_gradient_function_are_named(backend: str) -> None:
    one = ops.custom_gradient(lambda a, b: (ops.add(a, b), lambda *args, upstream: upstream))
    with pytest.raises(errors.ArgumentError, match="must return a tuple with one gradient for each argument"):
        ops.grad(one)(ops.asarray(1.0), ops.asarray(1.0))
    for number in (0, 1, 3):
        several = ops.custom_gradient(lambda a, b, n=number: (ops.add(a, b), lambda *args, upstream: (upstream,) * n))
        with pytest.raises(errors.ArgumentError, match="must return a tuple with one gradient for each argument"):
            ops.grad(lambda a, several=several: several(a, a))(ops.asarray(1.0))
    tree = ops.custom_gradient(lambda a: (ops.sum(a["x"]), lambda *args, upstream: upstream))
    with pytest.raises(errors.ArgumentError, match="must have the same tree structure as its argument"):
        ops.grad(tree)({"x": ops.ones(2)})


def test_truth_is_no_check_among_others(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match="takes True, False, or the names of checks"):
        ops.checked(True, False)
    with ops.checked("bounds"), pytest.raises(errors.IndexOutOfBoundsError):
        ops.take(ops.ones(3), ops.asarray([7]))


def test_a_compiled_function_is_checked_like_the_function(quick: str) -> None:
    weight = Parameter([1.0, 2.0])
    compiled = ops.compile(lambda x, i: ops.multiply(ops.take(x, i), weight.value))
    x, i = ops.asarray([1.0, 3.0]), ops.asarray([1, 0])
    assert [lists(compiled(x, i)) for _ in range(2)] == [[3.0, 2.0]] * 2
    with ops.checked():
        assert lists(compiled(x, i)) == [3.0, 2.0]
        # What torch.compile has compiled raises PyTorch's own error.
        with pytest.raises(IndexError if quick == "torch" else errors.IndexOutOfBoundsError):
            compiled(x, ops.asarray([1, 9]))


class Pair(NamedTuple):
    """A named tuple, as results of functions often are."""

    first: Any
    second: Any


def test_results_of_compiled_functions_keep_their_classes(quick: str) -> None:
    compiled = ops.compile(lambda x: Pair(ops.exp(x), {"square": [ops.square(x), None, 3, "name"]}))
    for _ in range(3):
        found = compiled(ops.asarray(2.0))
        assert type(found) is Pair
        assert lists(found.second["square"][0]) == 4.0
        assert found.second["square"][1:] == [None, 3, "name"]


def test_a_compiled_function_may_return_its_parameter(quick: str) -> None:
    weight = Parameter([1.0, 2.0])
    compiled = ops.compile(lambda x: (weight, ops.multiply(weight.value, x)))
    for factor in (2.0, 2.0, 3.0):
        cell, product = compiled(ops.asarray(factor))
        assert cell is weight
        assert lists(product) == [factor, 2 * factor]
    fresh = ops.compile(lambda x: Parameter(ops.multiply(x, 2.0)))
    one, other = fresh(ops.ones(2)), fresh(ops.ones(2))
    assert one is not other
    assert lists(one.value) == lists(other.value) == [2.0, 2.0]


def test_a_long_function_is_compiled_or_runs_as_it_is(quick: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberharmony.transforms.recorder.MOST", 20)

    def long(x: Any) -> Any:
        for i in range(30):
            x = ops.add(x, float(i))
        return x

    compiled = ops.compile(long)
    assert [lists(compiled(ops.asarray(1.0))) for _ in range(3)] == [436.0] * 3


def test_a_constant_of_a_compiled_function_has_the_default_dtype_of_each_call(quick: str) -> None:
    compiled, x = ops.compile(lambda x: (ops.add(x, 1.0), ops.zeros(2))), ops.ones(2)
    wide = "float16" if quick == "mlx" else "float64"
    for default in ("float32", wide, "float32"):
        ops.set_default_float(default)
        try:
            found = [ops.dtype(compiled(x)[1]).name for _ in range(3)]
        finally:
            ops.set_default_float("float32")
        assert found == [default] * 3


@pytest.mark.parametrize("values", [{"a": 1, "b": [2, 3]}, [1, {2: 3}], {4, 5}])
def test_a_compiled_function_takes_unhashable_constants(values: Any, quick: str) -> None:
    class Options:
        def __init__(self, values: Any) -> None:
            self.values = values

    compiled = ops.compile(lambda x, options: ops.multiply(x, float(len(options.values))))
    for options in (Options(values), Options(values), Options([1])):
        assert lists(compiled(ops.asarray(2.0), options)) == 2.0 * len(options.values)


def test_a_gradient_of_another_structure_is_refused_for_each_of_several_arguments(backend: str) -> None:
    wrong = ops.custom_gradient(lambda a, b: (ops.add(a, b), lambda *args, upstream: (upstream, [upstream])))
    with pytest.raises(errors.ArgumentError, match="must have the same tree structure as its argument"):
        ops.grad(wrong, (0, 1))(ops.asarray(1.0), ops.asarray(2.0))


def test_numpys_own_functions_have_no_value_in_a_shape_that_is_only_asked_for(backend: str) -> None:
    spec = ops.eval_shape(lambda x: ops.add(np.add(x, 1.0) if backend == "numpy" else ops.add(x, 1.0), 1.0), X)
    assert tuple(spec.shape) == (2, 3)
    if backend == "numpy":
        assert tuple(ops.eval_shape(lambda x: np.multiply(x, 2.0), X).shape) == (2, 3)
        with pytest.raises(errors.TracedTensorError):
            ops.eval_shape(lambda x: np.add.reduce(x), X)


def test_a_record_keeps_keywords_errors_and_their_place(backend: str) -> None:
    with ops.record() as log:
        ops.sum(ops.convert_to_tensor(X), axis=0)
        with pytest.raises(errors.ShapeError):
            ops.matmul(ops.convert_to_tensor(X), ops.ones((2, 2)))
    (total,), (product,) = log.calls("sum"), log.calls("matmul")
    assert total.results == ((3,),)
    assert not total.error
    assert product.error == "ShapeError"


MAPPED: dict[str, tuple[Callable[..., Any], Any]] = {
    "a list of tensors of two transforms": (
        lambda x, _: ops.grad(lambda y: ops.sum(ops.stack([x, ops.multiply(y, y)])))(x),
        2 * X,
    ),
    "a slice by a mapped number": (lambda x, n: ops.get_item(x, slice(n, None)), X[:, 1:]),
    "a gradient function that uses another mapped tensor": (
        lambda x, n: ops.custom_gradient(lambda y: (ops.multiply(y, n), lambda y, upstream: ops.multiply(upstream, n)))(
            x
        ),
        X,
    ),
    "a branch by a mapped number": (lambda x, n: ops.cond(ops.greater(ops.sum(x), 4.0), lambda: x, lambda: -x), None),
}


@pytest.mark.parametrize("name", MAPPED)
def test_a_mapped_function_gives_what_its_slices_give(name: str, backend: str) -> None:
    function, wanted = MAPPED[name]
    places = ops.convert_to_tensor(np.array([1, 1]))
    found = ops.vmap(function)(ops.asarray(X), places)
    assert lists(found) == [lists(function(ops.asarray(row), 1)) for row in X]
    assert wanted is None or lists(found) == wanted.tolist()


def test_a_traced_tensor_in_an_option_is_refused(backend: str) -> None:
    for call in (
        lambda x: ops.rearrange(ops.asarray(X), "(a b) c -> a b c", {"a": x}),
        lambda x: ops.pad(ops.asarray(X), ((x, 0), (0, 0))),
    ):
        with pytest.raises(errors.EmberError):
            ops.grad(lambda x, call=call: ops.sum(call(x)))(1.0)


def test_a_compiled_function_may_use_other_backends(quick: str) -> None:
    other = another(quick)

    def aside(x: Any) -> Any:
        with ops.use_backend(other):
            ops.sin([1.0])
        return ops.add(x, 1.0)

    def elsewhere(x: Any) -> Any:
        with ops.use_backend(other):
            return ops.to_numpy(ops.add(x, 1.0)).tolist()

    shaped = ops.compile(lambda x: ops.add(x, ops.eval_shape(lambda: ops.concatenate([x, x])).shape[0]))
    assert [lists(shaped(X)) for _ in range(3)] == [(X + 4).tolist()] * 3
    if quick != "torch":  # Dynamo does not trace NumPy's ops inside of those of PyTorch
        compiled = ops.compile(aside)
        assert [lists(compiled(X)) for _ in range(3)] == [(X + 1).tolist()] * 3
    if quick == "numpy":
        compiled = ops.compile(elsewhere)
        assert [compiled(X) for _ in range(3)] == [(X + 1).tolist()] * 3


def test_results_in_tuples_and_slices_may_be_compiled(quick: str) -> None:
    compiled = ops.compile(lambda x: ops.divmod(x, 2.0))
    assert [lists(compiled(X)) for _ in range(2)] == [lists(ops.divmod(X, 2.0))] * 2
    sliced = ops.compile(lambda x, key: ops.get_item(x, key))
    assert [lists(sliced(X, slice(0, n))) for n in (1, 2, 1)] == [X[:n].tolist() for n in (1, 2, 1)]


@pytest.mark.parametrize("function", [ops.checkpoint, lambda f: f], ids=["again", "kept"])
def test_a_pullback_may_be_called_while_another_backend_is_active(function: Any, backend: str) -> None:
    if backend == "mlx":
        pytest.skip("MLX pulls by a run of the function, which is on the active backend")
    y, pull = ops.vjp(function(lambda x: ops.multiply(x, ops.multiply(x, x))), ops.asarray(X))
    cotangent = ops.ones_like(y)
    with ops.use_backend(another(backend)):
        (found,) = pull(cotangent)
    np.testing.assert_allclose(ops.to_numpy(found), 3 * X**2, rtol=1e-6)
