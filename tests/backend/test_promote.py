"""Definitions of ops whose declarations say what they take become whole ops."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import create_backend
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.backend.promote import Direct, direct
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import DTypeError, RangeError
from emberharmony.core.op_code.op_source import fast_of
from emberharmony.core.registry import OPS
from emberharmony.core.selection import current
from emberharmony.core.types import Operand, Tensor


def test_no_definition_is_left_unfinished(backend: str) -> None:
    current().import_categories()
    left = [name for name in OPS if isinstance(getattr(type(current()), name, None), Direct)]
    assert left == []


def test_a_definition_gets_tensors_of_one_dtype_that_the_op_takes(backend: str) -> None:
    seen = []

    class Own(type(current())):  # type: ignore[misc]
        name = "own"

        @staticmethod
        def less(x1: Any, x2: Any) -> Any:
            seen.append((x1.dtype, x2.dtype))
            return type(self_of).less(x1, x2)

        hypot = direct(lambda x1, x2: x1, lambda x1, x2: x2, when="{0}.dtype == {1}.dtype")

    self_of, bound = current(), Own().bound
    x = ops.array([1, 2], dtype="int32")
    assert bound.less(x, 1.5).tolist() == [True, False]
    assert seen[0][0] == seen[0][1] == ops.convert_to_tensor(1.5).dtype
    with pytest.raises(DTypeError, match=r"less\(\) on backend 'own': the op is not defined for dtype complex64"):
        bound.less(x, 1j)
    a, b = ops.array([1.0], dtype="float32"), ops.array([2.0], dtype="float32")
    assert (bound.hypot(a, b).tolist(), bound.hypot(a, ops.array([3])).tolist()) == ([1.0], [3.0])
    assert bound.hypot(a, ops.array([3])).dtype == a.dtype


def test_a_guard_holds_beside_a_number_too(backend: str) -> None:
    x = ops.array([1j])
    with pytest.raises(DTypeError, match=r"less\(\) on backend .* not defined for dtype complex64"):
        ops.less(x, 1)


@pytest.fixture
def sum_op() -> Iterator[Any]:
    @op(elementwise=True, takes="real", gives="float")
    def test_summed(x1: Operand, x2: Operand) -> Tensor: ...

    yield test_summed
    del OPS["test_summed"]


def test_a_backend_may_bind_an_op_that_is_declared_late(sum_op: Any) -> None:
    class Late(NumpyBackend):
        name = "late"
        test_summed = direct(np.add)

    late = Late()
    assert fast_of(OPS["test_summed"], late).native is np.add
    with ops.use_backend(late):
        assert sum_op(np.array([1]), np.array([2])).dtype == ops.default_float()
        with pytest.raises(DTypeError, match="complex128"):
            sum_op(np.array([1j]), np.array([1]))


def test_two_objects_of_a_class_share_its_definitions() -> None:
    first, second = create_backend("numpy"), NumpyBackend()
    assert type(first).less is type(second).less


def test_python_integers_become_tensors_of_each_kind(backend: str) -> None:
    promotion = current().promotion
    for dtype, wanted in (("bool", True), ("uint8", 200), ("int16", 200), ("float32", 200.0), ("complex64", 200 + 0j)):
        found = promotion.cast_to(200, as_dtype(dtype))
        assert (ops.dtype(found), found.tolist()) == (dtype, wanted)
    assert promotion.cast_to(0, as_dtype("bool")).tolist() is False
    with pytest.raises(RangeError, match="200"):
        promotion.cast_to(200, as_dtype("int8"))
