"""Checks of linear algebra's arguments, alike on every backend."""

from typing import Any

from emberharmony.core.errors import ArgumentError, ShapeError


def square(x: Any) -> Any:
    """Returns a tensor of square matrices.

    Raises: ShapeError.
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"square matrices are wanted on the last two axes, this tensor has shape {tuple(x.shape)}")
    return x


def check_qr_mode(mode: str) -> None:
    """Checks the mode of a QR decomposition.

    Raises: ArgumentError.
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode is 'reduced' or 'complete', not {mode!r}")
