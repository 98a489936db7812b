"""The calls that the checks generate from a sample row."""

from collections import Counter

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import BackendMismatchError, DTypeError, RangeError, ShapeError
from emberharmony.core.registry import OPS
from emberharmony.testing.checks import CHECKS, promotion_calls
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.rows import result_dtype
from emberharmony.testing.sample import Sample, cast_to_dtype
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()


def test_an_elementwise_row_gives_calls_of_every_check(backend: str) -> None:
    made = Counter(call.check for check in CHECKS for call in check(SAMPLES["add"]))
    assert set(made) == {
        *("value", "empty", "0-d", "non-contiguous", "NaN and infinity", "promotion", "error", "gradient"),
        *("integer widths", "large offset", "huge integers", "complex infinities"),
    }
    labels = {call.label for check in CHECKS for call in check(SAMPLES["add"]) if call.check == "promotion"}
    assert {"int32 and float32", "float32 and int32", "bool and int32", "float32 and a number"} <= labels


def test_all_pairs_of_special_values_are_called(backend: str) -> None:
    call = next(call for check in CHECKS for call in check(SAMPLES["arctan2"]) if call.check == "NaN and infinity")
    pairs = {(str(a), str(b)) for a, b in zip(*(value.tolist() for value in call.args), strict=True)}
    assert {("nan", "inf"), ("inf", "-inf"), ("0.0", "-0.0"), ("-0.0", "0.0"), ("nan", "nan")} <= pairs


def test_each_kind_of_bad_input_has_its_expected_error(backend: str) -> None:
    due = {call.label: call.raises for check in CHECKS for call in check(SAMPLES["maximum"]) if call.check == "error"}
    assert due == {
        "a foreign tensor": BackendMismatchError,
        "strings": DTypeError,
        "shapes that do not broadcast": ShapeError,
        "a number that does not fit": RangeError,
        "complex numbers": DTypeError,
    }


@pytest.mark.parametrize(
    ("result", "dtype", "wanted"),
    [
        ("promoted", "int8", "int8"),
        ("float", "int8", "float32"),
        ("float", "bfloat16", "bfloat16"),
        ("real", "complex128", "float64"),
        ("float real", "complex64", "float32"),
        ("float real", "uint8", "float32"),
        ("float complex", "float64", "complex128"),
        ("float complex", "int32", "complex64"),
        ("sum", "int8", "int64"),
        ("sum", "uint8", "uint64"),
        ("sum", "float16", "float16"),
        ("int64", "float32", "int64"),
        ("any", "float32", ""),
        (("promoted", "int64"), "float16", ("float16", "int64")),
    ],
)
def test_the_expected_dtype_follows_from_the_row(result: str, dtype: str, wanted: str) -> None:
    assert result_dtype(Sample("sin", np.sin, (), result=result), dtype) == wanted


def test_casting_clips_integers_and_gives_complex_numbers_an_imaginary_part() -> None:
    x = np.array([-3.7, 300.2, np.inf])
    assert cast_to_dtype(x, "uint8").tolist() == [0, 255, 255]
    assert cast_to_dtype(x, "int8").tolist() == [-4, 127, 127]
    turned = cast_to_dtype(np.array([1.0, 2.0]), "complex128")
    assert turned.tolist() == [1 + 1.5j, 2 + 0.75j]
    assert cast_to_dtype(np.array([1.0, 2.0]), "complex128", is_rotated=False).tolist() == [1, 2]
    assert cast_to_dtype([np.array([1 + 2j]), "same", 3], "float32")[0].tolist() == [1.0]


def test_an_oracle_that_raises_is_reported_as_a_failure(backend: str) -> None:
    def oracle(x: object) -> object:
        raise ZeroDivisionError("no oracle")

    row = Sample("sin", oracle, SAMPLES["sin"].cases[:1], dtypes=("float32",), elementwise=False)
    outcomes = [outcome for outcome in run_sample(row, backend) if outcome.check == "value"]
    assert [outcome.failure for outcome in outcomes] == ["raises ZeroDivisionError: no oracle"]
    assert "the oracle raises ZeroDivisionError('no oracle')" in outcomes[0].snippet


def test_a_row_makes_at_most_the_calls_that_are_asked_for() -> None:
    with ops.use_backend("numpy"):
        found, whole = (
            Counter((o.check, o.dtype) for o in run_sample(SAMPLES["floor"], "numpy", most=most)) for most in (2, None)
        )
    assert found == Counter({key: min(count, 2) for key, count in whole.items()})
    assert max(whole.values()) > 2


def test_a_row_works_element_by_element_if_the_declaration_says_so() -> None:
    facts = {op: spec.facts.elementwise for op, spec in OPS.items() if SAMPLES[op].cases}
    assert [op for op, said in facts.items() if said and not SAMPLES[op].elementwise] == []
    # The two results of `divmod` are computed element by element, which the fact says of ops with one result.
    assert [op for op, said in facts.items() if not said and SAMPLES[op].elementwise] == ["divmod"]


def test_an_op_that_takes_booleans_is_called_with_them() -> None:
    for op, spec in OPS.items():
        row = SAMPLES[op]
        if spec.facts.takes and row.elementwise and "promotion" not in row.left_out:
            given = {call.label for call in promotion_calls(row)} | {*row.dtypes, *row.integers}
            assert ({"bool", "booleans"} & given != set()) == ("bool" not in spec.facts.refuses), op
