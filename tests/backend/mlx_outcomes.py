"""Compares ops on MLX with those on NumPy in float64: values, gradients, dtypes, shapes and errors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.choice import use_backend
from emberharmony.core.errors import EmberError

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def drawn(*shape: int, low: float = -1.0) -> Any:
    """Returns an array of float32, the same for a shape; with `low` 1 no sum cancels."""
    return np.asarray(np.random.default_rng([len(shape), *shape]).uniform(low, 2.0, shape), np.float32)


def given(case: Any, dtype: str, wide: bool) -> Any:
    """Returns arguments with tensors for arrays, those of float32 rounded to a dtype, and widened if they shall be."""
    if isinstance(case, np.ndarray):
        x = ops.convert_to_tensor(case)
        if case.dtype != np.float32:
            return x
        x = ops.cast(x, dtype)
        return ops.cast(x, "float64") if wide else x
    if isinstance(case, (tuple, list)):
        return type(case)(given(x, dtype, wide) for x in case)
    return case


def outcome(call: Callable[..., Any], case: Any, dtype: str, gradients: bool, wide: bool) -> Any:
    """Returns the dtypes, shapes and values of the results, and of the gradients; the class of an error."""
    args = given(list(case), dtype, wide)
    places = [i for i, x in enumerate(args) if ops.is_tensor(x) and ops.dtype(x).is_floating]

    def total(*inner: Any) -> Any:
        made = [x for x in ops.tree_leaves(call(*inner)) if ops.dtype(x).is_floating]
        weights = [np.cos(np.arange(ops.size(x))).reshape(x.shape) for x in made]
        weights = [ops.cast(ops.convert_to_tensor(w), ops.dtype(x)) for w, x in zip(weights, made, strict=True)]
        return sum(ops.sum(ops.multiply(x, w)) for x, w in zip(made, weights, strict=True))

    try:
        found = ops.tree_leaves(call(*args))
        if gradients and places and any(ops.dtype(x).is_floating for x in found):
            found += ops.tree_leaves(ops.grad(total, tuple(places))(*args))
        return [(ops.dtype(x).name, tuple(x.shape), _values(x)) for x in found]
    except EmberError as error:
        return type(error)


def _values(x: Any) -> Any:
    return ops.to_numpy(ops.cast(x, "float64") if ops.dtype(x).is_floating else x)


def assert_as_numpy(
    call: Callable[..., Any], case: Any, dtype: str = "float32", eps: float = 8.0, gradients: bool = True
) -> None:
    """Asserts that a call on MLX has the outcome of the same call on NumPy with float64 for the dtype.

    Args:
        call: a function of the arguments.
        case: the arguments; arrays of float32 are given in `dtype`.
        dtype: a floating dtype.
        eps: how much values may differ, by the eps of the dtype at the largest value; gradients 8 times as much.
        gradients: whether to compare gradients too.
    """
    with use_backend("mlx"):
        found = outcome(call, case, dtype, gradients, False)
    with use_backend("numpy"), np.errstate(all="ignore"):
        wanted = outcome(call, case, dtype, gradients, True)
        count = len(ops.tree_leaves(call(*given(list(case), dtype, True)))) if isinstance(wanted, list) else 0
    if isinstance(found, type) or isinstance(wanted, type):
        assert found is wanted, (found, wanted, case)
        return
    for i, ((kind, shape, ours), (expected, length, value)) in enumerate(zip(found, wanted, strict=True)):
        assert (kind, shape) == (dtype if expected == "float64" else expected, length), case
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        scale = max(np.abs(finite).max(initial=0.0), 1e-30) if value.dtype.kind == "f" else 0.0
        limit = eps * (1 if i < count else 8) * max(EPS[dtype], EPS.get(kind, 0.0)) * scale
        np.testing.assert_allclose(ours, value, rtol=0.0, atol=limit, err_msg=f"{case}"[:300])
