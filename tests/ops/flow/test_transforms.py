"""Function transforms: the same meaning of trees, argnums, aux and errors on every backend, and right derivatives."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core import errors
from tests.ops.trees import lists, near

X = np.array([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])


def smooth(x: Any) -> Any:
    """Returns a scalar that depends on products of all elements."""
    return ops.sum(ops.multiply(ops.tanh(ops.matmul(x, ops.transpose(x))), ops.exp(ops.multiply(ops.mean(x), 0.5))))


class Pair(NamedTuple):
    first: Any
    second: Any


def test_a_gradient_agrees_with_central_differences(backend: str) -> None:
    x = ops.array(X)
    gradient, step = ops.to_numpy(ops.grad(smooth)(x)), 1e-5
    for place in np.ndindex(X.shape):
        moved = np.zeros_like(X)
        moved[place] = step
        up, down = (float(smooth(ops.array(X + sign * moved))) for sign in (1, -1))
        assert abs((up - down) / (2 * step) - gradient[place]) < 1e-7


def test_a_gradient_has_the_dtype_of_its_argument(backend: str) -> None:
    for dtype in ("float16", "float32", "float64"):
        gradient = ops.grad(lambda x: ops.sum(ops.square(x)))(ops.array([1.0, 2.0], dtype=dtype))
        assert ops.dtype(gradient) == dtype


def test_value_and_grad_returns_value_aux_and_gradient_in_this_order(backend: str) -> None:
    def loss(x: Any) -> Any:
        return ops.sum(ops.square(x)), {"double": ops.multiply(x, 2.0), "name": "aux", "none": None}

    aux = {"double": [2.0, 4.0], "name": "aux", "none": None}
    assert lists(ops.value_and_grad(smooth)(X.tolist())[0]) == lists(smooth(X.tolist()))
    assert lists(ops.value_and_grad(loss, has_aux=True)([1.0, 2.0])) == ((5.0, aux), [2.0, 4.0])
    assert lists(ops.grad(loss, has_aux=True)([1.0, 2.0])) == ([2.0, 4.0], aux)


def test_argnums_choose_the_arguments_to_differentiate(backend: str) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return ops.multiply(ops.multiply(x, y), z)

    assert lists(ops.grad(f)(2.0, 3.0, 5.0)) == 15.0
    assert lists(ops.grad(f, argnums=-1)(2.0, 3.0, 5.0)) == 6.0
    assert lists(ops.grad(f, argnums=(0,))(2.0, 3.0, 5.0)) == (15.0,)
    assert lists(ops.grad(f, argnums=[2, -2])(2.0, 3.0, 5.0)) == (6.0, 10.0)
    # Arguments that are not differentiated are not converted to tensors.
    assert lists(ops.grad(lambda x, n: ops.multiply(x, len(n)))(2.0, "four")) == 4.0


def test_keyword_arguments_are_passed_to_the_function(backend: str) -> None:
    def f(x: Any, *, scale: float, skip: bool = False) -> Any:
        return ops.multiply(x, 1.0 if skip else scale)

    assert lists(ops.grad(f)(2.0, scale=3.0)) == 3.0
    assert lists(ops.vmap(f)([2.0, 3.0], scale=3.0)) == [6.0, 9.0]
    assert lists(ops.jacobian(f)(2.0, scale=3.0, skip=True)) == 1.0


def test_gradients_by_a_tree_have_its_structure(backend: str) -> None:
    def f(p: Any) -> Any:
        return ops.add(ops.multiply(p["pair"].first, p["pair"].second[0]), ops.sum(p["list"]))

    tree = {"pair": Pair(2.0, (3.0, 7.0)), "list": [4.0, 5.0], "none": None}
    wanted = {"pair": Pair(3.0, (2.0, 0.0)), "list": [1.0, 1.0], "none": None}
    gradient = ops.grad(f)(tree)
    assert lists(gradient) == wanted
    assert isinstance(gradient["pair"], Pair)
    # A list of numbers is one tensor; a list that contains a tensor is a tree.
    assert ops.is_tensor(gradient["list"])
    assert lists(ops.grad(lambda p: ops.sum(p[0]))([ops.array([1.0]), 2.0])) == [[1.0], 0.0]


def test_unconnected_arguments_have_zero_gradients(backend: str) -> None:
    assert lists(ops.grad(lambda x, y: ops.square(y), argnums=(0, 1))([1.0, 2.0], 3.0)) == ([0.0, 0.0], 6.0)
    assert lists(ops.grad(lambda x: 3.0)(2.0)) == 0.0
    assert lists(ops.grad(lambda x: ops.stop_gradient(ops.square(x)))(2.0)) == 0.0
    _, pull = ops.vjp(lambda x: (ops.stop_gradient(x), ops.multiply(x, 3.0)), 2.0)
    assert lists(pull((1.0, 10.0))) == (30.0,)


def test_gradients_at_kinks_follow_the_convention(backend: str) -> None:
    assert lists(ops.grad(lambda x: ops.maximum(x, 0.0))(0.0)) == 0.5
    assert lists(ops.grad(ops.maximum, argnums=(0, 1))(1.0, 1.0)) == (0.5, 0.5)
    assert lists(ops.grad(lambda x: ops.sum(ops.clip(x, 0.0, 1.0)))([0.0, 1.0, 2.0])) == [1.0, 1.0, 0.0]
    bounds = ops.grad(lambda x, low, high: ops.sum(ops.clip(x, low, high)), argnums=(0, 1, 2))
    assert lists(bounds([0.0, 1.0, 2.0, -3.0], 0.0, 1.0)) == ([1.0, 1.0, 0.0, 0.0], 1.0, 1.0)
    assert lists(ops.grad(ops.max)([2.0, 2.0])) == [0.5, 0.5]
    assert lists(ops.grad(ops.norm)([0.0, 0.0])) == [0.0, 0.0]
    assert lists(ops.grad(ops.absolute)(0.0)) == 0.0


def test_the_gradient_of_a_complex_argument_is_the_direction_of_ascent(backend: str) -> None:
    gradient = ops.grad(lambda z: ops.sum(ops.square(ops.absolute(z))))(ops.array([1.0 + 2.0j]))
    assert near(gradient, [2.0 + 4.0j])
    # The second derivative is checked too, because the phase of z depends on z.
    z, direction = 1.0 + 2.0j, 0.3 - 0.2j
    phase = z / abs(z)
    turned = ops.grad(lambda z: ops.real(ops.multiply(ops.grad(ops.absolute)(z), direction.conjugate())))
    assert near(turned(ops.array(z)), (direction - phase * (phase.conjugate() * direction).real) / abs(z))


def test_derivatives_of_higher_order_are_right(backend: str) -> None:
    derivative: Callable[..., Any] = ops.tanh
    t = np.tanh(0.3)
    first = 1 - t**2
    for wanted in (first, -2 * t * first, first * (6 * t**2 - 2), 8 * t * first * (2 - 3 * t**2)):
        derivative = ops.grad(derivative)
        assert abs(float(derivative(ops.array(0.3, dtype="float64"))) - wanted) < 1e-10
    # Perturbation confusion: the inner derivative must be by y only.
    confused = ops.grad(lambda x: ops.multiply(x, ops.grad(lambda y: ops.add(x, y))(x)))
    assert lists(confused(2.0)) == 1.0


def test_vjp_is_the_transpose_of_jvp(backend: str) -> None:
    def f(x: Any, s: Any) -> Any:
        return {"a": ops.sin(ops.matmul(x, ops.transpose(x))), "b": ops.multiply(x, s)}

    rng = np.random.default_rng(0)
    x, s = ops.array(X), ops.array(1.5, dtype="float64")
    u = (ops.array(rng.normal(size=X.shape)), ops.array(0.7, dtype="float64"))
    v = {"a": ops.array(rng.normal(size=(2, 2))), "b": ops.array(rng.normal(size=X.shape))}
    y, pull = ops.vjp(f, x, s)
    also, pushed = ops.jvp(f, (x, s), u)
    assert near(y, also)

    def dot(a: Any, b: Any) -> float:
        return sum(
            float(ops.sum(ops.multiply(p, q))) for p, q in zip(ops.tree_leaves(a), ops.tree_leaves(b), strict=True)
        )

    assert abs(dot(v, pushed) - dot(pull(v), u)) < 1e-9
    twice = ops.tree_map(lambda leaf: ops.multiply(leaf, 2.0), v)
    assert abs(dot(pull(twice), u) - 2 * dot(pull(v), u)) < 1e-9


def test_vjp_and_jvp_accept_aux_and_integer_results(backend: str) -> None:
    def f(x: Any) -> Any:
        return (ops.square(x), ops.argmax(x)), {"aux": ops.sum(x)}

    (y, place), pull, aux = ops.vjp(f, [1.0, 3.0], has_aux=True)
    assert lists((y, place, aux)) == ([1.0, 9.0], 1, {"aux": 4.0})
    assert lists(pull(([1.0, 1.0], 0))) == ([2.0, 6.0],)
    (y, place), (tangent, _), aux = ops.jvp(f, ([1.0, 3.0],), ([1.0, 0.0],), has_aux=True)
    assert lists((y, place, aux, tangent)) == ([1.0, 9.0], 1, {"aux": 4.0}, [2.0, 0.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_a_python_number_does_not_widen_a_0d_tangent(dtype: str, backend: str) -> None:
    x = ops.ones((), dtype=dtype)
    for function in (lambda x: ops.multiply(x, 2.0), lambda x: ops.subtract(3.0, x), lambda x: ops.divide(x, 2)):
        assert ops.dtype(ops.jvp(function, (x,), (x,))[1]) == dtype
        if dtype != "complex64":
            found = ops.jacfwd(lambda x, function=function: function(ops.sum(x)))(ops.ones((2,), dtype=dtype))
            assert ops.dtype(found) == dtype


def test_the_tangent_of_glu_keeps_half_precision(backend: str) -> None:
    x = ops.cast([1.0, 2.0], "float16")
    assert ops.dtype(ops.jvp(ops.glu, (x,), (x,))[1]) == "float16"


def test_jvp_works_for_ops_without_a_native_forward_mode(backend: str) -> None:
    y, tangent = ops.jvp(lambda x: ops.scatter_update(x, [[0]], [5.0]), ([1.0, 2.0],), ([1.0, 1.0],))
    assert lists((y, tangent)) == ([5.0, 2.0], [0.0, 1.0])


def test_jacobians_and_hessians_of_trees_agree_in_all_modes(backend: str) -> None:
    def f(d: Any) -> Any:
        return {"u": ops.multiply(d["a"], d["b"]), "v": ops.sum(d["a"])}, (d["b"], "aux")

    wanted = {"u": {"a": [[3.0, 0.0], [0.0, 3.0]], "b": [1.0, 2.0]}, "v": {"a": [1.0, 1.0], "b": 0.0}}
    for jacobian in (ops.jacobian, ops.jacrev, ops.jacfwd):
        assert lists(jacobian(f, has_aux=True)({"a": [1.0, 2.0], "b": 3.0})) == (wanted, (3.0, "aux"))
    hessian = ops.hessian(lambda a, b: ops.sum(ops.multiply(a, ops.square(b))), argnums=(0, 1))(2.0, [1.0, 2.0])
    assert lists(hessian) == ((0.0, [2.0, 4.0]), ([2.0, 4.0], [[4.0, 0.0], [0.0, 4.0]]))
    for jacobian in (ops.jacobian, ops.jacfwd):
        by_each = jacobian(lambda x, y: ops.outer(x, y), argnums=(0, 1))(ops.ones((0,)), ops.ones((2,)))
        assert [tuple(part.shape) for part in by_each] == [(0, 2, 0), (0, 2, 2)]
    x = ops.array(X)
    full = ops.hessian(smooth)(x)
    assert near(full, ops.jacfwd(ops.grad(smooth))(x), 1e-10)
    direction = ops.array(np.random.default_rng(1).normal(size=X.shape))
    product = ops.jvp(ops.grad(smooth), (x,), (direction,))[1]
    assert near(product, ops.tensordot(full, direction, 2), 1e-10)
    backwards = ops.grad(lambda x: ops.sum(ops.multiply(ops.grad(smooth)(x), direction)))(x)
    assert near(product, backwards, 1e-10)


def test_a_transformed_function_follows_the_backend() -> None:
    before, derivative = ops.get_backend(), ops.grad(ops.square)
    try:
        for name in ops.available_backends():
            ops.set_backend(name)
            assert ops.is_tensor(derivative(3.0))
            assert lists(derivative(3.0)) == 6.0
    finally:
        ops.set_backend(before)


def refusals() -> list[Any]:
    return [
        (lambda: ops.grad(ops.tanh)([1.0, 2.0]), errors.ShapeError, r"grad\(\) .*shape \(2,\).*ops.sum"),
        (lambda: ops.grad(lambda x: x)(ops.ones((1,))), errors.ShapeError, "not a scalar"),
        (lambda: ops.grad(lambda x: (x, x))(1.0), errors.ArgumentTypeError, "has_aux=True"),
        (lambda: ops.grad(lambda x: x, has_aux=True)(1.0), errors.ArgumentTypeError, "a pair"),
        (lambda: ops.grad(lambda x: ops.argmax(x))([1.0]), errors.DTypeError, "int64.*real and floating"),
        (lambda: ops.grad(ops.tanh)(3), errors.DTypeError, "int64.*ops.cast"),
        (lambda: ops.grad(lambda d: d["x"])({"x": 1.0, "n": 2}), errors.DTypeError, "int64"),
        (lambda: ops.grad(ops.tanh)("text"), errors.DTypeError, r"grad\(\) .*argument to differentiate"),
        (lambda: ops.grad(ops.tanh, argnums=1)(1.0), errors.ArgumentError, "argnums 1 is out of range"),
        (lambda: ops.grad(ops.tanh, argnums=-2)(1.0), errors.ArgumentError, "argnums -2 is out of range"),
        (lambda: ops.grad(ops.tanh)(x=1.0), errors.ArgumentError, "passed by position"),
        (lambda: ops.grad(ops.add, argnums=(0, -2))(1.0, 2.0), errors.ArgumentError, "twice"),
        (lambda: ops.grad(3), errors.ArgumentTypeError, "takes a function"),
        (lambda: ops.vjp(ops.tanh, [1.0])[1]([1.0, 2.0]), errors.ShapeError, "cotangent"),
        (lambda: ops.vjp(ops.tanh, [1.0])[1]((1.0,)), errors.ArgumentError, "same tree"),
        (lambda: ops.jvp(ops.tanh, 1.0, 1.0), errors.ArgumentTypeError, "as a tuple"),
        (lambda: ops.jvp(ops.tanh, (1.0,), (ops.ones((), dtype="float16"),)), errors.DTypeError, "tangent.*float16"),
        (lambda: ops.jacobian(lambda z: z)(ops.ones(2, dtype="complex64")), errors.DTypeError, "complex64"),
        (lambda: ops.vmap(ops.add)([1.0, 2.0], [1.0]), errors.ShapeError, r"lengths \[2, 1\]"),
        (lambda: ops.vmap(ops.tanh)(ops.ones((0, 2))), errors.ShapeError, "empty"),
        (lambda: ops.vmap(ops.tanh, in_axes=1)([1.0]), errors.AxisError, "out of range"),
        (lambda: ops.vmap(ops.tanh, in_axes=None)([1.0]), errors.ArgumentError, "nothing to map"),
        (lambda: ops.vmap(ops.add, in_axes=(0,))([1.0], [1.0]), errors.ArgumentError, "in_axes"),
        (lambda: ops.vmap(ops.tanh, out_axes=None)([1.0]), errors.ArgumentError, "out_axes"),
        (lambda: ops.vectorize(ops.add, signature="(n->()"), errors.ArgumentError, "signature"),
        (lambda: ops.vectorize(ops.dot, signature="(n),(n)->()")([1.0], [1.0, 2.0]), errors.ShapeError, "'n'"),
        (lambda: ops.vectorize(ops.add)([1.0, 2.0, 3.0], [1.0, 2.0]), errors.ShapeError, "broadcast"),
        (lambda: ops.backward(lambda: 1.0, {"n": 3}), errors.ArgumentError, "no trainable Parameter"),
        (lambda: ops.backward(lambda: 1.0, Parameter([1, 2], name="n")), errors.DTypeError, "parameter 'n'"),
    ]


@pytest.mark.parametrize("call,kind,message", refusals())
def test_wrong_arguments_of_transforms_are_refused(
    call: Callable[[], Any], kind: type[Exception], message: str, backend: str
) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    "differentiated",
    [
        lambda f, x: ops.grad(f)(x),
        lambda f, x: ops.value_and_grad(f)(x),
        lambda f, x: ops.vjp(f, x),
        lambda f, x: ops.jvp(f, (x,), (x,)),
        lambda f, x: ops.jacobian(f)(x),
        lambda f, x: ops.hessian(f)(x),
    ],
)
def test_integers_are_refused_in_every_form(differentiated: Callable[..., Any], backend: str) -> None:
    for dtype in ("int32", "bool"):
        host = np.ones(2, dtype)
        for x in (host, host.tolist(), ops.array(host), {"x": ops.array(host)}, (ops.ones(2), ops.array(host))):
            with pytest.raises(errors.DTypeError, match="argument to differentiate"):
                differentiated(lambda tree: ops.sum(ops.multiply(ops.tree_leaves(tree)[0], 1.5)), x)


def test_tensors_of_another_backend_are_refused(backend: str) -> None:
    other = next((name for name in ops.available_backends() if name not in (backend, "numpy")), None)
    if other is None:
        pytest.skip("needs two backends")
    with ops.use_backend(other):
        foreign = ops.ones(())
    with pytest.raises(errors.BackendMismatchError):
        ops.grad(ops.tanh)(foreign)
    with pytest.raises(errors.BackendMismatchError):
        ops.grad(lambda x: foreign)(1.0)


def test_a_native_op_without_a_derivative_raises_a_typed_error() -> None:
    mx = pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"), pytest.raises(errors.UnsupportedOpError, match=r"grad\(\) on backend 'mlx'.*LUF"):
        ops.grad(lambda x: mx.sum(mx.linalg.lu(x)[1]))(ops.eye(2))


def test_an_exception_does_not_change_later_calls(backend: str) -> None:
    def failing(x: Any) -> Any:
        ops.exp(x)
        raise LookupError("inside")

    for transformed in (
        ops.grad(failing),
        ops.grad(ops.grad(failing)),
        ops.vmap(failing),
        ops.jacobian(failing),
        ops.checkpoint(failing),
        ops.vmap(ops.grad(failing)),
    ):
        with pytest.raises(LookupError, match="inside"):
            transformed(ops.ones(2))
        assert near(ops.grad(ops.grad(ops.tanh))(0.3), -0.5331818)
        assert lists(ops.square(ops.array(3.0))) == 9.0


def test_many_threads_give_the_gradients_of_one(backend: str) -> None:
    host = X.astype("float32")
    wanted = lists(ops.grad(smooth)(ops.array(host)))
    found: list[Any] = [None] * 16
    start = threading.Barrier(16)

    def work(i: int) -> None:
        start.wait()
        found[i] = [lists(ops.grad(smooth)(ops.array(host))) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[wanted] * 3] * 16


def test_the_gradient_by_an_empty_tree_is_an_empty_tree(backend: str) -> None:
    def loss(p: Any) -> Any:
        return ops.sum(ops.ones((2,)))

    assert ops.grad(loss)({}) == {}
    assert ops.grad(loss)(None) is None
    assert ops.grad(loss, argnums=())(1.0) == ()
    value, gradients = ops.value_and_grad(loss)([])
    assert (float(ops.to_numpy(value)), gradients) == (2.0, [])


@pytest.mark.parametrize("argnums", ["x", 1.5, (0, None)])
def test_argnums_that_are_not_integers_are_refused(argnums: Any, backend: str) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"grad\(\).*argnums must be an integer or a sequence"):
        ops.grad(ops.sum, argnums=argnums)(1.0)


def test_transforms_accept_functions_without_a_result(backend: str) -> None:
    x = ops.ones((3,))
    assert ops.checkpoint(lambda x: None)(x) is None
    assert ops.checkpoint(lambda: ())() == ()
    assert ops.custom_gradient(lambda x: ([], lambda x, upstream: x))(x) == []
    assert ops.custom_vjp(lambda x: [], lambda primals, cotangents: [], [x]) == []
    assert ops.jvp(lambda x: None, (x,), (x,)) == (None, None)
    assert ops.jacfwd(lambda x: ())(x) == ops.jacobian(lambda x: ())(x) == ()
    assert near(ops.grad(lambda x: (ops.checkpoint(lambda y: None)(x), ops.sum(ops.square(x)))[1])(x), 2 * np.ones(3))


def test_the_gradient_by_a_torch_parameter_keeps_no_graph() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        weight = torch.nn.Parameter(torch.ones(2))
        loss = lambda w: ops.sum(ops.power(w, 3.0))
        assert ops.grad(loss)(weight).grad_fn is None
        value, gradient = ops.value_and_grad(loss)(weight)
        assert value.grad_fn is gradient.grad_fn is None
        assert weight.grad is None
        assert ops.grad(lambda w: ops.sum(ops.grad(loss)(w)))(weight).tolist() == [6.0, 6.0]
        # PyTorch's own autograd can still differentiate the gradient.
        ops.sum(ops.grad(loss)(weight.view_as(weight))).backward()
        assert weight.grad.tolist() == [6.0, 6.0]
        other = torch.ones(2, requires_grad=True)
        ops.sum(ops.grad(lambda w: ops.sum(ops.multiply(ops.square(w), other)))(weight)).backward()
        assert other.grad.tolist() == [2.0, 2.0]


def test_modes_and_subclasses_of_pytorch_see_the_gradient() -> None:
    torch = pytest.importorskip("torch")
    seen = []

    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        pass

    x = torch.tensor([1.0, 2.0])
    with ops.use_backend("torch"):
        gradient = ops.grad(lambda x: ops.sum(ops.square(x)))
        assert gradient(x).tolist() == [2.0, 4.0]
        assert not seen
        with Seen():
            assert gradient(x).tolist() == [2.0, 4.0]
        assert torch.autograd.grad in seen
        assert type(gradient(x.as_subclass(Own))) is Own


def test_a_list_of_argnums_may_change_between_two_calls(backend: str) -> None:
    argnums = [0]
    gradient = ops.grad(lambda x, y: ops.sum(x * y), argnums=argnums)
    x, y = ops.convert_to_tensor([1.0, 2.0]), ops.convert_to_tensor([3.0, 4.0])
    assert [part.tolist() for part in gradient(x, y)] == [[3.0, 4.0]]
    argnums[0] = -1
    assert [part.tolist() for part in gradient(x, y)] == [[1.0, 2.0]]


def test_is_traced_is_true_for_what_depends_on_a_differentiated_argument(backend: str) -> None:
    seen: dict[str, bool] = {}
    outside = ops.ones(2)

    def loss(x: Any) -> Any:
        y = ops.multiply(x, 2.0)
        values = {"argument": x, "result": y, "item": y[0], "constant": outside, "stopped": ops.stop_gradient(y)}
        values |= {"comparison": ops.greater(y, 0.0), "integer": ops.cast(y, "int32"), "made": ops.zeros_like(y)}
        seen.update({name: ops.is_traced(value) for name, value in values.items()})
        return ops.sum(y)

    wanted = dict.fromkeys(("argument", "result", "item"), True)
    wanted |= dict.fromkeys(("constant", "stopped", "comparison", "integer", "made"), False)
    x = ops.convert_to_tensor([1.0, 2.0])
    transforms: list[Callable[[], Any]] = [
        lambda: ops.grad(loss)(x),
        lambda: ops.value_and_grad(loss)(x),
        lambda: ops.vjp(loss, x)[1](1.0),
        lambda: ops.jvp(loss, (x,), (x,)),
        lambda: ops.hessian(loss)(x),
        lambda: ops.jacfwd(loss)(x),
        lambda: ops.vmap(ops.grad(loss))(ops.stack([x, x])),
    ]
    for transform in transforms:
        seen.clear()
        transform()
        assert seen == wanted
    loss(x)
    assert not any(seen.values())
    ops.vmap(loss)(ops.stack([x, x]))
    assert not any(seen.values())
    assert not any(ops.is_traced(value) for value in (1.0, [1.0], None, "x", x))


def test_the_gradient_by_a_tree_is_none_for_what_is_not_trained(backend: str) -> None:
    tree = {"w": Parameter([1.0, 2.0]), "frozen": Parameter([3.0, 4.0], trainable=False)}
    gradient = ops.grad(lambda tree: ops.sum(ops.multiply(tree["w"], tree["frozen"])))(tree)
    assert gradient["frozen"] is None
    assert lists(gradient["w"]) == [3.0, 4.0]
    assert lists(ops.grad(lambda w: ops.sum(ops.square(w)))(tree["frozen"])) == [6.0, 8.0]


def test_a_tuple_of_argnums_names_each_argument_once(backend: str) -> None:
    for argnums in ((0, 0), (1, 0, 1)):
        with pytest.raises(errors.ArgumentError, match="name an argument twice"):
            ops.grad(ops.multiply, argnums)(2.0, 3.0)
