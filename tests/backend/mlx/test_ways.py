"""Which kernels of MLX compute an op, on both sides of the limits of size, dtype and option between its ways.

Where both ways have the same values, only the graph of MLX shows which one was taken.
"""

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend.choice import use_backend
from tests.backend.fast_paths.comparing import calls
from tests.backend.mlx_outcomes import drawn

mx = pytest.importorskip("mlx.core")
from emberharmony.backend.mlx.derivatives import Transforming

_PRIMITIVE = re.compile(r'^\{ \d+ \[label ="([^" ]*)', re.MULTILINE)


@pytest.fixture(autouse=True)
def on_the_cpu() -> Iterator[None]:
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    with use_backend("mlx"):
        yield
    mx.set_default_device(before)


def f(*shape: int, dtype: str = "float32") -> Any:
    return mx.array(drawn(*shape, low=0.5)).astype(getattr(mx, dtype))


def ids(*shape: int) -> Any:
    return mx.zeros(shape, mx.int64)


def kernels(result: Any) -> list[str]:
    """Returns the names of the operations that MLX has to run for a result."""
    text = io.StringIO()
    mx.export_to_dot(text, *ops.tree_leaves(result))
    return _PRIMITIVE.findall(text.getvalue())


# The call of an op by a size; the last size of one way; what MLX runs up to it only, or with a minus, beyond it only.
LIMITS: dict[str, tuple[Callable[[int], Any], int, str]] = {
    "sum of all": (lambda n: ops.sum(f(n)), 64, "-AsType"),
    "sum along an axis": (lambda n: ops.sum(f(3, n), axis=1), 64, "-AsType"),
    "sum along axis 0": (lambda n: ops.sum(f(n, 3), axis=0), 64, "-AsType"),
    "sum of a large tensor": (lambda n: ops.sum(f(n * 64)), 128, "-Unflatten"),
    "sum with keepdims": (lambda n: ops.sum(f(3, n), axis=1, keepdims=True), 64, "-AsType"),
    "sum over several axes": (lambda n: ops.sum(f(2, n), axis=(0, 1)), 32, "-AsType"),
    "mean": (lambda n: ops.mean(f(3, n), axis=-1), 64, "-AsType"),
    "var": (lambda n: ops.var(f(n)), 8192, "-Divide"),
    "std": (lambda n: ops.std(f(n)), 8192, "-Divide"),
    "var with a correction": (lambda n: ops.var(f(5), correction=n), 4, "Maximum"),
    "logsumexp": (lambda n: ops.logsumexp(f(n)), 64, "LogSumExp"),
    "prod": (lambda n: ops.prod(f(n)), 1, "-AsType"),
    "cumsum": (lambda n: ops.cumsum(f(n)), 64, "-AsType"),
    "softmax": (lambda n: ops.softmax(f(2, n)), 1024, "Softmax"),
    "softmax over two axes": (lambda n: ops.softmax(f(2, n), axis=(0, 1)), 512, "-AsType"),
    "softmax in half precision": (lambda n: ops.softmax(f(2, n, dtype="float16")), 1024, "Softmax"),
    "log_softmax": (lambda n: ops.log_softmax(f(2, n)), 1024, "LogSumExp"),
    "log_softmax along axis 0": (lambda n: ops.log_softmax(f(n, 2), axis=0), 1024, "-AsType"),
    "maximum of rows": (lambda n: ops.log_softmax(f(n, 64)), 128, "-Unflatten"),
    "gelu": (lambda n: ops.gelu(f(n), approximate=False), 1024, "Erf"),
    "layer_normalization": (lambda n: ops.layer_normalization(f(2, n)), 64, "-AsType"),
    "rms_normalization": (lambda n: ops.rms_normalization(f(2, n)), 1024, "-AsType"),
    "cross_entropy by classes": (lambda n: ops.cross_entropy(f(2, n), ids(2)), 1024, "LogSumExp"),
    "cross_entropy by samples": (lambda n: ops.cross_entropy(f(n, 2), ids(n)), 1024, "View"),
    "sparse crossentropy": (lambda n: ops.sparse_categorical_crossentropy(ids(2), f(2, n), True), 1024, "LogSumExp"),
    "attention": (lambda n: ops.dot_product_attention(f(1, 2, 1, 4), f(1, n, 1, 4), f(1, n, 1, 4)), 1024, "Softmax"),
    "range": (lambda n: ops.add(ops.arange(n), 1), 2**13 - 1, "-Arange"),
    "matmul": (lambda n: ops.matmul(f(4, n + 31 * (n % 2)), f(n + 31 * (n % 2), 4)), 1024, "-Unflatten"),
    "matmul of a prime length": (lambda n: ops.matmul(f(4, n + 6 * (n % 2)), f(n + 6 * (n % 2), 4)), 1024, "-AsType"),
    "matmul of few columns": (lambda n: ops.matmul(f(8, 1056), f(1056, n)), 3, "AsType"),
    "matmul of few rows": (lambda n: ops.matmul(f(n, 1056), f(1056, 8)), 3, "AsType"),
    "matmul with large parts": (lambda n: ops.matmul(f(n, 2112), f(2112, n)), 768, "Unflatten"),
    "einsum": (lambda n: ops.einsum("ij,kj->ik", f(4, n), f(4, n)), 1024, "-AsType"),
    "linear": (lambda n: ops.linear(f(3, n), f(2, n), None, True), 1024, "-AsType"),
    "linear of a long row": (lambda n: ops.linear(f(n, 1032), f(2, 1032), None, True), 1, "Multiply"),
    "max_pool": (lambda n: ops.max_pool(f(1, 2 * n, 2, 1), 2), 2047, "Squeeze"),
    "written elements along an axis": (
        lambda n: ops.put_along_axis(f(n, 2**10), ids(1, 2**10), f(1, 2**10), 0),
        255,
        "Pad",
    ),
    "few written elements": (lambda n: ops.put_along_axis(f(256, 2**10), ids(n, 2**10), f(n, 2**10), 0), 16, "-Pad"),
    "written rows": (lambda n: ops.set_item(f(128, 64), ids(n), f(n, 64)), 31, "Scatter"),
    "written rows of a large tensor": (lambda n: ops.set_item(f(n, 64), ids(2), f(2, 64)), 4095, "Pad"),
}


