"""The array object: operators, attributes, conversions, protocols."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.errors import ArgumentError, BackendMismatchError, TracedTensorError
from emberharmony.xp import namespace
from tests.another import another

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
A, B = np.asarray([[1.5, 2.0, 3.0], [4.0, 5.0, 6.5]], np.float32), np.asarray([2.0, 0.5, 3.0], np.float32)
A.flags.writeable = B.flags.writeable = False  # arrays that share their memory are written into


@pytest.mark.parametrize("name", BINARY)
def test_an_operator_computes_what_numpy_does(name: str, xp: Any) -> None:
    apply = getattr(operator, name)
    a, b = xp.asarray(A), xp.asarray(B)
    for found, wanted in (
        (apply(a, b), apply(A, B)),
        (apply(a, 2.0), apply(A, np.float32(2.0))),
        (apply(2.0, a), apply(np.float32(2.0), A)),
        (apply(a, np.float64(2.0)), apply(A, np.float32(2.0))),
        (apply(a, b.native), apply(A, B)),
    ):
        assert type(found) is xp.Array
        assert np.allclose(np.asarray(found), wanted)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("name", BITS)
def test_an_operator_of_bits_computes_what_numpy_does(name: str, xp: Any) -> None:
    apply = getattr(operator, name)
    a, b = np.asarray([5, 6, 7], np.int32), np.asarray([1, 2, 3], np.int32)
    assert np.asarray(apply(xp.asarray(a), xp.asarray(b))).tolist() == apply(a, b).tolist()
    assert np.asarray(apply(3, xp.asarray(b))).tolist() == apply(3, b).tolist()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_an_operator_in_place_changes_the_array_itself(name: str, xp: Any) -> None:
    x = kept = xp.asarray(A, copy=True)
    x = getattr(operator, f"i{name}")(x, 2.0)
    assert x is kept
    assert np.allclose(np.asarray(x), getattr(operator, name)(A, np.float32(2.0)))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"])
def test_an_operator_in_place_gives_what_the_operator_gives(name: str, xp: Any) -> None:
    for dtype in ("bool", "int32", "uint8", "float32", "complex64"):
        for other in (xp.asarray([[3, 1], [2, 3]], dtype=dtype), xp.asarray([1, 2], dtype=dtype), 2, 2.0):
            x = xp.asarray([[1, 0], [5, 3]], dtype=dtype)
            try:
                wanted = getattr(operator, f"__{name}__")(x, other)
            except TypeError:
                continue
            apply = getattr(operator, f"__i{name}__")
            if (wanted.shape, wanted.dtype) == (x.shape, x.dtype):
                assert apply(x, other) is x
                assert np.array_equal(np.asarray(x), np.asarray(wanted), equal_nan=dtype == "complex64")


def test_an_operator_in_place_leaves_the_memory_of_others(xp: Any) -> None:
    x = xp.zeros(3)
    before, given = x + 0.0, x.native
    kept = xp._kit.ops.copy(given)
    x += xp.ones(3)
    first = x[0]
    x += xp.ones(3)
    assert (x.tolist(), float(first), before.tolist(), kept.tolist()) == ([2.0] * 3, 1.0, [0.0] * 3, [0.0] * 3)


def test_an_operator_in_place_keeps_shape_and_dtype(xp: Any) -> None:
    x = xp.asarray([1.0, 2.0], dtype=xp.float32)
    x += xp.asarray([1.0, 2.0], dtype=xp.float64)
    assert (x.dtype, x.tolist()) == (xp.float32, [2.0, 4.0])
    with pytest.raises(ValueError, match="shape"):
        x += xp.ones((3, 2))
    counts = xp.asarray([1, 2])
    with pytest.raises(TypeError, match="astype"):
        counts += 0.5
    with pytest.raises(TypeError, match="astype"):
        counts[0] = 0.5


def test_unary_operators(xp: Any) -> None:
    x = xp.asarray([-1.0, 2.0])
    assert ((-x).tolist(), abs(x).tolist(), (+x).tolist()) == ([1.0, -2.0], [1.0, 2.0], [-1.0, 2.0])
    assert (~xp.asarray([1, 2])).tolist() == [-2, -3]
    same = +x
    same[0] = 9.0
    assert x.tolist() == [-1.0, 2.0]


def test_a_product_of_matrices(xp: Any) -> None:
    x = xp.asarray(A)
    assert np.allclose(np.asarray(x @ x.T), A @ A.T)


def test_attributes(xp: Any) -> None:
    x = xp.asarray(A)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 4, 24)
    assert x.dtype is xp.float32
    assert x.device in xp.__array_namespace_info__().devices()
    assert x.T.shape == x.mT.shape == (3, 2)
    assert isinstance(x.native, xp._kit.native)
    assert x.to_device(x.device).tolist() == x.tolist()
    with pytest.raises(ValueError, match="two axes"):
        _ = xp.ones((2, 2, 2)).T


def test_the_namespace_of_an_array(xp: Any) -> None:
    x = xp.zeros(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ArgumentError, match="api_version"):
        x.__array_namespace__(api_version="1999.12")


def test_methods_that_other_arrays_have(xp: Any) -> None:
    x = xp.asarray(A)
    assert np.allclose(float(x.sum()), A.sum())
    assert np.allclose(np.asarray(x.max(axis=0)), A.max(0))
    assert x.sum(axis=0, dtype=xp.float64, out=None).dtype is x.prod(dtype=xp.float64).dtype is xp.float64
    assert np.allclose(np.asarray(x.std(axis=1)), A.std(1), atol=1e-6)
    assert x.reshape(3, 2).shape == x.reshape((3, 2)).shape == (3, 2)
    assert x.astype(xp.int32).dtype == xp.int32
    assert x.ravel().shape == x.flatten().shape == (6,)
    assert x.copy() is not x
    assert x.view(xp.uint32).dtype is xp.uint32
    pairs = xp.asarray([1 + 2j, 3 + 4j], dtype=xp.complex64)
    assert pairs.view(xp.float32).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert pairs.view(np.complex64).dtype is xp.complex64


def test_an_array_of_one_element_becomes_a_number(xp: Any) -> None:
    assert float(xp.asarray(2.5)) == 2.5
    assert int(xp.asarray(2)) == operator.index(xp.asarray(2)) == 2
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j
    assert bool(xp.asarray(True)) is bool(xp.asarray([[True]])) is True
    with pytest.raises(TypeError, match="one element"):
        bool(xp.asarray([True, True]))
    assert xp.asarray([3]).item() == 3
    assert f"{xp.asarray(2.5):.2f}" == "2.50"
    for convert in (float, int, bool, operator.index):
        with pytest.raises(TypeError, match="array"):
            convert(xp.ones(2))
    with pytest.raises(TypeError):
        operator.index(xp.asarray(1.0))
    with pytest.raises(TypeError):
        float(xp.asarray(1j))


def test_an_array_is_iterated_over_lazily(xp: Any) -> None:
    x = xp.asarray(A)
    assert [row.tolist() for row in x] == A.tolist()
    assert next(iter(x)).shape == (3,)
    assert len(x) == 2
    assert 5.0 in x
    assert 7.0 not in x
    with pytest.raises(TypeError, match="without axes"):
        iter(xp.asarray(1.0))


def test_an_array_has_no_hash(xp: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(xp.ones(2))
    with pytest.raises(TypeError, match="takes no arguments"):
        xp.Array([1.0])


@pytest.mark.parametrize(
    "key", [0, -1, slice(1, None), (0, 1), (..., 0), (None, 1), (slice(None), slice(None, None, -1)), ([1, 0], 2)]
)
def test_an_index_reads_what_numpy_reads(key: Any, xp: Any) -> None:
    found = xp.asarray(A)[key]
    assert type(found) is xp.Array
    assert np.array_equal(np.asarray(found), A[key])


def test_masks_and_arrays_of_indices(xp: Any) -> None:
    x = xp.asarray(A, copy=True)
    assert x[x > 2.5].tolist() == A[A > 2.5].tolist()
    assert x[xp.asarray([1, 0])].tolist() == A[[1, 0]].tolist()
    assert x[np.int64(1)].tolist() == A[1].tolist()
    assert x[xp.zeros((0,), dtype=xp.bool)].shape == A[np.zeros(0, bool)].shape == (0, 3)
    for shape in ((3,), (2, 3, 1), (0, 4), (2, 3, 0)):
        with pytest.raises(IndexError):
            x[xp.zeros(shape, dtype=xp.bool)]
    x[x > 2.5] = 0.0
    assert x.tolist() == np.where(A > 2.5, 0, A).tolist()
    x[xp.asarray([1, 0]), 0] = xp.asarray([7.0, 8.0])
    assert x[:, 0].tolist() == [8.0, 7.0]


def test_an_array_is_pickled_and_copied(xp: Any) -> None:
    x = xp.asarray(A)
    for made in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0]):
        assert type(made) is xp.Array
        assert made.tolist() == x.tolist()
        made[0, 0] = 9.0
        assert x.tolist() == A.tolist()
    half = xp.asarray([1.0, 2.0], dtype=xp.bfloat16)
    assert pickle.loads(pickle.dumps(half)).dtype == xp.bfloat16


def test_numpy_reads_an_array_in_its_memory(xp: Any) -> None:
    x = xp.zeros(3)
    array = np.asarray(x)
    assert np.sin(x).tolist() == [0.0, 0.0, 0.0]
    array[1] = 5.0
    assert x.tolist() == [0.0, 5.0, 0.0]
    x += 1.0
    assert array.tolist() == [1.0, 6.0, 1.0]
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    np.array(x)[0] = 7.0  # a copy
    assert x.tolist() == [1.0, 6.0, 1.0]


def test_numpy_leaves_operators_to_the_array(xp: Any) -> None:
    x = xp.ones(3)
    assert type(np.float64(2.0) * x) is xp.Array
    assert type(np.asarray(2.0) * x) is xp.Array


def test_dlpack_between_backends_and_numpy(xp: Any) -> None:
    x = xp.asarray(A)
    assert np.from_dlpack(x).tolist() == A.tolist()
    for name in filter(is_installed, BUILTIN):
        other = namespace(name)
        assert xp.from_dlpack(other.asarray(A)).tolist() == A.tolist()
    assert xp.from_dlpack(x, copy=True) is not x


def test_a_library_that_knows_old_versions_of_dlpack_gets_what_there_is(xp: Any) -> None:
    x = xp.ones(2)
    for whether in (None, True, False):
        assert "dltensor" in repr(x.__dlpack__(max_version=(0, 1), copy=whether))
        with pytest.raises((BufferError, ValueError)):
            x.__dlpack__(max_version=(0, 1), copy=whether, dl_device=(99, 0))


def test_arrays_of_two_backends_do_not_mix(xp: Any, backend: str) -> None:
    other = namespace(another(backend)).ones(3)
    x = xp.ones(3)
    for call in (lambda: xp.add(x, other), lambda: xp.asarray(other), lambda: xp.stack([x, other])):
        with pytest.raises(BackendMismatchError, match="from_dlpack"):
            call()
    with pytest.raises(TypeError):
        _ = x + other


def test_ops_and_layers_take_an_array_and_give_one_back(xp: Any) -> None:
    x = xp.asarray(A)
    assert type(ops.add(x, 1.0)) is type(ops.sum(x, 0)) is type(ops.stack([x, x])) is xp.Array
    assert ops.stack([x, x]).shape == (2, 2, 3)
    assert type(nn.Linear(3, 2)(x)) is xp.Array
    assert ops.add(x, x.native).tolist() == (A + A).tolist()
    assert [type(part) for part in ops.split(x, 3, 1)] == [xp.Array] * 3
    leaves, structure = ops.tree_flatten({"a": x})
    assert isinstance(leaves[0], xp._kit.native)
    assert type(ops.tree_unflatten(structure, leaves)["a"]) is xp.Array


def test_a_number_is_not_taken_out_of_a_differentiated_function(xp: Any) -> None:
    def loss(x: Any) -> Any:
        return xp.sum(x) * float(x[0])

    with pytest.raises(TracedTensorError):
        xp.grad(loss)(xp.ones(3))
    with pytest.raises(TracedTensorError):
        xp.grad(lambda x: xp.asarray(np.sin(x)).sum())(xp.ones(3))


def test_the_repr_names_dtype_and_backend(xp: Any, backend: str) -> None:
    assert repr(xp.ones(2, dtype=xp.float32)) == f"Array([1., 1.], dtype=float32, backend={backend!r})"
