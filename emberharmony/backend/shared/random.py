"""The portable random number generator: NumPy draws on the host, so that every backend gets the same bits."""

from __future__ import annotations

import math
import os
import sys
from _thread import get_ident
from collections.abc import Callable, Sequence
from copy import copy
from itertools import islice, repeat
from operator import length_hint
from typing import Any, Generic, TypeVar

import numpy as np

from emberharmony.backend.shared.random_state import VERSION, State, StateReader, restored, saved
from emberharmony.backend.shared.shape import as_shape
from emberharmony.core import op_globals
from emberharmony.core.axes import broadcast
from emberharmony.core.dtypes import DType, as_dtype, default_float, float32, float64, int64, uint64
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendMismatchError,
    DTypeError,
    RangeError,
    ShapeError,
    brief,
)
from emberharmony.core.numeric.finfo import FloatInfo
from emberharmony.core.numeric.promotion import check_fits
from emberharmony.core.state.commits import Step, assigned, commit
from emberharmony.core.state.draws import recording, refuse_effect, watched

Array = np.ndarray[Any, Any]
S = TypeVar("S")
_PARTS = ("_source", "_sequence", "_children")
"""The attributes of a generator."""


class Generator:
    """A random number generator with a stream of its own, which draws the same numbers on every backend.

    The bits come from Philox, a counter-based generator. NumPy computes the numbers on the host, and they are then
    copied to the backend. Several threads may draw from a generator at once. It can be split, pickled, and saved as
    JSON (`state_dict`): the copy continues where the original was. A new version of NumPy may draw other numbers from
    the same bits.

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
        self._descend(sequence)

    def _descend(self, sequence: np.random.SeedSequence) -> None:
        self.made_in = recording()
        self._sequence = sequence
        self._children = iter(range(sequence.n_children_spawned, _MOST_CHILDREN))

    def __repr__(self) -> str:
        # Philox makes blocks of four words: `counter` counts them, and `buffer_pos` the used words of the last one.
        bits: Any = self._source.bit_generator
        with bits.lock:  # another thread may be drawing
            state = bits.state
        blocks = sum(int(part) << 64 * i for i, part in enumerate(state["state"]["counter"]))
        words = 4 * (blocks - 1) + state["buffer_pos"]
        path = "".join(f"split {number}, " for number in self._sequence.spawn_key)
        return f"<Generator of seed {self._sequence.entropy}, {path}{words:,} words of bits drawn>"

    def __getstate__(self) -> dict[str, Any]:
        # The hint is the number of children left; reading it does not advance the iterator.
        spawned = _MOST_CHILDREN - length_hint(self._children)
        return {"_sequence": _like(self._sequence, self._sequence.spawn_key, spawned), "_source": self._source}

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
        spawned = _MOST_CHILDREN - length_hint(self._children)
        entropy: Any = self._sequence.entropy
        key = [int(number) for number in self._sequence.spawn_key]
        return {
            "version": VERSION,
            **saved(self._rng),
            "entropy": f"{entropy:x}",
            "spawn_key": key,
            "spawned": spawned,
        }

    def load_state_dict(self, state: State) -> None:
        """Continues where the generator was whose `state_dict` this is; if an error is raised, nothing has changed.

        Raises:
            ArgumentTypeError: if the state is not a dict.
            ArgumentError: if the state is damaged or has a later version.
        """
        refuse_effect("a generator would be set")
        commit(self.loading(state))

    def loading(self, state: State) -> list[Step]:
        """Returns the steps of `load_state_dict`, for a caller that loads more at once; see there for its errors."""
        reader = StateReader("the state of a Generator", state)
        reader.check_version()
        source = restored(reader, "Philox")
        spawned = reader.integer("spawned", 0, _MOST_CHILDREN)
        sequence = np.random.SeedSequence(
            reader.hexadecimal("entropy"), spawn_key=reader.integers("spawn_key"), n_children_spawned=spawned
        )
        children = iter(range(spawned, _MOST_CHILDREN))
        return list(map(assigned, repeat(self), _PARTS, (source, sequence, children)))

    def rewinding(self) -> list[Step]:
        """Returns the steps that set the generator back to where it is now."""
        bits = self._source.bit_generator
        with bits.lock:  # another thread may be drawing
            state = bits.state
        parts = (self._source, self._sequence, copy(self._children))
        return [assigned(bits, "state", state), *map(assigned, repeat(self), _PARTS, parts)]

    @property
    def _rng(self) -> np.random.Generator:
        return watched(self._source, clone)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._source = state["_source"]
        self._descend(state["_sequence"])

    def split(self, n: int = 2) -> list[Generator]:
        """Returns n generators whose streams are independent of each other and of this one.

        Raises:
            ArgumentError: if n is negative.
            ArgumentTypeError: if n is not an integer.
            RangeError: if n is 2**32 or more.
        """
        count = size_of(n)
        if count is None:
            raise ArgumentTypeError(f"n is a number of generators, not {brief(n)}")
        if count >= 2**32:
            raise RangeError(f"n is a number of generators below 2**32, not {n}")
        refuse_effect("a generator would be split")
        # Take the numbers of all children in one call that holds the GIL, so that no other thread gets one of them, and
        # an interruption takes either all or none.
        numbers = list(islice(self._children, count))
        children = []
        for number in numbers:
            child = Generator.__new__(Generator)
            child._start(_like(self._sequence, (*self._sequence.spawn_key, number)))
            children.append(child)
        return children

    def uniform(self, shape: Any, dtype: DType = float32) -> Array:
        """Returns uniform numbers in [0, 1), as float64 if that is the dtype, else as float32 multiples of 2**-24."""
        return np.asarray(self._rng.random(as_shape(shape), _native(dtype)))

    def normal(self, shape: Any, dtype: DType = float32, mean: float = 0.0, stddev: float = 1.0) -> Array:
        """Returns normal numbers, as float64 if that is the dtype, else as float32."""
        drawn = np.asarray(self._rng.standard_normal(as_shape(shape), _native(dtype)))
        if (mean, stddev) != (0.0, 1.0):  # in place, because a new array costs a tenth of the draw
            drawn *= stddev
            drawn += mean
        return drawn

    def truncated_normal(self, shape: Any, dtype: DType = float32) -> Array:
        """Returns normal numbers; numbers beyond two standard deviations are drawn again."""
        # Draw from a new stream, seeded by one draw from this one: an interruption between two draws would otherwise
        # leave this stream at a position that depends on the time of the interruption.
        rng = np.random.Generator(np.random.Philox(key=self._rng.integers(0, 2**64, 2, np.uint64)))
        values = np.asarray(rng.standard_normal(as_shape(shape), _native(dtype)))
        outside = np.abs(values) > 2
        while outside.any():
            values[outside] = rng.standard_normal(int(outside.sum()), _native(dtype))
            outside = np.abs(values) > 2
        return values

    def integers(self, shape: Any, low: Any, high: Any, dtype: DType = int64) -> Array:
        """Returns integers in [low, high), as uint64 if that is the dtype, else as int64.

        Raises:
            ArgumentError: if there is no such integer.
        """
        if not np.all(np.less(low, high)):
            raise ArgumentError(f"there is no integer from {brief(low)} up to, but not including, {brief(high)}")
        wide = np.uint64 if dtype is uint64 else np.int64
        return np.asarray(self._rng.integers(low, high, as_shape(shape), wide))

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
            return np.asarray(getattr(self._rng, distribution)(*parameters, size=as_shape(shape)))
        except ValueError as error:
            raise ArgumentError(str(error)) from error

    def permutation(self, n: int) -> Array:
        """Returns the integers from 0 to n - 1 in random order."""
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
            return np.asarray(self._rng.choice(n, as_shape(shape), replace, p))
        except ValueError as error:
            raise ArgumentError(str(error)) from error


_MOST_CHILDREN = 2**32 - 1


def _like(sequence: np.random.SeedSequence, spawn_key: tuple[int, ...], spawned: int = 0) -> np.random.SeedSequence:
    """Returns a seed sequence with the same entropy and another spawn key, which has spawned this many children."""
    return np.random.SeedSequence(
        sequence.entropy, spawn_key=spawn_key, pool_size=sequence.pool_size, n_children_spawned=spawned
    )


def clone(source: np.random.Generator) -> np.random.Generator:
    """Returns a generator that will draw the same numbers as this one."""
    bits = type(source.bit_generator)(0)
    bits.state = source.bit_generator.state
    return np.random.Generator(bits)


def size_of(n: Any) -> int | None:
    """Returns a number of elements as an int; None if it is not an integer.

    Raises:
        ArgumentError: if it is negative.
    """
    if not isinstance(n, (int, np.integer)):
        return None
    if n < 0:
        raise ArgumentError(f"a number of elements is at least 0, not {n}")
    return int(n)


class Domain:
    """The finite values that a parameter may have: from `low`, which is excluded if `above` is True, to `high`."""

    def __init__(self, low: float = -math.inf, high: float = math.inf, above: bool = False) -> None:
        self.low, self.high, self.above = low, high, above

    def check(self, name: str, value: float) -> None:
        """Checks that a number is in the domain.

        Raises:
            ArgumentError: if it is not; the message has the name of the parameter and the domain.
        """
        if not (self.low <= value <= self.high and math.isfinite(value)) or (self.above and value == self.low):
            raise ArgumentError(f"{name} is {self}, not {brief(value)}")

    def check_all(self, name: str, values: Array) -> None:
        """Checks that all numbers of an array are in the domain.

        Raises:
            ArgumentError: if they are not; the message has the name of the parameter and the domain.
        """
        inside = values > self.low if self.above else values >= self.low
        if not np.all(inside & (values <= self.high) & np.isfinite(values)):
            raise ArgumentError(f"{name} is {self}, not {brief(values)}")

    def __str__(self) -> str:
        if self.high < math.inf:
            return f"a number from {self.low:g} to {self.high:g}"
        if self.low == -math.inf:
            return "a finite number"
        return f"a finite number {'above' if self.above else 'of at least'} {self.low:g}"


ANY, POSITIVE, FROM_ZERO, CHANCE = Domain(), Domain(0.0, above=True), Domain(0.0), Domain(0.0, 1.0)


def number(name: str, value: Any, domain: Domain = ANY) -> float | None:
    """Returns a distribution's parameter as a float if it is one number; None if it is a tensor, array or list.

    Raises:
        ArgumentError: if the number is outside the domain.
    """
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    domain.check(name, float(value))
    return float(value)


def check_fits_shape(name: str, own: Sequence[int], shape: Sequence[int]) -> None:
    """Checks that a parameter broadcasts to the shape of the result.

    Raises:
        ShapeError: if it does not; the message has the name of the parameter.
    """
    try:
        fits = broadcast([own, shape]) == tuple(shape)
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(f"{name} of shape {tuple(own)} does not broadcast to shape {tuple(shape)}")


def on_host(name: str, value: Array, shape: Any, domain: Domain) -> Array:
    """Returns a parameter, given as a host array, in float64.

    Raises:
        ArgumentError: if a value is outside the domain.
        DTypeError: if the values are complex.
        ShapeError: if the parameter does not broadcast to the shape.
    """
    if value.dtype.kind == "c":
        raise DTypeError(f"{name} is real, not {value.dtype}")
    check_fits_shape(name, value.shape, as_shape(shape))
    wide = value.astype(np.float64)
    domain.check_all(name, wide)
    return wide


def integral(name: str, value: Any, shape: Any) -> Any:
    """Returns an integer parameter, given as a number or host array, checked.

    Raises:
        ArgumentTypeError: if the values are not integers.
        ShapeError: if the parameter does not broadcast to the shape.
    """
    if isinstance(value, int):
        return value
    if value.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} is an integer, or a tensor of them, not {value.dtype}")
    check_fits_shape(name, value.shape, as_shape(shape))
    return value


def trials(counts: Any, shape: Any) -> Any:
    """Returns the numbers of trials of a binomial distribution, given as a number or host array, as integers.

    Raises:
        ArgumentError: if a number is negative or has a fraction.
        ShapeError: if they do not broadcast to the shape.
    """
    if isinstance(counts, int):
        FROM_ZERO.check("counts", counts)
        return counts
    whole = counts.astype(np.int64)
    check_fits_shape("counts", whole.shape, as_shape(shape))
    if not np.array_equal(counts, whole):
        raise ArgumentError(f"counts are whole numbers, not {brief(counts)}")
    FROM_ZERO.check_all("counts", whole)
    return whole


def check_bounds(low: float, high: float, dtype: DType) -> None:
    """Checks that a floating dtype can hold uniform numbers from `low` to `high`.

    Raises:
        ArgumentError: if `high` is less than `low`.
        RangeError: if the dtype cannot hold both.
    """
    if low > high:
        raise ArgumentError(f"minval must not exceed maxval, got minval {low} and maxval {high}")
    largest = FloatInfo.of(dtype).max
    for name, bound in (("minval", low), ("maxval", high)):
        if abs(bound) > largest:
            raise RangeError(f"{name} {bound:g} does not fit {dtype.name}, which holds {-largest:g} to {largest:g}")


def check_between(low: Any, high: Any, dtype: DType) -> None:
    """Checks that a dtype can hold the integers in [low, high).

    Raises:
        DTypeError: if it is not an integer dtype.
        RangeError: if it cannot hold all of them.
    """
    if not dtype.is_integer:
        raise DTypeError(f"random integers are of an integer dtype, not {dtype.name}; cast them (ops.cast)")
    for end in (int(np.min(low)), int(np.max(high)) - 1):
        check_fits(end, dtype)


def _native(dtype: DType) -> Any:
    return np.float64 if dtype is float64 else np.float32


def fresh_seed() -> int:
    """Returns a random seed from the operating system."""
    return int.from_bytes(os.urandom(16))


def checked_seed(seed: Any) -> int:
    """Returns a seed, checked.

    Raises:
        ArgumentError: if it is not a non-negative integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"a seed is an integer of at least 0, not {brief(seed)}")
    return int(seed)


