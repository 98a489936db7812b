"""Checks of the Fourier transforms' arguments, alike on every backend."""

from collections.abc import Sequence

from emberharmony.core.errors import ArgumentError


def check_fft(n: int | Sequence[int] | None, norm: str) -> None:
    """Checks lengths and normalisation.

    Raises: ArgumentError.
    """
    lengths = [] if n is None else [n] if isinstance(n, int) else list(n)
    if any(length < 1 for length in lengths):
        raise ArgumentError(f"a transform has at least one element, not {n}")
    if norm not in ("backward", "ortho", "forward"):
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
