"""On JAX, Dask and the array API, each op computes what its sample row declares by the way that is recorded.

If a change of ways is meant, or a row has other calls, `python -m tests.backend.fast_paths.other_ways` writes the
record anew, and its difference shows which calls go another way than before.
"""

import json
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from emberharmony.testing.samples import all_samples
from tests.backend.activation import LIBRARIES
from tests.backend.fast_paths.counts import PYTHON
from tests.backend.fast_paths.other_ways import RECORD, encode, quiet, words

WAYS = json.loads(RECORD.read_text(encoding="utf-8"))


def is_recorded(name: str) -> bool:
    """Returns whether the record is of this version of a library."""
    try:
        return version(LIBRARIES[name]) == WAYS["versions"][name]
    except PackageNotFoundError:
        return False


IS_OTHER = sys.version_info[:2] != tuple(map(int, PYTHON.split("."))) or sys.platform != "linux"


@pytest.mark.skipif(IS_OTHER, reason=f"the ways are those of Python {PYTHON} on Linux")
@pytest.mark.sampled(48, everywhere=True)
@pytest.mark.parametrize("op", sorted(all_samples()))
@pytest.mark.parametrize("name", LIBRARIES)
def test_an_op_goes_the_recorded_way(op: str, name: str) -> None:
    if not is_recorded(name):
        pytest.skip("the ways are those of another version")
    with quiet(name):
        found = encode(words(name, op))
    assert found == WAYS[name][op], f"{op} on {name} goes another way; if meant, run {WAYS['program']}"
