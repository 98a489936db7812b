"""What checked mode asks the backends: whether all elements of a tensor are finite."""

import math

import pytest

from emberharmony import errors, ops
from emberharmony.backend.discovery import BUILTIN, OPTIONAL, is_installed
from emberharmony.core import op_globals

DTYPES = ("int32", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
LARGE = {"float16": 2.0**13, "bfloat16": 2.0**60, "float32": 2.0**60, "float64": 2.0**500}


@pytest.mark.parametrize("name", [name for name in BUILTIN | OPTIONAL if is_installed(name)])
def test_a_probe_is_finite_where_all_elements_are(name: str) -> None:
    with ops.use_backend(name):
        probes = op_globals.active().backend
        for dtype in DTYPES:
            try:
                values = [ops.ones(3, dtype)]
            except errors.DTypeError:
                continue  # the backend lacks the dtype
            if dtype != "int32":
                values.append(ops.full(3, LARGE.get(dtype, 1.0), dtype))
                values.append(ops.convert_to_tensor([1.0, math.nan], dtype))
            if dtype.startswith("complex"):
                values.append(ops.convert_to_tensor([1.0, complex(2.0, math.inf)], dtype))
            assert probes.failures([probes.probe(x) for x in values]) == [*range(2, len(values))], dtype
