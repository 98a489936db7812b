"""Rows of `ops/dtype.py`. The ops return no tensors, so `tests/ops/test_dtype.py` checks them."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample(op, str, (), reference="tests")
    for op in ("dtype", "native_dtype", "result_type", "can_cast", "isdtype", "finfo", "iinfo")
]
