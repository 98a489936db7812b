"""Transforms of functions: gradients, products with Jacobians, batching, compilation.

They take functions of trees (nested dicts, lists, tuples, named tuples and dataclasses of tensors or numbers) and
return functions that use the active backend, as ops do. A list of numbers counts as one tensor; a tuple never does.
Arguments that are differentiated must be floating or complex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.results import CompiledFunction
from emberharmony.core.types import Tensor, TensorLike

if TYPE_CHECKING:
    from emberharmony.backend.abstract import evaluation
    from emberharmony.transforms import axis_maps, compilation, derivatives
else:
    axis_maps = Deferred("emberharmony.transforms.axis_maps")
    compilation = Deferred("emberharmony.transforms.compilation")
    derivatives = Deferred("emberharmony.transforms.derivatives")
    evaluation = Deferred("emberharmony.backend.abstract.evaluation")


@op
def grad(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes the gradient of `fn`, which returns a scalar.

    The gradient has the structure, shapes and dtypes of the argument; for a sequence of `argnums` it is a tuple. For a
    real loss of complex arguments it is the direction of steepest ascent, ∂/∂Re + i ∂/∂Im. Keyword arguments are passed
    on and are not differentiated. Buffers and frozen parameters in a tree or module are constants, with None in their
    places.

    Args:
        fn: a function of trees that returns a scalar, real unless its arguments are complex.
        argnums: the position of the argument to differentiate, or a sequence of positions; negative ones count from the
            end.
        has_aux: whether `fn` returns (loss, aux); the gradient function then returns (gradient, aux).

    Raises:
        ShapeError: from the returned function, if the loss is not a scalar.
        DTypeError: from the returned function, if an argument to differentiate is an integer.
        ArgumentError: from the returned function, if `argnums` is out of range or chooses only constants.

    See also: `value_and_grad`, with the value; `jacobian`, of tensors; `backward`, for parameters.

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

    Args:
        fn: a function of trees that returns a scalar.
        argnums: the position of the argument to differentiate, or a sequence of positions; see `grad`.
        has_aux: whether `fn` returns (loss, aux); aux is not differentiated.

    See also: `grad`, alone; `backward`, for parameters.

    Example:
        >>> value, slope = ops.value_and_grad(ops.square)(3.0)
        >>> value.tolist(), slope.tolist()
        (9.0, 6.0)
    """
    return derivatives.gradient("value_and_grad", fn, argnums, has_aux, with_value=True)


