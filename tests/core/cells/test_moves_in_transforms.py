"""A cell that was last on another backend is read for the first time inside each transform, on each backend."""

import functools
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.errors import TracedTensorError

BACKENDS = ("numpy", "torch", "mlx", "jax")
VALUES, GRADIENT = [1.0, 2.0], [3.0, 4.0]
Read = Callable[[Any], Any]


@pytest.fixture(params=BACKENDS)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Makes each installed backend active, JAX too; torch.compile only traces."""
    name: str = request.param
    if name != "numpy":
        pytest.importorskip({"mlx": "mlx.core"}.get(name, name))
    if name == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    with warnings.catch_warnings(), ops.use_backend("numpy"):
        warnings.simplefilter("ignore", UserWarning)
        with ops.use_backend(name):
            yield name


def _loss(read: Read, t: Any) -> Any:
    return ops.sum(ops.multiply(ops.sin(read(t)), t))


def _of_rows(read: Read) -> Any:
    return ops.vmap(lambda t: ops.multiply(read(t), t))(ops.ones((3, 2)))


def _in_backward(read: Read) -> None:
    other = Parameter(VALUES)
    ops.backward(lambda: _loss(read, other), [other])


def _twice(fn: Callable[[Any], Any]) -> None:
    for _ in range(2):
        fn(ops.ones(2))


def _compiled_loops(read: Read) -> None:
    rows = ops.ones((3, 2))
    ops.compile(lambda x: ops.scan(lambda c, t: (c, ops.multiply(read(t), t)), ops.ones(2), x)[1])(rows)
    ops.compile(lambda t: ops.cond(ops.sum(t) > 0, lambda: ops.multiply(read(t), t), lambda: t))(ops.ones(2))


TRANSFORMS: dict[str, Callable[[Read], Any]] = {
    "compile": lambda read: _twice(ops.compile(lambda t: ops.multiply(read(t), t))),
    "loops in compile": _compiled_loops,
    "compile(grad)": lambda read: _twice(ops.compile(ops.grad(lambda t: _loss(read, t)))),
    "compile(vmap)": lambda read: ops.compile(ops.vmap(lambda t: ops.multiply(read(t), t)))(ops.ones((3, 2))),
    "grad": lambda read: ops.grad(lambda t: _loss(read, t))(ops.ones(2)),
    "grad(compile)": lambda read: ops.grad(ops.compile(lambda t: _loss(read, t)))(ops.ones(2)),
    "grad(vmap)": lambda read: ops.grad(lambda _: ops.sum(_of_rows(read)))(ops.ones(2)),
    "grad(checkpoint)": lambda read: ops.grad(ops.checkpoint(lambda t: _loss(read, t)))(ops.ones(2)),
    "hessian": lambda read: ops.hessian(lambda t: _loss(read, ops.square(t)))(ops.ones(2)),
    "jacobian": lambda read: ops.jacobian(lambda t: ops.multiply(read(t), t))(ops.ones(2)),
    "jacfwd": lambda read: ops.jacfwd(lambda t: ops.multiply(read(t), t))(ops.ones(2)),
    "vjp": lambda read: ops.vjp(lambda t: ops.multiply(read(t), t), ops.ones(2))[1](ops.ones(2)),
    "jvp(grad)": lambda read: ops.jvp(ops.grad(lambda t: _loss(read, t)), (ops.ones(2),), (ops.ones(2),)),
    "vmap": _of_rows,
    "vmap(grad)": lambda read: ops.vmap(ops.grad(lambda t: _loss(read, t)))(ops.ones((3, 2))),
    "vmap(compile)": lambda read: ops.vmap(ops.compile(lambda t: ops.multiply(read(t), t)))(ops.ones((3, 2))),
    "vectorize": lambda read: ops.vectorize(lambda t: ops.multiply(read(t), t), signature="(n)->(n)")(ops.ones((3, 2))),
    "custom_gradient": lambda read: ops.grad(
        lambda t: ops.sum(ops.custom_gradient(lambda s: (s, lambda s, upstream: ops.multiply(read(s), upstream)))(t))
    )(ops.ones(2)),
    "eval_shape": lambda read: ops.eval_shape(lambda t: ops.multiply(read(t), t), ops.ones(2)),
    "backward": _in_backward,
}
READS: dict[str, Callable[[Parameter], Read]] = {
    "value": lambda cell: lambda t: cell.value,
    "operand": lambda cell: lambda t: cell,
    "gradient": lambda cell: lambda t: cell.grad,
}


SOME = ("compile", "hessian", "vmap(grad)")
"""The transforms for the other ways to read a cell, which all lead to the same conversion."""


SLOW = ("loops in compile", "compile(vmap)", "vmap(compile)")
"""Transforms that PyTorch would compile for seconds, in parts, and that add no way to a cell there."""


def _numbers(x: Any) -> Any:
    return np.asarray(ops.multiply(x, ops.ones(2))).tolist()


@pytest.mark.parametrize("way", READS)
def test_a_cell_keeps_its_tensor_if_its_first_read_is_in_a_transform(way: str, here: str) -> None:
    source = "torch" if here == "numpy" and "torch" in ops.available_backends() else "numpy"
    if source == here:
        pytest.skip("no other backend is installed")
    lost = []
    for name in TRANSFORMS if way == "value" else SOME:
        if here == "torch" and name in SLOW:
            continue
        with ops.use_backend(source):
            cell = Parameter(VALUES)
            cell.grad = ops.array(GRADIENT)
        TRANSFORMS[name](READS[way](cell))
        for backend in (here, "numpy"):
            with ops.use_backend(backend):
                found = _numbers(cell), _numbers(cell.grad)
                if found != (VALUES, GRADIENT):
                    lost.append((name, backend, found))
    assert not lost


def test_a_cell_that_is_made_of_constants_in_a_transform_outlives_it(here: str) -> None:
    lost = []
    for name in ("compile", "grad", "hessian", "jvp(grad)", "vmap", "grad(vmap)", "backward"):
        made: list[Parameter] = []

        def read(t: Any, made: list[Parameter] = made) -> Any:
            if not made:
                made.extend([Parameter(VALUES), Parameter(ops.ones(2)), Parameter(np.zeros(2, "float32"))])
            return ops.add(ops.add(made[0].value, made[1].value), made[2].value)

        TRANSFORMS[name](read)
        TRANSFORMS[name](read)
        if [_numbers(cell) for cell in made] != [VALUES, [1.0, 1.0], [0.0, 0.0]]:
            lost.append(name)
    assert not lost


def test_a_traced_tensor_that_leaves_a_compiled_function_in_a_new_cell_is_refused_by_name() -> None:
    pytest.importorskip("jax")
    made: list[Parameter] = []

    def kept(t: Any) -> Any:
        if not made:
            made.append(Parameter(ops.multiply(t, 2.0)))
        return ops.add(made[0], t)

    with warnings.catch_warnings(), ops.use_backend("numpy"):
        warnings.simplefilter("ignore", UserWarning)
        with ops.use_backend("jax"):
            compiled = ops.compile(kept)
            compiled(ops.ones(2))
            for use in (lambda: ops.add(made[0], 1.0), lambda: compiled(ops.ones((1, 2)))):
                with pytest.raises(TracedTensorError, match="tracer"):
                    use()
