"""Activations: their laws and edge cases."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, AxisError, DTypeError, EmberError
from emberharmony.core.registry import OPS


def test_sparsemax_gives_probabilities(backend: str) -> None:
    p = ops.to_numpy(ops.sparsemax(np.arange(12.0).reshape(3, 4) ** 2 / 10, 0))
    assert np.allclose(p.sum(0), 1.0)
    assert (p >= 0).all()
    assert (p == 0).any()


def test_activations_propagate_nan(backend: str) -> None:
    x = np.array([np.nan, 1.0], np.float32)
    names = "relu relu6 leaky_relu elu selu celu sigmoid log_sigmoid softplus softsign silu gelu hard_sigmoid hard_silu"
    for name in f"{names} hard_tanh hard_shrink soft_shrink tanh_shrink squareplus".split():
        assert np.isnan(ops.to_numpy(getattr(ops, name)(x))).tolist() == [True, False], name
    assert np.isnan(ops.to_numpy(ops.threshold(x, 0.5, 0.0))).tolist() == [True, False]


def test_activations_of_integers_are_floats_or_keep_the_dtype(backend: str) -> None:
    x = np.array([-2, 0, 3], np.int32)
    for name in ("leaky_relu", "elu", "selu", "celu", "softplus", "hard_sigmoid", "hard_silu", "soft_shrink", "gelu"):
        assert ops.dtype(getattr(ops, name)(x)) == ops.float32, name
    for name in ("relu", "relu6", "hard_tanh", "hard_shrink"):
        assert ops.dtype(getattr(ops, name)(x)) == ops.int32, name


def test_softplus_is_precise_in_float64(backend: str) -> None:
    x = np.array([-40.0, 0.0, 25.0, 39.0])
    assert np.allclose(ops.to_numpy(ops.softplus(x)), np.logaddexp(x, 0), rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_many_short_rows_is_precise_for_all_values(backend: str, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((1024, 8)).astype(dtype)
    masked = np.where(np.arange(8) % 3 == 0, np.finfo(dtype).min / 2, x)
    masked[5] = np.finfo(dtype).min / 2
    for values in (x, x * 30, x + 60, x - 60, x - 900, x + 900, masked, np.where(x < 0, -np.inf, x + 9)):
        values = values.astype(dtype)
        values[:, 1] = np.maximum(values[:, 1], np.finfo(dtype).min / 2)
        wide = values.astype(np.longdouble)
        powers = np.exp(wide - wide.max(-1, keepdims=True))
        wanted = powers / powers.sum(-1, keepdims=True)
        found = ops.to_numpy(ops.softmax(ops.convert_to_tensor(values, dtype)))
        np.testing.assert_allclose(found, wanted.astype(dtype), rtol=60 * np.finfo(dtype).eps, atol=1e-30)
    x[7, 3] = np.nan
    rows = np.isnan(ops.to_numpy(ops.softmax(ops.convert_to_tensor(x)))).all(-1)
    assert np.flatnonzero(rows).tolist() == [7]


def test_softmax_of_long_rows_is_precise(backend: str) -> None:
    x = (np.sin(np.arange(40000.0)) + 1000.0).astype(np.float32).reshape(2, -1)
    wide = x.astype(np.float64)
    terms = np.exp(wide - wide.max(-1, keepdims=True))
    assert np.allclose(ops.to_numpy(ops.softmax(x)), terms / terms.sum(-1, keepdims=True), rtol=2e-6, atol=0)


@pytest.mark.skipif(not is_installed("mlx"), reason="mlx is not installed")
def test_softmax_by_the_gpu_kernel_of_mlx_agrees_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.mlx.neural import activation_ops

    monkeypatch.setattr(activation_ops, "on_cpu", lambda: False)
    x = np.sin(np.arange(12.0, dtype=np.float32)).reshape(3, 4)
    with ops.use_backend("mlx"):
        got = ops.to_numpy(ops.softmax(x))
    with ops.use_backend("numpy"):
        assert np.allclose(got, ops.softmax(x), atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("uint8", 0, 255), ("int8", -128, 127), ("int64", -(2**63), 2**63 - 1)]
)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmax_of_the_least_and_greatest_integers_does_not_overflow(
    op: str, dtype: str, low: int, high: int, backend: str
) -> None:
    result = ops.to_numpy(getattr(ops, op)(ops.convert_to_tensor([low, high], dtype=dtype))).astype(float)
    spread = float(high) - float(low)
    np.testing.assert_allclose(result, [0, 1] if op == "softmax" else [-spread, 0], rtol=1e-6, atol=1e-6)


def test_softmax_of_booleans_is_that_of_0_and_1(backend: str) -> None:
    result = ops.to_numpy(ops.softmax(ops.convert_to_tensor([True, False])))
    np.testing.assert_allclose(result, [0.7310586, 0.2689414], rtol=1e-6)


def test_relu_accepts_every_real_dtype(backend: str) -> None:
    for dtype, result in (("bool", "int64"), ("uint64", "uint64"), ("int8", "int8"), ("bfloat16", "bfloat16")):
        found = ops.relu(ops.cast([0, 1], dtype))
        assert (ops.dtype(found), ops.cast(found, "int64").tolist()) == (result, [0, 1])


@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax])
def test_softmax_of_an_empty_tensor_is_empty(op: Callable[..., Any], backend: str) -> None:
    for dtype in ("float32", "int32"):
        found = op(ops.zeros((2, 0), dtype=dtype))
        assert (found.shape, ops.dtype(found)) == ((2, 0), "float32")
    with pytest.raises(AxisError):
        op(ops.zeros((0,)), 1)
    for axis in (1, (1, 2), (0, 1)):
        assert tuple(op(np.ones((2, 0, 4)), axis).shape) == (2, 0, 4)


def test_glu_needs_an_axis(backend: str) -> None:
    with pytest.raises(AxisError):
        ops.glu(1.0)


def test_hard_silu_of_large_numbers_does_not_overflow(backend: str) -> None:
    assert ops.hard_silu([1e38, -1e38]).tolist() == ops.relu([1e38, -1e38]).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_soft_shrink_of_integers_gives_floats(dtype: str, backend: str) -> None:
    found = ops.soft_shrink(ops.cast([1, 5], dtype), 1)
    assert ops.dtype(found) == ops.float32
    assert found.tolist() == [0.0, 0.0 if dtype == "bool" else 4.0]


@pytest.mark.parametrize("length", [2, 5000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("offset", [1e4, -1e4, 6e4])
def test_a_common_offset_of_all_logits_costs_no_precision(offset: float, dtype: str, length: int, backend: str) -> None:
    x, share = ops.full((length,), offset, dtype=dtype), 1.0 / length
    eps = 2 * float(ops.finfo(dtype).eps)
    one_hot = ops.one_hot(1, length, dtype=dtype)
    for lost in (
        ops.negative(ops.log_softmax(x))[0],
        ops.categorical_crossentropy(one_hot, x, True),
        ops.sparse_categorical_crossentropy([1], x[None], True)[0],
    ):
        np.testing.assert_allclose(float(ops.cast(lost, "float64")), np.log(length), rtol=eps)
    np.testing.assert_allclose(float(ops.cast(ops.softmax(x)[0], "float64")), share, rtol=eps)


def test_squareplus_does_not_overflow(backend: str) -> None:
    for dtype, large in (("float16", 6e4), ("bfloat16", 1e38), ("float32", 3e38), ("float64", 1e308)):
        x = ops.cast(np.array([large, -large]), dtype)
        assert ops.cast(ops.squareplus(x), "float64").tolist() == ops.cast(ops.relu(x), "float64").tolist()
        assert ops.cast(ops.grad(lambda x: ops.sum(ops.squareplus(x)))(x), "float64").tolist() == [1.0, 0.0]
    assert ops.squareplus(3.0, 16).tolist() == 4.0
    with pytest.raises(ArgumentError, match="expected b of 0 or more"):
        ops.squareplus(3.0, -1.0)


def test_sigmoid_and_silu_in_half_precision_do_not_underflow_early(backend: str) -> None:
    x = np.array([-15.0, -12.0, -11.5, -11.0], np.float16)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert np.allclose(ops.to_numpy(ops.sigmoid(x)), exact, rtol=2e-3, atol=6e-8)
    if backend != "torch":  # PyTorch 2.13 rounds the sigmoid to half precision before it multiplies
        assert np.allclose(ops.to_numpy(ops.silu(x)), x * exact, rtol=2e-2, atol=6e-8)
    assert (ops.to_numpy(ops.silu(x)) < 0).all()


@pytest.mark.ember_skip("jax", reason="programs of JAX 0.10 on the CPU make 0 of all subnormal numbers: docs/jax.md")
@pytest.mark.parametrize(
    ("dtype", "low", "high", "lost"), [("float32", -110, -80, 6.1e-39), ("float64", -760, -700, 1e-308)]
)
def test_sigmoid_loses_subnormal_numbers_only(dtype: str, low: float, high: float, lost: float, backend: str) -> None:
    """`docs/semantics.md` says where PyTorch and MLX give 0; NumPy rounds to a subnormal number."""
    x = np.linspace(low, high, 997).astype(dtype)
    exact, eps = np.exp(x.astype(np.float64)), np.finfo(dtype).eps
    for op, wanted, share in ((ops.sigmoid, exact, 1.0), (ops.silu, x * exact, -float(x.min()))):
        error = np.abs(ops.to_numpy(op(x)).astype(np.float64) - wanted)
        limit = lost if backend != "numpy" else 2 * float(np.finfo(dtype).smallest_subnormal)
        assert (error <= limit * share + 200 * eps * np.abs(wanted)).all()
        kept = ops.to_numpy(op(x))[np.abs(wanted) > lost * share]
        assert (kept != 0).all()


def test_the_ends_of_silu_and_gelu_are_those_of_infinity_times_a_share(backend: str) -> None:
    """As in PyTorch, JAX and Keras; PyTorch's kernel of the exact gelu has no end above, either."""
    with np.errstate(invalid="ignore"):
        for op in (ops.silu, ops.gelu, lambda x: ops.gelu(x, False)):
            ends = ops.to_numpy(op(np.array([np.inf, -np.inf] * 8, np.float32)))
            assert np.isnan(ends[1::2]).all()
            assert np.isinf(ends[::2]).all() or (backend == "torch" and np.isnan(ends[::2]).all())
        assert np.isinf(ops.to_numpy(ops.gelu(np.array([np.inf] * 8, np.float32)))).all()


