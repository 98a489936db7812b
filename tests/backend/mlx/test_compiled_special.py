"""Compiled functions with special functions, which MLX's compiler on a CPU takes half a minute for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops

mx = pytest.importorskip("mlx.core")


@pytest.fixture(autouse=True)
def _on_mlx() -> Any:
    with ops.use_backend("mlx"):
        yield


def _counted(fn: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    calls = [0]

    def count(x: Any) -> Any:
        calls[0] += 1
        return fn(x)

    return count, calls


@pytest.mark.parametrize("fn", [ops.lgamma, lambda x: ops.grad(lambda x: ops.sum(ops.digamma(x)))(x)])
def test_they_run_uncompiled_on_a_cpu(fn: Callable[..., Any]) -> None:
    x, (count, calls) = mx.array([0.5, 1.5]), _counted(fn)
    compiled = ops.compile(lambda x: ops.add(count(x), 1.0))
    found = [np.array(compiled(x)) for _ in range(3)]
    for each in found:
        np.testing.assert_allclose(each, np.array(fn(x)) + 1.0, rtol=1e-6)
    assert calls[0] == 4  # it is traced once, and then runs as it is
    np.testing.assert_allclose(np.array(ops.lgamma(x)), [0.5723649, -0.1207822], rtol=1e-5)


def test_a_function_without_them_is_compiled() -> None:
    x, (count, calls) = mx.array([0.5, 1.5]), _counted(ops.sin)
    compiled = ops.compile(count)
    for _ in range(3):
        np.testing.assert_allclose(np.array(compiled(x)), np.sin([0.5, 1.5]), rtol=1e-6)
    assert calls[0] == 1


def test_the_error_reaches_nobody() -> None:
    def fn(x: Any) -> Any:
        try:
            return ops.lgamma(x)
        except ValueError:
            return x

    np.testing.assert_allclose(np.array(ops.compile(fn)(mx.array([0.5]))), [0.5723649], rtol=1e-5)
