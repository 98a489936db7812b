"""The properties of an event: shapes, dtypes and bytes of all tensors that a call takes and returns."""

import numpy as np

from emberharmony import ops


def test_an_event_counts_each_tensor_of_the_result(backend):
    x = ops.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    with ops.record() as log:
        values, indices = ops.top_k(x, 2)
        ops.cast(x, "float16")
    kinds = [ops.dtype(values).name, ops.dtype(indices).name]
    top = next(event for event in log if event.op == "top_k")
    assert (top.shapes, top.dtypes) == (((2, 3),), ("float32",))
    assert (top.results, list(top.result_dtypes)) == (((2, 2), (2, 2)), kinds)
    assert top.bytes == sum(4 * np.dtype(kind).itemsize for kind in kinds)
    narrow = next(event for event in log if event.op == "cast" and event.result_dtypes == ("float16",))
    assert (narrow.dtypes, narrow.bytes) == (("float32",), 12)
