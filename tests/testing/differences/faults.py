"""Faults that are planted into a backend, and random programs around them."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import load
from emberharmony.core.dispatch import Bound

Change = Callable[..., Any]


def faulty(name: str, op: str, change: Change) -> Any:
    """Returns a backend whose implementation of an op is `change(that of another backend, *args, **kwargs)`."""
    plain = load(name)
    kind: Any = type(plain)

    def implementation(self: Any, spec: Any) -> Any:
        found = kind.implementation(self, spec)
        if spec.name != op:
            return found

        def changed(*args: Any, **kwargs: Any) -> Any:
            return change(found, *args, **kwargs)

        return changed

    made = object.__new__(type(kind.__name__, (kind,), {"implementation": implementation}))
    vars(made).update({key: value for key, value in vars(plain).items() if not key.startswith("_")})
    made.take_prefix()
    made.bound = Bound(made)
    return made


class Planted(NamedTuple):
    """A fault: its kind, the op, what it does to the op, a program that calls the op, and inputs."""

    kind: str
    op: str
    change: Change
    program: Callable[..., Any]
    inputs: tuple[Any, ...]


def _first(function: Callable[[Any], Any], values: Any) -> Any:
    return (function(values[0]), *values[1:])


def _epsilon(place: int, name: str) -> Change:
    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > place:
            given = args[place]
            args = (*args[:place], (1e-7 if given is None else given) + 1e-2, *args[place + 1 :])
        else:
            kwargs[name] = (kwargs.get(name) or 1e-7) + 1e-2
        return f(*args, **kwargs)

    return change


def _half(f: Any, *args: Any, **kwargs: Any) -> Any:
    def narrow(x: Any) -> Any:
        if ops.is_tensor(x) and ops.dtype(x) == "float32":
            return ops.cast(ops.cast(x, "float16"), "float32")
        return x

    return f(*map(narrow, args), **kwargs)


def _swapped(f: Any, *args: Any, **kwargs: Any) -> Any:
    return f(*_first(lambda x: ops.swapaxes(x, -1, -2), args), **kwargs)


def _shifted(f: Any, *args: Any, **kwargs: Any) -> Any:
    found = f(*args, **kwargs)
    rest = ops.get_item(found, (slice(None), slice(1, None)))
    return ops.concatenate([rest, ops.zeros_like(ops.get_item(found, (slice(None), slice(0, 1))))], 1)


def _uncast(name: str) -> Change:
    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        return ops.cast(f(*args, **kwargs), name)

    return change


def _last_tie(f: Any, x: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
    turned = ops.flip(x, axis)
    length = x.shape[axis] if axis is not None else x.size
    return ops.subtract(length - 1, f(turned, axis, *args, **kwargs))


def _unread(value: float) -> Change:
    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)
        flat = ops.reshape(found, (-1,))
        kept = ops.get_item(flat, slice(0, -1))
        rest = ops.cast(ops.full((1,), value), ops.dtype(found))
        return ops.reshape(ops.concatenate([kept, rest]), tuple(found.shape))

    return change


def _other_axis(place: int) -> Change:
    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        axis = args[place]
        return f(*args[:place], 0 if axis in (1, -1) else 1, *args[place + 1 :], **kwargs)

    return change


def _stale() -> Change:
    kept: list[Any] = []

    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)
        if kept and tuple(kept[-1].shape) == tuple(found.shape):
            return kept[-1]
        kept.append(found)
        return found

    return change


def _broadcast(f: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    if getattr(b, "ndim", 0) == 1:
        b = ops.reshape(b, (-1, 1))
    return f(a, b, *args, **kwargs)


def _calls(op: str, rng: Random, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Returns a program that calls an op between others."""
    before = [rng.choice(("tanh", "sin", "atan", "softsign")) for _ in range(rng.randint(0, 2))]
    after = [rng.choice(("tanh", "exp", "sigmoid", "abs", "square")) for _ in range(rng.randint(0, 3))]
    function = getattr(ops, op)

    def program(x: Any, *others: Any) -> Any:
        for name in before:
            x = ops.multiply(getattr(ops, name)(x), 1.5)
        x = function(x, *others, *args, **kwargs)
        x = x[0] if isinstance(x, (tuple, list)) else x
        x = ops.cast(x, "float32")
        for name in after:
            x = getattr(ops, name)(ops.multiply(x, 0.25))
        return ops.sum(x)

    return program


