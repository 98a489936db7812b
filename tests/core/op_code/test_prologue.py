"""The body of a composite gets operands of one dtype, which its declaration takes."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend import OPS
from emberharmony.core.op_code.prologue import cast_to_common
from emberharmony.errors import DTypeError, RangeError

Body = Callable[..., Any]


def body(name: str) -> Body:
    return OPS[name].composed


def test_tensors_are_promoted(backend: str) -> None:
    x, y = ops.convert_to_tensor([7, -7], "int16"), ops.convert_to_tensor([4, 4], "int32")
    found = body("fmod")(x, y)
    assert (ops.dtype(found), found.tolist()) == ("int32", [3, -3])
    assert ops.dtype(body("fmod")(x, ops.convert_to_tensor([4.0, 4.0], "float32"))) == "float32"


def test_a_number_is_weak_on_either_side(backend: str) -> None:
    x = ops.convert_to_tensor([7, -7], "int8")
    assert ops.dtype(body("fmod")(x, 4)) == ops.dtype(body("fmod")(4, x)) == "int8"
    assert ops.dtype(body("fmod")(x, 4.5)) == "float32"
    half = ops.convert_to_tensor([7.0], "float16")
    assert ops.dtype(body("hypot")(half, 2**70)) == "float16"
    with pytest.raises(RangeError, match="300 does not fit int8"):
        body("fmod")(x, 300)


def test_integers_become_floats_first_where_the_op_gives_them(backend: str) -> None:
    x = ops.convert_to_tensor([3, 0], "int64")
    found = body("hypot")(x, x)
    assert (ops.dtype(found), found.tolist()) == ("float32", pytest.approx([3 * 2**0.5, 0.0]))


def test_operands_of_one_dtype_are_converted_only_from_integers(backend: str) -> None:
    for dtype in ("bool", "uint8", "float16", "complex64"):
        wanted = dtype if dtype in ("float16", "complex64") else "float32"
        x, y = ops.convert_to_tensor([3, 0], dtype), ops.convert_to_tensor([1, 0], dtype)
        assert [ops.dtype(z) for z in cast_to_common(x, y, inexact=True)] == [wanted, wanted]
        assert all(map(operator.is_, cast_to_common(x, y), (x, y)))
        if wanted == dtype:
            assert all(map(operator.is_, cast_to_common(x, y, inexact=True), (x, y)))


@pytest.mark.parametrize(
    ("name", "dtype"), [("fmod", "bool"), ("hypot", "complex64"), ("gcd", "float32"), ("bitwise_not", "complex64")]
)
def test_other_dtypes_are_refused(backend: str, name: str, dtype: str) -> None:
    x = ops.convert_to_tensor([1], dtype)
    with pytest.raises(DTypeError, match=f"not defined for dtype {dtype}"):
        body(name)(*[x] * (1 if name == "bitwise_not" else 2))


def test_a_body_is_differentiated(backend: str) -> None:
    x = ops.convert_to_tensor([3.0, -4.0])
    found = ops.grad(lambda x: ops.sum(body("hypot")(x, 4)))(x)
    assert found.tolist() == pytest.approx([0.6, -(2**-0.5)])


def test_operands_may_be_named(backend: str) -> None:
    x = ops.convert_to_tensor([7, -7], "int8")
    assert body("fmod")(x, x2=4).tolist() == body("fmod")(x2=4, x1=x).tolist() == [3, -3]
    with pytest.raises(TypeError, match="x3"):
        body("fmod")(x, x, x3=1)
    with pytest.raises(TypeError, match="x2"):
        body("fmod")(x)