@op
def vjp(fn: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns `fn(*primals)` and its VJP function, which multiplies cotangents by the Jacobian from the left.

    The VJP function takes a tree like the result and returns a tuple with one gradient for each primal. It may be
    called several times. MLX keeps no graph, so there each call runs `fn` again.

    Args:
        fn: a function of trees that returns a tree of tensors.
        *primals: the arguments of `fn`, trees of floating or complex tensors.
        has_aux: whether `fn` returns (result, aux); aux is then the third value returned.

    Raises:
        DTypeError: if a primal is an integer, or if the dtypes of the cotangents differ from those of the result.
        ShapeError: if the shapes of the cotangents differ from those of the result.
        ArgumentError: if the tree structure of the cotangents differs from that of the result.

    See also: `jvp`, in forward mode; `grad`, of a scalar.

    Example:
        >>> y, pull = ops.vjp(ops.multiply, 3.0, 4.0)
        >>> y.tolist(), [g.tolist() for g in pull(1.0)]
        (12.0, [4.0, 3.0])
    """
    outputs_and_pullback: tuple[Any, ...] = derivatives.run_vjp("vjp", fn, primals, has_aux)
    return outputs_and_pullback


@op
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Returns `fun(*primals)` and its directional derivative along `tangents`, which are like `primals`.

    Args:
        fun: a function of trees that returns a tree of tensors.
        primals: the arguments of `fun`, as a tuple or list: trees of floating or complex tensors.
        tangents: the direction, a tuple or list of trees with the shapes and dtypes of the primals.
        has_aux: whether `fun` returns (result, aux); aux is then the third value returned.

    Raises:
        DTypeError: if a primal is an integer, or if the dtypes of the tangents differ from those of the primals.
        ShapeError: if the shapes of the tangents differ from those of the primals.
        ArgumentError: if the tree structure of the tangents differs from that of the primals.

    See also: `vjp`, in reverse mode; `jacfwd`, of all directions.

    Example:
        >>> y, slope = ops.jvp(ops.square, (3.0,), (1.0,))
        >>> y.tolist(), slope.tolist()
        (9.0, 6.0)
    """
    outputs_and_tangents: tuple[Any, ...] = derivatives.run_jvp("jvp", fun, primals, tangents, has_aux)
    return outputs_and_tangents


@op
def jacobian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes all first derivatives of `fn` in reverse mode (`jacrev`).

    It takes one backward pass for each element of the result.

    Shape: for each pair of tensors of result and argument, the shape of the result followed by that of the argument.
    The derivatives form a tree like the result, whose leaves are trees like the argument, in a tuple for a sequence of
    `argnums`.

    Args:
        fn: a function of trees that returns a tree of real tensors.
        argnums: the position of the argument to differentiate, or a sequence of positions; see `grad`.
        has_aux: whether `fn` returns (result, aux); the Jacobian function then returns (jacobian, aux).

    Raises:
        DTypeError: from the returned function, if a tensor is an integer or complex.

    See also: `jacfwd`, in forward mode; `hessian`, of second order; `vjp`, of one product.

    Example:
        >>> ops.jacobian(ops.square)([1.0, 2.0]).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return derivatives.jacobian("jacobian", fn, argnums, has_aux, forward=False)


jacrev = alias("jacrev", jacobian)


@op
def jacfwd(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the same function as `jacobian`, but in forward mode: one pass for each element of the argument.

    It is cheaper than `jacobian` if the result has more elements than the argument.

    Args:
        fn: a function of trees that returns a tree of real tensors.
        argnums: the position of the argument to differentiate, or a sequence of positions; see `grad`.
        has_aux: whether `fn` returns (result, aux); the Jacobian function then returns (jacobian, aux).

    See also: `jacobian`, in reverse mode; `jvp`, of one product.

    Example:
        >>> ops.jacfwd(ops.square)([1.0, 2.0]).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return derivatives.jacobian("jacfwd", fn, argnums, has_aux, forward=True)


@op
def hessian(fn: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the function that computes all second derivatives of `fn`: the Jacobian of its Jacobian.

    Shape: that of the result, followed twice by that of the argument; trees nest in the same order.

    Args:
        fn: a function of trees that returns a tree of real tensors, such as a scalar.
        argnums: the position of the argument to differentiate, or a sequence of positions; see `grad`.
        has_aux: whether `fn` returns (result, aux); the Hessian function then returns (hessian, aux).

    See also: `jacobian`, of first order.

    Example:
        >>> ops.hessian(lambda x: ops.sum(ops.square(x)))([2.0, 3.0]).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    jacobian_function = derivatives.jacobian("hessian", fn, argnums, has_aux, forward=False)
    return derivatives.jacobian("hessian", jacobian_function, argnums, has_aux, forward=False)


@op
def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Returns `fn` mapped over an axis of its arguments, as if it were called for each slice and the results stacked.

    Keyword arguments are passed on unchanged. `fn` is called once, and its ops compute all slices together. If this is
    not possible, for example because of a Python `if` on a value, it is called once for each slice.

    Args:
        fn: a function of trees that returns a tree of tensors, written for one slice.
        in_axes: the axis to map over, for all arguments, or a tuple with one entry for each: an int, None for an
            argument that is not mapped, or a tree of these like the argument.
        out_axes: the position of the mapped axis in the results, in the same forms, but without None.

    Raises:
        ShapeError: from the returned function, if the mapped axes differ in length or are empty.
        AxisError: from the returned function, if an axis is out of range.
        ArgumentError: from the returned function, if the axes do not fit the structure of the arguments.

    See also: `vectorized_map`, along the first axis; `vectorize`, with broadcasting.

    Example:
        >>> ops.vmap(ops.dot, in_axes=(0, None))([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).tolist()
        [3.0, 7.0]
    """
    return axis_maps.map_over("vmap", fn, in_axes, out_axes)


@op
def vectorized_map(function: Callable[..., Any], elements: Any) -> Any:
    """Returns the stacked results of `function` for each slice of the tree `elements` along the first axis.

    Args:
        function: a function of one slice of `elements`, which returns a tree of tensors.
        elements: a tree of tensors whose first axes have one length.

    See also: `vmap`, along any axis; `map`, one after the other.

    Example:
        >>> ops.vectorized_map(ops.sum, [[1, 2], [3, 4]]).tolist()
        [3, 7]
    """
    return axis_maps.map_over("vectorized_map", function, 0, 0)(elements)


@op
def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Sequence[int] | None = None, signature: str | None = None
) -> Callable[..., Any]:
    """Returns `pyfunc`, a function of scalars, as a function of tensors that broadcasts its arguments.

    Args:
        pyfunc: a function of tensors without axes, or of those that `signature` describes.
        excluded: positions of arguments that are passed on whole; None maps all of them.
        signature: the axes that `pyfunc` itself takes and returns, for example `"(m,n),(n)->(m)"`; the axes before them
            are broadcast. None is a function of scalars.

    Raises:
        ArgumentError: if the signature is malformed.
        ShapeError: from the returned function, if shapes do not fit the signature or do not broadcast.

    See also: `vmap`, along one axis.

    Example:
        >>> ops.vectorize(lambda a, b: ops.add(a, b))([[1.0], [2.0]], [10.0, 20.0]).tolist()
        [[11.0, 21.0], [12.0, 22.0]]
    """
    return axis_maps.vectorize("vectorize", pyfunc, () if excluded is None else excluded, signature)


@op
def custom_vjp(
    forward: Callable[..., Sequence[Tensor]], backward: Callable[..., Sequence[Tensor]], primals: Sequence[Any]
) -> list[Tensor]:
    """Returns the tensors that `forward(*primals)` lists, with the gradients `backward(primals, cotangents)`.

    `forward` is not differentiated. `backward` is, for derivatives of higher order; it must be linear in the
    cotangents. There is one cotangent for each output. `custom_gradient` does the same for functions of trees.

    Args:
        forward: a function of the primals that returns a list or tuple of tensors.
        backward: a function of the tuple of primals and the list of cotangents that returns one gradient for each
            primal.
        primals: the tensors that are differentiated, a tuple or list.

    See also: `custom_gradient`, of trees.

    Example:
        >>> double = lambda x: ops.custom_vjp(lambda x: [x], lambda primals, cts: [ops.multiply(cts[0], 2.0)], [x])[0]
        >>> ops.grad(double)(3.0).tolist()
        2.0
    """
    ...


@op
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function whose gradient the user defines: `f` returns (result, gradient function).

    The gradient function is called as `gradient(*args, upstream=cotangent)`, where the cotangent is a tree like the
    result. It returns a tuple with one gradient for each argument; None stands for zeros, and for a single argument the
    tuple may be left out. It is differentiated for derivatives of higher order, and then `f` runs again. Arguments are
    trees. Keyword arguments, and tensors that `f` closes over, are constants.

    Args:
        f: a function of trees that returns (result, gradient function).

    Raises:
        ArgumentError: from the returned function, if the gradients have another tree structure than the arguments.
        ShapeError: from the returned function, if the gradients have other shapes than the arguments.
        TracedTensorError: from the returned function, if `f` closes over a tensor that is being differentiated.

    See also: `custom_vjp`, of tensors; `stop_gradient`, of zero.

    Example:
        >>> @ops.custom_gradient
        ... def clipped(x):
        ...     return x, lambda x, upstream: ops.clip(upstream, -1.0, 1.0)
        >>> ops.grad(lambda x: ops.multiply(clipped(x), 5.0))(ops.ones(())).tolist()
        1.0

    Source: the calling convention of Keras and TensorFlow.
    """
    return derivatives.with_custom_gradient("custom_gradient", f)


@op
def host_call(fn: Callable[..., Any], *args: Any, vjp: Callable[..., Any] | None = None) -> Any:
    """Returns the result of a function of any library, called with the values of its arguments, as tensors.

    `fn` gets the tensors in `args` as read-only NumPy arrays, and everything else unchanged. It returns arrays or
    numbers, or a tree of them. They keep their dtype, and go to the device of the first tensor. Reading the values
    forces evaluation. `vmap` calls `fn` once for each slice; `compile` leaves the call uncompiled on PyTorch, and the
    whole function on MLX.

    Args:
        fn: a function whose computation is not differentiated; only its values are used.
        *args: trees; their tensors become read-only arrays of NumPy, and everything else is passed on unchanged.
        vjp: the derivative, called as `vjp(*args, upstream=cotangent)` like the gradient function of `custom_gradient`.
            It takes and returns tensors; written with ops, or with `host_call` and a `vjp` again, it is differentiated
            for derivatives of higher order. None refuses a gradient.

    Raises:
        UnsupportedOpError: from the transform, if a gradient reaches the result and there is no `vjp`.
        ArgumentError: if the gradients have another tree structure than the arguments.
        ShapeError: if the gradients have other shapes than the arguments.

    See also: `custom_gradient`, written with ops.

    Example:
        >>> import numpy as np
        >>> def sine(x):
        ...     return ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.multiply(upstream, ops.cos(x)))
        >>> sine([0.0, 0.0]).tolist(), ops.grad(sine)(0.0).tolist()
        ([0.0, 0.0], 1.0)
    """
    return derivatives.call_on_host("host_call", fn, args, vjp)


@op
def eval_shape(fn: Callable[..., Any], *specs: Any) -> Any:
    """Returns a tree like the result of `fn(*specs)`, with a `TensorSpec` for each tensor; nothing is computed.

    The function runs on tensors that have a shape and a dtype but no values. No memory is allocated for them, whatever
    their shapes are, and nothing is drawn at random. Gradients, `vmap` and the other transforms work inside of it. A
    tensor that `fn` closes over keeps its values. The call has the effect of a `use_backend` block.

    Args:
        fn: a function written with ops, whose shapes do not depend on values of the specs.
        specs: trees. A leaf with a shape and a dtype (a `TensorSpec`, a tensor, an array) stands for a tensor of that
            kind, whose values are not read; any other leaf is passed on unchanged.

    Raises:
        TracedTensorError: if `fn` reads a value (`item()`, an `if`), or calls an op whose shape depends on values
            (`nonzero`, `unique`, a mask as key); the message names the op.
        DTypeError: if the backend lacks the dtype of a spec.
        ArgumentTypeError: if a length of a spec is not an integer, or if `fn` returns something other than tensors.

    See also: `compile`, with values.

    Example:
        >>> from emberharmony import TensorSpec
        >>> ops.eval_shape(ops.matmul, TensorSpec((2**20, 3)), TensorSpec((3, 2**20)))
        TensorSpec((1048576, 1048576), 'float32')
        >>> ops.eval_shape(ops.grad(lambda tree: ops.sum(ops.square(tree["w"]))), {"w": TensorSpec(5)})
        {'w': TensorSpec((5,), 'float32')}

    Source: `jax.eval_shape`.
    """
    return evaluation.evaluate_shapes("eval_shape", fn, specs)


@op
def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `fn` as a function that stores only its arguments for the gradient, and runs again to compute it.

    This saves memory and costs time. Keyword arguments, and tensors that `fn` closes over, are constants, so pass every
    tensor that needs a gradient as a positional argument.

    Args:
        fn: a function of trees whose intermediate tensors are not kept.

    Raises:
        TracedTensorError: from the returned function, if `fn` closes over a tensor that is being differentiated.

    See also: `nn.Remat`, the module.

    Example:
        >>> ops.grad(ops.checkpoint(ops.square))(3.0).tolist()
        6.0
    """
    return derivatives.checkpoint("checkpoint", fn)


@op
def compile(fn: Callable[..., Any], engine: Literal["torch", "jax", "numba", "auto"] | None = None) -> CompiledFunction:
    """Returns `fn` compiled by the active backend: by `torch.compile` or `mx.compile`, on NumPy as a list of its calls.

    Other shapes, dtypes and Python numbers compile it again. A function that cannot be compiled runs uncompiled. On
    NumPy and MLX that is a function that reads a value or draws a random number. Calls from other threads than the main
    thread run uncompiled on MLX too, because compiled they could abort the process. The compiler may treat a tensor
    that `fn` closes over as a constant, so pass it as an argument; a closed-over `Parameter` is not affected.

    On NumPy an engine, another library that compiles, may run what was recorded. It takes and returns NumPy arrays,
    without copies where the library can share their memory, and `fn` may compute gradients. The first call takes
    seconds, and less in later processes where the library keeps a cache on disk. Results differ from those without an
    engine in their last digits. A program that the engine cannot run, and a result that differs by more than 1e-4 of
    its largest element (1e-9 in double precision), cause one `EngineWarning`; then NumPy computes.

    The returned function has the attribute `engine`: the name of the engine that runs the program that was recorded
    last, which "auto" has chosen; None if NumPy itself runs it, before the first call, and on other backends.

    Args:
        fn: a function of trees of tensors and Python values.
        engine: "torch", "jax" or "numba" run the programs of NumPy; "auto" measures the installed ones at the first
            call of each program, and keeps the fastest if it saves a tenth of the time. Other backends take None and
            "auto" alone, which mean the same there.

    Raises:
        ArgumentError: if there is no such engine; from the returned function, if the active backend takes none.
        BackendUnavailableError: from the returned function, if the engine is not installed.

    See also: `eval_shape`, shapes alone.

    Example:
        >>> step = ops.compile(ops.value_and_grad(lambda w, x: ops.mean(ops.square(ops.matmul(x, w)))))
        >>> callable(step)
        True
    """
    return compilation.compile_where_called("compile", fn, engine)


@op
def backward(loss_fn: Callable[[], Any], params: Any) -> Tensor:
    """Returns the scalar `loss_fn()`, and adds its gradients to the `grad` of each trainable `Parameter` in `params`.

    The loss reads the `value` of the parameters. Values that it assigns to parameters that are not trainable, such as a
    running mean, are kept. Trainable parameters have their old value afterwards, even if an error was raised.

    Args:
        loss_fn: a function without arguments that returns a scalar.
        params: a tree, or any object that holds parameters in its attributes, directly or in trees and objects there;
            all else in it is ignored. An iterator, such as `module.named_parameters()`, is a list here.

    Raises:
        ShapeError: if the loss is not a scalar.
        DTypeError: if a trainable parameter is an integer.
        ArgumentError: if there is no trainable parameter.

    See also: `zero_grad`, before the next; `grad`, as a function.

    Example:
        >>> from emberharmony import Parameter
        >>> scale = Parameter(3.0)
        >>> ops.backward(lambda: ops.multiply(scale.value, 2.0), {"scale": scale}).tolist(), scale.grad.tolist()
        (6.0, 2.0)
    """
    return derivatives.accumulate_gradients("backward", loss_fn, params)


@op
def zero_grad(params: Any) -> None:
    """Sets the `grad` of each `Parameter` in `params` to None; `params` is a tree or object as in `backward`.

    Args:
        params: a tree, or any object that holds parameters in its attributes; all else in it is ignored.

    See also: `backward`, which adds to them.

    Example:
        >>> from emberharmony import Parameter
        >>> scale = Parameter(3.0)
        >>> loss = ops.backward(lambda: ops.square(scale.value), scale)
        >>> ops.zero_grad(scale)
        >>> print(scale.grad)
        None
    """
    derivatives.clear_gradients(params)


@op(elementwise=True, gradient="zero", finite="yes")
def stop_gradient(variable: TensorLike) -> Tensor:
    """Returns `variable` as a constant: derivatives do not flow through it.

    Args:
        variable: a tensor of any shape and dtype.

    See also: `custom_gradient`, with a derivative of one's own.

    Example:
        >>> ops.grad(lambda x: ops.multiply(x, ops.stop_gradient(x)))(3.0).tolist()
        3.0
    """
    ...
