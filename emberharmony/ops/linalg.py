"""Linear algebra, by the array API standard's names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from emberharmony.core.names.spaces import fill_namespace
from emberharmony.ops import _modules
from emberharmony.ops.arrays.shape import matrix_transpose

if _TYPE_CHECKING:  # as in `ops/__init__.py`, which has other ops of these names
    from emberharmony.ops.algebra.linalg_ops import (
        linalg_cond as cond,
        linalg_diagonal as diagonal,
        linalg_trace as trace,
    )

fill_namespace(
    globals(),
    _modules,
    ("algebra.linalg_ops", "algebra.matrix_functions", "algebra.norms", "algebra.products", "solver"),
    # Neither the standard nor Keras has these in its namespace of linear algebra, except for `trace`, whose place
    # `linalg_trace` takes.
    without=("cdist", "dot", "einsum", "inner", "kron", "logdet", "normalize", "trace", "vdot"),
    also={"matrix_transpose": matrix_transpose},
)
