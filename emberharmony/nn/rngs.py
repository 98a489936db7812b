"""`Rngs`, random generators by name for layers, and the generator of a layer to which none was given."""

from typing import Any, TypeAlias

from emberharmony import ops
from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.types import DTypeLike, Tensor

Generator: TypeAlias = Any
"""An `ops.random.Generator`."""


class Rngs:
    """Random generators by name, each made from its own seed; a layer takes `params` for weights, `dropout` for masks.

    A name without a seed gets a stream split from that of `default`.

    Args:
        default: the seed of the streams that have none of their own; None draws it from the default stream.
        **seeds: the seeds of streams by name, integers.

    Example:
        >>> rngs = nn.Rngs(0, dropout=7)
        >>> layer = nn.Linear(2, 3, rng=rngs)
        >>> rngs.dropout is rngs.dropout, rngs.dropout is rngs.params
        (True, False)
    """

    def __init__(self, default: int | None = None, **seeds: int) -> None:
        self._default = ops.random.Generator(default)
        self._streams = {name: ops.random.Generator(seed) for name, seed in seeds.items()}

    def __getattr__(self, name: str) -> Generator:
        if name.startswith("_"):
            raise AttributeError(f"Rngs has no attribute {name!r}")
        if name not in self._streams:
            self._streams[name] = self._default.split(1)[0]
        return self._streams[name]

    def __repr__(self) -> str:
        stream_by_name = {"default": self._default, **self._streams}
        return f"Rngs({', '.join(f'{name}={stream!r}' for name, stream in stream_by_name.items())})"

    def state_dict(self) -> dict[str, Any]:
        """Returns the states of all streams, as `json.dumps` accepts them."""
        return {
            "default": self._default.state_dict(),
            "streams": {name: stream.state_dict() for name, stream in self._streams.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Sets all streams to the states in a state dict.

        Streams that exist stay the same objects, so layers that have one continue with it.

        Raises:
            ArgumentTypeError: if the state is not a dict of states of generators.
            ArgumentError: if it is damaged; nothing is changed then.
        """
        commit(self.loading_steps(state))

    def loading_steps(self, state: dict[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        if not isinstance(state, dict) or not isinstance(state.get("streams"), dict):
            raise ArgumentTypeError(f"the state of an Rngs has 'default' and 'streams', but this is {brief(state)}")
        stream_by_name = {name: self._streams.get(name) or ops.random.Generator(0) for name in state["streams"]}
        steps: list[Step] = [
            *self._default.loading_steps(state.get("default", {})),
            (self._streams.update, stream_by_name),
        ]
        for name, stream in stream_by_name.items():
            steps += stream.loading_steps(state["streams"][name])
        return steps


def generator(rng: "Generator | Rngs | None", stream: str = "params") -> Generator:
    """Returns the random generator of a layer for its option `rng`.

    Args:
        rng: a generator, streams by name, or None: then a generator is made whose seed is drawn from the default stream
            of the active backend, so that `ops.random.seed` decides it.
        stream: which stream is taken from an `Rngs`.

    Raises:
        ArgumentTypeError: if `rng` is something else.
    """
    if rng is None:
        seed = ops.random.randint((), 0, 2**31 - 1)
        return ops.random.Generator(int(ops.to_numpy(seed)))
    if isinstance(rng, Rngs):
        return getattr(rng, stream)
    if not isinstance(rng, ops.random.Generator):
        generator_text = f"ops.random.Generator({rng if isinstance(rng, int) else 0})"
        raise ArgumentTypeError(
            f"rng is an ops.random.Generator, an nn.Rngs or None, not {brief(rng)}: use {generator_text}"
        )
    return rng


def uniform(rng: Generator, shape: tuple[int, ...], bound: float, dtype: DTypeLike | None) -> Tensor:
    """Returns uniform numbers in [-bound, bound), the initial values of most layers of PyTorch."""
    return ops.random.uniform(shape, -bound, bound, dtype, generator=rng)