op_globals.publish(Generator=Generator)


class _Seed:
    """The seed of a process's default streams, with the streams started from it, and a counter of forks.

    Args:
        value: the seed; None if each stream takes a random seed from the operating system.
        lineage: for each fork between the process that set the seed and this one, the number of the child.
        forked: the number of children before.
    """

    def __init__(self, value: int | None, lineage: tuple[int, ...] = (), forked: int = 0) -> None:
        self.value, self.lineage = value, lineage
        self.streams: dict[object, Any] = {}
        self.forks = iter(range(forked, sys.maxsize))

    @property
    def forked(self) -> int:
        """The number of children that the process has had since the seed was set."""
        return sys.maxsize - length_hint(self.forks)

    def start(self) -> int:
        """Returns the seed from which to start a stream."""
        if self.value is None:
            return fresh_seed()
        # Only forked children derive seeds of their own, so that they do not repeat their parent's numbers.
        if not self.lineage:
            return self.value
        words = np.random.SeedSequence(self.value, spawn_key=self.lineage).generate_state(2, np.uint64)
        return int(words[0]) << 64 | int(words[1])


class _Process:
    """The holder of the process's seed: one assignment to `seed` restarts all default streams."""

    seed = _Seed(None)


def start_streams(seed: int) -> None:
    """Restarts the default streams of all backends from a seed.

    Raises:
        ArgumentError: if the seed is not a non-negative integer.
    """
    refuse_effect("the default streams would be restarted")
    _Process.seed = _Seed(checked_seed(seed))


