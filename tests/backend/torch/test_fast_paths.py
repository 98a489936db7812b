"""On PyTorch, ops that dispatch runs by one kernel have the results and errors of their complete implementations."""

from itertools import product
from math import nan, prod
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend.choice import use_backend
from emberharmony.core import op_globals
from emberharmony.core.dispatch import call_with_conversion
from emberharmony.core.errors import EmberError

torch = pytest.importorskip("torch")
ENDS = ("inf", "-inf", "nan")
SHAPES = [(), (1,), (3,), (0,), (3, 2), (1, 2), (3, 0), (0, 2), (2, 3, 2)]


def counted(shape: tuple[int, ...]) -> Any:
    return torch.arange(1.0, 1 + prod(shape)).reshape(shape)


def ids(*shape: int, start: int) -> Any:
    """Returns indices that repeat, from -1 on if `start` is -1, and out of range if it is 7."""
    return torch.arange(prod(shape)).reshape(shape) % 2 + start


def layers(gates: int) -> list[tuple[Any, ...]]:
    """Returns the sequences, weights and biases of recurrent layers, of which many do not fit together."""
    return [
        tuple(None if shape is None else counted(shape).sin() for shape in (x, w, v, b, c))
        for x, w, v, b, c in product(
            [(2, 3, 2), (1, 1, 2), (2, 0, 2), (0, 3, 2), (2, 3)],
            [(2 * gates, 2), (2 * gates, 3), (2, 2), (2 * gates,)],
            [(2 * gates, 2), (2 * gates, 1), (2, 2)],
            [None, (2 * gates,), (1,)],
            [(2 * gates,), (2, gates)],
        )
    ]


