"""Which native functions of MLX ops call, by dtype, size and option, and what depends on the device and on threads."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend.choice import use_backend
from emberharmony.core import selection
from tests.backend.mlx_outcomes import assert_as_numpy, drawn

mx = pytest.importorskip("mlx.core")
losses_ops = pytest.importorskip("emberharmony.backend.mlx.neural.losses_ops")
programs = pytest.importorskip("emberharmony.backend.mlx.flow.steps")


@pytest.fixture(autouse=True)
def on_mlx() -> Iterator[None]:
    with use_backend("mlx"):
        yield


def f(*shape: int, dtype: str = "float32") -> Any:
    return mx.array(drawn(*shape, low=0.5)).astype(getattr(mx, dtype))


def ids(*shape: int) -> Any:
    return mx.zeros(shape, mx.int64)


ATTENTION: dict[str, tuple[Callable[[], Any], bool]] = {
    name: (partial(ops.dot_product_attention, *tensors, **options), native)
    for name, tensors, options, native in [
        ("plain", (f(1, 3, 2, 4), f(1, 5, 2, 4), f(1, 5, 2, 4)), {}, True),
        ("a scale", [f(1, 3, 2, 4)] * 3, {"scale": 2}, True),
        ("no dropout", [f(1, 3, 2, 4)] * 3, {"dropout_rate": 0}, True),
        ("a bias", [*[f(1, 3, 2, 4)] * 3, f(1, 2, 3, 3)], {}, True),
        ("a wide bias", [*[f(1, 3, 2, 4)] * 3, f(1, 2, 3, 3, dtype="float64")], {}, False),
        ("half precision", [f(1, 3, 2, 4, dtype="float16")] * 3, {}, False),
        ("a tensor as scale", [f(1, 3, 2, 4)] * 3, {"scale": f()}, False),
        ("a soft cap", [f(1, 3, 2, 4)] * 3, {"attn_logits_soft_cap": 2.0}, False),
        ("dropout", [f(1, 3, 2, 4)] * 3, {"dropout_rate": 0.5, "seed": 1}, False),
        ("1,024 keys", (f(1, 2, 1, 2), f(1, 1024, 1, 2), f(1, 1024, 1, 2)), {}, True),
        ("1,025 keys", (f(1, 2, 1, 2), f(1, 1025, 1, 2), f(1, 1025, 1, 2)), {}, False),
        ("no queries", (f(1, 0, 2, 4), f(1, 3, 2, 4), f(1, 3, 2, 4)), {}, False),
    ]
}
ROWS: dict[str, tuple[Callable[[], Any], bool]] = {
    name: (partial(ops.rms_normalization, x, *weights, **options), native)
    for name, x, weights, options, native in [
        ("plain", f(2, 3), (), {}, True),
        ("half precision", f(2, 3, dtype="bfloat16"), (), {}, True),
        ("a scale", f(2, 3), (f(3),), {"epsilon": 1}, True),
        ("a scale of another dtype", f(2, 3), (f(3, dtype="float16"),), {}, False),
        ("a scale of another shape", f(2, 3), (f(1),), {}, False),
        ("float64", f(2, 3, dtype="float64"), (), {}, False),
        ("another axis", f(2, 3), (), {"axis": 0}, False),
        ("a tensor as epsilon", f(2, 3), (), {"epsilon": f()}, False),
        ("long rows", f(2, 1025), (), {}, False),
        ("nothing", f(2, 0), (), {}, False),
        ("no axes", f(), (), {"axis": ()}, False),
    ]
}
NATIVES: dict[str, tuple[Any, str, dict[str, tuple[Callable[[], Any], bool]]]] = {
    "attention": (mx.fast, "scaled_dot_product_attention", ATTENTION),
    "rms_normalization": (mx.fast, "rms_norm", ROWS),
    "cross_entropy": (
        losses_ops,
        "_negative_log_softmax",
        {
            name: (partial(ops.cross_entropy, *tensors, **options), native)
            for name, tensors, options, native in [
                ("plain", (f(2, 3), ids(2)), {}, True),
                ("a sum", (f(2, 3), ids(2)), {"reduction": "sum"}, True),
                ("short ids", (f(2, 3), ids(2).astype(mx.int8)), {}, True),
                ("float64", (f(2, 3, dtype="float64"), ids(2)), {}, False),
                ("smoothing", (f(2, 3), ids(2)), {"label_smoothing": 0.1}, False),
                ("weights", (f(2, 3), ids(2), f(3)), {}, False),
                ("another axis", (f(2, 3), ids(3)), {"axis": 0}, False),
                ("unsigned ids", (f(2, 3), ids(2).astype(mx.uint8)), {}, False),
                ("nothing", (f(0, 3), ids(0)), {}, False),
            ]
        },
    ),
    "sparse_categorical_crossentropy": (
        losses_ops,
        "_negative_log_softmax",
        {
            name: (partial(ops.sparse_categorical_crossentropy, *arguments), native)
            for name, arguments, native in [
                ("plain", (ids(2), f(2, 3), True), True),
                ("probabilities", (ids(2), f(2, 3), False), False),
                ("float64", (ids(2), f(2, 3, dtype="float64"), True), False),
                ("another axis", (ids(3), f(2, 3), True, 0), False),
                ("unsigned ids", (ids(2).astype(mx.uint8), f(2, 3), True), False),
                ("nothing", (ids(0), f(0, 3), True), False),
            ]
        },
    ),
    "quantized_matmul": (
        mx,
        "quantized_matmul",
        {
            "plain": (lambda: ops.quantized_matmul(f(2, 64), *ops.quantize(f(4, 64))), True),
            "a vector": (lambda: ops.quantized_matmul(f(64), *ops.quantize(f(4, 64))), True),
            "half precision": (lambda: ops.quantized_matmul(f(64, dtype="float16"), *ops.quantize(f(4, 64))), True),
            "float64": (lambda: ops.quantized_matmul(f(2, 64, dtype="float64"), *ops.quantize(f(4, 64))), False),
            "nothing": (lambda: ops.quantized_matmul(f(0, 64), *ops.quantize(f(4, 64))), False),
        },
    ),
    "quantize": (
        mx,
        "quantize",
        {
            "plain": (lambda: ops.quantize(f(4, 64)), True),
            "half precision": (lambda: ops.quantize(f(4, 64, dtype="float16")), True),
            "float64": (lambda: ops.quantize(f(4, 64, dtype="float64")), False),
            "a vector": (lambda: ops.quantize(f(64)), False),
            "nothing": (lambda: ops.quantize(f(0, 64)), False),
        },
    ),
    "dequantize": (
        mx,
        "dequantize",
        {
            "plain": (lambda: ops.dequantize(*ops.quantize(f(4, 64))), True),
            "float64": (lambda: ops.dequantize(*ops.quantize(f(4, 64, dtype="float64"))), False),
            "a vector": (lambda: ops.dequantize(*ops.quantize(f(64))), False),
            "nothing": (lambda: ops.dequantize(*ops.quantize(f(0, 64))), False),
        },
    ),
}


@pytest.mark.parametrize("name", NATIVES)
def test_a_native_function_is_called_for_what_it_serves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, cases = NATIVES[name]
    called: list[str] = []
    native = getattr(place, attribute)
    monkeypatch.setattr(place, attribute, lambda *args, **kwargs: called.append("") or native(*args, **kwargs))
    for case, (call, wanted) in cases.items():
        called.clear()
        call()
        assert bool(called) is wanted, case
    assert {wanted for _, wanted in cases.values()} == {True, False}


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets ops go the ways that they go on a GPU; the CPU computes them all the same."""
    for module in (
        "neural.activation_ops",
        "neural.attention_ops",
        "neural.convolution_ops",
        "elementwise.elementary_ops",
        "neural.layers_ops",
    ):
        patched(monkeypatch, module)
    for module in (
        "neural.losses_ops",
        "neural.normalization_ops",
        "algebra.products_ops",
        "neural.quantization_ops",
        "reductions.reduction_ops",
        "elementwise.special",
    ):
        patched(monkeypatch, module)