_FORKING: dict[int, int] = {}
"""For each thread, the number of the fork that it is about to make."""


def _number_fork() -> None:
    _FORKING[get_ident()] = next(_Process.seed.forks)


def _inherit() -> None:
    """Gives a forked child default streams that differ from its parent's and from those of other children."""
    seed = _Process.seed
    _Process.seed = _Seed(seed.value, (*seed.lineage, _FORKING[get_ident()]))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_number_fork, after_in_child=_inherit)


class DefaultStream(Generic[S]):
    """A default stream, created on first use (importing `numpy.random` takes 15 ms) and again after each new seed.

    Args:
        start: returns a new stream for a seed.
        clone: see `core.state.draws.watched`; None if `watched` is applied to the stream's own draws already.
    """

    def __init__(self, start: Callable[[int], S], clone: Callable[[S], S] | None = None) -> None:
        self._start, self._clone = start, clone

    def get(self) -> S:
        """Returns the stream to draw from."""
        stream = self._get()
        return stream if self._clone is None else watched(stream, self._clone)

    def _get(self) -> S:
        seed = _Process.seed
        stream: S | None = seed.streams.get(self)
        if stream is None:
            # If two threads start a stream at the same time, both get the one that was stored first.
            stream = seed.streams.setdefault(self, self._start(seed.start()))
        return stream


