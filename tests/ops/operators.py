"""What the page "Operators" says of native operands under transforms, as programs that its test runs."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import Parameter, ops

LIBRARIES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core", "jax": "jax.numpy"}
Program = Callable[[Any], Any]


def rows(backend: str) -> dict[str, Program]:
    """Returns the programs by the first column of the table.

    `a` is a native tensor, `p` a parameter from outside, `x` the argument.
    """
    library = importlib.import_module(LIBRARIES[backend])
    a = ops.array([[0.5, -1.0], [2.0, 0.25]])
    p = Parameter(a)
    return {
        "`x * a`, `x @ a`": lambda x: x * a + x @ a,
        "`a * x`, `a @ x`": lambda x: a * x + a @ x,
        "`2 * x`, `x ** 2`": lambda x: 2 * x + x**2,
        "`lib.sin(x)`": lambda x: library.sin(x),
        "`ops.multiply(a, x)`": lambda x: ops.multiply(a, x) + ops.sin(ops.matmul(a, x)),
        "`p * x`, `p @ x`": lambda x: p * x + p @ x,
        "`x * p`": lambda x: x * p,
        "`x @ p`": lambda x: x @ p,
        "`lib.sin(p)`": lambda x: ops.multiply(library.sin(p), x),
    }


def _summed(program: Program) -> Program:
    return lambda x: ops.sum(ops.power(program(x), 3))


def _checked(program: Program, x: Any, *words: Any) -> Any:
    with ops.checked(*words):
        return ops.grad(_summed(program))(x)


COLUMNS: dict[str, Callable[[Program, Any], Any]] = {
    "plain": lambda program, x: program(x),
    "`grad`": lambda program, x: ops.grad(_summed(program))(x),
    "`grad` in `grad`": lambda program, x: ops.hessian(_summed(program))(x),
    "`jvp`": lambda program, x: ops.jvp(program, (x,), (ops.ones_like(x),))[1],
    "`vmap`": lambda program, x: ops.vmap(program)(ops.stack([x, ops.negative(x)])),
    "`compile`": lambda program, x: ops.compile(program)(x),
    "`checked()`": lambda program, x: _checked(program, x),
    '`checked("nan")`': lambda program, x: _checked(program, x, "nan"),
}
"""What is run, by the heading of the column."""


def outcome(program: Program, run: Callable[[Program, Any], Any], wanted: Any) -> str:
    """Returns what the table says: "yes" if the result is right, "wrong" if not, or the class of the error."""
    x = ops.array([[0.3, 0.7], [-0.2, 0.9]])
    try:
        found = ops.to_numpy(run(program, x))
    except Exception as error:  # noqa: BLE001  (the table names its class)
        return type(error).__name__
    return "yes" if np.allclose(found, wanted, rtol=1e-3, atol=1e-4) else "wrong"


def expected(name: str, column: str) -> Any:
    """Returns the right result as a host array: that of the same program over ops alone, on NumPy."""
    a = np.array([[0.5, -1.0], [2.0, 0.25]], "float32")
    over_ops: dict[str, Program] = {
        "`x * a`, `x @ a`": lambda x: ops.add(ops.multiply(x, a), ops.matmul(x, a)),
        "`a * x`, `a @ x`": lambda x: ops.add(ops.multiply(a, x), ops.matmul(a, x)),
        "`2 * x`, `x ** 2`": lambda x: ops.add(ops.multiply(x, 2.0), ops.square(x)),
        "`lib.sin(x)`": ops.sin,
        "`ops.multiply(a, x)`": lambda x: ops.add(ops.multiply(a, x), ops.sin(ops.matmul(a, x))),
        "`p * x`, `p @ x`": lambda x: ops.add(ops.multiply(a, x), ops.matmul(a, x)),
        "`x * p`": lambda x: ops.multiply(x, a),
        "`x @ p`": lambda x: ops.matmul(x, a),
        "`lib.sin(p)`": lambda x: ops.multiply(ops.sin(a), x),
    }
    with ops.use_backend("numpy"):
        return ops.to_numpy(COLUMNS[column](over_ops[name], ops.array([[0.3, 0.7], [-0.2, 0.9]])))
