"""Sample rows of `ops/nn.py`."""

from typing import Any

import numpy as np
from scipy import special

from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, Sample, case, grid, unary

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "result": "float", "differentiable": True}
A: dict[str, Any] = D | {"integers": ("int32", "uint8")}
C: dict[str, Any] = A | {"dtypes": FLOATS + HALVES + COMPLEX}
P: dict[str, Any] = A | {"result": "promoted"}
_X = grid(-4, 4, 24).reshape(2, 3, 4)
_T, _P = grid(0, 1, 12).reshape(3, 4), grid(0.05, 0.95, 12).reshape(3, 4)


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _layer(x: Any, gamma: Any = None, beta: Any = None, axis: int = -1, epsilon: float = 1e-3) -> Any:
    off = x - x.mean(axis, keepdims=True)
    result = off / np.sqrt((off**2).mean(axis, keepdims=True) + epsilon)
    result = result if gamma is None else result * gamma
    return result if beta is None else result + beta


def _rms(x: Any, scale: Any = None, axis: int = -1, epsilon: float = 1e-6) -> Any:
    result = x / np.sqrt((x**2).mean(axis, keepdims=True) + epsilon)
    return result if scale is None else result * scale


def _binary(t: Any, p: Any, from_logits: bool = False) -> Any:
    p = special.expit(p) if from_logits else p
    return -(t * np.log(p) + (1 - t) * np.log1p(-p))


def _categorical(t: Any, p: Any, from_logits: bool = False, axis: int = -1) -> Any:
    log = special.log_softmax(p, axis) if from_logits else np.log(p / p.sum(axis, keepdims=True))
    return -(t * log).sum(axis)


def _sparse(t: Any, p: Any, from_logits: bool = False, axis: int = -1) -> Any:
    return _categorical(np.eye(p.shape[-1])[t.astype(int)], p, from_logits)


def _sparsemax(x: Any, axis: int = -1) -> Any:
    """Finds by bisection what to subtract so that the positive parts add up to 1."""
    low, high = x.max(axis, keepdims=True) - 1, x.max(axis, keepdims=True)
    for _ in range(80):
        middle = (low + high) / 2
        above = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.maximum(x - (low + high) / 2, 0)


