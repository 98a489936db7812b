"""Functions of functions: gradients, products with Jacobians, batching, compilation.

They take functions of trees (nested dicts, lists, tuples, named tuples and dataclasses of tensors or numbers) and
return functions that follow the active backend, as ops do. A list of numbers is one tensor there, a tuple never. What
is differentiated must be floating or complex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Tensor, TensorLike

if TYPE_CHECKING:
    from emberharmony.transforms import batching, compilation, derivatives
else:
    batching = Deferred("emberharmony.transforms.batching")
    compilation = Deferred("emberharmony.transforms.compilation")
    derivatives = Deferred("emberharmony.transforms.derivatives")


@op
def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes the gradient of `fn`, which returns a scalar.

    The gradient has the structure, shapes and dtypes of the argument; for a sequence of `argnums` it is a tuple. Of a
    real loss of complex arguments it is the direction of steepest ascent, ∂/∂Re + i ∂/∂Im. Keyword arguments are passed
    on and not differentiated.

    Args:
        argnums: the position of the argument to differentiate, or several; negative ones count from the end.
        has_aux: `fn` returns (loss, aux), and the gradient function (gradient, aux).

    Raises: from the function returned, ShapeError if the loss is no scalar, DTypeError if an argument to differentiate
    is an integer, ArgumentError for `argnums` out of range.

    Example:
        >>> ops.grad(lambda x: ops.sum(ops.square(x)))([1.0, 2.0]).tolist()
        [2.0, 4.0]
    """
    return derivatives.gradient("grad", fn, argnums, has_aux, with_value=False)


@op
def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Returns the function that computes (value, gradient) of `fn`, or ((value, aux), gradient); see `grad`.

    Example:
        >>> value, slope = ops.value_and_grad(ops.square)(3.0)
        >>> value.tolist(), slope.tolist()
        (9.0, 6.0)
    """
    return derivatives.gradient("value_and_grad", fn, argnums, has_aux, with_value=True)


@op
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns `fn(*primals)` and the function that multiplies cotangents with its Jacobian from the left.

    That function takes a tree like the result and gives a tuple, one gradient for each primal; it may be called again.
    On MLX, which keeps no graph, each call calls `fn` again.

    Args:
        has_aux: `fn` returns (result, aux), and aux comes third.

    Raises: DTypeError for an integer primal; ShapeError, DTypeError and ArgumentError for cotangents unlike the result.

    Example:
        >>> y, pull = ops.vjp(ops.multiply, 3.0, 4.0)
        >>> y.tolist(), [g.tolist() for g in pull(1.0)]
        (12.0, [4.0, 3.0])
    """
    result: tuple[Any, ...] = derivatives.pulled_back("vjp", fn, primals, has_aux)
    return result


