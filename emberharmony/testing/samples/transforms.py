"""Rows of `ops/transforms.py`.

Except for `host_call`, the ops return functions or derivatives of functions, so `tests/ops` checks them.
"""

from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.testing.sample import Sample, case, grid


def _by_cosine(x: Any, upstream: Any) -> Any:
    return ops.multiply(upstream, ops.cos(x))


_FUNCTIONS = (
    *("grad", "value_and_grad", "vjp", "jvp", "jacobian", "jacfwd", "hessian", "vmap", "vectorized_map", "vectorize"),
    *("custom_vjp", "custom_gradient", "checkpoint", "compile", "stop_gradient", "backward", "zero_grad"),
    "eval_shape",
)
SAMPLES = [
    Sample(
        "host_call",
        lambda fn, x, vjp: fn(x),
        (case(np.sin, grid(-3, 3, 12).reshape(3, 4), vjp=_by_cosine),),
        tolerance=1.0,
        differentiable=True,
        fixed=True,
    ),
    *(Sample(op, str, (), reference="tests") for op in _FUNCTIONS),
]