def _attention(
    q: Any, k: Any, v: Any, bias: Any = 0.0, mask: Any = True, scale: float | None = None, is_causal: bool = False
) -> Any:
    k, v = (np.repeat(t, q.shape[2] // t.shape[2], 2) for t in (k, v))
    logits = np.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    seen = np.broadcast_to(mask, logits.shape) & (np.tril(np.ones(logits.shape[-2:], bool)) if is_causal else True)
    return np.einsum("bnts,bsnh->btnh", special.softmax(np.where(seen, logits, -1e30), -1), v)


_Q, _K, _V = (np.sin(grid(a, 9 * a, 2 * n * 2 * 5)).reshape(2, n, 2, 5) for a, n in ((3, 3), (4, 4), (5, 4)))
_NORMAL = special.ndtr

SAMPLES = [
    unary("relu", lambda x: np.maximum(x, 0), **P),
    unary("relu6", lambda x: np.clip(x, 0, 6), **P),
    unary("leaky_relu", lambda x: np.where(x > 0, x, 0.2 * x), **A, tolerance=2),
    unary("elu", _elu, **A, tolerance=1),
    unary("selu", lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772), **A, tolerance=3),
    unary("celu", _elu, **A, tolerance=1),
    unary("sigmoid", special.expit, **A, tolerance=2),
    unary("log_sigmoid", special.log_expit, **A, tolerance=2),
    unary("softplus", lambda x: np.logaddexp(x, 0), **A, tolerance=2),
    unary("softsign", lambda x: x / (1 + np.abs(x)), **C, tolerance=2),
    unary("silu", lambda x: x * special.expit(x), **A, tolerance=3),
    Sample(
        "gelu",
        lambda x, approximate=True: (
            0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) if approximate else x * _NORMAL(x)
        ),
        (case(_X), case(_X, False)),
        floor=2,
        **A,
        tolerance=4,
    ),
    unary("hard_sigmoid", lambda x: np.clip(x / 6 + 0.5, 0, 1), **A, tolerance=1),
    unary("hard_silu", lambda x: x * np.clip(x / 6 + 0.5, 0, 1), **A, tolerance=3),
    unary("hard_tanh", lambda x: np.clip(x, -1, 1), **P | {"integers": ("int32",)}),
    unary("hard_shrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), **C | {"result": "promoted"}),
    unary(
        "soft_shrink",
        lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
        floor=10,
        **A,
    ),
    unary("tanh_shrink", lambda x: x - np.tanh(x), **C, tolerance=2),
    Sample("threshold", lambda x, t, d: np.where(x <= t, d, x), (case(_X, 1.0, -2.0),), **P | {"integers": ()}),
    unary("squareplus", lambda x: (x + np.sqrt(x**2 + 4)) / 2, floor=10, **C, tolerance=2),
    Sample(
        "glu",
        lambda x, axis=-1: np.split(x, 2, axis)[0] * special.expit(np.split(x, 2, axis)[1]),
        (case(_X), case(_X, 0)),
        **A,
        tolerance=3,
    ),
    Sample(
        "softmax",
        special.softmax,
        (case(_X, axis=-1), case(_X * 50, axis=1), case(_X, axis=(0, 2)), case(_X + 1e4, axis=-1)),
        **A,
        tolerance=3,
    ),
    Sample(
        "log_softmax",
        special.log_softmax,
        (case(_X, axis=-1), case(_X * 50, axis=1), case(_X, axis=(0, 2)), case(_X + 1e4, axis=-1)),
        floor=50,
        **A,
        tolerance=2,
    ),
    Sample(
        "layer_normalization", _layer, (case(_X), case(_X, _P[0], _T[0]), case(_X, axis=1)), floor=4, **A, tolerance=16
    ),
    Sample("rms_normalization", _rms, (case(_X), case(_X, _P[0])), **A, tolerance=3),
    Sample("binary_crossentropy", _binary, (case(_T, _P), case(_T, _X[0], True)), floor=4, **D, tolerance=1),
    Sample(
        "categorical_crossentropy",
        _categorical,
        (case(_T, _P), case(_T, _X[0], True), case(_T, _X[0] + 1e4, True)),
        floor=4,
        **D,
        tolerance=3,
    ),
    Sample(
        "sparse_categorical_crossentropy",
        _sparse,
        (
            case(np.array([0, 3, 1]), _P),
            case(np.array([0, 3, 1]), _X[0], True),
            case(np.array([0, 3, 1]), _X[0] + 1e4, True),
        ),
        floor=4,
        **D,
        tolerance=1,
    ),
    unary("sparse_plus", lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)), **A, tolerance=2),
    unary("sparse_sigmoid", lambda x: np.clip((x + 1) / 2, 0, 1), **A, tolerance=1),
    Sample(
        "sparsemax",
        _sparsemax,
        (case(_X, axis=-1), case(_X * 5, axis=1), case(_X + 100, axis=0)),
        tolerance=16,
        floor=8,
        **A,
    ),
    Sample(
        "batch_normalization",
        lambda x, mean, variance, axis, offset=0.0, scale=1.0, epsilon=1e-3: (
            (x - mean) / np.sqrt(variance + epsilon) * scale + offset
        ),
        (case(_X, _P[0], _P[1], -1), case(_X, _P[0], _P[1], 2, _T[0], _T[1], 0.1)),
        floor=8,
        **A,
        tolerance=2,
    ),
    Sample(
        "psnr",
        lambda a, b, top: 20 * np.log10(top) - 10 * np.log10(((a - b) ** 2).mean()),
        (case(_X, _X[::-1].copy(), 4.0),),
        floor=12,
        **D,
        tolerance=3,
    ),
    Sample(
        "dot_product_attention",
        _attention,
        (
            case(_Q, _K, _V),
            case(_Q, _K, _V, scale=0.3, is_causal=True),
            case(_Q, _K[:, :, :1], _V[:, :, :1], bias=_X[:1, :, :].reshape(1, 1, 3, 4)),
            case(_Q, _K, _V, mask=np.tril(np.ones((3, 4), bool))),
        ),
        floor=4,
        **D,
        tolerance=1,
    ),
]
