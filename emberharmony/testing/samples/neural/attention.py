"""Sample rows of `ops/neural/attention.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.testing.refused import LINE
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "result": "float", "differentiable": True}
_X = grid(-4, 4, 24).reshape(2, 3, 4)


def _attention_oracle(
    q: Any,
    k: Any,
    v: Any,
    bias: Any = 0.0,
    mask: Any = True,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
    empty_rows: str = "mean",
) -> Any:
    k, v = (np.repeat(t, q.shape[2] // t.shape[2], 2) for t in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    logit_cap = attn_logits_soft_cap
    logits = (logits if logit_cap is None else logit_cap * np.tanh(logits / logit_cap)) + bias
    pair_mask = np.broadcast_to(mask, logits.shape) & (np.tril(np.ones(logits.shape[-2:], bool)) if is_causal else True)
    weights = special.softmax(np.where(pair_mask, logits, -1e30), -1)
    if empty_rows == "zero":
        weights = np.where(np.any(pair_mask & (logits > -np.inf), -1, keepdims=True), weights, 0)
    return np.einsum("bnts,bsnh->btnh", weights, v)


def _rope_oracle(
    x: Any,
    dims: int | None = None,
    offset: Any = 0,
    traditional: bool = False,
    base: float = 10000.0,
    scale: float = 1.0,
    frequencies: Any = None,
    axis: int = 1,
) -> Any:
    time_before_last = np.moveaxis(x, axis, -2)
    rotary_width = time_before_last.shape[-1] if dims is None else dims
    frequency_steps = (
        base ** (-np.arange(0, rotary_width, 2) / max(rotary_width, 1)) if frequencies is None else frequencies
    )
    positions = np.expand_dims(np.asarray(offset, float), -1) + np.arange(time_before_last.shape[-2])
    positions = positions.reshape(*positions.shape[:-1], *[1] * (x.ndim - 1 - positions.ndim), -1)
    rotation = np.exp(1j * positions[..., None] * scale * frequency_steps)
    first_half = time_before_last[..., 0:rotary_width:2] if traditional else time_before_last[..., : rotary_width // 2]
    second_half = (
        time_before_last[..., 1:rotary_width:2]
        if traditional
        else time_before_last[..., rotary_width // 2 : rotary_width]
    )
    rotated_numbers = (first_half + 1j * second_half) * rotation
    components = np.stack([rotated_numbers.real, rotated_numbers.imag], -1 if traditional else -2).reshape(
        *time_before_last.shape[:-1], rotary_width
    )
    return np.moveaxis(np.concatenate([components, time_before_last[..., rotary_width:]], -1), -2, axis)


_Q, _K, _V = (np.sin(grid(a, 9 * a, 2 * n * 2 * 5)).reshape(2, n, 2, 5) for a, n in ((3, 3), (4, 4), (5, 4)))
_ONE_EMPTY = np.array([[True] * 4, [False] * 4, [True, False, True, False]])
_LATER = np.array([[False, True, True, True]] * 3)

SAMPLES = [
    Sample(
        "dot_product_attention",
        _attention_oracle,
        (
            case(_Q, _K, _V),
            case(_Q, _K, _V, scale=0.3, is_causal=True),
            case(_Q, _K[:, :, :1], _V[:, :, :1], bias=_X[:1, :, :].reshape(1, 1, 3, 4)),
            case(_Q, _K, _V, mask=np.tril(np.ones((3, 4), bool))),
            case(_Q, _K, _V, is_causal=True, flash_attention=True, attn_logits_soft_cap=0.5),
            case(_Q, _K, _V, mask=_ONE_EMPTY),
            case(_Q, _K, _V, mask=_ONE_EMPTY, empty_rows="zero"),
            case(_Q, _K, _V, mask=_LATER, is_causal=True, empty_rows="zero"),
            case(_Q, _K, _V, np.where(_ONE_EMPTY, 0.5, -np.inf), empty_rows="zero"),
        ),
        refuses=((ArgumentError, case(_Q, _K, _V, mask=_ONE_EMPTY, empty_rows="one")),),
        floor=4,
        **D,
        tolerance=1,
    ),
    Sample(
        "rope",
        _rope_oracle,
        (
            case(_X),
            case(_X, None, 3, True, 100.0, 0.5),
            case(np.sin(grid(0, 9, 96)).reshape(2, 4, 2, 6), 4, 5000),
            case(np.sin(grid(0, 9, 96)).reshape(2, 2, 4, 6), 2, traditional=True, axis=-2),
            case(_X, frequencies=np.array([0.5, 0.125])),
            case(_X, offset=np.array([2, 5])),
        ),
        integers=("int32",),
        **D,
        tolerance=4,
        refuses=((ShapeError, case(LINE, 3)), (ArgumentError, case(LINE, 2, axis=-1))),
    ),
]
