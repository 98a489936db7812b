"""`KVCache`, a cache of the keys and values of past time steps for attention layers that decode step by step."""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from emberharmony import Buffer, ops
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.types import Tensor, TensorLike

STEP = 256
"""The number of time steps by which the memory of a cache grows at once."""


class _Room(NamedTuple):
    """Spare memory of a cache: tensors longer than its keys and values, into which next time steps are written.

    Only the cache whose tensors are `shown` may write behind them. A copy of the cache, or one that was trimmed,
    assigned or moved to another backend, holds other tensors, so that it makes a room of its own.

    Attributes:
        memory: the keys and the values, (batch, time, heads, width). Each head has its time steps side by side, as the
            products want them.
        shown: the parts of it that the cache holds.
    """

    memory: tuple[Any, Any]
    shown: tuple[Any, Any]


_ALL = slice(None)
_ROOMS: "WeakKeyDictionary[KVCache, _Room]" = WeakKeyDictionary()


class KVCache(Module):
    """The keys and values of the time steps that an attention layer has seen, for decoding step by step.

    Each attention layer needs a cache of its own, to which every call adds. A copy by `copy.deepcopy` continues on its
    own, as in beam search. The buffers follow the active backend and are not saved. They are written into memory that
    is allocated for 256 time steps at once, so that a step copies no other; where a transform differentiates or maps
    over them, they are concatenated instead.

    Texts of different length begin with padding, so that they end together. An attention layer that is written with a
    cache takes its `mask`, and a layer that adds positions takes its `offset`; `nn.MultiheadAttention` does the former.

    Attributes:
        keys, values: (batch, time, heads, width); None before the first call.
        padding: how many time steps before each text are padding, a tuple of integers; None if there is none.

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
        self.padding: tuple[int, ...] | None = None
        self._asked = False

    @property
    def length(self) -> int:
        """The number of time steps in the cache."""
        return 0 if self.keys is None else int(self.keys.shape[1])

    @property
    def is_masked(self) -> bool:
        """Whether an attention layer has asked the cache for the mask of the padding."""
        return self._asked

    @property
    def offset(self) -> int | tuple[int, ...]:
        """The position of the next time step: `length`, or with padding one for each text, which is less by that."""
        past_length = self.length
        return past_length if self.padding is None else tuple(past_length - pad for pad in self.padding)

    def mask(self, queries: int) -> Tensor | None:
        """Returns the boolean mask of the keys that the last time steps may attend to; None if they may attend to all.

        The first call of a cache limits each query to the keys up to its own by `is_causal`, later ones by this mask.

        Args:
            queries: the number of time steps that `extend` has added.

        Example:
            >>> cache = nn.KVCache()
            >>> cache.padding = (0, 2)
            >>> _ = cache.extend(ops.ones((2, 3, 1, 4)), ops.ones((2, 3, 1, 4)))
            >>> cache.offset, cache.mask(3)[:, 0, 0].tolist()
            ((3, 1), [[True, True, True], [False, False, True]])
        """
        if queries == 1 and self.padding is None:
            return None
        key_count, text_mask = self.length, self.text_mask()
        if queries == 1 or queries == key_count:
            return text_mask
        causal_mask = ops.tri(queries, key_count, key_count - queries, "bool")
        if self.keys is not None:
            causal_mask = ops.to_device(causal_mask, ops.get_device(self.keys.value))
        return causal_mask if text_mask is None else ops.logical_and(causal_mask, text_mask)

    def text_mask(self) -> Tensor | None:
        """Returns the boolean mask of keys that are no padding, (batch, 1, 1, keys); None if there is no padding."""
        if self.padding is None or self.keys is None:
            return None
        self._asked = True
        padding_lengths = ops.reshape(ops.array(self.padding), (-1, 1, 1, 1))
        return ops.to_device(ops.less_equal(padding_lengths, ops.arange(self.length)), ops.get_device(self.keys.value))

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the keys and values of new time steps to the cache, and returns those of all time steps.

        Args:
            keys: (batch, time, heads, width): the keys of the new time steps.
            values: (batch, time, heads, width): the values of the new time steps.

        Raises:
            ShapeError: if they do not have the batch, heads and width of those before.
        """
        key_and_value_cells = self.keys, self.values
        if key_and_value_cells[0] is None or key_and_value_cells[1] is None:
            self.keys, self.values = Buffer(keys, persistent=False), Buffer(values, persistent=False)
            return keys, values
        old_tensors, new_tensors = (key_and_value_cells[0].value, key_and_value_cells[1].value), (keys, values)
        for old_tensor, new_tensor in zip(old_tensors, new_tensors, strict=True):
            _require_continuing_shape(old_tensor.shape, new_tensor.shape)
        spare_room = _ROOMS.pop(
            self, None
        )  # it is written to from here on, so an error must not leave it to a later call
        backend = selection.active().backend
        if (
            keys.dtype != old_tensors[0].dtype
            or values.dtype != old_tensors[1].dtype
            or not backend.may_write(*old_tensors, *new_tensors)
        ):
            all_keys_and_values = (
                ops.concatenate([old_tensors[0], keys], 1),
                ops.concatenate([old_tensors[1], values], 1),
            )
            key_and_value_cells[0].value, key_and_value_cells[1].value = all_keys_and_values
            return all_keys_and_values
        memory = _extended_memory(backend, spare_room, old_tensors, new_tensors)
        all_keys_and_values = (
            memory[0][:, : old_tensors[0].shape[1] + keys.shape[1]],
            memory[1][:, : old_tensors[1].shape[1] + values.shape[1]],
        )
        key_and_value_cells[0].value, key_and_value_cells[1].value = all_keys_and_values
        _ROOMS[self] = _Room(memory, all_keys_and_values)
        return all_keys_and_values

    def trim(self, length: int) -> None:
        """Removes all time steps from the cache except the first `length`.

        Args:
            length: how many time steps stay, the first ones.

        Raises:
            ArgumentError: if the cache does not hold so many.
        """
        if not 0 <= length <= self.length:
            raise ArgumentError(f"expected a length from 0 to {self.length}, got {length}")
        if self.keys is not None and self.values is not None:
            self.keys.value, self.values.value = self.keys.value[:, :length], self.values.value[:, :length]

    def __call__(self, keys: TensorLike, values: TensorLike) -> tuple[Tensor, Tensor]:
        return self.extend(ops.convert_to_tensor(keys), ops.convert_to_tensor(values))


