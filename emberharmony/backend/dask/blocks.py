"""Ops on blocks: the NumPy backend computes each block, and Dask keeps the graph of these calls.

So values, dtypes and errors are those of NumPy. Shapes and dtypes of results are known without computing: from NumPy's
op on single elements for elementwise ops, from the backend behind `ops.eval_shape` for all others.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from dask.base import normalize_token

from emberharmony.backend.abstract import AbstractBackend
from emberharmony.backend.discovery import load
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ShapeError
from emberharmony.core.registry import OPS
from emberharmony.transforms.abstract_tensor import AbstractTensor

Axes = Sequence[int | None]
"""For each axis of a tensor, the axis of the loop over blocks that it belongs to; None if blocks hold all of it."""


class Slot(NamedTuple):
    """A placeholder for a tensor among the arguments of an op, with the index of the tensor's block."""

    place: int


def _map_arguments(function: Callable[[Any], Any], kinds: Any, value: Any) -> Any:
    """Returns nested arguments with a function applied to those that are instances of some classes."""
    if isinstance(value, kinds):
        return function(value)
    if value.__class__ is dict:
        return {key: _map_arguments(function, kinds, item) for key, item in value.items()}
    if value.__class__ is list or value.__class__ is tuple:
        return value.__class__(_map_arguments(function, kinds, item) for item in value)
    return value


def _numpy_op(op: str) -> Callable[..., Any]:
    """Returns an op of the NumPy backend, which runs with NumPy active in any thread."""
    backend, spec = load("numpy"), OPS[op]
    return backend.composed(op) if spec.composite and not backend.defines(spec) else getattr(backend.bound, op)


class Block:
    """An op of the NumPy backend as a function of blocks; workers of a cluster receive it as a pickle.

    Args:
        op: the name of the op, or a function of arrays.
        args, kwargs: its arguments, with a `Slot` for each tensor.
        dtype: that of the result, if it is one tensor.
    """

    def __init__(self, op: str | Callable[..., Any], args: Any, kwargs: Any, dtype: Any = None) -> None:
        self.op, self.args, self.kwargs, self.dtype = op, args, kwargs, dtype
        self.__name__ = op if isinstance(op, str) else op.__name__.strip("_")

    def __dask_tokenize__(self) -> Any:
        return normalize_token((Block.__name__, self.op, self.args, self.kwargs, self.dtype))

    def __call__(self, *blocks: Any, **more: Any) -> Any:
        """Returns the op's result for blocks, with further arguments that Dask passes."""
        block_function = _numpy_op(self.op) if isinstance(self.op, str) else self.op
        args, kwargs = _map_arguments(lambda slot: blocks[slot.place], Slot, (self.args, self.kwargs))
        block_result = block_function(*args, **kwargs, **more)
        # The default float of the process that computes may be another one than when the graph was built.
        return block_result if self.dtype is None else np.asarray(block_result).astype(self.dtype, copy=False)


