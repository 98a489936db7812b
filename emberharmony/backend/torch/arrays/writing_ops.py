"""Writing by any key, and along an axis, on PyTorch.

PyTorch itself writes at index tensors on the CPU, and checks them. The composite does the rest: other keys and devices,
traced and mapped tensors, values of which only the last at equal indices gets a gradient, and every call that PyTorch
refuses, for example because an index is negative.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from emberharmony.backend.shared.arrays.indexing import is_basic_key
from emberharmony.backend.torch.arrays.indices import SIGNED, combine_rows
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.backend.torch.tracing import HAS_VALUES
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast
from emberharmony.core.state.handlers import passing_error

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import writing as shared_writing
else:
    shared_writing = Deferred("emberharmony.backend.shared.arrays.writing")

_REDUCTIONS = {"multiply": "mul", "min": "min", "max": "max"}

_TENSORS = f"{{2}}.__class__ is {{1}}.__class__ is native_type and {HAS_VALUES}"
"""When tensors are written at a tensor of indices; the kernels raise for other dtypes than that of `x`."""


def _quick_set_item(x: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mode: str) -> torch.Tensor:
    """Returns `x` written at indices along its first axis; the kernel checks them, and the shapes."""
    if mode == "add":
        return x.index_add(0, key, value)
    if mode != "set" or value.requires_grad:
        raise NotImplementedError
    return x.index_put((key,), value)


def _quick_write_along(
    x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, axis: int, mode: str
) -> torch.Tensor:
    """Returns `x` with values written along an axis, for shapes that need no broadcast.

    The kernel checks that no axis of `indices` is longer than that of `values`, or of `x` except along the axis.
    """
    index_count = indices.numel()
    if (
        not index_count
        or index_count != values.numel()
        or index_count * x.shape[axis] != x.numel() * indices.shape[axis]
    ):
        raise NotImplementedError
    if mode == "set" and not values.requires_grad:
        return x.scatter(axis, indices, values)
    if mode != "add" or x.dtype is torch.bool:
        raise NotImplementedError
    return x.scatter_add(axis, indices, values)


class TorchWritingOps:
    """Holds the ops of `ops/arrays/writing.py`.

    PyTorch writes at index tensors by one kernel; the bodies find the place of each element, in 2.5 to 21 times the
    time.
    """

    bound: Any
    composed: Any

    @fast(
        _quick_set_item,
        f"{_TENSORS} and {{1}}.dtype is int64_of_torch and {{2}}.ndim == {{0}}.ndim > 0 and {{0}}.numel()",
    )
    def set_item(self, x: torch.Tensor, key: Any, value: Any, mode: str = "set") -> torch.Tensor:
        if not is_basic_key(key, x.shape):
            written_copy = _write_by_tensors(self, x, key, value, mode)
            return self.composed("set_item")(x, key, value, mode) if written_copy is None else written_copy
        old_value, new_value = shared_writing.old_and_new_values(self, promotion, x, key, value, mode)
        written_copy = x.clone()
        written_copy[key] = (
            new_value if mode == "set" else shared_writing.combine_values(self, mode, old_value, new_value)
        )
        return written_copy

    @fast(_quick_write_along, f"{_TENSORS} and {{3}}.__class__ is int")
    def put_along_axis(
        self, x: torch.Tensor, indices: Any, values: Any, axis: int | None = -1, mode: str = "set"
    ) -> torch.Tensor:
        written_copy = _write_along(self, x, indices, values, axis, mode) if axis is not None else None
        return self.composed("put_along_axis")(x, indices, values, axis, mode) if written_copy is None else written_copy


def _are_untraced_on_cpu(tensors: Sequence[Any]) -> bool:
    """Returns whether tensors are on the CPU, and neither traced nor mapped, so that PyTorch itself may write them."""
    return not torch.compiler.is_compiling() and all(
        x.is_cpu and not torch._C._functorch.is_functorch_wrapped_tensor(x) for x in tensors
    )


def _selects_whole_axis(part: Any) -> bool:
    """Returns whether a part of a key selects a whole axis."""
    return part.__class__ is slice and part.start is None and part.stop is None and part.step is None


def _write_by_tensors(backend: Any, x: torch.Tensor, key: Any, value: Any, mode: str) -> torch.Tensor | None:
    """Returns `x` with values written at index tensors, or at a mask; None if the composite must write them."""
    key_parts = key if key.__class__ is tuple else (key,)
    columns = [key_part for key_part in key_parts if isinstance(key_part, torch.Tensor)]
    if (
        not columns
        or mode not in shared_writing.MODES
        or x.dtype in SIGNED
        or len(key_parts) > x.ndim
        or not _are_untraced_on_cpu((x, *columns))
    ):
        return None
    has_masks = any(column.dtype is torch.bool for column in columns)
    if not has_masks and not all(c.dtype is torch.int64 and c.ndim for c in columns):
        return None
    new_value = shared_writing.value_like(backend, promotion, value, x)
    if not _are_untraced_on_cpu((new_value,)) or (mode == "set" and new_value.requires_grad and not has_masks):
        return None
    try:
        if has_masks:
            return _write_by_mask(x, key, new_value) if mode == "set" and key is columns[0] else None
        if len(columns) < len(key_parts) and not all(
            isinstance(part, torch.Tensor) or _selects_whole_axis(part) for part in key_parts
        ):
            return None
        if mode == "set":
            written_copy = x.clone()
            written_copy[key] = new_value
            return written_copy
        return _combine_at(x, key_parts, columns, new_value, mode)
    except (IndexError, RuntimeError) as error:
        if passing_error(error):
            raise
        # The composite wraps negative indices, and raises the typed error.
        return None


def _write_by_mask(x: torch.Tensor, mask: torch.Tensor, new_value: torch.Tensor) -> torch.Tensor | None:
    item_ndim = x.ndim - mask.ndim
    if not mask.ndim or tuple(mask.shape) != tuple(x.shape[: mask.ndim]) or new_value.ndim > item_ndim:
        return None
    written_copy = torch.where(mask.reshape(*mask.shape, *(1,) * item_ndim), new_value, x)
    return written_copy if written_copy.shape == x.shape else None


def _combine_at(
    x: torch.Tensor, key_parts: Sequence[Any], columns: Sequence[torch.Tensor], new_value: torch.Tensor, mode: str
) -> torch.Tensor | None:
    """Returns `x` with values combined at index tensors, including all those at equal indices."""
    if x.dtype is torch.bool:
        return None
    if len(key_parts) > 1 or columns[0].ndim > 1 or not x.numel():
        # PyTorch's `index_put` with accumulation takes no None for a whole axis.
        has_only_columns = len(columns) == len(key_parts)
        return x.index_put(tuple(columns), new_value, True) if has_only_columns and mode == "add" else None
    if mode in ("min", "max"):
        promotion.refuse(x, ("complex",))
    positions = columns[0]
    updates = new_value.expand(len(positions), *x.shape[1:])
    return (
        x.index_add(0, positions, updates) if mode == "add" else combine_rows(x, positions, updates, _REDUCTIONS[mode])
    )


def _write_along(backend: Any, x: torch.Tensor, indices: Any, values: Any, axis: int, mode: str) -> torch.Tensor | None:
    """Returns `x` with values written along an axis at a tensor of indices; None if the composite must write them."""
    if not isinstance(indices, torch.Tensor) or indices.dtype is not torch.int64 or not -x.ndim <= axis < x.ndim:
        return None
    axis %= x.ndim
    full_shape = (*x.shape[:axis], *indices.shape[axis : axis + 1], *x.shape[axis + 1 :])
    if tuple(indices.shape) != full_shape or mode not in ("set", "add") or not _are_untraced_on_cpu((x, indices)):
        return None
    new_value = shared_writing.value_like(backend, promotion, values, x)
    if (
        x.dtype in SIGNED
        or x.dtype is torch.bool
        or not _are_untraced_on_cpu((new_value,))
        or (mode == "set" and new_value.requires_grad)
    ):
        return None
    try:
        updates = new_value.expand(full_shape)
        return x.scatter(axis, indices, updates) if mode == "set" else x.scatter_add(axis, indices, updates)
    except (IndexError, RuntimeError) as error:
        if passing_error(error):
            raise
        return None