def _require_continuing_shape(old_shape: tuple[int, ...], new_shape: tuple[int, ...]) -> None:
    if len(new_shape) != 4 or old_shape[0] != new_shape[0] or tuple(old_shape[2:]) != tuple(new_shape[2:]):
        raise fault(
            ShapeError(
                f"the cache holds {tuple(old_shape)} as (batch, time, heads, width), which {tuple(new_shape)} does not "
                f"continue; use one cache for each layer and sequence"
            )
        )


def _extended_memory(
    backend: Any, spare_room: _Room | None, before: tuple[Any, Any], new: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Writes new keys and values after those of a cache, into its spare memory or larger memory, and returns that."""
    memories = []
    for i in (0, 1):
        old_tensor, new_tensor = before[i], new[i]
        past_length = old_tensor.shape[1]
        new_length = past_length + new_tensor.shape[1]
        if spare_room is not None and spare_room.shown[i] is old_tensor and new_length <= spare_room.memory[i].shape[1]:
            memory = spare_room.memory[i]
        else:
            batch, _, heads, width = old_tensor.shape
            memory = ops.zeros((batch, heads, -(-new_length // STEP) * STEP, width), old_tensor.dtype)
            memory = ops.swapaxes(ops.to_device(memory, ops.get_device(old_tensor)), 1, 2)
            memory = backend.write_into(memory, (_ALL, slice(past_length)), old_tensor)
        memories.append(backend.write_into(memory, (_ALL, slice(past_length, new_length)), new_tensor))
    return memories[0], memories[1]
