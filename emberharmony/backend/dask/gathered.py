"""Ops that need whole axes, on Dask: these axes are rechunked to one block, and NumPy computes along them.

The other axes stay chunked: the batch of decompositions, and the axes beside the one that is sorted or transformed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da

from emberharmony.backend.dask.blocks import (
    Axes,
    abstract_results,
    apply_along_axis,
    apply_by_matrix,
    apply_to_whole_axes,
    arguments_by_name,
    put_slots,
)
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.images.fft import accept_fft_length
from emberharmony.core.registry import OPS, complete

complete()


def _matrix_and_vector_axes(a: int, b: int) -> tuple[int, int]:
    """Returns the axes of a matrix and of the right side of its equation, which is a matrix or one vector."""
    return 2, min(b, 2)


def _gathering_op(name: str, gathered_parameter: str) -> Callable[..., Any]:
    if gathered_parameter == "matrix":
        return partial(apply_by_matrix, name, lambda *ndims: [2] * len(ndims))
    axis_op = partial(apply_along_axis, name)
    return accept_fft_length(axis_op) if name in ("rfft", "irfft") else axis_op


def _quantile(name: str, *args: Any, **kwargs: Any) -> da.Array:
    """Returns quantiles over axes of a tensor, each of which is rechunked to one block."""
    result_specs = abstract_results(name, *args, **kwargs)
    argument_by_name = arguments_by_name(name, args, kwargs)
    x, q = argument_by_name["x"], argument_by_name.get("q")
    axes = nonnegative_axes(argument_by_name["axis"], x.ndim)
    axis_loops = [None if axis in axes else axis for axis in range(x.ndim)]
    loops: list[Axes] = [axis_loops, [None] * q.ndim] if isinstance(q, da.Array) else [axis_loops]
    result_loops = axis_loops if argument_by_name["keepdims"] else [axis for axis in axis_loops if axis is not None]
    return apply_to_whole_axes(
        name,
        args,
        kwargs,
        loops,
        result_specs,
        lambda place, ndim: [*[None] * (ndim - len(result_loops)), *result_loops],
    )


def _apply_with_whole_tensors(name: str, place: int, *args: Any, **kwargs: Any) -> da.Array:
    """Returns the result of an op that maps the elements of one tensor, and needs its other tensors as one block.

    Args:
        name: the op.
        place: of the tensor that stays chunked.
    """
    result_specs = abstract_results(name, *args, **kwargs)
    tensors, _, _ = put_slots(args, kwargs)
    loops: list[Axes] = [[None] * x.ndim for x in tensors]
    loops[place] = range(tensors[place].ndim)
    return apply_to_whole_axes(name, args, kwargs, loops, result_specs, lambda place, ndim: range(ndim))


_SAID = {name: spec.facts.along for name, spec in OPS.items() if spec.facts.along in ("axis", "matrix")}
_Table: Any = type("_Table", (), {name: staticmethod(_gathering_op(name, along)) for name, along in _SAID.items()})
"""The ops that say along what they work; those that mixins before this one define are not taken from it."""


class DaskGatheredOps(_Table):  # type: ignore[misc]
    """Holds the ops of `ops/solver.py`, `ops/images/fft_ops.py` and those of other categories that need whole axes.

    The bodies would read all values at once; these rechunk the axes that an op needs whole, and stay lazy.
    """

    solve = staticmethod(partial(apply_by_matrix, "solve", _matrix_and_vector_axes))
    solve_triangular = staticmethod(partial(apply_by_matrix, "solve_triangular", _matrix_and_vector_axes))
    top_k = staticmethod(partial(apply_by_matrix, "top_k", lambda ndim: [1]))
    view_as_complex = staticmethod(partial(apply_by_matrix, "view_as_complex", lambda ndim: [1]))
    quantile = staticmethod(partial(_quantile, "quantile"))
    nanquantile = staticmethod(partial(_quantile, "nanquantile"))
    percentile = staticmethod(partial(_quantile, "percentile"))
    nanpercentile = staticmethod(partial(_quantile, "nanpercentile"))
    nanmedian = staticmethod(partial(_quantile, "nanmedian"))
    searchsorted = staticmethod(partial(_apply_with_whole_tensors, "searchsorted", 1))
    view = staticmethod(partial(apply_by_matrix, "view", lambda ndim: [min(ndim, 1)]))

    convert: Any

    def isin(self, x1: Any, x2: Any, assume_unique: bool = False, *, invert: bool = False) -> da.Array:
        return _apply_with_whole_tensors("isin", 0, self.convert(x1), self.convert(x2), assume_unique, invert=invert)