@op
def jvp(
    fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Returns `fn(*primals)` and the derivative of it along `tangents`, which are like `primals`.

    Args:
        has_aux: `fn` returns (result, aux), and aux comes third.

    Raises: as `vjp` does.

    Example:
        >>> y, slope = ops.jvp(ops.square, (3.0,), (1.0,))
        >>> y.tolist(), slope.tolist()
        (9.0, 6.0)
    """
    result: tuple[Any, ...] = derivatives.pushed_forward("jvp", fn, primals, tangents, has_aux)
    return result


@op
def jacobian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes all first derivatives of `fn`, one element of its result at a time (`jacrev`).

    Shape: that of the result, then that of the argument, for each pair of their tensors: a tree like the result whose
    leaves are trees like the argument, in a tuple for a sequence of `argnums`.

    Args:
        argnums: see `grad`.
        has_aux: `fn` returns (result, aux), and the Jacobian function (jacobian, aux).

    Raises: from the function returned, DTypeError for integers and complex numbers.

    Example:
        >>> ops.jacobian(ops.square)([1.0, 2.0]).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return derivatives.jacobian("jacobian", fn, argnums, has_aux, forward=False)


jacrev = alias("jacrev", jacobian)


@op
def jacfwd(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns what `jacobian` does, found one element of the argument at a time: cheaper where the result is larger.

    Example:
        >>> ops.jacfwd(ops.square)([1.0, 2.0]).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return derivatives.jacobian("jacfwd", fn, argnums, has_aux, forward=True)


@op
def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes all second derivatives of `fn`: the Jacobian of its Jacobian.

    Shape: that of the result, then twice that of the argument; trees nest alike.

    Example:
        >>> ops.hessian(lambda x: ops.sum(ops.square(x)))([2.0, 3.0]).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    first = derivatives.jacobian("hessian", fn, argnums, has_aux, forward=False)
    return derivatives.jacobian("hessian", first, argnums, has_aux, forward=False)


@op
def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Returns `fn` mapped over an axis of its arguments, as if it were called for each slice and the results stacked.

    Keyword arguments are passed on as they are. On NumPy, and where PyTorch or MLX cannot vectorize what `fn` does (a
    Python `if` on a value, an op without a rule), `fn` is called once a slice.

    Args:
        in_axes: the axis of all arguments, or a tuple with one for each: an int, None for an argument that is not
            mapped, or a tree of such like the argument.
        out_axes: where the axis goes in the results, in the same forms, but without None.

    Raises: from the function returned, ShapeError if the axes differ in length or are empty, AxisError for one out of
    range, ArgumentError for axes that do not fit the arguments.

    Example:
        >>> ops.vmap(ops.dot, in_axes=(0, None))([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist()
        [3.0, 7.0]
    """
    return batching.mapped("vmap", fn, in_axes, out_axes)


@op
def vectorized_map(function: Callable[..., Any], elements: Any) -> Any:
    """Returns the results of `function` for each slice of `elements`, a tree, along the first axis, stacked.

    Example:
        >>> ops.vectorized_map(ops.sum, [[1, 2], [3, 4]]).tolist()
        [3, 7]
    """
    return batching.mapped("vectorized_map", function, 0, 0)(elements)


@op
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Sequence[int] | None = None, signature: str | None = None
) -> Callable[..., Any]:
    """Returns `pyfunc`, a function of scalars, as one of tensors that broadcasts.

    Args:
        excluded: positions of arguments that are passed on whole.
        signature: the axes that `pyfunc` itself takes and gives, as in `"(m,n),(n)->(m)"`; the axes before them
            broadcast.

    Raises: ArgumentError for a malformed signature; from the function returned, ShapeError for shapes that do not fit
    it or do not broadcast.

    Example:
        >>> ops.vectorize(lambda a, b: ops.add(a, b))([[1.0], [2.0]], [10.0, 20.0]).tolist()
        [[11.0, 21.0], [12.0, 22.0]]
    """
    return batching.vectorized("vectorize", pyfunc, excluded or (), signature)


@op
def custom_vjp(
    forward: Callable[..., Sequence[Tensor]], backward: Callable[..., Sequence[Tensor]], primals: Sequence[Any]
) -> list[Tensor]:
    """Returns the tensors that `forward(*primals)` lists, which have the gradients `backward(primals, cotangents)`.

    Nothing is differentiated through `forward`; `backward` is, for derivatives of higher order. It must be linear in
    the cotangents, of which there is one for each output. `custom_gradient` is the same for functions of trees.

    Example:
        >>> double = lambda x: ops.custom_vjp(lambda x: [x], lambda primals, cts: [ops.multiply(cts[0], 2.0)], [x])[0]
        >>> ops.grad(double)(3.0).tolist()
        2.0
    """
    ...


