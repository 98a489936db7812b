"""Caches of plans and tables keep a bounded number of the latest ones."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.shared.arrays import rearranging
from emberharmony.backend.shared.neural import attention


def test_plans_of_patterns_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rearranging, "_MANY", 3)
    monkeypatch.setattr(rearranging, "_PLANS", {})
    x = np.arange(6.0).reshape(2, 3)
    with ops.use_backend("numpy"):
        for letters in ("ab", "cd", "ef", "gh", "ij", "ab"):
            pattern = f"{letters[0]} {letters[1]} -> {letters[1]} {letters[0]}"
            assert ops.rearrange(x, pattern).tolist() == x.T.tolist()
            assert 0 < len(rearranging._PLANS) <= 3


def test_tables_of_rotations_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_MANY", 3)
    monkeypatch.setattr(attention, "_TABLES", {})
    monkeypatch.setattr(attention, "_BLOCKS", {})
    x = np.ones((1, 2, 1, 4), "f4")
    with ops.use_backend("torch" if "torch" in ops.available_backends() else "numpy"):
        for base in (10.0, 20.0, 30.0, 40.0, 50.0):
            first = ops.to_numpy(ops.rope(x, base=base))
            np.testing.assert_array_equal(ops.to_numpy(ops.rope(x, base=base)), first)
            assert len(attention._TABLES) <= 3
            assert len(attention._BLOCKS) <= 3
