"""Changing the shape, on PyTorch."""

from collections.abc import Sequence
from typing import Any

import torch

from emberharmony.backend.indices import (
    as_shape,
    broadcast_shapes,
    check_pad,
    cuts,
    joinable,
    matrices,
    pad_indices,
    pad_pairs,
    squeezed,
)
from emberharmony.backend.promote import normalized
from emberharmony.backend.torch.dtypes import promotion
from emberharmony.core.errors import AxisError, ShapeError


class TorchShapeOps:
    """Holds the ops of `ops/shape.py`."""

    reshape = staticmethod(lambda x, newshape: x.reshape(newshape))
    swapaxes = staticmethod(torch.swapaxes)
    broadcast_shapes = staticmethod(broadcast_shapes)

    @staticmethod
    def transpose(x: torch.Tensor, axes: Sequence[int] | None = None) -> torch.Tensor:
        if axes is None:
            return x.permute(*range(x.ndim - 1, -1, -1))
        return x.permute(*axes)

    @staticmethod
    def matrix_transpose(x: torch.Tensor) -> torch.Tensor:
        return matrices(x).mT

    @staticmethod
    def moveaxis(x: torch.Tensor, source: Any, destination: Any) -> torch.Tensor:
        normalized(source, x.ndim), normalized(destination, x.ndim)
        return torch.moveaxis(x, source, destination)

    @staticmethod
    def expand_dims(x: torch.Tensor, axis: Any = 0) -> torch.Tensor:
        if isinstance(axis, int):
            return torch.unsqueeze(x, axis)
        for a in sorted(normalized(axis, x.ndim + len(axis))):
            x = torch.unsqueeze(x, a)
        return x

    @staticmethod
    def squeeze(x: torch.Tensor, axis: Any = None) -> torch.Tensor:
        if axis is None:
            return torch.squeeze(x)
        return x.reshape(squeezed(x.shape, normalized(axis, x.ndim)))

    @staticmethod
    def broadcast_to(x: torch.Tensor, shape: Any) -> torch.Tensor:
        return torch.broadcast_to(x, as_shape(shape))

    @staticmethod
    def broadcast_arrays(*arrays: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.broadcast_tensors(*arrays))  # type: ignore[no-untyped-call]

    @staticmethod
    def concatenate(xs: list[torch.Tensor], axis: int | None = 0) -> torch.Tensor:
        tensors = promotion.common(*joinable(xs))
        if axis is None:
            return torch.cat([x.reshape(-1) for x in tensors])
        if len({x.ndim for x in tensors}) > 1 or tensors[0].ndim == 0:
            raise ShapeError(f"tensors of shapes {', '.join(str(tuple(x.shape)) for x in tensors)} cannot be joined")
        return torch.cat(tensors, axis)

    @staticmethod
    def stack(xs: list[torch.Tensor], axis: int = 0) -> torch.Tensor:
        return torch.stack(promotion.common(*joinable(xs)), axis)

    @staticmethod
    def split(x: torch.Tensor, indices_or_sections: Any, axis: int = 0) -> list[torch.Tensor]:
        (axis,) = normalized(axis, x.ndim)
        return [torch.narrow(x, axis, a, b - a) for a, b in cuts(x.shape[axis], indices_or_sections)]

    @staticmethod
    def unstack(x: torch.Tensor, num: int | None = None, axis: int = 0) -> list[torch.Tensor]:
        (axis,) = normalized(axis, x.ndim)
        if num not in (None, x.shape[axis]):
            raise ShapeError(f"axis {axis} has length {x.shape[axis]}, not {num}")
        return list(torch.unbind(x, axis))

    @staticmethod
    def tile(x: torch.Tensor, repeats: int | Sequence[int]) -> torch.Tensor:
        return torch.tile(x, (repeats,) if isinstance(repeats, int) else tuple(repeats))

    @staticmethod
    def repeat(x: torch.Tensor, repeats: int | Sequence[int], axis: int | None = None) -> torch.Tensor:
        counts = repeats if isinstance(repeats, int) else torch.as_tensor(repeats, device=x.device)
        return torch.repeat_interleave(x, counts, axis)

    @staticmethod
    def flip(x: torch.Tensor, axis: Any = None) -> torch.Tensor:
        return torch.flip(x, normalized(axis, x.ndim))

    @staticmethod
    def roll(x: torch.Tensor, shift: Any, axis: Any = None) -> torch.Tensor:
        if axis is None:
            total = shift if isinstance(shift, int) else sum(shift)
            return torch.roll(x.reshape(-1), total).reshape(x.shape)
        shifts = (shift,) if isinstance(shift, int) else tuple(shift)
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        if any(not -x.ndim <= a < x.ndim for a in axes):
            raise AxisError(f"axis {axis} is out of range for a tensor of {x.ndim} axes")
        count = max(len(shifts), len(axes))
        return torch.roll(x, shifts * (count // len(shifts)), axes * (count // len(axes)))

    @staticmethod
    def pad(
        x: torch.Tensor, pad_width: Any, mode: str = "constant", constant_values: float | None = None
    ) -> torch.Tensor:
        check_pad(mode, constant_values)
        pairs = pad_pairs(pad_width, x.ndim)
        if mode == "constant":
            flat = [n for pair in reversed(pairs) for n in pair]
            return torch.nn.functional.pad(x, flat, value=0 if constant_values is None else constant_values)
        for axis, (before, after) in enumerate(pairs):
            if before or after:
                source = pad_indices(x.shape[axis], before, after, mode)
                x = torch.index_select(x, axis, torch.from_numpy(source).to(x.device))
        return x