@op
def custom_gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function whose gradient is the user's own: `fn` returns (result, gradient function).

    That function is called as `gradient(*args, upstream=cotangent)`, with a cotangent like the result, and returns one
    gradient for each argument, in a tuple; one argument's may stand alone, and None stands for zeros. It is
    differentiated for derivatives of higher order, so `fn` runs again whenever it is. Arguments are trees. Tensors that
    `fn` closes over, and keyword arguments, are constants.

    Raises: from the function returned, ArgumentError and ShapeError if the gradients are not like the arguments;
    TracedTensorError if `fn` closes over a tensor that is being differentiated.

    Example:
        >>> @ops.custom_gradient
        ... def clipped(x):
        ...     return x, lambda x, upstream: ops.clip(upstream, -1.0, 1.0)
        >>> ops.grad(lambda x: ops.multiply(clipped(x), 5.0))(ops.ones(())).tolist()
        1.0

    Source: the form is that of Keras and TensorFlow.
    """
    return derivatives.customized("custom_gradient", fn)


@op
def host_call(fn: Callable[..., Any], *args: Any, vjp: Callable[..., Any] | None = None) -> Any:
    """Returns, as tensors, what `fn`, a function of any library, returns for the values of its arguments.

    `fn` takes the tensors in `args` as NumPy arrays, which are read-only, and all else as it is; it returns arrays or
    numbers, or a tree of them. They keep their dtype, and go to the device of the first tensor. Reading the values
    forces evaluation. Where the library below cannot trace that, `vmap` calls `fn` once a slice, and `compile` leaves
    the call uncompiled (PyTorch) or the whole function (MLX).

    Args:
        fn: its values alone matter: what it computes is not differentiated.
        args: trees.
        vjp: the derivative, called as `vjp(*args, upstream=cotangent)` like the gradient function of
            `custom_gradient`. It takes and returns tensors; written with ops, or with `host_call` and a `vjp` again, it
            is differentiated for derivatives of higher order. Without it a gradient is refused.

    Raises: UnsupportedOpError from the transform, if a gradient reaches the result and there is no `vjp`;
    ArgumentError and ShapeError if the gradients are not like the arguments.

    Example:
        >>> import numpy as np
        >>> def sine(x):
        ...     return ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.multiply(upstream, ops.cos(x)))
        >>> sine([0.0, 0.0]).tolist(), ops.grad(sine)(0.0).tolist()
        ([0.0, 0.0], 1.0)
    """
    return derivatives.hosted("host_call", fn, args, vjp)


@op
def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `fn` as a function that keeps nothing but its arguments for the gradient, and runs again to compute it.

    That saves memory for time. Tensors that `fn` closes over, and keyword arguments, are constants: pass what is
    differentiated as a positional argument.

    Raises: from the function returned, TracedTensorError if `fn` closes over a tensor that is being differentiated.

    Example:
        >>> ops.grad(ops.checkpoint(ops.square))(3.0).tolist()
        6.0
    """
    return derivatives.checkpointed("checkpoint", fn)


@op
def compile(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `fn` compiled by the active backend: by `torch.compile`, by `mx.compile`, and on NumPy `fn` as it is.

    Other shapes, dtypes and Python numbers compile it again. What cannot be compiled is run as it is: on MLX reading
    a value or drawing a random number, and any call from another thread than the main one, which could abort the
    process. A tensor that `fn` closes over may be taken for constant, so pass it as an argument; a `Parameter` is not.

    Example:
        >>> step = ops.compile(ops.value_and_grad(lambda w, x: ops.mean(ops.square(ops.matmul(x, w)))))
        >>> callable(step)
        True
    """
    return compilation.compiled("compile", fn)


@op
def backward(loss_fn: Callable[[], Any], params: Any) -> Tensor:
    """Returns the scalar `loss_fn()`, and adds its gradient by each trainable `Parameter` in `params` to its `grad`.

    The loss reads the parameters' `value`. What it assigns to the value of a parameter that is not trainable, such as a
    running mean, is kept; trainable ones have their old value afterwards, whatever was raised.

    Args:
        params: a tree; leaves that are no parameters are passed over.

    Raises: ShapeError if the loss is no scalar, DTypeError if a trainable parameter is an integer, ArgumentError if
    there is none.

    Example:
        >>> from emberharmony import Parameter
        >>> scale = Parameter(3.0)
        >>> ops.backward(lambda: ops.multiply(scale.value, 2.0), {"scale": scale}).tolist(), scale.grad.tolist()
        (6.0, 2.0)
    """
    return derivatives.accumulated("backward", loss_fn, params)


@op
def zero_grad(params: Any) -> None:
    """Sets the `grad` of each `Parameter` in `params`, a tree, to None.

    Example:
        >>> from emberharmony import Parameter
        >>> scale = Parameter(3.0)
        >>> loss = ops.backward(lambda: ops.square(scale.value), scale)
        >>> ops.zero_grad(scale)
        >>> print(scale.grad)
        None
    """
    for parameter in derivatives.parameters_of(params):
        parameter.grad = None


@op
def stop_gradient(x: TensorLike) -> Tensor:
    """Returns `x` as a constant: nothing is differentiated through it.

    Example:
        >>> ops.grad(lambda x: ops.multiply(x, ops.stop_gradient(x)))(3.0).tolist()
        3.0
    """
    ...
