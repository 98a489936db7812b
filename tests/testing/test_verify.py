"""`verify` compares one result with the expected one."""

import re

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.testing.verify import DisagreementError, verify


def test_a_result_within_the_tolerance_gives_the_used_fraction_of_it(backend: str) -> None:
    x = ops.convert_to_tensor(np.array([1.0, 2.0], "float32"))
    assert verify(x, np.array([1.0, 2.0]), "float32", 4.0) == 0.0
    off = np.array([1.0, 2.0 * (1 + 2.0**-22)])
    assert verify(x, off, "float32", 4.0) == pytest.approx(0.5, rel=1e-3)
    assert verify((x, 3), [off, 3], "", 4.0) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("expected", "dtype", "message"),
    [
        (np.ones((2, 1)), "float32", "result has shape (2,), expected (2, 1)"),
        (np.ones(2), "float64", "result has dtype float32, expected float64"),
        ([np.ones(2), np.ones(2)], "float32", "returns 1 results, expected 2"),
        (np.array([1.0, 1.5]), "float32", "exceeds the tolerance of 4 eps: got"),
        (np.array([1.0, np.nan]), "float32", "error inf eps"),
        (np.array([1.0, np.inf]), "float32", "error inf eps"),
    ],
)
def test_the_error_names_the_first_difference(backend: str, expected: object, dtype: str, message: str) -> None:
    x = ops.convert_to_tensor(np.array([1.0, 1.0], "float32"))
    with pytest.raises(DisagreementError, match=re.escape(message)):
        verify(x, expected, dtype, 4.0)


def test_without_a_tolerance_results_must_be_equal(backend: str) -> None:
    x = ops.convert_to_tensor(np.array([1.0], "float64"))
    assert verify(x, np.array([1.0]), "float64") == 0.0
    with pytest.raises(DisagreementError, match="error 1 eps exceeds the tolerance of 0 eps") as caught:
        verify(x, np.array([1.0 - 2.0**-52]), "float64")
    assert caught.value.error == np.inf


def test_the_error_of_a_subnormal_result_is_relative_to_its_spacing(backend: str) -> None:
    x = ops.convert_to_tensor(np.array([6e-8], "float16"))
    assert verify(x, np.array([8e-8]), "float16", 1.0, floor=0.0) < 1.0


def test_each_of_several_results_has_its_own_expected_dtype(backend: str) -> None:
    results = ops.top_k([3.0, 1.0, 2.0], 2)
    assert verify(tuple(results), (np.array([3.0, 2.0]), np.array([0, 2])), ("float32", "int64")) == 0.0
    with pytest.raises(DisagreementError, match="result has dtype int64, expected int32"):
        verify(tuple(results), (np.array([3.0, 2.0]), np.array([0, 2])), ("float32", "int32"))