HOST = DefaultStream(Generator)
"""The default stream for numbers that all backends draw on the host."""

_STATE = "the state of the default streams"


def saved_streams(backend: str, save: Callable[[], State]) -> State:
    """Returns the state of the default streams that a backend draws from: its own, and that of the host.

    Args:
        backend: the name of the backend.
        save: returns the state of its own stream.
    """
    seed = _Process.seed
    value = None if seed.value is None else f"{seed.value:x}"
    return {
        "version": VERSION,
        "backend": backend,
        "seed": {"value": value, "lineage": list(seed.lineage), "forked": seed.forked},
        "host": HOST.get().state_dict(),
        "native": save(),
    }


def checked_streams(backend: str, state: Any) -> tuple[StateReader, _Seed]:
    """Returns a reader of the state of default streams, and a seed with the host's stream and those in use.

    Raises:
        ArgumentTypeError: if the state is not a dict.
        ArgumentError: if it is damaged or has a later version.
        BackendMismatchError: if it is the state of another backend.
    """
    reader = StateReader(_STATE, state)
    reader.check_version()
    if not isinstance(reader.state.get("backend"), str):
        raise reader.damaged("backend", "the name of a backend")
    if reader.state["backend"] != backend:
        raise BackendMismatchError(
            f"{_STATE} is that of backend {reader.state['backend']!r}, but the active backend is {backend!r}: switch "
            f"to it (ops.use_backend), or draw from a Generator, whose state every backend continues"
        )
    read = reader.inner("seed")
    value = None if read.state.get("value", "") is None else read.hexadecimal("value")
    seed = _Seed(value, read.integers("lineage"), read.integer("forked", 0, sys.maxsize))
    host = Generator(0)
    host.load_state_dict(reader.inner("host").state)
    seed.streams = {**_Process.seed.streams, HOST: host}
    return reader.inner("native"), seed


