"""Batching rules of `ops/solver.py`.

The bodies take 1.2 to 24 times as long under `vmap`, for few elements.
"""

from typing import Any

from emberharmony.rules.batching.forms import add_unit_axis, batches
from emberharmony.transforms.batch_tape import Mapped, Rows, align_ranks

T = Any


@batches("solve", "solve_triangular")
def _solve(m: Mapped, a: Any, b: Any, *options: Any) -> T:
    ranks = len(a.shape), len(b.shape)
    if ranks[0] < 2 or not ranks[1]:
        return NotImplemented
    if ranks == (2, 1) and a.__class__ is not Rows:  # one matrix, and the vectors as columns
        return m.bound.matrix_transpose(m(a, m.bound.matrix_transpose(b.whole), *options))
    if ranks[1] == 1:
        return m.bound.squeeze(m(*align_ranks(m, (a, add_unit_axis(m, b, -1))), *options), -1)
    return m(*align_ranks(m, (a, b)), *options)