def test_an_option_that_is_not_a_boolean_raises_a_typed_error(backend: str) -> None:
    with pytest.raises(EmberError, match=r"^gelu\(\) on backend"):
        ops.gelu(ops.ones((3,)), np.array([True, False]))


SLOPED: dict[str, Any] = {
    "leaky_relu": ops.leaky_relu,
    "elu": ops.elu,
    "celu": ops.celu,
    "hard_shrink": ops.hard_shrink,
    "soft_shrink": ops.soft_shrink,
    "squareplus": ops.squareplus,
    "threshold": lambda x, option: ops.threshold(x, 0.5, option),
}


@pytest.mark.parametrize("name", SLOPED)
def test_an_option_may_be_a_tensor_that_broadcasts(name: str, backend: str) -> None:
    activation, x = SLOPED[name], np.float32([-2.0, -0.25, 0.0, 0.75, 3.0])
    rows = [ops.to_numpy(activation(x, option)).tolist() for option in (0.25, 0.5)]
    for given in ([[0.25], [0.5]], np.array([[0.25], [0.5]]), ops.convert_to_tensor([[0.25], [0.5]], "float64")):
        found = activation(x, given)
        assert ops.dtype(found) == "float32"
        np.testing.assert_allclose(ops.to_numpy(found), rows, rtol=1e-6)
    assert ops.dtype(activation(np.float16([1.0]), ops.convert_to_tensor(0.5))) == "float16"
    assert ops.shape(activation(ops.zeros((0, 2)), ops.convert_to_tensor([0.25, 0.5]))) == (0, 2)


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "celu", "soft_shrink", "squareplus"])
def test_a_complex_option_is_refused(name: str, backend: str) -> None:
    with pytest.raises(DTypeError, match=rf"{name}\(\) on backend '{backend}'.*is real, not complex64"):
        SLOPED[name]([1.0, -1.0], np.complex64(1j))