class Picked:
    """A function that returns one of the several results of a block by its index."""

    def __init__(self, place: int) -> None:
        self.place, self.__name__ = place, f"result-{place}"

    def __dask_tokenize__(self) -> Any:
        return (Picked.__name__, self.place)

    def __call__(self, results: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the result at the index, from the results of a block."""
        return results[self.place]


def require_known_lengths(x: da.Array) -> da.Array:
    """Returns a tensor, checked to have known lengths.

    Raises:
        ShapeError: if the number of its elements depends on values that are not computed yet.
    """
    if any(n != n for n in x.shape):
        raise ShapeError(
            f"a tensor of shape {x.shape} has axes of unknown length, because an indexing of Dask depends on values; "
            f"call x.compute_chunk_sizes() first, which computes them"
        )
    return x


def put_slots(args: Any, kwargs: Any) -> tuple[list[da.Array], Any, Any]:
    """Returns the Dask tensors among arguments, and the arguments with slots in place of these tensors."""
    tensors: list[da.Array] = []

    def slot_for(x: da.Array) -> Slot:
        tensors.append(require_known_lengths(x))
        return Slot(len(tensors) - 1)

    return tensors, *_map_arguments(slot_for, da.Array, (args, kwargs))


def _empty_block(ndim: int, dtype: Any) -> np.ndarray:
    return np.empty((0,) * ndim, dtype)


def zeros(shape: Sequence[int], dtype: Any) -> da.Array:
    """Returns zeros; Dask 2026.8 divides by zero if it chooses the blocks of a tensor without elements."""
    return da.zeros(shape, dtype=dtype, chunks="auto" if all(shape) else -1)


def apply_elementwise(op: str, *args: Any, **kwargs: Any) -> da.Array:
    """Returns the result of an elementwise op of the NumPy backend, computed block by block."""
    tensors, args, kwargs = put_slots(args, kwargs)
    shape = broadcast_shape([x.shape for x in tensors])
    with np.errstate(all="ignore"):
        dtype = Block(op, args, kwargs)(*(np.ones((1,) * x.ndim, x.dtype) for x in tensors)).dtype
    sources = [_broadcast_source(x) for x in tensors]
    inner_shape = broadcast_shape([x.shape for x in sources])
    inner_result = apply_to_blocks(Block(op, args, kwargs, dtype), sources, len(inner_shape), dtype)
    return inner_result if inner_shape == shape else broadcast_by_blocks(inner_result, shape)


def broadcast_by_blocks(x: da.Array, shape: Sequence[int]) -> da.Array:
    """Returns a tensor broadcast to a shape; elementwise ops then compute with the tensor before it was broadcast.

    So the cotangent of a mean, a number for each element, is never written out.
    """
    padded_chunks = [*[(1,)] * (len(shape) - x.ndim), *x.chunks]
    joined_chunks = tuple("auto" if n != sum(c) else c for n, c in zip(shape, padded_chunks, strict=True))
    broadcast_x = da.broadcast_to(x, shape, chunks=normalize_chunks(joined_chunks, tuple(shape), dtype=x.dtype))
    broadcast_x.source = broadcast_x.name, x
    return broadcast_x


def _broadcast_source(x: da.Array) -> da.Array:
    """Returns the tensor that was broadcast to `x`, or `x`; Dask gives it another name if it is assigned to."""
    name, source = getattr(x, "source", ("", None))
    return source if name == x.name else x


def apply_to_blocks(block: Callable[..., Any], tensors: Sequence[da.Array], ndim: int, dtype: Any) -> da.Array:
    """Returns the tensor whose blocks a function computes from the blocks at the same place in broadcast tensors."""
    blockwise_args = [argument for x in tensors for argument in (x, tuple(range(ndim - x.ndim, ndim)))]
    return da.blockwise(block, tuple(range(ndim)), *blockwise_args, dtype=dtype, meta=_empty_block(ndim, dtype))


def abstract_results(op: str, *args: Any, **kwargs: Any) -> Any:
    """Returns an op's results as tensors with only a shape and a dtype, after the op's checks of its arguments."""
    shape_backend = AbstractBackend.over(load("numpy"))
    args, kwargs = _map_arguments(
        lambda x: shape_backend.tensor_of(require_known_lengths(x).shape, x.dtype), da.Array, (args, kwargs)
    )
    return getattr(shape_backend.bound, op)(*args, **kwargs)


def apply_to_whole_axes(
    op: str | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Any,
    loops: Sequence[Axes],
    result_specs: Any,
    axes: Callable[[int, int], Axes],
) -> Any:
    """Returns the results of an op that needs some axes whole: these are rechunked to one block first.

    Args:
        op: the op of the NumPy backend, or a function of arrays.
        args, kwargs: its arguments.
        loops: the axes of each tensor among them.
        result_specs: the results, as tensors that have a shape and a dtype only; a tuple of several, or one.
        axes: returns the axes of a result from its place and its number of axes.
    """
    tensors, args, kwargs = put_slots(args, kwargs)
    new_symbols = iter(range(1000, 2**31))
    blockwise_args: list[Any] = []
    for x, tensor_loops in zip(tensors, loops, strict=True):
        x = x.rechunk({axis: -1 for axis, loop in enumerate(tensor_loops) if loop is None})
        blockwise_args += [x, tuple(next(new_symbols) if loop is None else loop for loop in tensor_loops)]
    is_single = isinstance(result_specs, AbstractTensor)
    spec_list = [result_specs] if is_single else list(result_specs)
    block: Any = Block(op, args, kwargs, result_specs.dtype if is_single else None)
    if not is_single:
        joined_loops = tuple(sorted({loop for tensor_loops in loops for loop in tensor_loops if loop is not None}))
        packed_blocks = da.blockwise(
            block,
            joined_loops,
            *blockwise_args,
            dtype=object,
            meta=_empty_block(len(joined_loops), object),
            concatenate=True,
        )
        blockwise_args = [packed_blocks, joined_loops]
    gathered_results = []
    for index, spec in enumerate(spec_list):
        result_symbols: list[int] = [next(new_symbols) if loop is None else loop for loop in axes(index, spec.ndim)]
        length_by_new_symbol = {
            symbol: spec.shape[axis] for axis, symbol in enumerate(result_symbols) if symbol >= 1000
        }
        block_result = da.blockwise(
            block if is_single else Picked(index),
            tuple(result_symbols),
            *blockwise_args,
            new_axes=length_by_new_symbol,
            dtype=spec.dtype,
            meta=_empty_block(spec.ndim, spec.dtype),
            concatenate=True,
        )
        gathered_results.append(block_result)
    if is_single:
        return gathered_results[0]
    return tuple(gathered_results) if type(result_specs) is tuple else type(result_specs)(*gathered_results)


def arguments_by_name(op: str, args: Sequence[Any], kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of an op by name, with the declared defaults."""
    parameters = OPS[op].parameters
    argument_by_name = dict(zip((p.name for p in parameters), args, strict=False)) | kwargs
    return {p.name: argument_by_name.get(p.name, p.default) for p in parameters}


def apply_by_matrix(op: str, cores: Callable[..., Sequence[int]], *args: Any, **kwargs: Any) -> Any:
    """Returns the result of an op on matrices: each block holds whole matrices, and the other axes stay chunked.

    Args:
        op: the op.
        cores: returns, from the numbers of axes of the tensors, how many axes at the end of each belong to a matrix.
    """
    result_specs = abstract_results(op, *args, **kwargs)
    tensors, _, _ = put_slots(args, kwargs)
    core_counts = cores(*(x.ndim for x in tensors))
    batch_axis_count = max(x.ndim - core for x, core in zip(tensors, core_counts, strict=True))
    loops = [
        [*range(batch_axis_count - (x.ndim - core), batch_axis_count), *[None] * core]
        for x, core in zip(tensors, core_counts, strict=True)
    ]
    return apply_to_whole_axes(
        op,
        args,
        kwargs,
        loops,
        result_specs,
        lambda place, ndim: [*range(batch_axis_count), *[None] * (ndim - batch_axis_count)],
    )


def apply_along_axis(op: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the result of an op along the axis of its argument `axis`, which each block then holds whole.

    The result has as many axes as the first tensor, except where `axis` is None.
    """
    result_specs = abstract_results(op, *args, **kwargs)
    tensors, _, _ = put_slots(args, kwargs)
    axis, ndim = arguments_by_name(op, args, kwargs).get("axis", -1), tensors[0].ndim
    if axis is None or not ndim:
        return apply_to_whole_axes(
            op, args, kwargs, [[None] * x.ndim for x in tensors], result_specs, lambda place, n: [None] * n
        )
    axes: list[int | None] = list(range(ndim))
    axes[axis] = None
    return apply_to_whole_axes(
        op,
        args,
        kwargs,
        [axes] * len(tensors),
        result_specs,
        lambda place, n: axes,
    )
