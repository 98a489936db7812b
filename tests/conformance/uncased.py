"""Programs for the ops whose sample rows have no cases: transforms, control flow, random numbers, dtypes, devices.

`compare` runs each on the active backend and on NumPy.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from emberharmony import Parameter, ops

X, Y = np.array([0.5, -1.25, 2.0], np.float32), np.array([[1.0, 2.0, 3.0], [0.5, -2.0, 4.0]], np.float32)


def curve(x: Any) -> Any:
    return ops.sum(ops.sin(x) * x)


def bent(x: Any) -> Any:
    return ops.tanh(x) * 2.0


def drawn(draw: Callable[..., Any]) -> list[Any]:
    """Returns the draws of the portable generator, which are the same on every backend."""
    return [draw(generator=ops.random.Generator(5)), draw(seed=3)]


def repeated() -> Any:
    """Returns whether two draws from one state of the backend's own stream are equal, and their shapes."""
    ops.random_seed(4)
    state = ops.random_get_state()
    first = ops.to_numpy(ops.standard_normal((2, 2))), ops.to_numpy(ops.standard_uniform((3,)))
    ops.random_set_state(state)
    second = ops.to_numpy(ops.standard_normal((2, 2))), ops.to_numpy(ops.standard_uniform((3,)))
    same = all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    return [same, [a.shape for a in first], bool((first[1] >= 0).all() and (first[1] < 1).all())]


def device() -> Any:
    ops.synchronize()
    name = ops.get_device(ops.asarray(X))
    ops.set_default_device(name)
    default = ops.get_default_device()
    ops.set_default_device(None)
    moved = ops.to_device(ops.asarray(X), name)
    return [name == default, name in ops.get_available_devices(), moved, isinstance(ops.memory_info(), dict)]


@ops.custom_gradient
def tripled(x: Any) -> Any:
    return x * 2, lambda x, upstream: upstream * 3


def passed_on(x: Any) -> Any:
    return ops.custom_vjp(lambda x: [x * x], lambda xs, upstream: [upstream[0]], [x])[0]


def cells() -> Any:
    cell = Parameter(X)
    loss = ops.backward(lambda: ops.sum(ops.square(cell.value)), cell)
    kept = ops.to_numpy(cell.grad)
    ops.zero_grad(cell)
    return [loss, kept, cell.grad is None]


PROGRAMS: dict[str, Callable[[], Any]] = {
    "cond": lambda: [ops.cond(ops.asarray(flag), bent, lambda x: x + 1, X) for flag in (True, False)],
    "switch": lambda: [ops.switch(ops.asarray(i), [bent, ops.exp, ops.negative], X) for i in (0, 2)],
    "while_loop": lambda: ops.while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x * 2), (ops.asarray(0), X)),
    "fori_loop": lambda: ops.fori_loop(1, 5, lambda i, x: x * 1.5 + i, X),
    "scan": lambda: ops.scan(lambda c, x: (c + x, c * x), ops.zeros(3), Y, reverse=True),
    "map": lambda: ops.map(bent, Y),
    "associative_scan": lambda: ops.associative_scan(ops.add, Y, axis=1),
    "random_categorical": lambda: drawn(lambda **how: ops.random_categorical(Y, 5, **how)),
    "random_permutation": lambda: drawn(lambda **how: ops.random_permutation(6, **how)),
    "random_shuffle": lambda: drawn(lambda **how: ops.random_shuffle(Y, axis=1, **how)),
    "random_choice": lambda: drawn(lambda **how: ops.random_choice(9, (4,), replace=False, **how)),
    "dropout": lambda: drawn(lambda **how: ops.dropout(Y, 0.5, **how)),
    "standard_uniform standard_normal random_seed random_get_state random_set_state": repeated,
    "dtype native_dtype": lambda: [ops.dtype(ops.ones(2)), ops.dtype(ops.zeros(1, ops.native_dtype("int16")))],
    "result_type": lambda: [ops.result_type(ops.ones(2, "int32"), x) for x in (ops.ones(1, "float16"), "int64", 1.5)],
    "can_cast isdtype": lambda: [ops.can_cast(ops.ones(1, "int32"), "float64"), ops.isdtype("uint8", "integral")],
    "finfo iinfo": lambda: [ops.finfo(ops.ones(1)).eps, ops.iinfo(ops.ones(1, "int16")).max],
    "get_device to_device get_available_devices get_default_device set_default_device synchronize memory_info": device,
    "grad": lambda: ops.grad(curve)(X),
    "value_and_grad": lambda: ops.value_and_grad(lambda a, b: ops.sum(a * b), (0, 1))(X, Y),
    "vjp": lambda: ops.vjp(bent, X)[1](ops.ones(3)),
    "jvp": lambda: ops.jvp(bent, (X,), (X,)),
    "jacobian": lambda: ops.jacobian(bent)(X),
    "jacfwd": lambda: ops.jacfwd(bent)(X),
    "hessian": lambda: ops.hessian(curve)(X),
    "vmap": lambda: [ops.vmap(ops.grad(curve))(Y), ops.vmap(lambda v: (v, v), in_axes=1)(Y)],
    "vectorized_map": lambda: ops.vectorized_map(curve, Y),
    "vectorize": lambda: ops.vectorize(lambda a, b: ops.sum(a) + b, signature="(n),()->()")(Y, X[:2]),
    "custom_vjp": lambda: ops.grad(lambda x: ops.sum(passed_on(x)))(X),
    "custom_gradient": lambda: ops.grad(lambda x: ops.sum(tripled(x)))(X),
    "checkpoint": lambda: ops.grad(ops.checkpoint(curve))(X),
    "compile": lambda: [ops.compile(curve)(X), ops.compile(ops.grad(curve))(X)],
    "stop_gradient": lambda: ops.grad(lambda x: ops.sum(x * ops.stop_gradient(x)))(X),
    "backward zero_grad": cells,
    "eval_shape": lambda: str(ops.eval_shape(ops.matmul, Y, Y.T)),
}  # fmt: skip
"""Programs by the names of the ops that they call."""


def plain(value: Any) -> Any:
    """Returns the results of a program with host arrays instead of tensors."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return ops.to_numpy(value) if hasattr(value, "shape") else value


def differs(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return len(found) != len(wanted) or any(map(differs, found, wanted))
    if isinstance(wanted, np.ndarray):
        same = found.dtype == wanted.dtype and found.shape == wanted.shape
        return not same or not np.allclose(found, wanted, 1e-5, 1e-6, equal_nan=True)
    return bool(found != wanted)


def compare(backend: str) -> Iterator[tuple[str, str]]:
    """Yields the names of each program's ops, and what was wrong on the backend; "" if nothing was."""
    for names, program in PROGRAMS.items():
        with ops.use_backend("numpy"):
            wanted = plain(program())
        try:
            with ops.use_backend(backend):
                found = plain(program())
        except Exception as error:  # noqa: BLE001  (each program is run, and each failure is reported)
            yield names, f"raises {type(error).__name__}: {error}"
        else:
            yield names, f"returns {found!r:.200}, expected {wanted!r:.200}" if differs(found, wanted) else ""
