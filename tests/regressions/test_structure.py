"""Faults of the structure: what a contributor meets who adds an op or a layer, and what failing checks print."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import nn
from emberharmony.testing.checks import special_value_calls
from emberharmony.testing.conformance import outcome
from emberharmony.testing.samples import all_samples
from tests.nn.layouts import test_layouts

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


def test_a_layer_without_layouts_is_told_where_they_go() -> None:
    class Gain(nn.Module):
        """Is missing from the table."""

    assert "emberharmony/nn/layouts/table.py" in test_layouts.omission(Gain)
    assert "`nn/layouts/table.py`" in GUIDE.partition("## Add a layer")[2].partition("\n## ")[0]


def test_the_guide_counts_no_tests() -> None:
    assert not re.search(r"\d{2},?000 tests", GUIDE)


def test_a_failure_of_all_combinations_is_shown_by_one_element(backend: str) -> None:
    row = all_samples()["betainc"]

    def wrong(*given: Any) -> Any:
        return np.where(np.isnan(given[0]), 7.0, row.oracle(*given))

    changed = dataclasses.replace(row, oracle=wrong)
    calls = list(special_value_calls(changed))
    assert calls
    for call in calls:
        found = outcome(changed, backend, call)
        assert found.failure
        assert max(map(len, found.snippet.splitlines())) < 250