def test_squareplus_is_differentiated_by_b_at_zero_and_does_not_overflow(backend: str) -> None:
    def total(b: Any) -> Any:
        return ops.sum(ops.squareplus([-2.0, 4.0], b))

    assert float(ops.grad(total)(0.0)) == pytest.approx(1 / 8 + 1 / 16)
    large = ops.squareplus([1e38, -1e38], ops.convert_to_tensor(4.0))
    assert large.tolist() == pytest.approx([1e38, 0.0], rel=1e-6)


def test_derivatives_have_the_digits_of_float64_for_any_option(backend: str) -> None:
    x = np.linspace(-3.0, 3.0, 50)
    ones, zeros = np.ones_like(x), np.zeros_like(x)
    for option in (0.3, 0.7, 1.3):
        for name, wanted in (
            ("celu", np.where(x > 0, ones, np.exp(x / option))),
            ("elu", np.where(x > 0, ones, option * np.exp(x))),
            ("leaky_relu", np.where(x > 0, ones, option)),
            ("soft_shrink", np.where(np.abs(x) > option, ones, zeros)),
            ("hard_shrink", np.where(np.abs(x) > option, ones, zeros)),
        ):
            given = ops.convert_to_tensor(x, "float64")
            op = getattr(ops, name)
            found = ops.grad(lambda x, op=op, option=option: ops.sum(op(x, option)))(given)
            np.testing.assert_allclose(ops.to_numpy(found), wanted, atol=1e-15, err_msg=f"{name}({option})")


