"""Operands of several dtypes: NumPy gives the values of their common dtype, the others what NumPy gives."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import DTypeError, EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.rows import error_of_missing_dtype
from emberharmony.testing.sample import EPSILON, Case, Sample
from emberharmony.testing.samples import all_samples
from tests.properties.strategies import host
from tests.sampling import portion

PAIRS = (
    ("float32", "float64"),
    ("float32", "float16"),
    ("float16", "bfloat16"),
    ("float32", "complex64"),
    ("float64", "complex64"),
    ("float32", "int32"),
    ("int8", "uint16"),
)
"""Two dtypes: of one operand, and of all others."""

EPS = 64.0


Given = dict[str, Any]


def _floats(row: Sample, item: Case) -> tuple[Given, list[str]]:
    """Returns the arguments of a case by name, and which of them are tensors of floating numbers."""
    parameters = OPS[row.op].parameters
    given = dict(zip([p.name for p in parameters], item.args, strict=False)) | item.kwargs
    tensors = {p.name for p in parameters if p.role in ("TensorLike", "Operand")}
    return given, [n for n, x in given.items() if n in tensors and isinstance(x, np.ndarray) and x.dtype.kind == "f"]


def _mixed(row: Sample) -> Iterator[tuple[dict[str, str], Given]]:
    """Yields dtypes of operands with the arguments of a call: of the case of a row that has the most of them."""
    cases = [_floats(row, item) for item in row.cases]
    given, names = max(cases, key=lambda found: len(found[1]), default=({}, []))
    for pair in PAIRS:
        for one, other in (pair, pair[::-1]):
            for name in names if len(names) > 1 else ():
                yield {each: one if each == name else other for each in names}, given


ROWS = {op: row for op, row in all_samples().items() if not row.reference and any(_mixed(row))}


def _tensor(x: np.ndarray, dtype: str) -> Any:
    """Returns numbers in a dtype; backends cast NaN to integers, and negative numbers to unsigned ones, differently."""
    if "int" in dtype:
        return ops.convert_to_tensor(np.nan_to_num(x).astype(np.int64).astype(dtype))
    return ops.cast(x.astype(np.float32), dtype)


def _called(op: str, dtypes: dict[str, str], given: Given, common: str = "") -> Any:
    """Returns the results of a call on the active backend, or the class of the error."""
    cast = {name: _tensor(given[name], dtype) for name, dtype in dtypes.items()}
    cast = {name: ops.cast(x, common) for name, x in cast.items()} if common else cast
    try:
        return _parts(OPS[op].function(**given | cast))
    except EmberError as error:
        return type(error)


def _parts(result: Any) -> list[np.ndarray]:
    return [part for item in result for part in _parts(item)] if isinstance(result, (list, tuple)) else [host(result)]


@pytest.mark.parametrize("op", ROWS)
def test_operands_of_several_dtypes_give_what_they_give_on_numpy(op: str, backend: str) -> None:
    # JAX compiles each call anew, and Dask makes graphs.
    for dtypes, given in portion([*_mixed(ROWS[op])], 2 if backend in ("numpy", "torch", "mlx") else 4):
        common = str(ops.result_type(*dtypes.values()))
        if error_of_missing_dtype(tuple(dtypes.values())) or error_of_missing_dtype(common):
            continue
        found = _called(op, dtypes, given)
        with ops.use_backend("numpy"):
            wanted, exact = _called(op, dtypes, given), _called(op, dtypes, given, common)
        if isinstance(wanted, list) and error_of_missing_dtype(tuple(x.dtype.name for x in wanted)):
            wanted = DTypeError
        if not isinstance(wanted, list) or not isinstance(found, list):
            assert found is wanted, (dtypes, found, wanted)
            continue
        for got, want, ideal in zip(found, wanted, exact if isinstance(exact, list) else wanted, strict=True):
            assert got.dtype == want.dtype, (dtypes, got.dtype, want.dtype)
            scale = np.max(np.abs(want), initial=1.0, where=np.isfinite(want))
            bound = EPS * max(EPSILON.get(dtype, 0.0) for dtype in (common, want.dtype.name)) * float(scale)
            # Some bodies round in between to the common dtype of fewer operands, and integers wrap in it.
            rounded = np.max(np.abs(np.subtract(want, ideal, dtype=complex)), initial=0.0, where=np.isfinite(want))
            np.testing.assert_allclose(got, want, 0, bound + 32 * float(rounded), err_msg=str(dtypes))
