"""Sample rows of `ops/tensor.py`."""

from emberharmony.testing.sample import Sample, case, grid

SAMPLES = [
    Sample("convert_to_tensor", lambda x: x, (case(grid(-2, 2)),)),
    Sample("to_numpy", lambda x: x, (case(grid(-2, 2)),), result="any"),
    Sample("cast", lambda x, dtype: x.astype(dtype), (case(grid(-2, 2), "int32"),), result="int32"),
]
