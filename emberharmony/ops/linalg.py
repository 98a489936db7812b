"""Linear algebra, by the array API standard's names."""

from emberharmony.core.names.spaces import fill
from emberharmony.ops import _modules
from emberharmony.ops.arrays.shape import matrix_transpose

fill(
    globals(),
    _modules,
    ("algebra.linalg_ops", "algebra.matrix_functions", "algebra.norms", "algebra.products", "solver"),
    # Neither the standard nor Keras has these in its namespace of linear algebra, except for `trace`, whose place
    # `linalg_trace` takes.
    without=("cdist", "dot", "einsum", "inner", "kron", "logdet", "normalize", "trace", "vdot"),
    also={"matrix_transpose": matrix_transpose},
)