def _twice(op: str, rng: Random) -> Callable[..., Any]:
    function = getattr(ops, op)
    by = rng.uniform(0.3, 0.7)

    def program(x: Any) -> Any:
        first = function(x)
        return ops.add(first, function(ops.multiply(x, by)))

    return program


_UNARY = (
    "exp",
    "tanh",
    "sigmoid",
    "gelu",
    "silu",
    "softplus",
    "erf",
    "sqrt",
    "log1p",
    "softmax",
    "log_softmax",
    "square",
)
_AXES = ("sum", "mean", "max", "min", "prod", "var", "std", "logsumexp", "cumsum", "softmax")
_TIES = ("argmax", "argmin")
_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "arctan2")
KINDS = (
    *("wrong epsilon", "half precision inside", "swapped axes", "padding off by one", "missing cast", "wrong tie"),
    *("uninitialised read", "wrong reduction axis", "stale buffer", "wrong broadcast"),
)


def planted(seed: int, kind: str) -> Planted:
    """Returns a fault; it depends only on the seed and the kind."""
    rng, numbers = Random(f"{seed}/{kind}"), np.random.default_rng([seed, KINDS.index(kind)])
    size = rng.randint(3, 12)
    x = numbers.normal(size=(size, size)).astype(np.float32)
    if kind == "wrong epsilon":
        name, place = rng.choice((("layer_normalization", 4), ("rms_normalization", 3)))
        return Planted(kind, name, _epsilon(place, "epsilon"), _calls(name, rng), (x,))
    if kind == "half precision inside":
        name = rng.choice(_UNARY)
        return Planted(kind, name, _half, _calls(name, rng), (np.abs(x) + 0.1,))
    if kind == "swapped axes":
        name = rng.choice(("matmul", "softmax", "triu", "sort", "linear"))
        others = (x[::-1].copy(),) if name in ("matmul", "linear") else ()
        return Planted(kind, name, _swapped, _calls(name, rng), (x, *others))
    if kind == "padding off by one":
        return _padded(rng, numbers)
    if kind == "missing cast":
        name = rng.choice(("sum", "mean", "exp", "matmul", "softmax"))
        others = (x.T.copy(),) if name == "matmul" else ()
        return Planted(kind, name, _uncast("float16"), _calls(name, rng), (x, *others))
    if kind == "wrong tie":
        name = rng.choice(_TIES)
        ties = numbers.integers(0, 2, (size, 8)).astype(np.float32)
        return Planted(kind, name, _last_tie, _calls(name, rng, axis=1), (ties,))
    if kind == "uninitialised read":
        name = rng.choice((*_UNARY, "cumsum", "transpose"))
        return Planted(
            kind, name, _unread(rng.choice((0.0, 1e30, float("nan"), 7.0))), _calls(name, rng), (np.abs(x) + 0.1,)
        )
    if kind == "wrong reduction axis":
        name = rng.choice(_AXES)
        return Planted(kind, name, _other_axis(1), _calls(name, rng, rng.choice((0, 1, -1))), (x,))
    if kind == "stale buffer":
        name = rng.choice(("exp", "tanh", "sigmoid", "square", "sin", "softmax"))
        return Planted(kind, name, _stale(), _twice(name, rng), (x,))
    name = rng.choice(_BINARY)
    return Planted(kind, name, _broadcast, _calls(name, rng), (x, np.abs(x[0]) + 0.5))


def _padded(rng: Random, numbers: Any) -> Planted:
    x = numbers.normal(size=(2, 9, 8, 3)).astype(np.float32)
    name = rng.choice(("conv", "max_pool", "average_pool"))
    if name == "conv":
        kernel = numbers.normal(size=(3, 3, 3, 2)).astype(np.float32)
        return Planted("padding off by one", name, _shifted, _calls(name, rng, padding="same"), (x, kernel))
    return Planted("padding off by one", name, _shifted, _calls(name, rng, 3, 2, padding="same"), (x,))


def all_planted(seeds: Iterator[int] | range) -> Iterator[Planted]:
    """Yields a fault of each kind for each seed."""
    for seed in seeds:
        for kind in KINDS:
            yield planted(seed, kind)


def off(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns 1.001 times what a function returns."""
    return ops.multiply(f(*args, **kwargs), 1.001)
