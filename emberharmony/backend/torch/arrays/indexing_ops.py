"""Reading and writing by index, on PyTorch.

PyTorch's kernels check indices, so the ops check them only after an error: a compiled op calls such a kernel alone, if
the dtypes are right, the tensors on the CPU, and no transform is running (`HAS_VALUES`). An index that the kernel
refuses, such as a negative one, costs 20 µs more. The kernel of `put_along_axis` does not check all lengths, so the op
compares them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.indexing import (
    block_slices,
    check_index_vectors,
    checked_reduction,
    class_count,
    is_basic_key,
    key_parts_of,
    require_elements,
    unravel,
)
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.backend.torch.arrays.indices import (
    REDUCE,
    SIGNED,
    combine_rows,
    extend_by_signed,
    flip,
    indices_like,
    int64_indices,
    keep_last_of_equal,
    masked_axis_count,
    take_slices,
)
from emberharmony.backend.torch.device_ops import place
from emberharmony.backend.torch.dtypes import DTYPES, cast, promotion, to_host_array
from emberharmony.backend.torch.tracing import HAS_VALUES
from emberharmony.core.axes import INDEX_RANGE
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import default_float
from emberharmony.core.errors import IndexOutOfBoundsError, ShapeError
from emberharmony.core.options import refuse_sparse
from emberharmony.core.state.handlers import passing_error


def _take_along(x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
    """Returns the elements of `x` at indices along an axis; the other axes broadcast.

    `torch.take_along_dim` (PyTorch 2.13) takes an out-of-bounds index modulo the length. `torch.gather` raises.

    Raises:
        ShapeError: if `indices` and `x` differ in the number of axes.
    """
    if indices.ndim != x.ndim:
        raise ShapeError(
            f"expected indices with as many axes as the tensor, got {indices.ndim} and {x.ndim} axes; reshape the "
            f"indices, or use ops.take"
        )
    length = x.shape[axis]
    if x.shape[:axis] != indices.shape[:axis] or x.shape[axis + 1 :] != indices.shape[axis + 1 :]:
        shapes_without_axis = ((*t.shape[:axis], 1, *t.shape[axis + 1 :]) for t in (x, indices))
        common_shape = torch.broadcast_shapes(*shapes_without_axis)  # type: ignore[no-untyped-call]
        x = x.expand(*common_shape[:axis], length, *common_shape[axis + 1 :])
        indices = indices.expand(*common_shape[:axis], indices.shape[axis], *common_shape[axis + 1 :])
    if x.is_cpu and not torch.compiler.is_compiling():
        # Most calls have no negative index, at which `gather` raises. torch.compile cannot retry after an exception.
        try:
            return torch.gather(x, axis, indices)
        except RuntimeError as error:
            if passing_error(error):
                raise
    return torch.gather(x, axis, torch.where(indices < 0, indices + length, indices))


take_along_dim = extend_by_signed(_take_along)


def _quick_one_hot(x: torch.Tensor, num_classes: int, _axis: int, _dtype: None, _sparse: bool) -> torch.Tensor:
    """Returns one-hot vectors in float32, by PyTorch's kernel, which raises for a class out of range."""
    return x.new_zeros((*x.shape, num_classes), dtype=torch.float32).scatter_(-1, x.unsqueeze(-1), 1)


def _scalar_as_vector(part: Any, device: torch.device) -> Any:
    """Returns an index tensor without axes as a vector of one element, and every other part of a key unchanged."""
    if type(part) is int:
        return torch.tensor([part], device=device)
    is_scalar_index = isinstance(part, torch.Tensor) and part.ndim == 0 and part.dtype is not torch.bool
    return part.reshape(1) if is_scalar_index else part


