"""Rows of `ops/control.py`. The arguments are functions, so `tests/ops/test_control.py` checks these ops."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample(op, str, (), reference="tests")
    for op in ("cond", "switch", "while_loop", "fori_loop", "scan", "map", "associative_scan")
]
