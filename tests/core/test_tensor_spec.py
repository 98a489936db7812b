"""`TensorSpec`: the shape and dtype of a tensor."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import TensorSpec, ops
from emberharmony.errors import ArgumentTypeError, DTypeError, ShapeError


def test_a_spec_has_the_shape_and_the_neutral_dtype() -> None:
    spec = TensorSpec((2, np.int64(3)), np.dtype("int16"))
    assert (spec.shape, spec.dtype, spec.ndim, spec.size, spec.nbytes) == ((2, 3), ops.int16, 2, 6, 12)
    assert TensorSpec(4).shape == (4,)
    assert TensorSpec([]).dtype == ops.default_float()
    assert repr(spec) == "TensorSpec((2, 3), 'int16')"
    assert ops.TensorSpec is TensorSpec


def test_specs_are_compared_hashed_and_copied() -> None:
    spec = TensorSpec((2**40, 3), "bfloat16")
    assert spec == TensorSpec([2**40, 3], ops.bfloat16)
    assert spec not in (TensorSpec((3, 2**40), "bfloat16"), TensorSpec((2**40, 3), "float16"), (2**40, 3))
    assert len({spec, TensorSpec((2**40, 3), "bfloat16")}) == 1
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert ops.tree_leaves({"a": spec, "b": [spec]}) == [spec, spec]


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="make a new one"):
        TensorSpec(2).shape = (3,)


@pytest.mark.parametrize(
    ("shape", "dtype", "error"),
    [
        ((2, -1), "float32", ShapeError),
        ((2, None), "float32", ArgumentTypeError),
        ("ab", "float32", ArgumentTypeError),
        (2.0, "float32", ArgumentTypeError),
        ((2,), "float12", DTypeError),
    ],
)
def test_an_unknown_length_or_dtype_is_refused(shape: Any, dtype: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        TensorSpec(shape, dtype)
