"""The portable random number generator: NumPy draws on the host, so that every backend gets the same bits."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from copy import copy
from itertools import islice, repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any

from emberharmony.backend.host import is_integer
from emberharmony.core import op_globals
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import DType, float32, float64, int64, uint64
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, RangeError, brief
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.state.draws import current_recording, refuse_effect, stream_to_draw_from

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared import random_normal, random_parameters, random_state
    from emberharmony.backend.shared.arrays import shape as shared_shape
    from emberharmony.backend.shared.random_parameters import Array
    from emberharmony.backend.shared.random_state import State
else:
    np = Deferred("numpy")
    random_normal = Deferred("emberharmony.backend.shared.random_normal")
    random_parameters = Deferred("emberharmony.backend.shared.random_parameters")
    random_state = Deferred("emberharmony.backend.shared.random_state")
    shared_shape = Deferred("emberharmony.backend.shared.arrays.shape")

_PARTS = ("_source", "_sequence", "_children")
"""The attributes of a generator."""


class Generator:
    """A random number generator with a stream of its own, which draws the same numbers on every backend.

    The bits come from Philox, a counter-based generator. NumPy computes the numbers on the host, and they are then
    copied to the backend. Several threads may draw from a generator at once. It can be split, pickled, and saved as
    JSON (`state_dict`): the copy continues where the original was. A new version of NumPy may draw other numbers from
    the same bits, except normal ones of float32 of which 16,384 or more are drawn at once.

    Args:
        seed: a non-negative integer of any size; None takes a random seed from the operating system.

    Raises:
        ArgumentError: if the seed is something else.

    Example:
        >>> a, b = ops.random.Generator(0), ops.random.Generator(0)
        >>> bool(ops.array_equal(ops.random.normal(3, generator=a), ops.random.normal(3, generator=b)))
        True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._start(np.random.SeedSequence(fresh_seed() if seed is None else checked_seed(seed)))

    def _start(self, sequence: np.random.SeedSequence) -> None:
        self._source = np.random.Generator(np.random.Philox(sequence))
        self._set_sequence(sequence)

    def _set_sequence(self, sequence: np.random.SeedSequence) -> None:
        self.made_in = current_recording()
        self._sequence = sequence
        self._children = iter(range(sequence.n_children_spawned, _MOST_CHILDREN))

    def __repr__(self) -> str:
        # Philox makes blocks of four words: `counter` counts them, and `buffer_pos` the used words of the last one.
        bit_generator: Any = self._source.bit_generator
        with bit_generator.lock:  # another thread may be drawing
            state = bit_generator.state
        block_count = sum(int(word) << 64 * i for i, word in enumerate(state["state"]["counter"]))
        word_count = 4 * (block_count - 1) + state["buffer_pos"]
        split_text = "".join(f"split {number}, " for number in self._sequence.spawn_key)
        return f"<Generator of seed {self._sequence.entropy}, {split_text}{word_count:,} words of bits drawn>"

    def __getstate__(self) -> dict[str, Any]:
        # The hint is the number of children left; reading it does not advance the iterator.
        spawned_count = _MOST_CHILDREN - length_hint(self._children)
        return {
            "_sequence": _sequence_like(self._sequence, self._sequence.spawn_key, spawned_count),
            "_source": self._source,
        }

    def state_dict(self) -> State:
        """Returns the state of the generator as a dict of text, integers and lists, which `json.dumps` accepts.

        Example:
            >>> generator = ops.random.Generator(0)
            >>> state = generator.state_dict()
            >>> first = ops.random.normal(3, generator=generator)
            >>> generator.load_state_dict(state)
            >>> bool(ops.array_equal(ops.random.normal(3, generator=generator), first))
            True
        """
        spawned_count = _MOST_CHILDREN - length_hint(self._children)
        entropy: Any = self._sequence.entropy
        spawn_key = [int(number) for number in self._sequence.spawn_key]
        return {
            "version": random_state.VERSION,
            **random_state.generator_state(self._rng),
            "entropy": f"{entropy:x}",
            "spawn_key": spawn_key,
            "spawned": spawned_count,
        }

    def load_state_dict(self, state: State) -> None:
        """Sets the generator to a state that `state_dict` returned; if an error is raised, nothing has changed.

        Raises:
            ArgumentTypeError: if the state is not a dict.
            ArgumentError: if the state is damaged or has a later version.
        """
        refuse_effect("a generator would be set")
        commit(self.loading_steps(state))

    def loading_steps(self, state: State) -> list[Step]:
        """Returns the assignments of `load_state_dict` as steps, for a caller that loads several states at once."""
        reader = random_state.StateReader("the state of a Generator", state)
        reader.check_version()
        source = random_state.restored_generator(reader, "Philox")
        spawned_count = reader.integer("spawned", 0, _MOST_CHILDREN)
        sequence = np.random.SeedSequence(
            reader.hexadecimal("entropy"), spawn_key=reader.integers("spawn_key"), n_children_spawned=spawned_count
        )
        children = iter(range(spawned_count, _MOST_CHILDREN))
        return list(map(assignment, repeat(self), _PARTS, (source, sequence, children)))

    def rewinding_steps(self) -> list[Step]:
        """Returns the steps that set the generator back to where it is now."""
        bit_generator = self._source.bit_generator
        with bit_generator.lock:  # another thread may be drawing
            state = bit_generator.state
        arguments = (self._source, self._sequence, copy(self._children))
        return [assignment(bit_generator, "state", state), *map(assignment, repeat(self), _PARTS, arguments)]

    @property
    def _rng(self) -> np.random.Generator:
        return stream_to_draw_from(self._source, clone_generator)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._source = state["_source"]
        self._set_sequence(state["_sequence"])

    def split(self, n: int = 2) -> list[Generator]:
        """Returns n generators whose streams are independent of each other and of this one.

        Args:
            n: how many generators, less than 2**32.

        Raises:
            ArgumentError: if n is negative.
            ArgumentTypeError: if n is not an integer.
            RangeError: if n is 2**32 or more.
        """
        child_count = random_parameters.element_count(n)
        if child_count is None:
            raise ArgumentTypeError(f"n is a number of generators, not {brief(n)}")
        if child_count >= 2**32:
            raise RangeError(f"n is a number of generators below 2**32, not {n}")
        refuse_effect("a generator would be split")
        # Take the numbers of all children in one call that holds the GIL, so that no other thread gets one of them, and
        # an interruption takes either all or none.
        child_numbers = list(islice(self._children, child_count))
        children = []
        for number in child_numbers:
            child = Generator.__new__(Generator)
            child._start(_sequence_like(self._sequence, (*self._sequence.spawn_key, number)))
            children.append(child)
        return children

    def uniform(self, shape: Any, dtype: DType = float32) -> Array:
        """Returns uniform numbers in [0, 1), as float64 if that is the dtype, else as float32 multiples of 2**-24.

        Args:
            shape: the shape of the result: a length, or a sequence of lengths.
            dtype: float64, or a dtype for which float32 numbers are drawn; by default float32.
        """
        return np.asarray(self._rng.random(shared_shape.as_shape(shape), _numpy_dtype(dtype)))

    def normal(self, shape: Any, dtype: DType = float32, mean: float = 0.0, stddev: float = 1.0) -> Array:
        """Returns normal numbers, as float64 if that is the dtype, else as float32.

        Args:
            shape: the shape of the result: a length, or a sequence of lengths.
            dtype: float64, or a dtype for which float32 numbers are drawn; by default float32.
            mean: the mean of the numbers.
            stddev: the standard deviation of the numbers.
        """
        draws = _draw_normal(self._rng, shared_shape.as_shape(shape), dtype)
        if isinstance(mean, (tuple, list)):
            raise ArgumentTypeError(
                f"mean is a number, not {brief(mean)}; the order is normal(shape, dtype, mean, stddev)"
            )
        if (mean, stddev) != (0.0, 1.0):  # in place, because a new array costs a tenth of the draw
            draws *= stddev
            draws += mean
        return draws

    def truncated_normal(self, shape: Any, dtype: DType = float32) -> Array:
        """Returns normal numbers; numbers beyond two standard deviations are drawn again.

        Args:
            shape: the shape of the result: a length, or a sequence of lengths.
            dtype: float64, or a dtype for which float32 numbers are drawn; by default float32.
        """
        # Draw from a new stream, seeded by one draw from this one: an interruption between two draws would otherwise
        # leave this stream at a position that depends on the time of the interruption.
        rng = np.random.Generator(np.random.Philox(key=self._rng.integers(0, 2**64, 2, np.uint64)))
        draws = _draw_normal(rng, shared_shape.as_shape(shape), dtype)
        is_outside = np.abs(draws) > 2
        while is_outside.any():
            draws[is_outside] = _draw_normal(rng, (int(is_outside.sum()),), dtype)
            is_outside = np.abs(draws) > 2
        return draws

    def integers(self, shape: Any, low: Any, high: Any, dtype: DType = int64) -> Array:
        """Returns integers in [low, high), as uint64 if that is the dtype, else as int64.

        Args:
            shape: the shape of the result: a length, or a sequence of lengths.
            low: the least integer: a number, or integers that broadcast to the shape.
            high: the integer above the largest one: a number, or integers that broadcast to the shape.
            dtype: uint64, or a dtype for which int64 numbers are drawn; by default int64.

        Raises:
            ArgumentError: if there is no such integer.
        """
        if not np.all(np.less(low, high)):
            raise ArgumentError(
                f"there is no integer from {brief(low)} up to, but not including, {brief(high)}; the order is "
                f"integers(shape, low, high)"
            )
        wide_dtype = np.uint64 if dtype is uint64 else np.int64
        return np.asarray(self._rng.integers(low, high, shared_shape.as_shape(shape), wide_dtype))

    def draw(self, distribution: str, shape: Any, *parameters: Any) -> Array:
        """Returns numbers of a distribution of `numpy.random.Generator`.

        Args:
            distribution: the name of the method.
            shape: of the result; the parameters broadcast to it.
            parameters: of the distribution.

        Raises:
            ArgumentError: if NumPy does not accept the parameters.
        """
        try:
            return np.asarray(getattr(self._rng, distribution)(*parameters, size=shared_shape.as_shape(shape)))
        except ValueError as error:
            raise ArgumentError(str(error)) from error

    def permutation(self, n: int) -> Array:
        """Returns the integers from 0 to n - 1 in random order.

        Args:
            n: how many integers, from 0.
        """
        return self._rng.permutation(n)

    def choice(self, n: int, shape: Any, replace: bool, p: Sequence[float] | np.ndarray | None) -> Array:
        """Returns random indices from 0 to n - 1.

        Args:
            n: the number of indices to choose from.
            shape: of the result.
            replace: whether an index may occur more than once.
            p: the probabilities of the indices; None for equal ones.

        Raises:
            ArgumentError: if the probabilities do not fit, or there are too few indices to draw without replacement.
        """
        try:
            return np.asarray(self._rng.choice(n, shared_shape.as_shape(shape), replace, p))
        except ValueError as error:
            raise ArgumentError(str(error)) from error


