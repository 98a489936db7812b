"""Each op computes what its sample row declares by the way that is recorded, and in every form with the same result.

Many conditions choose between ways with equal results, of which one is faster: only the number of calls tells them
apart. If a change of ways is meant, or a row has other calls, `python -m tests.backend.fast_paths.counts` writes the
record anew, and its difference shows which calls go another way than before.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from emberharmony.testing.samples import all_samples
from tests.backend.fast_paths.counts import (
    BACKENDS,
    PYTHON,
    RECORD,
    calls_to_count,
    count,
    decode,
    encode,
    extra,
    indices_of_other_ways,
    looked_up,
)
from tests.sampling import portion

SAMPLES = all_samples()
COUNTS = json.loads(RECORD.read_text(encoding="utf-8"))
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def is_recorded(name: str) -> bool:
    """Returns whether the record is of this version of a library."""
    try:
        return version(name).partition("+")[0] == COUNTS["versions"][name]
    except PackageNotFoundError:
        return False


IS_OTHER = sys.version_info[:2] != tuple(map(int, PYTHON.split("."))) or sys.platform != "linux"


@pytest.mark.skipif(IS_OTHER, reason=f"the counts are those of Python {PYTHON} on Linux")
@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_an_op_goes_the_recorded_way(op: str, backend: str) -> None:
    if backend not in BACKENDS or not is_recorded(backend):
        pytest.skip("the counts are of other backends, or of another version")
    with looked_up(backend):
        items = [*calls_to_count(SAMPLES[op])]
        recorded = decode(COUNTS[backend][op])
        assert len(items) == len(recorded), f"the row has other calls than recorded: run {COUNTS['program']}"
        tried = portion(range(len(items)), 4)
        numbers = [count(op, items[place]) for place in tried]
    wrong = indices_of_other_ways([recorded[place] for place in tried], numbers)
    told = [f"{items[tried[i]].label}: {numbers[i]} calls, recorded {recorded[tried[i]]}" for i in wrong]
    assert not told, "\n".join([f"{op} on {backend} goes other ways; if meant, run {COUNTS['program']}", *told])


@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_each_form_of_the_arguments_has_the_result_of_the_oracle(op: str, backend: str) -> None:
    items = [item for item in calls_to_count(SAMPLES[op]) if item.is_judged]
    failures = [text for item in portion(items, 8) if (text := item.failure(op, SAMPLES[op]))]
    assert not failures, "\n".join(failures)


def test_a_record_is_read_as_it_was_written() -> None:
    assert extra([30, 30, 0, 12]) == [19, 19, 0, 1]
    assert extra([0, 0]) == [0, 0]
    assert encode([2, 2, 0, 12]) == "2*2 0 12"
    assert decode("2*2 0 12") == [2, 2, 0, 12]


@pytest.mark.parametrize(
    ("numbers", "places"),
    [
        ([7, 7, 7, 9, 0], []),
        ([7, 9, 7, 9, 0], [1]),
        ([9, 9, 9, 7, 0], [3]),
        ([9, 9, 9, 9, 0], [3]),
        ([7, 7, 7, 10, 0], [3]),
        ([7, 7, 7, 9, 5], [4]),
        ([7, 0, 7, 9, 0], [1]),
        ([0, 0, 0, 0, 0], [0, 1, 2, 3]),
    ],
)
def test_calls_that_go_another_way_are_told(numbers: list[int], places: list[int]) -> None:
    assert indices_of_other_ways([1, 1, 1, 3, 0], numbers) == places
