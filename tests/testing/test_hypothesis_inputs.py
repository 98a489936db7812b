"""The inputs that hypothesis makes: the same in every run, within the row's bounds, of many shapes."""

import numpy as np

from emberharmony.testing import hypothesis_inputs as module
from emberharmony.testing.call import Call
from emberharmony.testing.hypothesis_inputs import generated
from emberharmony.testing.sample import Sample, case
from emberharmony.testing.samples import all_samples

SAMPLES = all_samples()


def calls(row: Sample) -> list[Call]:
    module._examples.cache_clear()
    return list(generated(row))


def test_two_runs_make_the_same(backend: str) -> None:
    first, second = calls(SAMPLES["arctan2"]), calls(SAMPLES["arctan2"])
    assert len(first) > 10
    for one, other in zip(first, second, strict=True):
        assert (one.dtype, one.label) == (other.dtype, other.label)
        for a, b in zip(one.args, other.args, strict=True):
            assert a.tobytes() == b.tobytes()


def test_elementwise_ops_meet_shapes_that_broadcast_among_them_empty_and_0d(backend: str) -> None:
    shapes = [tuple(value.shape for value in call.args) for call in calls(SAMPLES["add"])]
    assert any(0 in np.broadcast_shapes(*pair) for pair in shapes)
    assert any(() in pair for pair in shapes)
    assert any(len(a) != len(b) for a, b in shapes)


def test_values_stay_within_the_row_and_repeat(backend: str) -> None:
    row = Sample("sort", np.sort, (case(np.array([-2.0, 0.5, 3.0, 1.0, 1.5, 2.5])),))
    arrays = [call.args[0] for call in calls(row)]
    assert all(array.min() >= -2 and array.max() <= 3 for array in arrays)
    assert any(len(np.unique(array)) < array.size for array in arrays)


def test_structured_rows_and_long_cases_are_left_alone(backend: str) -> None:
    assert calls(SAMPLES["cholesky"]) == []
    assert calls(SAMPLES["random_categorical"]) == []
    row = Sample("sum", np.sum, (case(np.linspace(0, 1, 5000)), case(np.linspace(0, 1, 5))))
    assert {call.args[0].shape for call in calls(row)} == {(5,)}
    assert {call.case for call in calls(row)} == {1}
