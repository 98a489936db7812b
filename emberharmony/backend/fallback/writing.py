"""Default bodies of writing by index, of segments and of counts: nothing is assigned, `take` reads old or new elements.

Several updates of one place are first combined with one another, in steps that double.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import (
    body,
    flat,
    floats,
    is_half,
    joined,
    on_host,
    picked,
    placed,
    places_of,
    promotion_of,
    reading,
)
from emberharmony.backend.host import host_indices
from emberharmony.backend.shared.histograms import check_weights, countable, edges
from emberharmony.backend.shared.indexing import block, columns, reduction_of
from emberharmony.backend.shared.segments import check_segments, neutral_element, segments
from emberharmony.core.options import dense

_COMBINE = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


@body
def slice_update(backend: Any, inputs: Any, start_indices: Sequence[int], updates: Any) -> Any:
    """Takes the elements of the block from the updates."""
    place = block(tuple(inputs.shape), on_host(backend, start_indices), tuple(updates.shape))
    places = places_of(inputs.shape)
    places[place] = places.size + places_of(updates.shape)
    if not places.size:
        return inputs
    return picked(backend, joined(backend, inputs, backend.bound.cast(updates, inputs.dtype)), places)


def _combined(
    backend: Any, rows: Any, order: np.ndarray, at: np.ndarray, combine: Callable[[Any, Any], Any]
) -> tuple[Any, np.ndarray]:
    """Returns the rows of each place combined, and the places; `order` sorts the rows by their place, `at`."""
    ops = backend.bound
    at = at[order]
    rows = ops.take(rows, order, 0)
    step, count = 1, len(at)
    while step < count and (at[step:] == at[:-step]).any():
        same = np.concatenate([np.zeros(step, bool), at[step:] == at[:-step]])
        earlier = ops.take(rows, np.maximum(np.arange(count) - step, 0), 0)
        mask = placed(backend, same.reshape(-1, *(1,) * (len(rows.shape) - 1)))
        rows = ops.where(mask, combine(earlier, rows), rows)
        step *= 2
    last = np.flatnonzero(np.concatenate([at[1:] != at[:-1], np.ones(1, bool)]))
    return ops.take(rows, last, 0), at[last]


@reading
def scatter_update(backend: Any, inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Any:
    """Combines the updates of each place, and takes old elements elsewhere."""
    ops, how = backend.bound, reduction_of(reduction, _COMBINE)
    if how in ("max", "min"):
        promotion_of(backend).refuse(inputs, ("complex",))
    known = columns(on_host(backend, indices), tuple(inputs.shape))
    lengths, rest = tuple(inputs.shape[: len(known)]), tuple(inputs.shape[len(known) :])
    count = known[0].size
    values = ops.broadcast_to(ops.cast(updates, inputs.dtype), (*known[0].shape, *rest))
    if not count or not math.prod(inputs.shape):
        return inputs
    at = np.asarray(np.ravel_multi_index(known, lengths)).reshape(-1)
    rows, old = ops.reshape(values, (count, *rest)), ops.reshape(inputs, (math.prod(lengths), *rest))
    order = np.argsort(at, kind="stable")
    source = np.arange(math.prod(lengths))
    if how is None:
        source[at[order]] = len(source) + order
    else:
        rows, at = _combined(backend, rows, order, at, getattr(ops, _COMBINE[how]))
        source[at] = len(source) + np.arange(len(at))
        rows = getattr(ops, _COMBINE[how])(ops.take(old, at, 0), rows)
    return ops.reshape(ops.take(ops.concatenate([old, rows], 0), source, 0), tuple(inputs.shape))


def _segment(name: str, reduction: str) -> None:
    def segment(backend: Any, data: Any, segment_ids: Any, num_segments: Any = None, sorted: bool = False) -> Any:
        ops, ids = backend.bound, host_indices(on_host(backend, segment_ids))
        check_segments(ids.shape, tuple(data.shape))
        start = neutral_element(backend.dtype_of(data), reduction)
        count = segments(ids, num_segments)
        # Half precision is combined in float32, to keep its digits.
        wide = ops.cast(data, backend.dtypes["float32"]) if is_half(backend, data) else data
        rows = ops.full((count, *data.shape[1:]), start, wide.dtype)
        found = ops.scatter_update(rows, ids.reshape(-1, 1), wide, reduction) if count else rows
        return ops.cast(found, data.dtype)

    segment.__name__ = name
    segment.__doc__ = "Combines slices into a tensor of neutral elements."
    reading(segment)


_segment("segment_sum", "add")
_segment("segment_prod", "mul")
_segment("segment_max", "max")
_segment("segment_min", "min")


@reading
def bincount(backend: Any, x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Any:
    """Counts on the host."""
    dense("sparse", sparse)
    host = countable(on_host(backend, x))
    if weights is None:
        return placed(backend, np.bincount(host, None, minlength), backend.dtypes["int64"])
    check_weights(weights, x)
    weights = floats(backend, weights)
    counted = np.bincount(host, on_host(backend, weights).astype(np.float64), minlength)
    return placed(backend, counted, weights.dtype)


@reading
def histogram(backend: Any, x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Counts on the host."""
    x = floats(backend, x)
    host = on_host(backend, flat(backend, x))
    steps = edges(float(host.min()) if host.size else 0.0, float(host.max()) if host.size else 1.0, bins, range)
    counts, steps = np.histogram(host, steps.astype(host.dtype))
    return placed(backend, counts, backend.dtypes["int64"]), placed(backend, steps, x.dtype)
