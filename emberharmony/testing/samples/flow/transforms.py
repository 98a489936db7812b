"""Rows of `ops/flow/transforms.py`.

Except for `host_call`, the ops return functions or derivatives of functions, so `tests/ops` checks them.
"""

from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.testing.sample import Sample, by_tests, case, grid


def _sine_vjp(x: Any, upstream: Any) -> Any:
    return ops.multiply(upstream, ops.cos(x))


SAMPLES = [
    Sample(
        "host_call",
        lambda fn, x, vjp: fn(x),
        (case(np.sin, grid(-3, 3, 12).reshape(3, 4), vjp=_sine_vjp),),
        tolerance=1.0,
        differentiable=True,
        fixed=True,
    ),
    by_tests("grad", ("lambda x: ops.sum(ops.square(x))",), ("lambda x, y: ops.vdot(x, y)", "(0, 1)")),
    by_tests("value_and_grad", ("lambda x: ops.sum(ops.square(x))",)),
    by_tests("vjp", ("lambda x: ops.sum(ops.square(x))", "ops.ones((3,))")),
    by_tests("jvp", ("lambda x: ops.sum(ops.square(x))", "(ops.ones((3,)),)", "(ops.ones((3,)),)")),
    by_tests("jacobian", ("lambda x: ops.multiply(x, ops.sin(x))",)),
    by_tests("jacfwd", ("lambda x: ops.multiply(x, ops.sin(x))",)),
    by_tests("hessian", ("lambda x: ops.sum(ops.square(x))",)),
    by_tests("vmap", ("lambda x: ops.cumsum(x)", "0", "0"), ("lambda x, y: ops.add(x, y)", "(0, None)")),
    by_tests("vectorized_map", ("lambda x: ops.sum(x)", "ops.ones((3, 2))")),
    by_tests("vectorize", ("lambda x, y: ops.maximum(x, y)",), ("lambda x: ops.sum(x)", "None", "'(n)->()'")),
    by_tests(
        "custom_vjp",
        ("lambda x: [ops.sin(x)]", "lambda primals, outs, cotangents: [cotangents[0]]", "[ops.ones((3,))]"),
    ),
    by_tests("custom_gradient", ("lambda x: (ops.sin(x), lambda g: g)",)),
    by_tests("checkpoint", ("lambda x: ops.sin(x)",)),
    by_tests("compile", ("lambda x: ops.sin(x)",)),
    by_tests("stop_gradient", ("ops.ones((3,))",)),
    by_tests("backward", ("lambda: ops.array(1.0)", "[ops.Parameter(ops.ones((2,)))]")),
    by_tests("zero_grad", ("[ops.Parameter(ops.ones((2,)))]",)),
    by_tests(
        "eval_shape",
        ("lambda x: ops.sum(ops.square(x))", "ops.ones((3,))"),
        ("lambda x, y: ops.matmul(x, y)", "ops.TensorSpec((2, 3))", "ops.TensorSpec((3, 4))"),
    ),
]
