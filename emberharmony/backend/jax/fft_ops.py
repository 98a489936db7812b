"""Discrete Fourier transforms, on JAX."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from emberharmony.backend.jax.dtypes import program, promotion, widened
from emberharmony.backend.shared.fft import along, named_by_keras


def _bound(name: str, *, real: bool = False, halved: bool = False) -> Callable[..., jax.Array]:
    """Returns the op over a transform of JAX along one axis."""
    native = getattr(jnp.fft, name)

    @program("length", "place", "norm")
    def run(x: jax.Array, length: int, place: int, norm: str) -> jax.Array:
        return native(x, length, place, norm)

    def transform(x: jax.Array, n: int | None = None, axis: int = -1, norm: str = "backward") -> jax.Array:
        if real:
            promotion.refuse(x, ("complex",))
        place, length = along(x.shape, n, axis, norm, halved)
        x = widened(promotion.floats(x))
        if not x.shape[place]:
            x = jnp.zeros((*x.shape[:place], 1, *x.shape[place + 1 :]), x.dtype)
        return run(x, length, place, norm)

    return transform


class JAXFftOps:
    """Holds the ops of `ops/fft_ops.py`.

    The bodies compute on the host, so no compiled program has them; they take 7 to 10 times as long, for few elements.
    """

    fft = staticmethod(_bound("fft"))
    ifft = staticmethod(_bound("ifft"))
    rfft = staticmethod(named_by_keras(_bound("rfft", real=True)))
    irfft = staticmethod(named_by_keras(_bound("irfft", halved=True)))
