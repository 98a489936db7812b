"""Calls with rare arguments: `eval_shape` gives the shapes and dtypes of the call, or raises its error."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import EmberError
from tests.together import together

F = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
V = F[0]
Z = F.astype(np.complex64)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arange": (lambda x: ops.add(ops.arange(3, step=2), ops.arange(1, 3)), (V,)),
    "linspace": (lambda x: ops.linspace(x, x, 4), (V,)),
    "linspace along an axis": (lambda x: ops.linspace(x, x, 4, True, False, None, -1), (V,)),
    "linspace with its step": (lambda x: ops.linspace(x, 1.0, 4, axis=1, retstep=True), (V,)),
    "logspace": (lambda x: ops.logspace(x, 2.0, 3), (V,)),
    "logspace by bases": (lambda x: ops.logspace(0.0, 2.0, 3, base=x), (V,)),
    "logspace by a base for each end": (lambda x: ops.logspace(x, 2.0, 3, base=x, axis=1), (V[:2],)),
    "geomspace": (lambda x: ops.geomspace(x, 9.0, 3), (V,)),
    "geomspace along an axis": (lambda x: ops.geomspace(x, 9.0, 3, True, None, 1), (V,)),
    "full": (lambda x: ops.full((2, 3), x), (V,)),
    "full of too much": (lambda x: ops.full((3,), x), (F,)),
    "full of another length": (lambda x: ops.full((2, 2), x), (V,)),
    "full_like of another length": (lambda x: ops.full_like(x, V[:2]), (F,)),
    "an item": (lambda x: ops.get_item(x, (..., 0)), (F,)),
    "an empty key": (lambda x: ops.get_item(x, ()), (F,)),
    "indices of floats": (lambda x, i: ops.get_item(x, i), (F, V)),
    "complex indices": (lambda x, i: ops.get_item(x, i), (F, Z[0])),
    "updates": (lambda x, u: ops.scatter_update(x, [[0], [1]], u), (F, F)),
    "an update of all": (lambda x, u: ops.scatter_update(x, [[0], [1]], u), (F, V)),
    "updates of another shape": (lambda x, u: ops.scatter_update(x, [[0]], u), (F, F)),
    "weights of another length": (lambda x: ops.bincount(np.array([0, 1, 1]), x), (V[:2],)),
    "weights": (lambda x: ops.bincount(np.array([0, 1, 1]), x), (V,)),
    "counts": (lambda x: ops.add(ops.sum(x), ops.bincount(np.array([0, 1, 1]))), (V,)),
    "broadcast": (lambda x: ops.broadcast_to(x, (4, 2, 3)), (F,)),
    "broadcast to less": (lambda x: ops.broadcast_to(x, (3,)), (F,)),
    "broadcast to another length": (lambda x: ops.broadcast_to(x, (2, 2, 4)), (F,)),
    "narrowing broadcast": (lambda x: ops.broadcast_to(x, (2, 1)), (F,)),
    "joined": (lambda x, y: ops.concatenate([x, y], 1), (F, F[:, :1])),
    "joined of several ranks": (lambda x, y: ops.concatenate([x, y], -1), (F, V)),
    "joined of several lengths": (lambda x, y: ops.concatenate([x, y], 1), (F, F[:1])),
    "sparse": (lambda x: ops.convert_to_tensor(x, sparse=True), (F,)),
    "ragged": (lambda x: ops.convert_to_tensor(x, ragged=True), (F,)),
    "greater complex": (lambda x, v: ops.set_item(x, 0, v, "max"), (Z, Z[0])),
    "greater": (lambda x, v: ops.set_item(x, 0, v, "max"), (F, V)),
    "added complex": (lambda x, v: ops.set_item(x, 0, v, "add"), (Z, Z[0])),
    "mapped": (lambda x: ops.map(lambda row: ops.sum(row), x), (F,)),
    "mapped numbers": (lambda x: ops.map(lambda row: ops.sum(row), x), (np.float32(1),)),
    "mapped rows of two lengths": (
        lambda x, y: ops.map(lambda pair: ops.add(ops.sum(pair[0]), pair[1]), (x, y)),
        (F, V),
    ),
    "a reshape that does not fit": (lambda x: ops.reshape(x, (4, -1)), (F,)),
    "a branch of several elements": (lambda x: ops.cond(ops.greater(x, 0.0), lambda: x, lambda: x), (V,)),
}


def _looked_at(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        found = function(*arguments)
    except EmberError as error:
        return type(error)
    leaves = ops.tree_leaves(found)
    return [(tuple(x.shape), str(x.dtype if isinstance(x, ops.TensorSpec) else ops.dtype(x))) for x in leaves]


@together("name", CALLS)
def test_the_shapes_of_a_rare_call_are_those_of_the_call(name: str, backend: str) -> None:
    function, arrays = CALLS[name]
    arguments = tuple(map(ops.convert_to_tensor, arrays))

    def by_specs(*given: Any) -> Any:
        return ops.eval_shape(function, *given)

    assert _looked_at(by_specs, arguments) == _looked_at(function, arguments)
