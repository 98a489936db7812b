"""Checks of the attention's arguments, made before a fused kernel reads beyond them."""

from collections.abc import Sequence
from typing import Any

from emberharmony.core.errors import ShapeError


def check_attention(query: Any, key: Any, value: Any, bias: Any, mask: Any) -> None:
    """Checks that queries, keys, values, bias and mask fit together.

    Raises: ShapeError.
    """
    q, k, v = (tuple(x.shape) for x in (query, key, value))
    if not len(q) == len(k) == len(v) == 4:
        raise ShapeError(
            f"query, key and value have four axes, (batch, length, heads, width), not shapes {q}, {k} and {v}"
        )
    if k[:3] != v[:3]:
        raise ShapeError(f"key of shape {k} and value of shape {v} differ in another axis than the last")
    if q[0] != k[0] or q[3] != k[3]:
        raise ShapeError(f"query of shape {q} and key of shape {k} differ in their batch or width")
    if k[2] != q[2] and (not k[2] or q[2] % k[2]):
        raise ShapeError(f"expected a number of heads that {k[2]} groups of keys divide, got {q[2]}")
    wanted = (q[0], q[2], q[1], k[1])
    for name, tensor in (("bias", bias), ("mask", mask)):
        if tensor is not None and not _broadcasts(tensor.shape, wanted):
            raise ShapeError(
                f"{name} of shape {tuple(tensor.shape)} does not broadcast to (batch, heads, queries, keys), {wanted}"
            )


def _broadcasts(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    extra = len(wanted) - len(shape)
    return extra >= 0 and all(n in (1, length) for n, length in zip(shape, wanted[extra:], strict=True))