def patched(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setattr(f"emberharmony.backend.mlx.{module}.on_cpu", lambda: False)


def test_the_ways_of_a_gpu_give_the_same_in_float32(as_on_a_gpu: None) -> None:
    rows, labels = drawn(3, 1200), np.array([0, 5, 1100])
    calls: list[tuple[Callable[..., Any], list[Any]]] = [
        (ops.softmax, [rows]),
        (ops.log_softmax, [rows]),
        (ops.layer_normalization, [rows]),
        (lambda x, w, b: ops.layer_normalization(x, w, b), [rows, rows[0], rows[1]]),
        (partial(ops.layer_normalization, epsilon=0.5), [rows]),
        (ops.rms_normalization, [rows]),
        (ops.sum, [rows]),
        (partial(ops.mean, axis=0), [drawn(300, 4)]),
        (partial(ops.var, axis=-1), [rows]),
        (partial(ops.std, correction=1), [drawn(9000)]),
        (ops.cumsum, [drawn(100)]),
        (partial(ops.prod, axis=0), [drawn(3, 2)]),
        (lambda x: ops.cross_entropy(x, ops.convert_to_tensor(labels)), [rows]),
        (lambda x: ops.sparse_categorical_crossentropy(ops.convert_to_tensor(labels), x, True), [rows]),
        (lambda q: ops.dot_product_attention(q, q, q), [drawn(1, 1100, 1, 2)]),
        (ops.matmul, [drawn(4, 1100), drawn(1100, 4)]),
        (lambda x, w: ops.linear(x, w, None, True), [drawn(1, 2048), drawn(3, 2048)]),
        (lambda x, k: ops.conv(x, k), [drawn(1, 9, 9, 12), drawn(2, 2, 12, 12)]),
        (ops.erfc, [drawn(5)]),
        (ops.gammaln, [drawn(5, low=0.5)]),
        (ops.i0, [drawn(5)]),
    ]
    for call, case in calls:
        assert_as_numpy(call, case, eps=200.0, gradients=False)
    for integers in (np.array([3, 4]), np.array([2**20, 1])):
        assert ops.isclose(ops.convert_to_tensor(integers), ops.convert_to_tensor(integers[:1])).tolist() == [
            True,
            False,
        ]
    assert ops.layer_normalization(f(2, 3)).dtype == mx.float32


def test_bits_of_float64_are_refused_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    native = selection.current()
    single, double = (native.pack(mx.ones(2, kind)) for kind in (mx.float32, mx.float64))
    assert native.unpack(double).dtype == mx.float64
    monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu, 0))
    assert native.unpack(single).dtype == mx.float32
    with pytest.raises(errors.DTypeError, match="MLX has no float64 on a GPU"):
        native.unpack(double)
    assert native.unpack(double, "cpu").dtype == mx.float64


