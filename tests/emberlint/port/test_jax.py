"""`emberlint port` of programs of JAX."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberlint.config.settings import Settings
from emberlint.port import Ported, port
from emberlint.run.check import source_file
from emberlint.source.source_file import SourceFile

SETTINGS = Settings(root=Path("/nowhere"))
PROGRAM = """import jax
import jax.numpy as jnp
from jax import nn


def attend(q: jax.Array, k: jnp.ndarray, v, width):
    scores = jnp.einsum("ij,kj->ik", q, k) / jnp.sqrt(float(width))
    seen = jnp.tril(jnp.ones((q.shape[0], k.shape[0]), dtype=bool))
    weights = nn.softmax(jnp.where(seen, scores, -1e9), axis=-1)
    return jnp.matmul(weights, v)


def block(x, scale):
    y = attend(x, x, x, x.shape[-1])
    y = (y - jnp.mean(y, axis=-1, keepdims=True)) / jnp.sqrt(jnp.var(y, axis=-1, keepdims=True, ddof=1) + 1e-5)
    y = jnp.concatenate([nn.relu(y), jnp.zeros_like(y)], axis=1) + jnp.zeros(2 * x.shape[-1])
    steps = jnp.arange(3)
    return y * scale, jnp.argmax(y, axis=1), jnp.linspace(0.0, 1.0, 5), jnp.array([1.0, 2.5]), steps, jnp.sqrt(2.0)
"""


def parsed(text: str) -> SourceFile:
    return source_file("library/a.py", text, SETTINGS)


def ported(text: str, default_float: str = "float32") -> Ported:
    return port(parsed(text), parsed, default_float)


@pytest.mark.parametrize(
    "head, name",
    [
        ("import jax.numpy as jnp", "jnp.sum"),
        ("from jax import numpy as jnp", "jnp.sum"),
        ("import jax", "jax.numpy.sum"),
        ("import jax.numpy", "jax.numpy.sum"),
        ("from jax.numpy import sum", "sum"),
        ("from jax import nn", "nn.softmax"),
        ("import jax", "jax.nn.softmax"),
        ("from jax import lax", "lax.rsqrt"),
    ],
)
@pytest.mark.parametrize("default_float", ["float32", "float64"])
def test_each_form_of_the_import_is_known(head: str, name: str, default_float: str) -> None:
    result = ported(f"{head}\n\n\ndef f(x):\n    return {name}(x)\n", default_float)
    assert f"ops.{name.rpartition('.')[2]}(x)" in result.after
    assert "import jax" not in result.after
    assert "from jax" not in result.after
    assert not result.remaining


def test_random_numbers_with_keys_are_left_and_listed_with_the_reason() -> None:
    source = "import jax\nimport jax.numpy as jnp\n\n\ndef f(key):\n    return jnp.sin(jax.random.normal(key, (3,)))\n"
    result = ported(source)
    assert "ops.sin(jax.random.normal(key, (3,)))" in result.after
    (use,) = result.remaining
    assert use.native == "jax.random.normal"
    assert use.reason == "JAX draws numbers from a key, ops from a stream"
    assert ported(result.after).after == result.after


def test_a_second_port_changes_nothing() -> None:
    once = ported(PROGRAM)
    assert not once.remaining
    assert "jax" not in once.after
    assert "q: Tensor, k: Tensor" in once.after
    assert ported(once.after).after == once.after
    assert not ported(once.after).ported


@pytest.mark.skipif(not is_installed("jax"), reason="JAX is not installed")
@pytest.mark.parametrize("target", ["jax", "numpy"])
def test_a_ported_program_gives_what_jax_gives(target: str) -> None:
    native: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(PROGRAM, native)
    exec(ported(PROGRAM).after, after)
    jax = import_module("jax")

    x = np.random.default_rng(3).uniform(-1, 1, (4, 6)).astype("float32")
    with jax.enable_x64(False), jax.disable_jit():
        expected = [np.asarray(one) for one in native["block"](jax.numpy.asarray(x), jax.numpy.asarray(2.0))]
    with ops.use_backend(target), jax.disable_jit():
        got = [ops.to_numpy(one) for one in after["block"](ops.convert_to_tensor(x), ops.convert_to_tensor(2.0))]
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        assert one.dtype == other.dtype or (one.dtype, other.dtype) == (np.int32, np.int64)


@pytest.mark.skipif(not is_installed("jax"), reason="JAX is not installed")
def test_transforms_of_jax_stay_and_take_what_is_ported() -> None:
    source = (
        "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef loss(w):\n    return jnp.mean(jnp.tanh(w) ** 2)\n\n\n"
        "slope = jax.grad(loss)\n"
    )
    result = ported(source)
    assert {use.native for use in result.remaining} == {"jax.jit", "jax.grad"}
    native: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(source, native)
    exec(result.after, after)
    with ops.use_backend("jax"):
        w = ops.array([0.5, -1.5, 2.0])
        np.testing.assert_allclose(after["slope"](w), native["slope"](w), rtol=1e-6)
