"""Gradients through collectives, by the ranks of a run and by one process that writes the run as one function."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import ops

D = ops.distributed
CALLS: dict[str, Callable[[Any], Any]] = {
    "all_sum": lambda x: D.all_sum(x),
    "all_mean": lambda x: D.all_mean(x),
    "all_mean in order": lambda x: D.all_mean(x, deterministic=True),
    "all_gather": lambda x: D.all_gather(x),
    "reduce_scatter": lambda x: D.reduce_scatter(x),
    "broadcast": lambda x: D.broadcast(x, 1),
}
_WHOLE: dict[str, Callable[[Any, int], Any]] = {
    "all_sum": lambda every, rank: ops.sum(every, axis=0),
    "all_mean": lambda every, rank: ops.mean(every, axis=0),
    "all_mean in order": lambda every, rank: ops.mean(every, axis=0),
    "all_gather": lambda every, rank: ops.ravel(every),
    "reduce_scatter": lambda every, rank: ops.split(ops.sum(every, axis=0), every.shape[0])[rank],
    "broadcast": lambda every, rank: every[1],
}


def given(size: int) -> tuple[list[Any], Any]:
    """Returns the tensor of each rank, whose length divides by 2, 3 and 4, and the weights of the losses."""
    xs = [np.linspace(-1.0, 2.0, 12) + 0.25 * rank for rank in range(size)]
    return xs, np.random.default_rng(0).normal(size=(size, 12 * size))


def loss(call: Callable[[Any], Any], x: Any, weights: Any) -> Any:
    """Returns the loss of a rank."""
    y = call(ops.multiply(x, x))
    return ops.sum(ops.multiply(ops.sin(y), ops.convert_to_tensor(weights[: y.shape[0]])))


def of_rank(rank: int, size: int) -> dict[str, Any]:
    """Returns the gradient through each collective on a rank."""
    xs, weights = given(size)
    x = ops.convert_to_tensor(xs[rank])
    return {
        name: ops.to_numpy(ops.grad(lambda v, call=call: loss(call, v, weights[rank]))(x))
        for name, call in CALLS.items()
    }


def of_one_process(size: int) -> dict[str, Any]:
    """Returns the gradients of the sum of the losses of all ranks, one row for each rank."""
    xs, weights = given(size)

    def total(every: Any, name: str) -> Any:
        whole = _WHOLE[name]
        return sum(loss(lambda squares, rank=rank: whole(squares, rank), every, weights[rank]) for rank in range(size))

    with ops.use_backend("numpy"):
        return {name: ops.to_numpy(ops.grad(lambda v, name=name: total(v, name))(np.stack(xs))) for name in CALLS}
