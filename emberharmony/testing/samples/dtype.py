"""Rows of `ops/dtype.py`. The ops return no tensors, so `tests/ops/test_dtype.py` checks them."""

from emberharmony.testing.sample import by_tests

SAMPLES = [
    by_tests("dtype", ("ops.ones((3,))",)),
    by_tests("native_dtype", ("'float32'",)),
    by_tests("result_type", ("ops.ones((3,))", "ops.float64"), ("1.0", "'int8'")),
    by_tests("can_cast", ("'int8'", "'float32'"), ("ops.ones((3,))", "'int8'")),
    by_tests("isdtype", ("'int8'", "'integral'"), ("ops.float32", "('bool', 'real floating')")),
    by_tests("finfo", ("'float32'",), ("ops.ones((3,))",)),
    by_tests("iinfo", ("'int8'",)),
]
