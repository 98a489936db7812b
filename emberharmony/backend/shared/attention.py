"""Checks of the arguments of attention: with shapes that do not fit, a fused kernel could read beyond its inputs."""

from collections.abc import Sequence
from typing import Any

from emberharmony.core.errors import ShapeError


def check_attention(query: Any, key: Any, value: Any, bias: Any, mask: Any) -> None:
    """Checks that the shapes of queries, keys, values, bias and mask fit together.

    Args:
        query: (batch, queries, heads, width).
        key: (batch, keys, key heads, width); the number of heads is a multiple of the number of key heads.
        value: (batch, keys, key heads, value width).
        bias: None, or broadcasts to (batch, heads, queries, keys).
        mask: None, or broadcasts to (batch, heads, queries, keys).

    Raises:
        ShapeError: if they do not.
    """
    q, k, v = (tuple(x.shape) for x in (query, key, value))
    if not len(q) == len(k) == len(v) == 4:
        raise ShapeError(
            f"expected query, key and value of shape (batch, length, heads, width), got shapes {q}, {k} and {v}"
        )
    if k[:3] != v[:3]:
        raise ShapeError(f"key and value may differ in the last axis only, got shapes {k} and {v}")
    if q[0] != k[0] or q[3] != k[3]:
        raise ShapeError(f"query of shape {q} and key of shape {k} differ in their batch or width")
    if k[2] != q[2] and (not k[2] or q[2] % k[2]):
        raise ShapeError(f"expected a number of query heads that is a multiple of the {k[2]} key heads, got {q[2]}")
    wanted = (q[0], q[2], q[1], k[1])
    for name, tensor in (("bias", bias), ("mask", mask)):
        if tensor is not None and not _broadcasts(tensor.shape, wanted):
            raise ShapeError(
                f"{name} of shape {tuple(tensor.shape)} does not broadcast to (batch, heads, queries, keys), {wanted}"
            )


def _broadcasts(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    extra = len(wanted) - len(shape)
    return extra >= 0 and all(n in (1, length) for n, length in zip(shape, wanted[extra:], strict=True))
