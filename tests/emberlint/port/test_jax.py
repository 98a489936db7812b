"""`emberlint port` of programs of JAX."""

from importlib import import_module
from itertools import product
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
from tests.sampling import portion

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

UPDATES = """import jax
import jax.numpy as jnp


def block(x: jax.Array, a):
    y = x.at[0].set(1.5)
    y = y.at[:, 1].add(2.0).at[1:, ::2].multiply(3.0)
    y = y.at[..., -1].max(jnp.sin(a)[:4])
    y = y.at[(0, 1)].min(-1.0)
    y = (y + 1).at[jnp.array([0, 0])].add(values=a)
    y = y.at[len(a) - 4 :: 2, None].mul(2.0)
    y = y.at[:, (2)].set(y[:, 0])
    y = y.at[x > 0.5].set(0.0)
    z = y.at[1:3, -1].get()
    return y.sum(axis=0), y.mean(-1, keepdims=True), y.reshape(2, -1), y.astype(jnp.float16), z, y.T.argmax(1)
"""


TRANSFORMS = """import jax
import jax.numpy as jnp
from jax import vmap


@jax.jit
def loss(w, scale):
    return jnp.mean(jnp.tanh(w * scale) ** 2)


def block(x, y):
    value, slopes = jax.value_and_grad(loss, argnums=(0, 1))(x[0], y)
    rows = jax.jit(vmap(jax.grad(loss), in_axes=(0, None)))(x, y)
    second = jax.hessian(lambda w: jnp.sum(w**3))(x[0])
    return value, *slopes, rows, second, jax.jacfwd(jnp.sin)(y), vmap(jnp.add, in_axes=(0, None))(x, y)
"""


PROGRAMS: dict[str, tuple[str, tuple[int, ...]]] = {
    "functions": (PROGRAM, ()),
    "updates": (UPDATES, (6,)),
    "transforms": (TRANSFORMS, ()),
}
"""The programs, each with the shape of its second argument."""


def parsed(text: str) -> SourceFile:
    return source_file("library/a.py", text, SETTINGS)


def ported(text: str, default_float: str = "float32") -> Ported:
    return port(parsed(text), parsed, default_float, mark=True)


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
@pytest.mark.parametrize(("name", "target"), portion([*product(PROGRAMS, ["jax", "numpy"])], 3))
def test_a_ported_program_gives_what_jax_gives(name: str, target: str) -> None:
    program, shape = PROGRAMS[name]
    native: dict[str, Any] = {}
    after: dict[str, Any] = {}
    result = ported(program)
    assert not result.remaining
    exec(program, native)
    exec(result.after, after)
    jax = import_module("jax")

    generator = np.random.default_rng(3)
    given = [generator.uniform(-1, 1, some).astype("float32") for some in ((4, 6), shape)]
    with jax.enable_x64(False), jax.disable_jit():
        expected = [np.asarray(one) for one in native["block"](*map(jax.numpy.asarray, given))]
    with ops.use_backend(target), jax.disable_jit():
        got = [ops.to_numpy(one) for one in after["block"](*map(ops.convert_to_tensor, given))]
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        assert one.dtype == other.dtype or (one.dtype, other.dtype) == (np.int32, np.int64)


@pytest.mark.parametrize(
    "key, after",
    [
        (":", "slice(None)"),
        ("1:", "slice(1, None)"),
        (":2", "slice(None, 2)"),
        ("1:2", "slice(1, 2)"),
        ("::2", "slice(None, None, 2)"),
        ("(1) : len(x) : 2", "slice((1), len(x), 2)"),
        ("1:2:", "slice(1, 2)"),
        ("a[1:2], :2", "(a[1:2], slice(None, 2))"),
        ("..., None, 1", "(..., None, 1)"),
        ("'é':, 1", "(slice('é', None), 1)"),
    ],
)
def test_each_form_of_an_index(key: str, after: str) -> None:
    source = f"import jax\n\n\ndef f(x, a):\n    return x . at [{key}] . set (a)\n"
    assert f"return ops.set_item(x, {after}, a)" in ported(source).after


@pytest.mark.parametrize(
    "line, reason",
    [
        ("x.at[0].set(1.0, mode='drop')", "has no argument like `mode=`"),
        ("x.at[0].divide(2.0)", "no op is known to equal this call"),
        ("x.at[\n    0\n].set(2.0)", "on several lines"),
    ],
)
def test_an_update_that_no_op_equals_is_left_on_a_second_port_too(line: str, reason: str) -> None:
    once = ported(f"import jax.numpy as jnp\n\n\ndef f(x):\n    return {line}, jnp.sin(x)\n")
    (use,) = once.remaining
    assert reason in use.reason
    assert "import jax" not in once.after
    assert ported(once.after).after == once.after


def test_an_update_of_an_array_that_may_be_of_mlx_is_left() -> None:
    source = "import {}\n\n\ndef f(x):\n    return x.at[0].add(1)\n"
    assert "integers take floats" in ported(source.format("mlx.core as mx")).remaining[0].reason
    assert not ported(source.format("jax")).remaining
    assert not ported(source.format("pandas")).remaining
    assert "x.at[0].add(1)" in ported(source.format("jax, pandas")).after


@pytest.mark.parametrize(
    "source, reason",
    [
        ("@partial(jax.jit, static_argnums=0)\ndef f(x):\n    return x\n", "passed as a value (ops.compile)"),
        ("f = jax.jit(g, donate_argnums=0)\n", "no argument like `donate_argnums=` (see its docstring)"),
        ("f = jax.grad(g, allow_int=True)\n", "no argument like `allow_int=` (see its docstring)"),
        ("f = jax.grad(lambda x: (x * 1j).real)\n", "conjugates of those of JAX"),
        ("f = jax.vmap(jnp.sum)\n", "passed as a value (ops.sum)"),
        ("f = jax.lax.scan(g, x, y)\n", "(ops.scan(f, init, xs), which is a loop of Python)"),
    ],
)
def test_a_transform_that_no_op_equals_is_left_with_the_line_to_write(source: str, reason: str) -> None:
    once = ported(f"import jax\nimport jax.numpy as jnp\nfrom functools import partial\n\n\n{source}")
    assert any(reason in line for line in once.after.splitlines())
    assert ported(once.after).after == once.after


def test_what_is_ported_and_what_stays_work_together() -> None:
    pytest.importorskip("jax")
    source = (
        "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef loss(w):\n"
        "    return jnp.mean(jax.checkpoint(jnp.tanh)(w) ** 2)\n\n\n"
        "slope = jax.grad(loss)\npulled = jax.vjp(loss, jnp.ones(3, dtype='float32'))[1]\n"
    )
    result = ported(source)
    assert {use.native for use in result.remaining} == {"jax.checkpoint", "jax.vjp", "jax.numpy.tanh"}
    native: dict[str, Any] = {}
    after: dict[str, Any] = {}
    with ops.use_backend("jax"):
        exec(source, native)
        exec(result.after, after)
        w = ops.array([0.5, -1.5, 2.0])
        np.testing.assert_allclose(after["slope"](w), native["slope"](w), rtol=1e-6)
        np.testing.assert_allclose(after["pulled"](w[0])[0], native["pulled"](w[0])[0], rtol=1e-6)
