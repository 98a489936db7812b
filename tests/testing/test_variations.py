"""The variations of a sample row: the calls that they generate, and the fault that each of them finds."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import RangeError, ShapeError
from emberharmony.testing import variations
from emberharmony.testing.call import Call
from emberharmony.testing.conformance import outcome
from emberharmony.testing.sample import LEFT_OUT, Sample, case
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()


def failures(row: Sample, calls: Callable[[Sample], object]) -> list[str]:
    """Returns the failures of a row. A fault in its oracle has the same effect as a fault in the op."""
    found = [outcome(row, ops.get_backend(), call) for call in calls(row)]
    assert found
    return [each.failure for each in found if each.failure]


def test_a_row_that_leaves_out_a_check_says_why() -> None:
    left_out = [words for row in SAMPLES.values() for words in row.left_out.items()]
    assert set(LEFT_OUT) == {what for what, _ in left_out}
    assert all(why for _, why in left_out)
    with pytest.raises(ValueError, match=r"sin: nothing is called 'empty'; a row leaves out results of empty axes, "):
        Sample("sin", np.sin, (), left_out={"empty": "no reason"})


def test_integer_widths_are_of_the_kinds_in_the_row(backend: str) -> None:
    row = dataclasses.replace(SAMPLES["add"], integers=("int32",))
    assert {call.dtype for call in variations.integer_width_calls(row)} == {"int8", "int16", "int64"}
    row = dataclasses.replace(SAMPLES["add"], integers=("bool", "uint8"))
    assert {call.dtype for call in variations.integer_width_calls(row)} == {"uint16", "uint32", "uint64"}
    wrong = dataclasses.replace(row, oracle=lambda a, b: a + b + (a.dtype == np.uint16))
    assert failures(row, variations.integer_width_calls) == []
    assert len(failures(wrong, variations.integer_width_calls)) == len(row.cases)


def test_every_axis_is_emptied_if_the_oracle_accepts_it(backend: str) -> None:
    calls = list(variations.empty_axis_calls(SAMPLES["segment_sum"]))
    shapes = {call.args[0].shape for call in calls}
    assert {(5, 0), (0, 3)} <= shapes
    assert not list(variations.empty_axis_calls(Sample("max", np.max, (case(np.ones((2, 3))),))))
    refused = Sample("slice", lambda x, start, shape: np.zeros(shape), (case(np.ones((3, 4)), (1, 1), (2, 3)),))
    assert failures(refused, variations.empty_axis_calls) != []
    allowed = dataclasses.replace(refused, left_out={"results of empty axes": "the block exceeds the tensor"})
    assert failures(allowed, variations.empty_axis_calls) == []
    row = Sample("sum", lambda x, axis=None: np.sum(x, axis) + (x.size == 0), (case(np.ones((2, 3)), 0),))
    assert len(failures(row, variations.empty_axis_calls)) == 1  # for shape (2, 0) the sum is empty and cannot differ


def test_a_dtype_option_applies_before_the_computation(backend: str) -> None:
    calls = [call for call in variations.early_cast_calls(SAMPLES["sum"]) if call.label == "case 0 as float64"]
    wide = next(call for call in calls if call.args[0].flat[0] == np.float32(1e8))
    assert wide.options == {"dtype": "float64"}
    assert float(wide.oracle_result(SAMPLES["sum"])) == 6e8 + 18
    whole = next(call for call in variations.early_cast_calls(SAMPLES["sum"]) if call.label == "case 0 as int8")
    assert int(whole.oracle_result(SAMPLES["sum"])) == 6 * (0 + 0 + 1 + 2)
    assert not list(variations.early_cast_calls(SAMPLES["zeros"]))  # its dtype names the result


def test_large_offsets_must_not_cost_precision(backend: str) -> None:
    row = SAMPLES["logsumexp"]
    assert all(
        np.max(call.args[0]) > 9e3 for call in variations.large_offset_calls(row) if "inf" not in str(call.args[0])
    )
    assert failures(row, variations.large_offset_calls) == []
    naive = Sample("softmax", lambda x: np.exp(x) / np.sum(np.exp(x), -1, keepdims=True), (case(np.ones((2, 3))),))
    assert failures(naive, variations.large_offset_calls)


def test_extremes_are_combined_where_the_op_is_defined(backend: str) -> None:
    (call,) = [call for call in variations.integer_extreme_calls(SAMPLES["add"]) if call.dtype == "int64"]
    pairs = set(zip(*(arg.tolist() for arg in call.args), strict=True))
    assert {(2**63 - 1, -(2**63)), (2**53 + 1, 1)} <= pairs
    (call,) = [call for call in variations.integer_extreme_calls(SAMPLES["exp"]) if call.dtype == "int8"]
    assert call.args[0].max() < 89 < np.iinfo("int8").max  # exp(89) overflows float32
    (call,) = [call for call in variations.integer_extreme_calls(SAMPLES["sqrt"]) if call.dtype == "int32"]
    assert 2**31 - 1 not in call.args[0].tolist()  # float32 cannot represent it


def test_integers_beyond_64_bits_are_accepted_by_floats_only(backend: str) -> None:
    calls = {call.dtype: call for call in variations.huge_integer_calls(SAMPLES["maximum"])}
    assert calls["int32"].raises is RangeError
    assert calls["float32"].args[1] == 2**70
    assert failures(SAMPLES["maximum"], variations.huge_integer_calls) == []


def test_complex_infinities_without_a_limit_are_left_out(backend: str) -> None:
    (call,) = [call for call in variations.complex_infinity_calls(SAMPLES["exp"]) if call.dtype == "complex64"]
    numbers = call.args[0].tolist()
    assert complex(float("-inf"), 1) in numbers
    assert complex(1, float("inf")) not in numbers
    shifted = dataclasses.replace(SAMPLES["log"], oracle=lambda x: np.log(x) + 1j)
    assert failures(SAMPLES["log"], variations.complex_infinity_calls) == []
    assert failures(shifted, variations.complex_infinity_calls)


def test_a_call_may_raise_only_the_errors_in_may_refuse(backend: str) -> None:
    row = Sample("reshape", lambda x, shape: x, ())
    call = Call("empty", "float32", "", (np.zeros((0, 3), "float32"), (0, -1)), may_refuse=(ShapeError,))
    assert call.judge(row) == 0.0
    with pytest.raises(ShapeError):
        dataclasses.replace(call, may_refuse=(RangeError,)).judge(row)
