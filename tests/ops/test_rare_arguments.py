"""Rare arguments: what is refused by name, and what options, shapes and dtypes give that few programs use."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import errors, ops
from emberharmony.backend.numpy.neural.losses_ops import mean_cross_entropy_with_slope
from tests.together import together

F = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
Z = np.array([1 + 2j, -3j, 0.5], np.complex64)
IMAGES = np.ones((1, 4, 4, 1), np.float32)
CORNERS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])


def packed() -> tuple[Any, Any, Any]:
    return ops.quantize(np.linspace(-1, 1, 128, dtype="f4").reshape(2, 64))


def by_gru(x: Any = (1, 2, 3), weight: Any = (6, 3), hidden: Any = (6, 2), bias: Any = (6,)) -> Any:
    return ops.gru(*(np.ones(shape, "f4") for shape in (x, weight, hidden, bias)))


def by_lstm(projection: Any) -> Any:
    shapes = (1, 2, 3), (8, 3), (8, 1), projection
    x, weight, hidden, last = (np.ones(shape, "f4") for shape in shapes)
    return ops.lstm(x, weight, hidden, weight_hr=last)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "bits": (lambda: ops.quantize(np.ones((1, 64), "f4"), bits=True), errors.ArgumentError, "bits must be 4 or 8"),
    "group": (lambda: ops.quantize(np.ones((1, 64), "f4"), group_size=1), errors.ArgumentError, "must be 32, 64 or"),
    "no axis to group": (lambda: ops.quantize(np.float32(1)), errors.ShapeError, "pad the axis"),
    "smaller group": (lambda: ops.quantize(np.ones((1, 32), "f4")), errors.ShapeError, "pass group_size=32"),
    "odd axis": (lambda: ops.quantize(np.ones((1, 33), "f4")), errors.ShapeError, "pad the axis"),
    "packed without axes": (
        lambda: ops.dequantize(np.uint32(1), *packed()[1:]),
        errors.ShapeError,
        r"scales and biases of shape \(..., groups\)",
    ),
    "x without axes": (lambda: ops.quantized_matmul(np.float32(1), *packed()), errors.ShapeError, "expected x of"),
    "stacked matrix": (
        lambda: ops.quantized_matmul(np.ones(64, "f4"), *(ops.expand_dims(x, 0) for x in packed())),
        errors.ShapeError,
        "packed values of a matrix",
    ),
    "gru of a matrix": (lambda: by_gru(x=(2, 3)), errors.ShapeError, r"\(batch, time, features\), got \(2, 3\)"),
    "gru by a vector": (lambda: by_gru(weight=(6,)), errors.ShapeError, "expected weight_ih of shape"),
    "gru by a stack": (lambda: by_gru(weight=(6, 3, 1)), errors.ShapeError, "expected weight_ih of shape"),
    "gru with a bias": (lambda: by_gru(bias=(5,)), errors.ShapeError, r"bias_ih of shape \(6,\), got \(5,\)"),
    "lstm by a vector": (lambda: by_lstm((1,)), errors.ShapeError, "expected weight_hr of shape"),
    "lstm by another": (lambda: by_lstm((1, 3)), errors.ShapeError, r"weight_hr of shape \(outputs, 2\), got \(1, 3\)"),
    "shifts": (
        lambda: ops.roll(np.ones((2, 2, 2)), (1, 2), (0, 1, 2)),
        errors.ShapeError,
        "2 shifts do not fit 3|shape mismatch",
    ),
    "axes of shifts": (
        lambda: ops.roll(F, (1, 2, 3), (0, 1)),
        errors.ShapeError,
        "3 shifts do not fit 2|shape mismatch",
    ),
    "shifts of all": (lambda: ops.roll(F, (1, 2), ()), errors.ShapeError, "2 shifts do not fit 0"),
    "widths of three": (lambda: ops.pad(F, ((1, 2, 3), (0, 0, 0))), errors.EmberError, "on backend"),
    "edge of nothing": (lambda: ops.pad(F[:0], ((1, 0), (0, 0)), "edge"), errors.ShapeError, "empty axis"),
    "divisor": (
        lambda: ops.average_pool(IMAGES, 2, divisor_override=np.array([2])),  # type: ignore[arg-type]
        errors.ArgumentError,
        "divisor_override is an integer",
    ),
    "no spatial axis": (lambda: ops.conv(np.ones((2, 3), "f4"), np.ones((3, 4), "f4")), errors.ShapeError, "spatial"),
    "sigma": (lambda: ops.gaussian_blur(IMAGES, 3, [[1.0, 1.0]]), errors.ArgumentError, "sigma is one finite"),  # type: ignore[list-item]
    "points": (
        lambda: ops.perspective_transform(IMAGES, CORNERS, [CORNERS]),
        errors.ShapeError,
        r"got \(4, 2\) and \(1, 4, 2\)",
    ),
    "no points": (lambda: ops.perspective_transform(IMAGES, CORNERS[0], CORNERS[0]), errors.ShapeError, "got"),
    "stacks of points": (
        lambda: ops.perspective_transform(IMAGES, [[CORNERS]], [[CORNERS]]),
        errors.ShapeError,
        r"got \(1, 1, 4, 2\)",
    ),
    "letters": (lambda: ops.einsum("i->i", F), errors.EmberError, "einsum"),
    "more slices than axes": (
        lambda: ops.get_item(F, (slice(0, 1), slice(0, 1), slice(0, 2, 1))),
        errors.EmberError,
        "on backend",
    ),
    "floating integers": (lambda: ops.random.randint((2,), 0, 3, "float32"), errors.DTypeError, "integer dtype"),
    "complex indices": (lambda: ops.take(F, ops.asarray(Z)), errors.ArgumentTypeError, "integer"),
    "complex ids": (lambda: ops.get_item(F, ops.asarray(Z)), errors.EmberError, "on backend"),
    "scalars to join": (lambda: ops.concatenate([ops.ones(()), ops.ones(())]), errors.ShapeError, "on backend"),
    "axis of scalars": (lambda: ops.concatenate([ops.ones(()), ops.ones(2)]), errors.ShapeError, "on backend"),
    "axes of joined": (lambda: ops.concatenate([ops.ones(0), ops.ones((2, 3))]), errors.ShapeError, "on backend"),
    "a pair of real parts": (
        lambda: ops.ifft((ops.ones(3), ops.ones(3))),
        errors.ArgumentTypeError,
        "not a pair of a real and an imaginary part",
    ),
    "windows to fold": (lambda: ops.fold(np.ones((1, 4, 5), "f4"), (4, 4), 2), errors.ShapeError, "on backend"),
    "a number in a row": (lambda: ops.rms_normalization(np.float32(1)), errors.EmberError, "on backend"),
    "ids of another length": (lambda: ops.segment_sum(F, np.array([0]), 2), errors.ShapeError, "on backend"),
    "ids in a matrix": (lambda: ops.segment_sum(F, np.array([[0, 1]]), 2), errors.ShapeError, "on backend"),
    "too many classes": (lambda: ops.one_hot([0], 10**14), errors.EmberError, "on backend"),
    "a row of a number": (lambda: ops.set_item(np.float32(1), ops.asarray([0]), 2.0), errors.EmberError, "on backend"),
    "rows of another length": (
        lambda: ops.set_item(np.ones((2, 1), "f4"), ops.asarray([True, True]), np.ones(3, "f4")),
        errors.ShapeError,
        "on backend",
    ),
    "no step": (lambda: ops.arange(0, 3, 0), errors.ArgumentError, "step must not be 0"),
    "texts": (lambda: ops.add(np.array(["a"]), 1), errors.EmberError, "on backend"),
    "values of another length": (lambda: ops.set_item(F, 0, np.ones(5, "f4")), errors.ShapeError, "on backend"),
    "added values of another length": (
        lambda: ops.set_item(F, 0, np.ones(5, "f4"), "add"),
        errors.ShapeError,
        "on backend",
    ),
    "a vector of outputs": (
        lambda: ops.ctc_loss([[1]], np.ones((3, 4), "f4"), [1], [3]),
        errors.ShapeError,
        "on backend",
    ),
}


@together("name", REFUSED)
def test_what_does_not_fit_is_refused_by_name(name: str, backend: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def line(n: int, channels: int = 1) -> Any:
    return np.arange(n * channels, dtype="f4").reshape(1, n, channels)


GIVEN: dict[str, tuple[Callable[[], Any], Any]] = {
    "strides in an array": (lambda: ops.max_pool(IMAGES, np.array([2, 4])).shape, (1, 2, 1, 1)),
    "strides in an array without axes": (lambda: ops.max_pool(IMAGES, np.array(2)).shape, (1, 2, 2, 1)),
    "padding in an array": (lambda: ops.max_pool(IMAGES, 2, 1, np.array([1, 0])).shape, (1, 5, 3, 1)),
    "padding in a number of NumPy": (lambda: ops.max_pool(IMAGES, 2, 1, np.array(1)).shape, (1, 5, 5, 1)),
    "padding in pairs of arrays": (lambda: ops.max_pool(IMAGES, 2, 1, [np.array([1, 0]), 0]).shape, (1, 4, 3, 1)),
    "divisor without axes": (lambda: ops.average_pool(IMAGES, 2, divisor_override=np.array(2)), 2 * IMAGES[:, :2, :2]),
    "edges of no width": (lambda: ops.pad(F[:0], ((0, 0), (1, 1)), "edge").shape, (0, 5)),
    "round of truth": (lambda: ops.round(np.array([True, False]), -1), np.array([True, False])),
    "round of complex": (lambda: ops.round(Z / 8, 1), np.round(Z / 8, 1)),
    "complex ends": (lambda: ops.linspace(0, 2j, 3), np.linspace(0, 2j, 3, dtype="c8")),
    "a complex base": (lambda: ops.logspace(0, 1, 2, base=1j), np.array([1, 1j], "c8")),
    "a base for each column": (
        lambda: ops.logspace(0.0, 2.0, 4, base=F),
        F ** np.float32([0, 2 / 3, 4 / 3, 2])[:, None, None],
    ),
    "a base for each end": (
        lambda: ops.logspace(ops.asarray(F[0]), 2.0, 4, base=F[0], axis=1),
        np.logspace(F[0], 2.0, 4, base=F[0], axis=1).astype("f4"),
    ),
    "ends in integers": (
        lambda: ops.linspace(ops.asarray([0, 2]), ops.asarray([4, 2]), 3),
        [[0.0, 2.0], [2, 2], [4, 2]],
    ),
    "the step of integers": (
        lambda: [
            float(ops.linspace(0, 1, 3, retstep=True, dtype="int32")[1]),
            float(ops.linspace(0, 1, 3, retstep=True)[1]),
        ],
        [0.5, 0.5],
    ),
    "ends on a device": (lambda: ops.linspace(ops.asarray(0.0), ops.asarray(1.0), 3, device="cpu"), [0.0, 0.5, 1.0]),
    "a ratio on a device": (
        lambda: ops.geomspace(ops.asarray(1.0), ops.asarray(4.0), 3, device="cpu"),
        [1.0, 2.0, 4.0],
    ),
    "written by truth": (lambda: ops.set_item(F, ops.asarray(True), 7.0), np.full((2, 3), 7, "f4")),
    "not written by truth": (lambda: ops.set_item(F, ops.asarray(False), 7.0), F),
    "written in a number": (lambda: ops.set_item(np.float32(1), ops.asarray(True), 7.0), np.float32(7)),
    "absolute truth": (lambda: ops.absolute(np.array([True, False])), np.array([True, False])),
    "the sign of truth": (lambda: ops.sign(np.array([True, False])), np.array([True, False])),
    "numbers in complex": (
        lambda: ops.nan_to_num(np.array([complex(np.nan, 1), complex(np.inf, np.nan)], "c8"), 2.0, 3.0),
        np.array([2 + 1j, 3 + 2j], "c8"),
    ),
    "powers of two by truth": (lambda: ops.ldexp(np.float32([3, 3]), np.array([True, False])), np.float32([6, 3])),
    "norms of nothing": (lambda: ops.vector_norm(np.zeros((2, 0)), axis=1), np.zeros(2)),
    "norms of no rows": (lambda: ops.vector_norm(np.zeros((0, 2)), axis=1), np.zeros(0)),
    "distances of points": (lambda: ops.cdist(F, F[:1]), np.linalg.norm(F - F[:1], axis=1)[:, None]),
    "complex distances": (lambda: ops.std(Z), np.std(Z).astype("f4")),
    "slices of no columns": (lambda: ops.segment_sum(np.zeros((2, 0), "f4"), [0, 1], 3), np.zeros((3, 0), "f4")),
    "segments of no rows": (lambda: ops.segment_sum(F[:0], np.zeros(0, "i8"), 2), np.zeros((2, 3), "f4")),
    "no segments": (lambda: ops.segment_sum(F[:0], np.zeros(0, "i8"), 0), np.zeros((0, 3), "f4")),
    "three slices": (lambda: ops.get_item(F, (slice(0, 1), slice(0, 3, 2), ...)), F[:1, ::2]),
    "four spatial axes": (
        lambda: ops.conv(np.ones((1, 2, 2, 2, 2, 1), "f4"), np.ones((2, 1, 1, 1, 1, 1), "f4")).shape,
        (1, 1, 2, 2, 2, 1),
    ),
    "four spatial axes back": (
        lambda: ops.conv_transpose(np.ones((1, 2, 2, 2, 2, 1), "f4"), np.ones((2, 1, 1, 1, 1, 1), "f4")).shape,
        (1, 3, 2, 2, 2, 1),
    ),
    "a class in a tensor": (
        lambda: ops.cross_entropy(F, ops.asarray([0, 2]), ignore_index=np.int64(2), reduction="none"),
        np.array([2.407606, 0.0], "f4"),
    ),
    "copies of bfloat16": (
        lambda: ops.cast(ops.broadcast_to(ops.cast([1.0, 2.5], "bfloat16"), (2, 2)), "float32"),
        np.float32([[1, 2.5], [1, 2.5]]),
    ),
    "an axis of NumPy": (lambda: ops.concatenate([F, F], np.int64(1)), np.concatenate([F, F], 1)),
    "a row at a tensor": (lambda: ops.set_item(F, ops.asarray(1), 5.0), np.float32([[1, 2, 3], [5, 5, 5]])),
    "no quantised rows": (
        lambda: ops.quantized_matmul(np.ones((2, 64), "f4"), *ops.quantize(np.ones((0, 64), "f4"))),
        np.zeros((2, 0), "f4"),
    ),
    "cubic norms of no rows": (lambda: ops.vector_norm(np.zeros((0, 2)), axis=1, ord=3), np.zeros(0)),
    "nothing in rows": (lambda: ops.log_softmax(np.zeros((2, 0), "f4")).shape, (2, 0)),
    "wide numbers by truth": (
        lambda: (
            ops.where(np.array([True, False]), np.array([1j, 2], "c16"), np.array([3, 4], "c16"))
            if ops.get_backend() != "mlx"
            else np.array([1j, 4], "c16")
        ),
        np.array([1j, 4], "c16"),
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_rare_arguments_give_what_numpy_gives(name: str, backend: str) -> None:
    call, wanted = GIVEN[name]
    found = call()
    found = ops.to_numpy(found) if ops.is_tensor(found) else np.asarray(found)
    if isinstance(wanted, (np.ndarray, np.generic)):
        assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert np.shape(found) == np.shape(wanted)


CONVOLUTIONS: dict[str, tuple[Any, Any, Any]] = {
    "usual": (line(4, 2), np.ones((2, 2, 3), "f4"), np.ones(3, "f4")),
    "a kernel of another dtype": (line(4, 2), np.ones((2, 2, 3), "f8"), None),
    "a bias of another dtype": (line(4, 2), np.ones((2, 2, 3), "f4"), np.ones(3, "f8")),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_options_in_tuples_give_what_numbers_give(name: str, backend: str) -> None:
    x, kernel, bias = CONVOLUTIONS[name]
    first = np.moveaxis(x, -1, 1).copy()
    by_numbers = ops.conv(x, kernel, 1, 0, None, 1, bias)
    by_tuples = ops.conv(first, kernel, (1,), (0,), "channels_first", (1,), bias)
    assert ops.dtype(by_tuples) == ops.dtype(by_numbers)
    np.testing.assert_allclose(ops.to_numpy(ops.moveaxis(by_tuples, 1, -1)), ops.to_numpy(by_numbers), rtol=1e-6)
    with pytest.raises(errors.ShapeError):
        ops.conv(first, kernel, (1,), (0,), "channels_first", (1,), np.ones(1, "f4"))
    with pytest.raises(errors.ShapeError):
        ops.conv(first[0], kernel, (1,), (0,), "channels_first", (1,), bias)


def test_losses_of_other_dtypes_and_shapes_are_those_of_the_formula(backend: str) -> None:
    logs = np.log(np.exp(F) / np.exp(F).sum(-1, keepdims=True))
    for target in (np.int64([[1, 0, 0], [0, 0, 1]]), np.float64([[0.5, 0.5, 0], [0, 0, 1]]), np.float32([[0, 1, 0]])):
        found = ops.to_numpy(ops.categorical_crossentropy(target, F, True))
        np.testing.assert_allclose(found, -(logs * target).sum(-1), rtol=1e-5)


def test_each_generator_without_a_seed_draws_others(backend: str) -> None:
    first, second = (ops.random.Generator() for _ in range(2))
    draws = [ops.to_numpy(ops.random.uniform((4,), generator=g)).tolist() for g in (first, second)]
    assert draws[0] != draws[1]


def test_integers_of_64_bits_without_a_sign_are_drawn_in_their_whole_range(backend: str) -> None:
    found = ops.to_numpy(ops.random.randint((64,), 0, 2**64 - 1, "uint64", seed=1))
    assert found.dtype == np.uint64
    assert found.max() > 2**63 > found.min()


def mixed(x: Any) -> Any:
    return ops.sum(ops.real(ops.power(x, 2.5)))


AS_ON_NUMPY: dict[str, Callable[[], Any]] = {
    "attention to nothing": lambda: ops.dot_product_attention(*(ops.ones((1, length, 1, 4)) for length in (2, 0, 0))),
    "a complex power": lambda: ops.grad(mixed)(ops.asarray(Z)),
    "a complex exponent": lambda: ops.grad(lambda w: ops.sum(ops.real(ops.power(ops.asarray(Z), w))))(ops.asarray(Z)),
    "complex deviations": lambda: ops.grad(lambda z: ops.std(z))(ops.asarray(Z)),
    "a number that a vector is far from": lambda: ops.cdist(F, F[0]),
    "a complex determinant": lambda: ops.jvp(
        lambda x: list(ops.slogdet(x)), (ops.asarray(MATRIX),), (ops.asarray(MATRIX.T.copy()),)
    ),
    "a real determinant": lambda: ops.jvp(
        lambda x: list(ops.slogdet(x)), (ops.asarray(MATRIX.real.copy()),), (ops.asarray(MATRIX.imag.copy()),)
    ),
    "statistics": lambda: [
        event.values
        for event in recorded(
            lambda: (ops.multiply(Z, 2j), ops.multiply(np.float16([1, 3]), 2.0), ops.add(np.zeros((0,), "f4"), 1.0))
        )
    ],
}
MATRIX = np.array([[2 + 1j, 1], [-1j, 3 - 1j]], np.complex64)


def recorded(call: Callable[[], Any]) -> Any:
    with ops.record(values=True) as log:
        call()
    return log


def numbers(value: Any) -> list[Any]:
    """Returns the numbers in a result, tensors as nested lists."""
    if isinstance(value, (list, tuple)):
        return [numbers(item) for item in value]
    return [ops.to_numpy(value).tolist()] if ops.is_tensor(value) else [value]


@pytest.mark.parametrize("name", AS_ON_NUMPY)
def test_rare_calls_give_what_they_give_on_numpy(name: str, backend: str) -> None:
    def outcome() -> Any:
        try:
            return numbers(AS_ON_NUMPY[name]())
        except errors.EmberError as error:
            return type(error)

    found = outcome()
    with ops.use_backend("numpy"):
        wanted = outcome()
    if isinstance(wanted, type):
        assert found is wanted
        return
    flat, expected = (np.array(_leaves(x), complex) for x in (found, wanted))
    np.testing.assert_allclose(flat, expected, rtol=2e-5, atol=2e-6)


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "float32"])
@pytest.mark.parametrize("place", ["real", "imaginary"])
def test_a_number_that_is_not_finite_is_found_in_each_dtype(dtype: str, place: str, backend: str) -> None:
    wrong = complex(0, np.inf) if place == "imaginary" and dtype == "complex64" else np.inf
    x = ops.cast(np.array([1.0, 2.0]), dtype)
    with ops.checked("nan", policy="record") as found:
        y = ops.where(np.array([True, False]), x, ops.cast(wrong, dtype))
        ops.subtract(y, y)
        ops.add(x, x)
        ops.to_numpy(x)
    assert {finding.op for finding in found} <= {"where", "subtract", "cast"}
    assert found


def test_a_loss_with_its_slope_serves_usual_arguments_only() -> None:
    usual: dict[str, Any] = {
        "input": F,
        "target": np.array([0, 2]),
        "weight": None,
        "reduction": "mean",
        "ignore_index": -100,
        "label_smoothing": 0.0,
        "axis": -1,
    }
    assert mean_cross_entropy_with_slope(**usual) is not None
    assert mean_cross_entropy_with_slope(**usual | {"axis": 1}) is not None
    for odd in (
        {"input": F.astype("f2")},
        {"input": F[:0], "target": np.array([], "i8")},
        {"target": np.array([0, 2], "i4")},
        {"target": np.array([0, 2, 1])},
        {"target": np.array([0, 3])},
        {"target": np.array([0, -1])},
        {"weight": np.ones(3, "f4")},
        {"reduction": "sum"},
        {"ignore_index": 1},
        {"ignore_index": np.int64(-100)},
        {"label_smoothing": 0.1},
        {"label_smoothing": 0},
        {"axis": 0},
        {"axis": np.int64(-1)},
    ):
        assert mean_cross_entropy_with_slope(**usual | odd) is None, odd


COMPILED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "log_softmax": (ops.log_softmax, F),
    "log_softmax of nothing": (ops.log_softmax, F[:, :0]),
    "softmax of nothing": (ops.softmax, F[:, :0]),
    "transpose": (ops.matrix_transpose, F),
    "linear": (lambda x: ops.linear(x, np.ones((3, 2), "f4")), F),
    "linear of rows": (lambda x: ops.linear(x, np.ones((3, 2), "f4")), F[0]),
    "linear of another dtype": (lambda x: ops.linear(x, np.ones((3, 2))), F),
    "linear that does not fit": (lambda x: ops.linear(x, np.ones((4, 2), "f4")), F),
    "transpose of a row": (ops.matrix_transpose, F[0]),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_of_numpy_give_what_they_give_uncompiled(name: str) -> None:
    function, x = COMPILED[name]
    with ops.use_backend("numpy"):
        compiled = ops.compile(lambda x: function(ops.multiply(x, 1.0)))
        try:
            wanted = function(x)
        except errors.EmberError as error:
            for _ in range(2):
                with pytest.raises(type(error)):
                    compiled(x)
            return
        for _ in range(3):
            np.testing.assert_allclose(compiled(x), wanted, rtol=1e-6)


def test_wide_complex_numbers_are_chosen_among_many() -> None:
    mask, z = np.arange(20_000) % 3 == 0, np.full(20_000, 1 + 2j)
    for name in {"numpy", "torch"} & set(ops.available_backends()):
        with ops.use_backend(name):
            np.testing.assert_array_equal(ops.to_numpy(ops.where(mask, z, 0)), np.where(mask, z, 0))