class TorchIndexingOps:
    """Holds the ops of `ops/arrays/indexing.py`.

    PyTorch makes views, or gathers at once; the bodies compute indices, in 2 to 10 times the time, and 6.5 times for a
    large `one_hot`.
    """

    @staticmethod
    @fast(torch.where, promotion.same.format("{1}", "{2}"), promotion.weak.format("{1}", "{2}"))
    def where(condition: torch.Tensor, x1: Any = None, x2: Any = None) -> torch.Tensor:
        a, b = promotion.common(x1, x2)
        signed_dtype = SIGNED.get(a.dtype)
        if signed_dtype is None:
            return torch.where(condition.to(torch.bool), a, b)
        # PyTorch 2.12 has no `where` for wide unsigned dtypes.
        return torch.where(condition.to(torch.bool), a.view(signed_dtype), b.view(signed_dtype)).view(a.dtype)

    @staticmethod
    def take(x: torch.Tensor, indices: Any, axis: int | None = None) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        return take_slices(x, indices, axis)

    @staticmethod
    def take_along_axis(x: torch.Tensor, indices: Any, axis: int | None = -1) -> torch.Tensor:
        if axis is None:
            x, axis = x.reshape(-1), 0
        (axis,) = nonnegative_axes(axis, x.ndim)
        if x.is_cpu and isinstance(indices, torch.Tensor):
            require_elements(x.shape[axis], indices.numel())
            return take_along_dim(x, int64_indices(indices, x.device), axis)
        return take_along_dim(x, indices_like(indices, x.shape[axis], x), axis)

    @staticmethod
    def get_item(x: torch.Tensor, key: Any) -> torch.Tensor:
        if is_basic_key(key, x.shape):
            return x[key]
        native_key: list[Any] = []
        is_joint = False
        for key_part, axis, mask in key_parts_of(key, x.shape, masked_axis_count):
            if isinstance(key_part, slice) and key_part.step is not None and key_part.step < 0:
                # PyTorch 2.13 rejects slices with a negative step, so reverse the axis and read it forwards.
                positions, last_index = range(x.shape[axis])[key_part], x.shape[axis] - 1
                x = flip(x, (axis,))
                key_part = (
                    slice(last_index - positions.start, last_index - positions.stop, -positions.step)
                    if positions
                    else slice(0, 0)
                )
            elif isinstance(key_part, np.ndarray):
                key_part = torch.from_numpy(np.array(key_part)).to(x.device)
            elif isinstance(key_part, torch.Tensor) and not mask:
                key_part = int64_indices(key_part, x.device)
            is_joint = (
                is_joint
                or mask
                or key_part.__class__ is bool
                or (isinstance(key_part, torch.Tensor) and key_part.ndim > 0)
            )
            native_key.append(key_part)
        if is_joint:
            # NumPy treats an integer next to index arrays as an index array: it decides where the resulting axes go.
            native_key = [_scalar_as_vector(part, x.device) for part in native_key]
        return x[tuple(native_key)]

    @staticmethod
    def nonzero(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if x.ndim == 0:
            raise ShapeError("expected a tensor with at least one axis, got a scalar; reshape it to (1,)")
        # PyTorch 2.13 has no `nonzero` for wide unsigned dtypes.
        return torch.nonzero(x != 0 if x.dtype in SIGNED else x, as_tuple=True)

    @staticmethod
    def slice(inputs: torch.Tensor, start_indices: Sequence[int], shape: Sequence[int]) -> torch.Tensor:
        return inputs[block_slices(inputs.shape, start_indices, shape)]

    @staticmethod
    def slice_update(inputs: torch.Tensor, start_indices: Sequence[int], updates: torch.Tensor) -> torch.Tensor:
        updated_copy = inputs.clone()
        updated_copy[block_slices(inputs.shape, start_indices, updates.shape)] = cast(updates, inputs.dtype)
        return updated_copy

    @staticmethod
    def scatter_update(
        inputs: torch.Tensor, indices: Any, updates: torch.Tensor, reduction: str | None = None
    ) -> torch.Tensor:
        positions = int64_indices(indices, inputs.device)
        check_index_vectors(positions.shape, inputs.shape)
        columns = positions.unbind(-1)
        cast_updates = cast(updates, inputs.dtype)
        if reduction in ("max", "min"):
            promotion.refuse(inputs, ("complex",))
        if checked_reduction(reduction, REDUCE) in (None, "add"):
            if inputs.dtype in SIGNED:
                # PyTorch 2.13 has no `index_put` for wide unsigned dtypes; their bits are added and moved as signed.
                signed_dtype = SIGNED[inputs.dtype]
                cast_updates = cast_updates.view(signed_dtype)
                return (
                    inputs.view(signed_dtype)
                    .index_put(columns, cast_updates, accumulate=reduction == "add")
                    .view(inputs.dtype)
                )
            # At equal indices PyTorch gives every value a gradient, and under vmap may write any of them.
            if reduction is None and (cast_updates.requires_grad or torch._C._functorch.is_batchedtensor(cast_updates)):
                cast_updates = cast_updates.expand((*positions.shape[:-1], *inputs.shape[len(columns) :]))
                cast_updates = keep_last_of_equal(columns, inputs.shape[: len(columns)], cast_updates)
            return inputs.index_put(columns, cast_updates, accumulate=reduction == "add")
        # `scatter_reduce` and `index_add` index a single axis, so join the indexed axes into one.
        flat_indices = torch.zeros(positions.shape[:-1], dtype=torch.int64, device=inputs.device)
        for column, length in zip(columns, inputs.shape, strict=False):
            if bool(((column < -length) | (column >= length)).any()):
                raise IndexOutOfBoundsError(f"an index is out of bounds for an axis of length {length}; {INDEX_RANGE}")
            flat_indices = flat_indices * length + torch.where(column < 0, column + length, column)
        item_shape = inputs.shape[len(columns) :]
        cast_updates = cast_updates.expand((*flat_indices.shape, *item_shape))
        if not inputs.numel():
            return inputs.clone()
        rows, cast_updates = inputs.reshape(-1, *item_shape), cast_updates.reshape(flat_indices.numel(), *item_shape)
        return combine_rows(rows, flat_indices.reshape(-1), cast_updates, str(reduction)).reshape(inputs.shape)

    @staticmethod
    def diagonal(x: torch.Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> torch.Tensor:
        return torch.diagonal(require_matrices(x), clip_offset(offset), axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = torch.tril_indices(
            row_count, column_count, clip_offset(k, row_count, column_count), device=place(None)
        )
        return rows, cols

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        row_count, column_count = as_shape((n, n if m is None else m))
        rows, cols = torch.triu_indices(
            row_count, column_count, clip_offset(k, row_count, column_count), device=place(None)
        )
        return rows, cols

    @staticmethod
    def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[torch.Tensor, ...]:
        device = indices.device if isinstance(indices, torch.Tensor) else place(None)
        columns = unravel(to_host_array(int64_indices(indices, torch.device("cpu"))), shape)
        return tuple(torch.from_numpy(column).to(device) for column in columns)

    @staticmethod
    @fast(
        _quick_one_hot,
        "{0}.dtype is int64_of_torch and {1}.__class__ is int and {2}.__class__ is int and {2} == -1 and {3} is None "
        f"and {{4}} is False and float32_default and {HAS_VALUES}",
    )
    def one_hot(
        x: torch.Tensor, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False
    ) -> torch.Tensor:
        refuse_sparse("sparse", sparse)
        if x.dtype in SIGNED:
            # PyTorch 2.13 does not compare wide unsigned dtypes with int64.
            x = x.to(torch.int64)
        is_class = x.unsqueeze(-1) == torch.arange(class_count(num_classes, x), device=x.device)
        return torch.moveaxis(is_class, -1, axis).to(DTYPES[default_float()] if dtype is None else dtype)
