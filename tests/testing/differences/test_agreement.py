"""`compare`: whether the two sides agree: options, numbers, random states and what a program returns."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.testing.differences.runs import STREAM
from tests.testing.differences.faults import faulty, off
from tests.testing.differences.pair import OTHER, X, compare, two_backends


def _one_side(first: Any, second: Any) -> Any:
    return first if ops.get_backend() == "numpy" else second


@two_backends
def test_options_that_differ_between_the_sides_are_named_once_for_each_line() -> None:
    def program(x: Any) -> Any:
        for _ in range(2):
            x = ops.gelu(x, approximate=_one_side(True, False))
        return x

    report = compare(program, X, stop="all")
    first = report.first
    assert first is not None
    assert [divergence.cause for divergence in report.divergences] == ["options"]
    assert (first.op, first.cause, first.call, first.wrong) == ("gelu", "options", 0, "")
    assert first.options == {"approximate": (True, False)}
    line = f"{__file__}:{program.__code__.co_firstlineno + 2}"
    text = f"the program calls gelu() with approximate=True on numpy and False on {OTHER}"
    assert report.summary() == f"{text} at call 0 ({line})"
    assert [row.verdict for row in report.rows] == ["options", "options"]
    assert json.loads(report.to_json())["first"]["options"] == {"approximate": [True, False]}
    small = compare(program, X * 1e-4, stop="all")
    assert small.ok
    assert small.notes == [f"{text} ({line})"]


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "x2=0.501 on numpy and 0.5 on": lambda x: ops.multiply(x, _one_side(0.501, 0.5)),
    "approximate=True on numpy and False on": lambda x: (
        ops.gelu(x) if ops.get_backend() == "numpy" else ops.gelu(x, approximate=False)
    ),
    "axis[1]=1 on numpy and 2 on": lambda x: ops.sum(ops.reshape(x, (2, 2, 4)), axis=(0, _one_side(1, 2))),
    "dtype='float16' on numpy and 'float32' on": lambda x: ops.cast(x, _one_side(ops.float16, ops.float32)),
    "x2=2.5 on numpy and (2+1j) on": lambda x: ops.multiply(x, _one_side(2.5, 2 + 1j)),
    "key[1]=slice(0, 2, None) on numpy and slice(1, 3, None) on": lambda x: ops.get_item(
        x, (0, _one_side(slice(0, 2), slice(1, 3)))
    ),
    "x2=2.0 on numpy and 3.0 on": lambda x: ops.multiply(x, _one_side(2.0, ops.full((), 3.0))),
}


@two_backends
@pytest.mark.parametrize("text", OPTIONS)
def test_arguments_that_are_no_tensors_are_compared(text: str) -> None:
    report = compare(OPTIONS[text], X, stop="all")
    assert report.first is not None, report.table()
    assert report.first.cause == "options", report.table()
    assert f"with {text}" in report.summary()


def test_numbers_that_follow_from_results_are_no_options_that_differ() -> None:
    """A number that a result gives is off by as much as the result, and one that is computed from it by little more."""
    noisy = faulty(OTHER, "sum", lambda f, *args: ops.multiply(f(*args), 1 + 2e-3))

    def program(x: Any) -> Any:
        total = float(ops.sum(x))
        return ops.multiply(x, total), ops.multiply(x, 1 / total), total

    for x in (X, np.abs(X)):
        report = compare(program, x, backends=("numpy", noisy), stop="all", tolerance=1e5)
        assert report.ok, report.table()
    report = compare(
        lambda x: (program(x), ops.multiply(x, _one_side(0.5, 0.52))),
        np.abs(X),
        backends=("numpy", noisy),
        stop="all",
        tolerance=1e5,
    )
    assert report.ok is (OTHER == "numpy")


def test_a_whole_number_that_a_result_gives_is_explained() -> None:
    first, second = np.array([[1.0, 1.0 + 1e-6], [1.0 + 1e-6, 1.0]], "float32")
    noisy = faulty(OTHER, "multiply", lambda f, x, y: ops.add(f(x, y), ops.convert_to_tensor(second - first)))

    def program(x: Any) -> Any:
        at = int(ops.argmax(ops.multiply(x, 1.0)))
        return at, ops.add(x, at)

    report = compare(program, first, backends=("numpy", noisy), stop="all", tolerance=100)
    assert report.ok, report.table()
    assert [row.carried for row in report.rows][1] == 1.0


@two_backends
@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.5, 0.501), "result=0.5 on numpy and 0.501 on"),
        (({"a": [1, 2]}, {"a": [1, 3]}), "result['a'][1]=2 on numpy and 3 on"),
        (("cat", "dog"), "result='cat' on numpy and 'dog' on"),
        (((1, 2), (1, 2, 3)), "result=(1, 2) on numpy and (1, 2, 3) on"),
        ((None, 3), "result=None on numpy and 3 on"),
    ],
)
def test_numbers_and_texts_that_the_program_returns_are_compared(values: Any, text: str) -> None:
    def program(x: Any) -> Any:
        ops.tanh(x)
        return _one_side(*values)

    report = compare(program, X)
    assert report.first is not None
    assert (report.first.op, report.first.cause) == ("(result)", "result")
    assert report.summary().startswith(f"the program returns {text}")
    assert compare(lambda x: (program(x), 1.0, float("nan"))[1:], X).ok


@two_backends
def test_an_option_that_one_side_refuses_is_no_wrong_op() -> None:
    report = compare(lambda x: ops.sum(x, axis=_one_side(0, 5)), X)
    assert report.first is not None
    assert report.first.cause == "options"
    assert "axis=0 on numpy and 5 on" in report.summary()


@two_backends
def test_a_wrong_op_comes_before_options_that_differ() -> None:
    bad = faulty(OTHER, "gelu", off)
    report = compare(lambda x: ops.gelu(x, approximate=_one_side(True, False)), X, backends=("numpy", bad))
    assert report.first is not None
    assert (report.first.cause, report.first.wrong) == ("local", OTHER)
    assert report.notes[0].startswith("the program calls gelu() with approximate=True")


@two_backends
def test_the_state_of_random_numbers_is_an_argument() -> None:
    seeds = ops.random.Generator(3), ops.random.Generator(4)
    report = compare(lambda x: ops.random.normal((3,), generator=_one_side(*seeds)), X)
    assert report.first is not None
    assert report.first.cause == "options"
    assert "generator=a generator of seed 3 at" in report.summary()


@two_backends
def test_streams_that_were_drawn_from_on_one_side_alone_are_an_argument() -> None:
    def program(x: Any) -> Any:
        if ops.get_backend() == "numpy":
            STREAM.get().uniform((1,))
        return ops.dropout(x, 0.5)

    report = compare(program, X)
    assert report.first is not None
    assert report.first.cause == "options"
    assert "with the random state=a generator of seed 0 at" in report.summary()


@two_backends
def test_an_option_behind_noise_is_named() -> None:
    noisy = faulty(OTHER, "negative", lambda f, x: ops.multiply(f(x), 1 + 9e-5))
    x = -np.linspace(1.5, 4, 20, dtype="float32")
    program = lambda x, exact: ops.gelu(ops.negative(x), approximate=_one_side(True, not exact))
    for exact, causes in ((True, ["local", "options"]), (False, ["local"])):
        report = compare(partial(program, exact=exact), x, backends=("numpy", noisy), stop="all")
        assert [divergence.cause for divergence in report.divergences] == causes, report.table()


def test_results_of_other_shapes_are_none_from_outside() -> None:
    bad = faulty(OTHER, "sum", lambda f, *args: ops.reshape(f(*args), (1,)))
    for program in (ops.sum, lambda x: ops.negative(ops.sum(x))):
        report = compare(program, X, backends=("numpy", bad), stop="all")
        assert [divergence.cause for divergence in report.divergences] == ["local"], report.table()


@two_backends
def test_a_wider_dtype_of_one_library_is_nothing_from_outside() -> None:
    """NumPy promotes float32 and int64 to float64, PyTorch and MLX do not."""

    def program(x: Any) -> Any:
        return ops.negative(x) / _one_side(np.float64(3), 3.0)

    report = compare(program, X, stop="all")
    assert report.ok, report.table()
