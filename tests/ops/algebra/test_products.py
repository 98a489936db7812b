"""Products beyond the sample rows: errors, exact integers, precision, and the order of chains."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.core import errors
from emberharmony.ops.algebra import products

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


ERRORS: list[tuple[Callable[[], object], type[Exception]]] = [
    (lambda: ops.matmul(ones(), ones(3)), errors.ShapeError),
    (lambda: ops.matmul(ones(2, 3), ones(2, 3)), errors.ShapeError),
    (lambda: ops.matmul(ones(2, 2, 3), ones(3, 3, 4)), errors.ShapeError),
    (lambda: ops.dot(ones(2), ones(3)), errors.ShapeError),
    (lambda: ops.dot(ones(1), ones(3)), errors.ShapeError),
    (lambda: ops.vdot(ones(1), ones(3)), errors.ShapeError),
    (lambda: ops.vecdot(ones(2, 1), ones(2, 3)), errors.ShapeError),
    (lambda: ops.vecdot(ones(3), ones(3), 1), errors.AxisError),
    (lambda: ops.inner(ones(2, 3), ones(3, 2)), errors.ShapeError),
    (lambda: ops.tensordot(ones(2, 3), ones(3, 2), [[0, 1], [0, 1]]), errors.ShapeError),
    (lambda: ops.tensordot(ones(2, 3), ones(3, 2), [[0, 1], [1]]), errors.ShapeError),
    (lambda: ops.tensordot(ones(2, 3), ones(3, 2), [[4], [0]]), errors.AxisError),
    (lambda: ops.tensordot(ones(2, 3), ones(3, 2), 3), errors.AxisError),
    (lambda: ops.tensordot(ones(2, 3), ones(3, 2), -1), errors.AxisError),
    (lambda: ops.tensordot(ones(3, 3), ones(3), 2), errors.AxisError),
    (lambda: ops.tensordot(ones(3), ones(3), 2**40), errors.AxisError),
    (lambda: ops.tensordot(ones(3), ones(3), 10**400), errors.AxisError),
    (lambda: ops.trace(ones(3)), errors.ShapeError),
    (lambda: ops.trace(ones(3, 3), 0, 1, 1), errors.AxisError),
    (lambda: ops.cross(ones(2), ones(2)), errors.ShapeError),
    (lambda: ops.cross(ones(3), ones(3), 1), errors.AxisError),
    (lambda: ops.einsum("ij,jk", ones(2, 3), ones(2, 3)), errors.ShapeError),
    (lambda: ops.einsum("ij", ones(3)), errors.ShapeError),
    (lambda: ops.einsum("i,i", ones(3)), errors.ArgumentError),
    (lambda: ops.einsum("i->j", ones(3)), errors.ArgumentError),
    (lambda: ops.einsum("i->ii", ones(3)), errors.ArgumentError),
    (lambda: ops.einsum("i..j->ij", ones(3, 3)), errors.ArgumentError),
    (lambda: ops.einsum("...i->i", ones(2, 3)), errors.ShapeError),
    (lambda: ops.einsum("i...,i->", ones(2, 3), ones(2)), errors.ShapeError),
    (lambda: ops.multi_dot([ones(2, 2)]), errors.ArgumentError),
    (lambda: ops.multi_dot([ones(2, 2), ones(2), ones(2, 2)]), errors.ShapeError),
    (lambda: ops.multi_dot([ones(2, 3), ones(2, 3)]), errors.ShapeError),
]


def test_einsum_may_leave_out_an_ellipsis_that_stands_for_no_axes(backend: str) -> None:
    assert ops.einsum("...i->i", ones(3)).tolist() == [1.0] * 3
    assert ops.einsum("i...,i->", ones(2), ones(2)).tolist() == 2.0


@pytest.mark.parametrize("call, typed", ERRORS)
def test_bad_input_raises_a_typed_error(call: Callable[[], object], typed: type[Exception], backend: str) -> None:
    with pytest.raises(typed, match=rf"\(\) on backend '{backend}'"):
        call()


@pytest.mark.parametrize("dtype", INTEGERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(seed=st.integers(0, 2**31), length=st.sampled_from([1, 2, 40, 700]))
def test_products_of_integers_are_exact_and_wrap(dtype: str, backend: str, seed: int, length: int) -> None:
    limits, rng = np.iinfo(dtype), np.random.default_rng(seed)
    a = rng.integers(limits.min, limits.max, (2, length), dtype, endpoint=True)
    b = rng.integers(limits.min, limits.max, (length, 3), dtype, endpoint=True)
    exact = (a.astype(object) @ b.astype(object)) % (1 << limits.bits)
    wanted = exact.astype(np.uint64).astype(dtype)
    for result in (ops.matmul(a, b), ops.einsum("ij,jk->ik", a, b), ops.tensordot(a, b, 1)):
        assert ops.dtype(result) == dtype
        assert np.array_equal(ops.to_numpy(result), wanted)
    total = (a.astype(object) ** 3).sum(1) % (1 << limits.bits)
    assert np.array_equal(ops.to_numpy(ops.einsum("ij,ij,ij->i", a, a, a)), total.astype(np.uint64).astype(dtype))


def test_products_of_booleans_use_and_and_or(backend: str) -> None:
    a = np.array([[True, True], [False, True]])
    assert ops.matmul(a, a).tolist() == [[True, True], [False, True]]
    assert ops.dtype(ops.einsum("ij->i", a)) == "bool"


@pytest.mark.parametrize("op", ["dot", "vdot", "vecdot", "matmul", "inner"])
def test_long_products_are_precise(op: str, backend: str) -> None:
    x = np.random.default_rng(0).random(100_000, np.float32)
    wanted = float(x.astype(np.float64) @ x.astype(np.float64))
    assert float(getattr(ops, op)(x, x)) == pytest.approx(wanted, rel=2e-6)
    assert float(ops.einsum("i,i->", x, x)) == pytest.approx(wanted, rel=2e-6)


@pytest.mark.parametrize("length", [64, 256, 784, 1024, 1025, 1026, 2048, 4096, 4099])
@pytest.mark.parametrize("transposed", ["", "a", "b"])
def test_matrix_products_keep_their_digits(length: int, transposed: str, backend: str) -> None:
    rng = np.random.default_rng(length)
    uniform = rng.random((8, length), np.float32), rng.random((length, 16), np.float32)
    # Equal terms are the worst case: the sums are rounded in the same direction while their exponent stays the same.
    # NumPy multiplies small matrices by a kernel that adds terms one after the other, however many there are.
    equal = tuple(np.full_like(x, np.float32(1 / 7)) for x in uniform)
    worst = 512 if backend in ("numpy", "dask") else 128
    for (a, b), bound in ((uniform, 24), (equal, worst)):
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        x, y = (
            ops.matrix_transpose(ops.convert_to_tensor(z.T.copy())) if name in transposed else ops.convert_to_tensor(z)
            for name, z in (("a", a), ("b", b))
        )
        batch = ops.stack([x, x])
        found = [ops.matmul(x, y), ops.matmul(batch, y), ops.matmul(batch, ops.stack([y, y])), ops.tensordot(x, y, 1)]
        for result in (*found, ops.einsum("ij,jk", x, y), ops.inner(x, ops.matrix_transpose(y)), ops.dot(x, y)):
            assert ops.dtype(result) == "float32"
            assert np.abs(ops.to_numpy(result) / wanted - 1).max() < bound * 2.0**-23


def test_gradients_of_long_products_keep_their_digits(backend: str) -> None:
    rng = np.random.default_rng(0)
    a, b, cotangent = (rng.random(shape, np.float32) for shape in ((8, 2048), (2048, 16), (8, 16)))
    wanted = cotangent.astype(np.float64) @ b.astype(np.float64).T, a.astype(np.float64).T @ cotangent
    pull = ops.vjp(lambda x, y: ops.matmul(x, y), ops.convert_to_tensor(a), ops.convert_to_tensor(b))[1]
    for found, exact in zip(pull(ops.convert_to_tensor(cotangent)), wanted, strict=True):
        assert np.abs(ops.to_numpy(found) / exact - 1).max() < 8 * 2.0**-23


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_accumulated_in_a_wider_dtype(dtype: str, backend: str) -> None:
    x = ops.cast(np.full(4096, 0.5), dtype)
    for result in (ops.dot(x, x), ops.vdot(x, x), ops.vecdot(x, x), ops.einsum("i,i", x, x)):
        assert ops.dtype(result) == dtype
        assert float(ops.cast(result, "float32")) == 1024.0
    eps = ops.finfo(dtype).eps
    for length in (100, 1000, 2048):
        a, b = (ops.cast(np.random.default_rng(1).random(shape), dtype) for shape in ((5, length), (length, 6)))
        wide = (ops.to_numpy(ops.cast(x, "float32")).astype(np.float64) for x in (a, b))
        wanted = np.matmul(*wide)
        for result in (ops.matmul(a, b), ops.einsum("ij,jk", a, b)):
            assert ops.dtype(result) == dtype
            assert np.abs(ops.to_numpy(ops.cast(result, "float32")) / wanted - 1).max() < eps


def test_mixed_dtypes_are_promoted(backend: str) -> None:
    integers, floats = np.ones((2, 2), np.int64), np.ones((2, 2), np.float32)
    for op in (ops.matmul, ops.dot, ops.inner, ops.outer, ops.kron, ops.vdot):
        assert ops.dtype(op(integers, floats)) == "float32"
    assert ops.dtype(ops.einsum("ij,jk", np.ones((2, 2), np.int8), integers)) == "int64"


@pytest.mark.parametrize("op", ["matmul", "dot", "inner"])
def test_empty_tensors_of_mixed_dtypes_are_promoted(op: str, backend: str) -> None:
    for a, b in (("float64", "int32"), ("int32", "float32"), ("complex64", "float32"), ("uint8", "int64")):
        x, y = ops.zeros((0, 3), dtype=a), ops.ones((2, 3, 3), dtype=b)
        result = getattr(ops, op)(x, y)
        assert ops.dtype(result) == ops.result_type(x, y), (a, b)
        assert 0 in result.shape


def test_vdot_and_vecdot_conjugate_their_first_operand(backend: str) -> None:
    x = np.array([1 + 2j, 3j], np.complex64)
    assert complex(ops.vdot(x, x)) == 14
    assert complex(ops.vecdot(x, x)) == 14
    assert complex(ops.dot(x, x)) == complex(x @ x)


def test_chains_are_multiplied_in_the_cheapest_order(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    shapes = []

    def recorded(a: Any, b: Any) -> Any:
        shapes.append((tuple(a.shape), tuple(b.shape)))
        return ops.matmul(a, b)

    monkeypatch.setattr(products, "matmul", recorded)
    chain = [ones(10, 2), ones(2, 10), ones(10, 3)]
    assert tuple(ops.multi_dot(chain).shape) == (10, 3)
    assert shapes == [((2, 10), (10, 3)), ((10, 2), (2, 3))]
    shapes.clear()
    assert tuple(ops.multi_dot([ones(4), ones(4, 5), ones(5, 6)]).shape) == (6,)
    assert shapes == [((4,), (4, 5)), ((5,), (5, 6))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_tensordot_agrees_with_numpy(backend: str, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    pairs = data.draw(st.permutations(range(len(shape)))) if shape else []
    first = list(pairs[: data.draw(st.integers(0, len(pairs)))])
    other = [shape[a] for a in first] + data.draw(st.lists(st.integers(1, 3), max_size=2))
    a, b = np.arange(np.prod(shape)).reshape(shape), np.arange(np.prod(other, dtype=int)).reshape(other)
    axes = (first, list(range(len(first))))
    assert np.array_equal(ops.to_numpy(ops.tensordot(a, b, axes)), np.tensordot(a, b, axes))


@pytest.mark.parametrize(
    ("subscripts", "shapes", "result"),
    [
        ("ij,jk->", [(0, 0), (0, 0)], ()),
        ("i,i", [(0,), (0,)], ()),
        ("ij,jk->ik", [(2, 0), (0, 3)], (2, 3)),
        ("...i,i->...", [(2, 3, 0), (0,)], (2, 3)),
        ("i,j->ij", [(0,), (3,)], (0, 3)),
    ],
)
def test_a_sum_of_no_products_is_zero(
    subscripts: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], backend: str
) -> None:
    for dtype in ("float32", "int8"):
        found = ops.einsum(subscripts, *(ops.ones(shape, dtype) for shape in shapes))
        assert np.array_equal(ops.to_numpy(found), np.zeros(result, dtype))
    with pytest.raises(errors.ShapeError, match="index 'i' of 'ii' has lengths 1 and 4"):
        ops.einsum("ii", ones(1, 4))


def test_shapes_without_a_product_are_named_alike(backend: str) -> None:
    with pytest.raises(
        errors.ShapeError, match=rf"matmul\(\) on backend '{backend}': .*\(2, 3\) and \(2, 4\)"
    ) as found:
        ops.matmul(ones(2, 3), ones(2, 4))
    assert "gufunc" not in str(found.value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_the_product_of_two_vectors_is_a_tensor_without_axes(dtype: str, backend: str) -> None:
    x = ops.cast([1, 2, 3], dtype)
    product = ops.matmul(x, x)
    assert type(product) is type(x)
    assert product.shape == ()
    assert ops.dtype(product).name == dtype
    assert float(product) == 14.0
