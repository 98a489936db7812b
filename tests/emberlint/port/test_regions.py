"""`emberlint port` of functions that a compiler or autograd of a library runs: they stay native, marked once."""

import pytest

from emberlint.port.rewrite import MARK
from tests.emberlint.port.porting import ported

HEAD = "import functools\nimport jax\nimport numba\nimport torch\nimport triton\nfrom numba import njit\n\n\n"


@pytest.mark.parametrize(
    "decorator",
    [
        "numba.njit",
        "njit(cache=True)",
        "numba.cuda.jit",
        "torch.jit.script",
        "torch.jit.export",
        "triton.jit",
        "jax.jit(static_argnums=1)",
        "functools.partial(jax.jit, static_argnums=1)",
        "jax.custom_vjp",
        "torch.compile(mode='a')",
    ],
)
def test_a_function_below_a_compiler_that_stays_is_native_and_marked_once(decorator: str) -> None:
    body = f"@{decorator}\ndef f(x: torch.Tensor, n):\n    return torch.sin(x) + torch.zeros(3, dtype=torch.int32)\n"
    source = f"{HEAD}{body}\n\ndef g(x: torch.Tensor):\n    return torch.sin(x)\n"
    result = ported(source)
    assert body in result.after
    assert "return ops.sin(x)\n" in result.after
    (use,) = result.remaining
    assert use.kind == "compiled"
    assert "native" in use.reason
    assert result.after.splitlines()[use.line - 2].startswith(f"{MARK} {use.native}: ")
    assert result.after.splitlines()[use.line - 1] == f"@{decorator}"
    again = ported(result.after)
    assert (again.after, again.ported) == (result.after, ())


@pytest.mark.parametrize("decorator", ["jax.jit", "torch.compile", "torch.no_grad()", "torch.jit.ignore", "property"])
def test_a_function_below_another_decorator_is_ported(decorator: str) -> None:
    result = ported(f"{HEAD}@{decorator}\ndef f(x: torch.Tensor):\n    return torch.sin(x)\n")
    assert "return ops.sin(x)" in result.after


@pytest.mark.parametrize("given", ["f", "lambda x: torch.sin(x)", "C()", "c"])
def test_a_function_or_a_class_that_is_given_to_a_compiler_is_native(given: str) -> None:
    source = (
        f"{HEAD}def f(x):\n    return torch.sin(x)\n\n\n"
        "class C:\n    def forward(self, x):\n        return torch.cos(x)\n\n\n"
        f"c = C()\nh = torch.jit.script({given})\nk = torch.exp(h)\n"
    )
    result = ported(source)
    assert f"h = torch.jit.script({given})" in result.after
    assert ("ops.sin(x)" in result.after) == (given not in ("f",))
    assert ("ops.cos(x)" in result.after) == (given not in ("c", "C()"))
    assert "k = ops.exp(h)" in result.after
    assert [use.native for use in result.remaining] == ["torch.jit.script"]


def test_what_a_function_calls_that_is_compiled_from_source_is_native() -> None:
    source = (
        f"{HEAD}def g(x: torch.Tensor):\n    return torch.sin(x)\n\n\n@torch.jit.script\ndef f(x: torch.Tensor):\n"
        "    return g(x)\n\n\ndef h(x: torch.Tensor):\n    return torch.sin(x)\n"
    )
    result = ported(source)
    assert result.after.count("return torch.sin(x)") == 1
    assert result.after.count("return ops.sin(x)") == 1
    assert [use.native for use in result.remaining] == ["torch.jit.script", "torch.jit.script"]
    assert ported(result.after).after == result.after


def test_a_function_of_autograd_is_native() -> None:
    body = (
        "(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return torch.sin(x)\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * torch.cos(ctx.x)\n"
    )
    source = f"import torch\nfrom torch.autograd import Function\n\n\nclass F{body}\n\ny = torch.exp(F.apply(1))\n"
    result = ported(source)
    assert body in result.after
    assert "y = ops.exp(F.apply(1))" in result.after
    (use,) = result.remaining
    assert (use.native, use.advice) == ("torch.autograd.Function", "ops.custom_gradient")


def test_a_dtype_that_a_native_function_may_be_given_is_left() -> None:
    source = f"{HEAD}KIND = torch.float64\n\n\n@numba.njit\ndef f(x, kind):\n    return x\n"
    assert "KIND = torch.float64" in ported(source).after
    assert "KIND = ops.float64" in ported(source.replace("@numba.njit\n", "")).after


CUSTOM = """@jax.custom_vjp
def f(x):
    return jnp.sin(x)


def forward(x):
    return jnp.sin(x), jnp.cos(x)


def backward(held, g):
    return (jnp.multiply(held, g),)


f.defvjp(forward, backward)


def other(x):
    return x


g = jax.custom_jvp(other)


@g.defjvp
def rule(primals, tangents):
    return jnp.sin(primals[0]), jnp.cos(tangents[0])


@jax.custom_jvp
def h(x):
    return x


h.defjvps(lambda t, ans, x: jnp.cos(x) * t)
"""


def test_the_rules_of_a_function_with_its_own_gradient_are_native() -> None:
    result = ported(f"import jax\nimport jax.numpy as jnp\n\n\n{CUSTOM}\n\ndef k(x):\n    return jnp.sin(x)\n")
    assert "\n".join(one for one in result.after.splitlines() if MARK not in one).count("jnp.") == 7
    assert result.after.endswith("def k(x):\n    return ops.sin(x)\n")
    assert {use.kind for use in result.remaining} == {"compiled"}
    assert len([use for use in result.remaining if "a rule of a function" in use.reason]) == 4
    assert ported(result.after).after == result.after


def test_the_rules_of_a_custom_function_of_mlx_are_native() -> None:
    body = (
        "@mx.custom_function\ndef f(x):\n    return mx.sin(x)\n\n\n@f.vjp\ndef rule(x, g, y):\n    return mx.cos(x)\n"
    )
    assert body in "\n".join(
        one for one in ported(f"import mlx.core as mx\n\n\n{body}").after.split("\n") if MARK not in one
    )