def test_activations_have_second_derivatives_by_their_options(backend: str) -> None:
    def curve(alpha: Any) -> Any:
        return ops.sum(ops.celu(np.array([-1.5, 2.0]), alpha))

    alpha = ops.convert_to_tensor(0.75, "float64")
    wanted = (-1.5) ** 2 / 0.75**3 * np.exp(-2.0)
    assert float(ops.grad(ops.grad(curve))(alpha)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_gradient_at_the_largest_of_many_elements_keeps_its_digits(name: str, backend: str) -> None:
    x = np.random.default_rng(0).uniform(size=(2, 4096)).astype(np.float32)
    w = np.cos(np.arange(x.size)).reshape(x.shape).astype(np.float32)
    found = ops.to_numpy(ops.grad(lambda x: ops.sum(ops.multiply(getattr(ops, name)(x), ops.convert_to_tensor(w))))(x))
    y = np.exp(x.astype(np.float64)) / np.exp(x.astype(np.float64)).sum(-1, keepdims=True)
    wanted = y * (w - (w * y).sum(-1, keepdims=True)) if name == "softmax" else w - y * w.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * abs(wanted).max())


ACTIVATIONS = [
    name
    for name, op in OPS.items()
    if op.function.__module__ == "emberharmony.ops.neural.activation"
    and [p.default for p in inspect.signature(op.function).parameters.values()].count(inspect.Parameter.empty) == 1
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_forward_derivatives_in_half_precision_are_those_of_float32(dtype: Any, backend: str) -> None:
    for name in ACTIVATIONS:
        x = ops.convert_to_tensor([[-1.25, 0.3, 0.8, 2.0]], "float32")
        found, wanted = (
            ops.jvp(OPS[name].function, (ops.cast(x, kind),), (ops.ones((1, 4), dtype=kind),))
            for kind in (dtype, "float32")
        )
        for one, other in zip(found, wanted, strict=True):
            assert ops.dtype(one) == dtype, name
            np.testing.assert_allclose(*(ops.to_numpy(ops.cast(y, "float32")) for y in (one, other)), 2e-2, 2e-2)