def restore_streams(seed: _Seed, stream: DefaultStream[S], value: S) -> None:
    """Continues the default streams with those of `seed`, and with `value` as the backend's own stream."""
    refuse_effect("the default streams would be restarted")
    seed.streams[stream] = value
    _Process.seed = seed


def generator_of(seed: Any, generator: Generator | None) -> Generator | None:
    """Returns `generator`, or a generator for `seed` (a seed or a generator); None stands for the default stream."""
    given = generator if generator is not None else seed
    return given if given is None or isinstance(given, Generator) else Generator(given)


def floating(dtype: Any) -> DType:
    """Returns the floating dtype of random numbers; None stands for the default float.

    Raises:
        DTypeError: if it is not a floating dtype.
    """
    wanted = default_float() if dtype is None else as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError(f"random numbers of this distribution are floating, not {wanted.name}; cast them (ops.cast)")
    return wanted


def below(high: float, dtype: DType) -> float:
    """Returns a number of a floating dtype that is less than `high` by at most twice the spacing of the dtype there."""
    if high == 0.0:
        return -FloatInfo.of(dtype).smallest_normal
    info = FloatInfo.of(dtype)
    # Below the smallest normal number, the spacing stays that of the smallest normal number.
    exponent = max(math.frexp(high)[1], math.frexp(info.smallest_normal)[1]) - 1 + round(math.log2(info.eps))
    return math.ldexp(math.ceil(math.ldexp(high, -exponent)) - 1, exponent)
