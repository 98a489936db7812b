"""The body of `scatter_update`: nothing is assigned, `take` reads old or new elements.

Several updates of one place are first combined with one another, in steps that double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.arrays import indexing as shared
from emberharmony.core.types import Tensor
from emberharmony.ops.arrays.indexing import take, where
from emberharmony.ops.arrays.shape import broadcast_to, concatenate, reshape
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.dtype import refuse_complex
from emberharmony.ops.math import add, maximum, minimum, multiply
from emberharmony.ops.tensor import cast, convert_to_tensor, on_host

_COMBINE: dict[str, Any] = {"add": add, "mul": multiply, "max": maximum, "min": minimum}


def scatter_update(inputs: Tensor, indices: Any, updates: Tensor, reduction: str | None) -> Tensor:
    """Returns `inputs` with updates written at indices, or combined by a reduction; the last of equal indices wins."""
    reduction_name = shared.checked_reduction(reduction, _COMBINE)
    if reduction_name in ("max", "min"):
        refuse_complex(inputs)
    plan = shared.ScatterPlan(on_host(indices), tuple(inputs.shape))
    full_updates = broadcast_to(cast(updates, dtype_of(inputs)), (*plan.shape, *plan.row_shape))
    if not plan.places.size or not plan.size:
        return inputs
    new_rows, old_rows = (
        reshape(full_updates, (plan.places.size, *plan.row_shape)),
        reshape(inputs, (plan.count, *plan.row_shape)),
    )
    if reduction_name is None:
        row_sources = plan.row_sources()
    else:
        new_rows, written_positions = _combine_rows(plan, new_rows, _COMBINE[reduction_name])
        row_sources = plan.row_sources_at(written_positions)
        new_rows = _COMBINE[reduction_name](take(old_rows, written_positions, 0), new_rows)
    return reshape(take(concatenate([old_rows, new_rows], 0), row_sources, 0), inputs.shape)


def _combine_rows(
    plan: shared.ScatterPlan, rows: Tensor, combine: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Any]:
    """Returns the updates of each position combined into one row, and the positions."""
    rows = take(rows, plan.order, 0)
    for earlier_indices, is_same_row in plan.steps():
        same_row_mask = convert_to_tensor(
            is_same_row.reshape(-1, *(1,) * (len(rows.shape) - 1)), device=get_device(rows)
        )
        rows = where(same_row_mask, combine(take(rows, earlier_indices, 0), rows), rows)
    last_indices, places = plan.last_updates()
    return take(rows, last_indices, 0), places