def conv(shape: tuple[int, ...], size: tuple[int, ...], dtype: str = "float32", **options: Any) -> Any:
    return ops.conv(f(*shape, dtype=dtype), f(*size, dtype=dtype), **options)


# The call of one way; that of another one; what MLX runs in the first only, or with a minus, in the second only.
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "steep leaky_relu": (lambda: ops.leaky_relu(f(3), 1.0), lambda: ops.leaky_relu(f(3), 1.1), "-Minimum"),
    "falling leaky_relu": (lambda: ops.leaky_relu(f(3), 0.1), lambda: ops.leaky_relu(f(3), 0.0), "-Minimum"),
    "elu": (lambda: ops.elu(f(3)), lambda: ops.elu(f(3), 0.5), "-Multiply"),
    "elu of float64": (lambda: ops.elu(f(3)), lambda: ops.elu(f(3, dtype="float64")), "-Add"),
    "elu by a tensor": (lambda: ops.elu(f(3), 0.5), lambda: ops.elu(f(3), f()), "-Add"),
    "gelu in half precision": (lambda: ops.gelu(f(3), False), lambda: ops.gelu(f(3, dtype="float16"), False), "Erf"),
    "gelu by tanh": (lambda: ops.gelu(f(3)), lambda: ops.gelu(f(3), False), "Tanh"),
    "silu": (lambda: ops.silu(f(3)), lambda: ops.silu(f(3, dtype="float16")), "-AsType"),
    "softplus": (lambda: ops.softplus(f(3)), lambda: ops.softplus(f(3, dtype="float64")), "LogAddExp"),
    "logsumexp in parts": (lambda: ops.logsumexp(f(2, 80), -1), lambda: ops.logsumexp(f(2, 72), -1), "LogSumExp"),
    "logsumexp of all": (lambda: ops.logsumexp(f(80), 0), lambda: ops.logsumexp(f(80)), "LogSumExp"),
    "det": (lambda: ops.det(f(4, 4, dtype="float64")), lambda: ops.det(f(3, 3)), "LUF"),
    "kernel of a convolution": (
        lambda: conv((1, 4, 4, 1), (2, 2, 1, 1)),
        lambda: conv((4, 32, 32, 8), (3, 3, 8, 8)),
        "Convolution",
    ),
    "few channels": (
        lambda: conv((4, 64, 64, 7), (3, 3, 7, 9)),
        lambda: conv((4, 64, 64, 8), (3, 3, 8, 8)),
        "Convolution",
    ),
    "groups": (
        lambda: conv((1, 8, 8, 4), (3, 3, 2, 4)),
        lambda: conv((4, 64, 64, 32), (3, 3, 2, 32)),
        "CustomTransforms",
    ),
    "half precision": (
        lambda: conv((1, 8, 8, 4), (3, 3, 4, 4), "float16"),
        lambda: conv((1, 8, 8, 4), (3, 3, 4, 4), "float64"),
        "Convolution",
    ),
    "dilation": (
        lambda: conv((1, 8, 8, 4), (3, 3, 4, 4), dilation_rate=2),
        lambda: conv((4, 32, 32, 4), (3, 3, 4, 4), "float16", dilation_rate=2),
        "Convolution",
    ),
    "a bias in half precision": (
        lambda: conv((1, 8, 8, 4), (3, 3, 4, 4), "float16"),
        lambda: conv((1, 8, 8, 4), (3, 3, 4, 4), "float16", bias=f(4, dtype="float16")),
        "Convolution",
    ),
    "many channels in half precision": (
        lambda: conv((1, 8, 8, 8), (3, 3, 8, 15), "float16"),
        lambda: conv((1, 8, 8, 8), (3, 3, 8, 16), "float16"),
        "Convolution",
    ),
    "depthwise": (
        lambda: ops.depthwise_conv(f(1, 8, 8, 4), f(3, 3, 4, 1)),
        lambda: ops.depthwise_conv(f(4, 64, 64, 4), f(3, 3, 4, 1)),
        "Convolution",
    ),
    "small transposed convolution": (
        lambda: ops.conv_transpose(f(1, 4, 4, 1), f(2, 2, 1, 1), 2),
        lambda: ops.conv_transpose(f(4, 32, 32, 4), f(3, 3, 4, 4), 2),
        "Convolution",
    ),
    "transposed with gaps": (
        lambda: ops.conv_transpose(f(4, 32, 32, 4), f(3, 3, 4, 4), 3),
        lambda: ops.conv_transpose(f(4, 32, 32, 4), f(2, 2, 4, 4), 3),
        "Unflatten",
    ),
    "transposed with dilation": (
        lambda: ops.conv_transpose(f(4, 32, 32, 4), f(3, 3, 4, 4), 1),
        lambda: ops.conv_transpose(f(4, 32, 32, 4), f(3, 3, 4, 4), 1, dilation_rate=2),
        "Unflatten",
    ),
    "rope": (lambda: ops.rope(f(1, 4, 4)), lambda: ops.rope(f(1, 4, 4, dtype="float16")), "-AsType"),
    "quantized_matmul": (
        lambda: ops.quantized_matmul(f(2, 64), *ops.quantize(f(4, 64))),
        lambda: ops.quantized_matmul(f(2, 64, dtype="float64"), *ops.quantize(f(4, 64))),
        "QuantizedMatmul",
    ),
    "quantized_matmul in half precision": (
        lambda: ops.quantized_matmul(f(2, 64), *ops.quantize(f(4, 64))),
        lambda: ops.quantized_matmul(f(2, 64, dtype="float16"), *ops.quantize(f(4, 64, dtype="float16"))),
        "-AsType",
    ),
    "quantize": (lambda: ops.quantize(f(4, 64)), lambda: ops.quantize(f(64)), "Quantize"),
    "written vector": (
        lambda: ops.set_item(f(5), ids(2), f(2)),
        lambda: ops.set_item(f(5, 3), ids(2), f(2, 3)),
        "ScatterAxis",
    ),
    "a product of integers": (
        lambda: ops.matmul(f(2, 2), f(2, 2)),
        lambda: ops.matmul(ids(2, 2), ids(2, 2)),
        "-LeftShift",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_way_is_taken_up_to_its_limit(name: str) -> None:
    call, limit, kernel = LIMITS[name]
    assert_only(kernel, kernels(call(limit)), kernels(call(limit + 1)))


@pytest.mark.parametrize("name", PAIRS)
def test_a_way_is_taken_for_what_it_serves(name: str) -> None:
    one, other, kernel = PAIRS[name]
    assert_only(kernel, kernels(one()), kernels(other()))


def assert_only(kernel: str, one: list[str], other: list[str]) -> None:
    """Asserts that only the first list has a kernel, or only the second one if its name has a minus."""
    name = kernel.removeprefix("-")
    assert (name in one, name in other) == (name == kernel, name != kernel), (one, other)


@pytest.mark.parametrize("op", ["less", "less_equal", "greater", "greater_equal"])
def test_an_op_without_derivatives_takes_as_few_calls_in_a_transform(op: str) -> None:
    call = getattr(ops, op)
    outside = calls(call, f(3), f(3))
    with Transforming():
        assert calls(call, f(3), f(3)) <= outside
