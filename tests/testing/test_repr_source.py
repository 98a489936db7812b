"""Calls and inputs written as Python source."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.core.registry import OPS
from emberharmony.testing.inputs import Stranger, Strided, as_argument, non_contiguous_tensor
from emberharmony.testing.repr_source import WRITTEN_OUT, source, spell_op, unpack
from tests.together import together

SCOPE = {
    "np": np,
    "inf": np.inf,
    "nan": np.nan,
    "non_contiguous_tensor": non_contiguous_tensor,
    "unpack": unpack,
    "Stranger": Stranger,
    "bfloat16_of_numpy": bfloat16_of_numpy,
}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3), (WRITTEN_OUT + 1,)])
def test_the_source_of_an_array_evaluates_to_the_same_bits(dtype: str, shape: tuple[int, ...]) -> None:
    kind = bfloat16_of_numpy() if dtype == "bfloat16" else np.dtype(dtype)
    array = np.asarray(np.random.default_rng(0).uniform(0, 100, shape)).astype(kind)
    read = eval(source(array), SCOPE)
    assert read.dtype == array.dtype
    assert read.shape == array.shape
    assert read.tobytes() == array.tobytes()


def test_the_source_keeps_infinities_nan_and_signs_of_zero() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    assert eval(source(special), SCOPE).tobytes() == special.tobytes()
    turned = np.array([complex(np.inf, np.nan), complex(-0.0, np.inf)])
    assert eval(source(turned), SCOPE).tobytes() == turned.tobytes()


@pytest.mark.parametrize(
    "value",
    [None, 3, -2.5, 1j, "same", True, (1,), (), [1, (2, 3)], slice(None, 2, -1), (Ellipsis, None, slice(3))],
)
def test_the_source_of_an_option_evaluates_to_it(value: Any) -> None:
    assert eval(source(value), SCOPE) == value


def test_a_function_has_no_source() -> None:
    with pytest.raises(TypeError, match="cannot be written as a Python expression"):
        source([lambda x: x])


@together("op", sorted(OPS))
def test_an_op_is_written_as_a_user_writes_it(op: str) -> None:
    assert eval(spell_op(op), {"ops": ops, "OPS": OPS}) is OPS[op].function
    assert spell_op(op).startswith("ops.")


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_a_strided_array_becomes_a_non_contiguous_tensor_with_its_values(backend: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
    view = eval(source(Strided(array)), SCOPE)
    assert ops.to_numpy(view).tolist() == array.tolist()
    assert ops.to_numpy(as_argument(Strided(array))).tolist() == array.tolist()
    if backend == "numpy" and array.ndim:
        assert not view.flags.c_contiguous
    if backend == "torch" and array.ndim:
        assert not view.is_contiguous()
