"""The keys and values that attention layers have seen, for decoding step by step."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from emberharmony import Buffer, ops
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.types import Tensor, TensorLike

STEP = 256
"""A cache makes room for so many time steps at once."""


class _Room(NamedTuple):
    """Memory for more time steps than a cache holds.

    Only the cache whose tensor is `shown` may write behind it. A copy of the cache, or one that was trimmed, assigned
    or moved to another backend, holds another tensor, so that it makes a room of its own.

    Attributes:
        memory: (batch, heads, time, width). Each head has its time steps side by side, as the products want them.
        shown: the part of it that the cache holds, (batch, time, heads, width).
    """

    memory: Any
    shown: Any


_ALL = slice(None)
_ROOMS: "WeakKeyDictionary[Buffer, _Room]" = WeakKeyDictionary()


class KVCache(Module):
    """The keys and values of the time steps that an attention layer has seen, for decoding step by step.

    Each attention layer needs a cache of its own, to which every call adds. A copy by `copy.deepcopy` continues on its
    own, as in beam search. The buffers follow the active backend and are not saved. They are written into memory that
    is allocated for 256 time steps at once, so that a step copies no other; where a transform differentiates or maps
    over them, they are concatenated instead.

    Attributes:
        keys, values: (batch, time, heads, width); None before the first call.

    Example:
        >>> layer, cache = nn.MultiheadAttention(8, 2, batch_first=True), nn.KVCache()
        >>> x = ops.ones((1, 3, 8))
        >>> steps = [layer(x[:, t : t + 1], is_causal=True, cache=cache)[0] for t in range(3)]
        >>> whole = layer(x, is_causal=True)[0]
        >>> cache.length, bool(ops.allclose(ops.concatenate(steps, 1), whole, atol=1e-6))
        (3, True)
    """

    def __init__(self) -> None:
        self.keys: Buffer | None = None
        self.values: Buffer | None = None

    @property
    def length(self) -> int:
        """The number of time steps in the cache."""
        return 0 if self.keys is None else int(self.keys.value.shape[1])

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds time steps, and returns the keys and values of all.

        Raises:
            ShapeError: if they do not have the batch, heads and width of those before.
        """
        if self.keys is None or self.values is None:
            self.keys, self.values = Buffer(keys, persistent=False), Buffer(values, persistent=False)
            return keys, values
        for cell, new in ((self.keys, keys), (self.values, values)):
            have, given = cell.value.shape, new.shape
            if len(given) != 4 or have[0] != given[0] or have[2:] != given[2:]:
                raise fault(
                    ShapeError(
                        f"the cache holds {tuple(have)} as (batch, time, heads, width), which {tuple(given)} does not "
                        f"continue; use one cache for each layer and sequence"
                    )
                )
        return _extended(self.keys, keys), _extended(self.values, values)

    def trim(self, length: int) -> None:
        """Forgets all time steps but the first ones.

        Raises:
            ArgumentError: if the cache does not hold so many.
        """
        if not 0 <= length <= self.length:
            raise ArgumentError(f"expected a length from 0 to {self.length}, got {length}")
        if self.keys is not None and self.values is not None:
            self.keys.value, self.values.value = self.keys.value[:, :length], self.values.value[:, :length]

    def __call__(self, keys: TensorLike, values: TensorLike) -> tuple[Tensor, Tensor]:
        return self.extend(ops.convert_to_tensor(keys), ops.convert_to_tensor(values))


def _extended(cell: Buffer, new: Tensor) -> Tensor:
    """Adds time steps to those that a cell holds, in its room if that is possible, and returns all."""
    backend, before = selection.active().backend, cell.value
    room = _ROOMS.pop(cell, None)  # it is written to from here on, so an error must not leave it to a later call
    past, length = before.shape[1], before.shape[1] + new.shape[1]
    if before.dtype != new.dtype or not backend.may_write(before, new):
        joined: Tensor = ops.concatenate([before, new], 1)
        cell.value = joined
        return joined
    if room is not None and room.shown is before and length <= room.memory.shape[2]:
        memory = room.memory
    else:
        batch, _, heads, width = before.shape
        memory = ops.zeros((batch, heads, -(-length // STEP) * STEP, width), before.dtype)
        memory = ops.to_device(memory, ops.get_device(before))
        memory = backend.written(memory, (_ALL, _ALL, slice(past)), ops.swapaxes(before, 1, 2))
    memory = backend.written(memory, (_ALL, _ALL, slice(past, length)), ops.swapaxes(new, 1, 2))
    shown = ops.swapaxes(memory[:, :, :length], 1, 2)
    cell.value = shown
    _ROOMS[cell] = _Room(memory, shown)
    return shown