CASES: dict[str, list[tuple[Any, ...]]] = {
    "dot_product_attention": [
        (*(counted(shape).cos() for shape in shapes), None, None, scale, causal)
        for *shapes, scale, causal in product(
            [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 2, 5), (2, 0, 4, 5), (3, 4, 5), (1, 3, 4, 5)],
            [(2, 3, 4, 5), (2, 6, 4, 5), (2, 6, 2, 5), (3, 4, 5)],
            [(2, 3, 4, 5), (2, 6, 4, 5), (2, 6, 2, 5), (2, 6, 4, 3)],
            [None, 0.5],
            [False, True],
        )
    ],
    "depthwise_conv": [
        (counted((2, *lengths, channels)).cos(), counted((*size, channels, multiplier)).sin(), strides, padding)
        for (lengths, size), channels, multiplier, strides, padding in product(
            [((7,), (3,)), ((6, 5), (2, 3)), ((6, 5), (1, 1)), ((1, 5), (1, 3)), ((4, 3, 5), (2, 2, 2))],
            [1, 2, 4],
            [0, 1, 3],
            [1, 2],
            ["valid", "same"],
        )
    ],
    "set_item": [
        (counted(shape), ids(*at, start=start), counted(given) * 10, mode)
        for shape, at, start, given, mode in product(
            SHAPES,
            [(), (0,), (1,), (2,), (1, 2)],
            [0, -1, 7],
            [(), (1,), (2,), (0,), (1, 2), (2, 2), (1, 0), (2, 3, 2)],
            ["set", "add", "max", "unknown"],
        )
    ]
    + [
        (counted((3, 2)).to(own), ids(2, start=0).to(index), counted((2, 2)).to(kind), mode)
        for own, index, kind, mode in product(
            [torch.float32, torch.float16, torch.int64, torch.uint16, torch.complex64, torch.bool],
            [torch.int32, torch.int64, torch.uint8, torch.bool],
            [torch.float16, torch.float64, torch.int64, torch.uint16, torch.complex64, torch.bool],
            ["set", "add"],
        )
    ],
    "put_along_axis": [
        (counted(shape), ids(*at, start=start), counted(given) * 10, axis, mode)
        for shape, at, start, given, axis, mode in product(
            SHAPES,
            [(1,), (3, 2), (3, 1), (3, 5), (0, 2)],
            [0, -1, 7],
            [(1,), (3, 2), (3, 1), (3, 5), (0, 2)],
            [0, -1, None],
            ["set", "add"],
        )
    ]
    + [
        (counted((3, 2)).to(own), ids(3, 2, start=0).to(index), counted((3, 2)).to(kind), -1, mode)
        for own, index, kind, mode in product(
            [torch.float32, torch.int64, torch.uint16, torch.complex64, torch.bool],
            [torch.int32, torch.int64, torch.uint8, torch.bool, torch.float32],
            [torch.float16, torch.float64, torch.int64, torch.uint16, torch.complex64, torch.bool],
            ["set", "add"],
        )
    ],
    "segment_sum": [
        (counted(shape), ids(*at, start=start), count)
        for shape, at, start, count in product(
            SHAPES, [(), (0,), (1,), (2,), (3,), (1, 1)], [0, -1, 7], [0, 1, 4, -1, None]
        )
    ],
    "one_hot": [
        (ids(*shape, start=start), count) for shape, start, count in product(SHAPES, [0, -1, 7], [0, 1, 3, -1])
    ],
    "sparse_categorical_crossentropy": [
        (ids(*at, start=start), counted(shape), True)
        for shape, at, start in product(SHAPES[1:], [(), (1,), (3,), (0,), (3, 1), (2, 3)], [0, -1, -100, 7])
    ],
    "layer_normalization": [
        (counted(shape), *(None if given is None else counted(given) for given in options))
        for shape, *options in product(SHAPES, [None, (), (1,), (2,), (3,)], [None, (1,), (2,), (0,)])
    ],
    "linear": [
        (counted(shape).cos(), counted(matrix).sin(), None if given is None else counted(given), transposed)
        for shape, matrix, given, transposed in product(
            SHAPES,
            [(2, 3), (3, 2), (2, 0), (0, 2), (2,), (1, 2, 2)],
            [None, (), (1,), (2,), (3,), (1, 2)],
            [False, True],
        )
    ],
    "embedding": [
        (ids(*at, start=start).to(index), counted(shape).to(own))
        for shape, at, start, index, own in product(
            SHAPES,
            [(), (0,), (2,), (1, 2)],
            [0, -1, 7],
            [torch.int64, torch.int32, torch.uint8, torch.float32, torch.complex64],
            [torch.float32, torch.int64],
        )
    ],
    "split": [
        (counted(shape), parts, axis)
        for shape, parts, axis in product(SHAPES, [-1, 0, 1, 2, 3, 4, [1], [2, 1], True], [0, 1, -1, 3, None])
    ],
    "cross_entropy": [
        (counted(shape).sin(), ids(*at, start=start), None, reduction, ignored, smoothing, axis)
        for shape, at, start, reduction, ignored, smoothing, axis in product(
            [(3, 2), (1, 2), (3, 0), (0, 2), (2, 3, 2)],
            [(1,), (3,), (0,), (3, 1), (2, 3)],
            [0, -1, 7],
            ["mean", "none", "most"],
            [-100, 1],
            [0.0, 0.25, 1.5],
            [-1, 1, 0],
        )
    ],
    "rnn": [(*layer, None, activation) for layer in layers(1) for activation in ("tanh", "relu", "sine")],
    "gru": layers(3),
    "lstm": layers(4),
    "rot90": [
        (counted(shape), k, axes)
        for shape, k, axes in product(SHAPES, [-1, 0, 1, 2, 5], [(0, 1), (1, 0), (0, 0), (0, 2), (-1, 0), (0,), (0, 5)])
    ],
}


