"""Rows of `ops/dtype.py`: they return no tensors, so `tests/ops/test_dtypes.py` has their values."""

from emberharmony.testing.sample import Sample

SAMPLES = [
    Sample(op, str, (), reference="tests") for op in ("dtype", "result_type", "can_cast", "isdtype", "finfo", "iinfo")
]