_MOST_CHILDREN = 2**32 - 1


def _sequence_like(
    sequence: np.random.SeedSequence, spawn_key: tuple[int, ...], spawned: int = 0
) -> np.random.SeedSequence:
    """Returns a seed sequence with the same entropy, another spawn key, and `spawned` children already spawned."""
    return np.random.SeedSequence(
        sequence.entropy, spawn_key=spawn_key, pool_size=sequence.pool_size, n_children_spawned=spawned
    )


def clone_generator(source: np.random.Generator) -> np.random.Generator:
    """Returns a generator that will draw the same numbers as this one."""
    bit_generator = type(source.bit_generator)(0)
    bit_generator.state = source.bit_generator.state
    return np.random.Generator(bit_generator)


def _draw_normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Returns normal numbers, as float64 if that is the dtype, else as float32."""
    draw_count = math.prod(shape)
    if dtype is float64 or draw_count < random_normal.MANY:
        return np.asarray(rng.standard_normal(shape, _numpy_dtype(dtype)))
    words = rng.bit_generator.random_raw(draw_count + 1 >> 1)
    return random_normal.normal(words)[:draw_count].reshape(shape)


def _numpy_dtype(dtype: DType) -> Any:
    return np.float64 if dtype is float64 else np.float32


def fresh_seed() -> int:
    """Returns a random seed from the operating system."""
    return int.from_bytes(os.urandom(16))


def checked_seed(seed: Any) -> int:
    """Returns a seed as an int, checked to be a natural number.

    Raises:
        ArgumentError: if it is not a non-negative integer.
    """
    if isinstance(seed, bool) or not is_integer(seed) or seed < 0:
        raise ArgumentError(f"a seed is an integer of at least 0, not {brief(seed)}")
    return int(seed)


op_globals.publish(Generator=Generator)


def generator_of(seed: Any, generator: Generator | None) -> Generator | None:
    """Returns `generator`, or a generator for `seed` (a seed or a generator); None stands for the default stream."""
    seed_or_generator = generator if generator is not None else seed
    return (
        seed_or_generator
        if seed_or_generator is None or isinstance(seed_or_generator, Generator)
        else Generator(seed_or_generator)
    )