def test_an_integer_in_a_tuple_that_mlx_cannot_count_is_named() -> None:
    with pytest.raises(errors.AxisError, match="MLX counts in 32 bits, into which 8589934592 does not fit"):
        ops.transpose(f(2, 3), (0, 2**33))


def test_long_programs_of_large_parameters_are_computed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    chunked = []
    native = programs._evaluate_in_parts
    monkeypatch.setattr(programs, "_evaluate_in_parts", lambda *given: chunked.append(given) or native(*given))
    monkeypatch.setattr(programs, "CHUNK", 2**15)
    for kind, size, wanted in ((optim.AdamW, 2**14, True), (optim.AdamW, 10, False), (optim.SGD, 2**14, False)):
        cells = [Parameter(f(size)) for _ in range(4)]
        kind(cells, lr=0.1).step({cell: f(size) for cell in cells})
        assert bool(chunked) is wanted, (kind, size)
        chunked.clear()


def test_a_chunk_ends_before_the_parameter_that_would_exceed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "CHUNK", 10)
    for sizes, wanted in (((4, 4, 4), [2, 1]), ((5, 5), [2]), ((11, 1), [1, 1]), ((1, 11, 11), [1, 1, 1])):
        parts: list[Any] = []
        programs._evaluate_in_parts([[f(size) for size in sizes]] * 2, parts.append)
        assert [[len(column) for column in part] for part in parts] == [[count, count] for count in wanted]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_labels_out_of_range_count_as_ignored_ones(reduction: str) -> None:
    for classes, count in ((3, 4), (1025, 3), (2, 1030)):
        x = drawn(count, classes)
        wrong = np.arange(count) % (classes + 3) - 1
        wrong[:3] = classes, -1, classes + 5
        ignored = np.where((wrong < 0) | (wrong >= classes), -100, wrong)
        with use_backend("numpy"):
            wanted = ops.cross_entropy(x.astype("float64"), ignored, reduction=reduction)
            lost = ops.cross_entropy(x.astype("float64"), ignored, reduction="none")
        found = ops.cross_entropy(mx.array(x), mx.array(wrong), reduction=reduction)
        np.testing.assert_allclose(ops.to_numpy(found), wanted, rtol=2e-5)
        labels = ops.sparse_categorical_crossentropy(mx.array(wrong), mx.array(x), True)
        np.testing.assert_allclose(ops.to_numpy(labels), lost, rtol=2e-5, atol=1e-6)


def test_the_peak_of_memory_stays_until_it_is_started_anew() -> None:
    native = selection.current()
    native.peak_memory(True)
    mx.eval(mx.ones(2**20))
    first, again = native.peak_memory()[1], native.peak_memory(True)[1]
    assert again >= first >= 2**22
    assert native.peak_memory()[1] < first


def test_pairs_of_float64_make_no_complex_numbers() -> None:
    assert [ops.view_as_complex(f(3, 2, dtype=kind)).dtype for kind in ("float32", "float16")] == [mx.complex64] * 2
    with pytest.raises(errors.DTypeError, match="float64 makes complex128"):
        ops.view_as_complex(f(3, 2, dtype="float64"))
