"""Optimizers of torch as oracles: both get the same recorded gradients."""

from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops, optim
from emberharmony.backend import create_backend

SHAPES = [(4, 3), (3, 5), (5,), ()]
LIMIT = {"float32": 2e-6, "float64": 1e-12}
"""The largest difference from torch, as a share of the largest element."""


def recorded(steps: int, dtype: str, shapes: Any = SHAPES) -> tuple[list[Any], list[list[Any]]]:
    """Returns the first values of parameters, and their gradients for each step; some are 0, large or small."""
    rng = np.random.default_rng(7)
    starts = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    scales = 10.0 ** rng.integers(-2, 2, size=steps)
    gradients = [[np.asarray(rng.normal(size=shape) * scale, dtype) for shape in shapes] for scale in scales]
    gradients[steps // 2][0][:2] = 0.0
    return [np.asarray(start, dtype) for start in starts], gradients


def torch_run(kind: str, options: dict[str, Any], dtype: str, steps: int, shapes: Any = SHAPES) -> list[Any]:
    """Returns the parameters after each step of an optimizer of torch."""
    torch = pytest.importorskip("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))  # torch keeps the numbers of a state, such as mu_product, in it
    try:
        starts, gradients = recorded(steps, dtype, shapes)
        cells = [torch.tensor(start, requires_grad=True) for start in starts]
        optimizer = getattr(torch.optim, kind)(cells, **options)
        found = []
        for row in gradients:
            for cell, gradient in zip(cells, row, strict=True):
                cell.grad = torch.tensor(gradient)
            optimizer.step()
            found.append([cell.detach().numpy().copy() for cell in cells])
        return found
    finally:
        torch.set_default_dtype(before)


def our_run(kind: Any, options: dict[str, Any], dtype: str, steps: int, shapes: Any = SHAPES) -> list[Any]:
    """Returns the parameters after each step of an optimizer of ours, on the active backend."""
    starts, gradients = recorded(steps, dtype, shapes)
    cells = [Parameter(start) for start in starts]
    optimizer = kind(cells, **options)
    found = []
    for row in gradients:
        for cell, gradient in zip(cells, row, strict=True):
            cell.grad = ops.convert_to_tensor(gradient)
        optimizer.step()
        found.append([ops.to_numpy(cell.value) for cell in cells])
    return found


def pure_run(kind: Any, options: dict[str, Any], dtype: str, steps: int, shapes: Any = SHAPES) -> list[Any]:
    """Returns the parameters after each step of the pure form, on the active backend."""
    starts, gradients = recorded(steps, dtype, shapes)
    params = [ops.convert_to_tensor(start) for start in starts]
    optimizer = kind(**options)
    state = optimizer.init(params)
    found = []
    for row in gradients:
        params, state = optimizer.update([ops.convert_to_tensor(each) for each in row], state, params)
        found.append([ops.to_numpy(value) for value in params])
    return found


def require(backend: str, dtype: str) -> None:
    if dtype not in [each.name for each in create_backend(backend).dtypes.available]:
        pytest.skip(f"{backend} lacks {dtype}")


def require_near(found: list[Any], expected: list[Any], limit: float) -> None:
    """Checks that all parameters after all steps differ by at most `limit` of the largest element."""
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            worst = max(worst, float(np.max(np.abs(a - b), initial=0.0) / np.max(np.abs(b), initial=1.0)))
    assert worst <= limit


def require_steps_of_torch(name: str, options: dict[str, Any], dtype: str, steps: int, *runs: Any) -> None:
    """Checks that an optimizer makes the steps of its namesake in torch.

    Args:
        runs: the forms to check: `our_run`, `pure_run`.
    """
    expected = torch_run(name, options, dtype, steps)
    for run in runs:
        require_near(run(getattr(optim, name), options, dtype, steps), expected, LIMIT[dtype])
