"""The formulas of papers in NumPy, computed in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import optim
from tests.optim.oracle import LIMIT, SHAPES, our_run, pure_run, recorded, require, require_near


def lion(p: Any, g: Any, state: Any, lr: float, betas: Any, weight_decay: float) -> Any:
    m = state.setdefault("m", np.zeros_like(p))
    update = np.sign(betas[0] * m + (1 - betas[0]) * g)
    state["m"] = betas[1] * m + (1 - betas[1]) * g
    return p - lr * (update + weight_decay * p)


def lamb(p: Any, g: Any, state: Any, lr: float, betas: Any, eps: float, weight_decay: float) -> Any:
    t = state["t"] = state.get("t", 0) + 1
    m = state["m"] = betas[0] * state.get("m", 0.0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0.0) + (1 - betas[1]) * g**2
    r = m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps) + weight_decay * p
    own, length = np.linalg.norm(p), np.linalg.norm(r)
    return p - lr * (own / length if own > 0 and length > 0 else 1.0) * r


def muon(
    p: Any, g: Any, state: Any, lr: float, weight_decay: float, momentum: float, nesterov: bool, adjust: Any
) -> Any:
    b = state["b"] = momentum * state.get("b", 0.0) + (1 - momentum) * g
    x = (1 - momentum) * g + momentum * b if nesterov else b
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    s = s / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    n, m = p.shape
    scale = 0.2 * max(n, m) ** 0.5 if adjust == "match_rms_adamw" else max(1, n / m) ** 0.5
    return p * (1 - lr * weight_decay) - lr * scale * (u * s) @ vt


def run(formula: Callable[..., Any], options: dict[str, Any], dtype: str, steps: int, shapes: Any) -> list[Any]:
    starts, gradients = recorded(steps, dtype, shapes)
    values = [start.astype("f8") for start in starts]
    states: list[dict[str, Any]] = [{} for _ in values]
    found = []
    for row in gradients:
        values = [formula(p, g.astype("f8"), s, **options) for p, g, s in zip(values, row, states, strict=True)]
        found.append([np.asarray(value, dtype) for value in values])
    return found


def require_followed(
    kind: Any,
    formula: Callable[..., Any],
    options: dict[str, Any],
    dtype: str,
    backend: str,
    *,
    shapes: Any = SHAPES,
    eps: int = 1,
) -> None:
    """Checks that 20 steps of both forms follow a formula, within `eps` times the limit for torch."""
    require(backend, dtype)
    wanted = run(formula, options, dtype, 20, shapes)
    if kind is optim.Muon:
        options = {"adjust_lr_fn" if key == "adjust" else key: value for key, value in options.items()}
    require_near(our_run(kind, options, dtype, 20, shapes), wanted, eps * LIMIT[dtype])
    require_near(pure_run(kind, options, dtype, 20, shapes), wanted, eps * LIMIT[dtype])
