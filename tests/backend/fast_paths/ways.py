"""Counts the calls that an op makes for its arguments, which shows the way that it goes.

Where two ways give the same results, no comparison of results tells whether the faster one is still taken.
"""

import ast
from itertools import pairwise
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core import op_globals, selection
from emberharmony.core.registry import OPS
from tests.another import another
from tests.backend.fast_paths.comparing import calls, general


def f(*shape: int, add: float = 0.0, scale: float = 1.0, dtype: str = "float32") -> Any:
    """Returns a tensor of numbers between -3 and 3, times a scale, plus a number."""
    values = np.random.default_rng(shape).uniform(-3, 3, shape) * scale + add
    return ops.convert_to_tensor(np.asarray(values, dtype))


def d(*shape: int, **options: Any) -> Any:
    """Returns the same in float64."""
    return f(*shape, **options, dtype="float64")


def h(*shape: int, **options: Any) -> Any:
    """Returns the same in float16."""
    return f(*shape, **options, dtype="float16")


def c(*shape: int, **options: Any) -> Any:
    """Returns the same in complex64."""
    return f(*shape, **options, dtype="complex64")


def i(*shape: int, least: int = 0, below: int = 4, dtype: str = "int64") -> Any:
    """Returns a tensor of integers."""
    return ops.convert_to_tensor(np.random.default_rng(shape).integers(least, below, shape).astype(dtype))


def listed(calls: str) -> list[str]:
    """Returns the lines of a text that are not empty."""
    return [line for line in calls.splitlines() if line]


def cost(call: str, general_way: bool = False) -> int:
    """Returns how many calls the source of a call of an op makes; in the general way of the op, if asked."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    name = ast.unparse(tree.func)
    space = {"f": f, "d": d, "h": h, "c": c, "i": i, "np": np, "t": ops.transpose}
    args = [eval(ast.unparse(arg), space) for arg in tree.args]
    kwargs = {str(part.arg): eval(ast.unparse(part.value), space) for part in tree.keywords}
    # While an override by another backend is alive, ops find the backend in another way, and in a third one if PyTorch
    # compiled a function meanwhile. An earlier test may have left such an override, so there is always one here.
    before, backend = op_globals.override, ops.get_backend()
    try:
        op_globals.publish(override=selection._OVERRIDE.get)
        with ops.use_backend(another(backend)), ops.use_backend(backend):
            return calls(general(name) if general_way else OPS[name].function, *args, **kwargs)
    finally:
        op_globals.publish(override=before)


def is_faster(call: str) -> bool:
    """Returns whether a call makes clearly fewer calls than the general way of the op."""
    return cost(call) < 0.85 * cost(call, general_way=True)


def unordered(line: str) -> str:
    """Returns the costs of calls that are separated by `<`, if they do not ascend; else an empty string."""
    costs = [cost(call) for call in line.split(" < ")]
    return "" if all(a < b for a, b in pairwise(costs)) else f"{costs}: {line}"