def outcome(call: Any, *arguments: Any) -> object:
    try:
        result = call(*arguments)
    except EmberError as error:
        return type(error), str(error).partition(" (given")[0]
    if isinstance(result, (tuple, list)):
        return type(result), [(x.dtype, x.shape, x.tolist(), x.requires_grad) for x in result]
    return result.dtype, result.shape, result.tolist(), result.requires_grad


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_alone_does_what_the_complete_implementation_does(name: str) -> None:
    with use_backend("torch"):
        backend, called = op_globals.active().backend, getattr(ops, name)
        results = [outcome(called, *case) for case in CASES[name]]
        assert any(result[0] in (torch.float32, tuple, list) for result in results)  # type: ignore[index]
        for case, result in zip(CASES[name], results, strict=True):
            assert repr(result) == repr(outcome(call_with_conversion, backend, name, case)), case


@pytest.mark.parametrize("name", ["set_item", "put_along_axis"])
def test_of_equal_indices_only_the_last_value_has_a_gradient(name: str) -> None:
    values = torch.ones(2, requires_grad=True)
    with use_backend("torch"):
        getattr(ops, name)(torch.zeros(3), torch.tensor([1, 1]), values).sum().backward()
    assert values.grad.tolist() == [0.0, 1.0]


def test_a_convolution_without_gradient_has_the_same_result() -> None:
    x, kernel = torch.linspace(-1, 1, 192).reshape(2, 6, 8, 2), torch.linspace(0, 1, 54).reshape(3, 3, 2, 3)
    with use_backend("torch"):
        for call in (
            lambda x, k: ops.conv(x, k, 2, "same"),
            lambda x, k: ops.conv_transpose(x, k.swapaxes(2, 3), 2, "same"),
        ):
            expected = call(x.double().requires_grad_(), kernel.double().requires_grad_())
            torch.testing.assert_close(call(x.double(), kernel.double()), expected.detach(), rtol=1e-14, atol=1e-14)


POINTS = [0.0, -0.0, 1e-45, -1e-45, 1e-38, -1.0, -2.0, -0.5, 1.4616321, 1.4616322, 1e38, -1e38, *map(float, ENDS)]
"""Ends of the ranges of special functions, and numbers near the root of `digamma`."""


def line() -> Any:
    return torch.cat([torch.tensor(POINTS), torch.linspace(-19.99, 40, 5001), torch.logspace(-38, 38, 501)])


@pytest.mark.parametrize("name", ["digamma", "erfcx", "log_ndtr"])
def test_functions_of_float32_round_those_of_float64(name: str) -> None:
    with use_backend("torch"):
        called, x = getattr(ops, name), line()
        expected = ops.cast(called(x.double()), "float32")
        torch.testing.assert_close(called(x), expected, rtol=1.2e-7, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("least", [1e-30, 1e-7, 0.1, 2e4])
def test_incomplete_gamma_functions_of_float32_have_the_digits_of_float64(name: str, least: float) -> None:
    # The third column is where the functions fall, and beyond 1e5 PyTorch's of float64 has too few digits for float32.
    a = least * torch.logspace(0, 7 if least < 1 else 0.5, 41).reshape(-1, 1)
    x = a * torch.tensor([[0.01, 0.9, 0.998, 1.0, 1.1, 30.0, 1e6, 0.0, 1e-30, -1.0, *map(float, ENDS)]])
    with use_backend("torch"):
        called = getattr(ops, name)
        torch.testing.assert_close(
            called(a, x), ops.cast(called(a.double(), x.double()), "float32"), rtol=3e-7, atol=0, equal_nan=True
        )


@pytest.mark.parametrize("least", [1e-45, -20.0, -2.457024, 1e37, nan])
def test_gammaln_of_many_elements_of_float32_has_the_digits_of_float64(least: float) -> None:
    x = torch.cat([torch.tensor([least]), line().abs(), torch.linspace(0.99, 2.01, 9001)])
    x = x[x.abs() <= 1e36] if least < 1e36 else x
    with use_backend("torch"):
        expected = ops.cast(ops.gammaln(x.double()), "float32")
        torch.testing.assert_close(ops.gammaln(x), expected, rtol=2e-7, atol=0, equal_nan=True)
