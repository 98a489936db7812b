"""An elementwise op gives many elements, in any layout, the results of few."""

import numpy as np
import pytest

from emberharmony.core.registry import OPS
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.backend.fast_paths.comparing import differs, made, outcome

SAMPLES = all_samples()
ELEMENTWISE = sorted(op for op, row in SAMPLES.items() if row.elementwise and not row.reference and row.dtypes)
MANY = 2**15 + 99
"""More than any block has elements, and no multiple of one."""


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_many_elements_have_the_results_of_few(op: str, backend: str) -> None:
    row = SAMPLES[op]
    item = row.cases[0]
    for dtype, count, form in [
        ("float32", MANY, "contiguous"),
        ("float32", 5000, "strided"),
        ("float64", 9001, "contiguous"),
        ("float16", 5000, "contiguous"),
    ]:
        if dtype not in row.dtypes or (backend == "mlx" and dtype == "float64"):
            continue
        few = [cast_to_dtype(x, dtype) for x in item.args]
        many = [np.resize(x, count) if isinstance(x, np.ndarray) else x for x in few]
        wanted = outcome(OPS[op].function, made(few, dtype), item.kwargs)
        got = outcome(OPS[op].function, made(many, dtype, form), item.kwargs)
        whole = [np.resize(x, count) for x in wanted]
        assert not differs(got, whole, whole, 2 * row.tolerance, row.floor), f"{dtype}, {count} {form}"
