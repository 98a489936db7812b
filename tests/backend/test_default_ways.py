"""Bodies of the ops that NumPy defines, and all ops of an array namespace and of Dask, by a few calls in each dtype."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import OPS, Backend, array_api_type, discovery
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.core.errors import EmberError
from emberharmony.core.registry import EMPTY
from emberharmony.testing import checks
from emberharmony.testing.call import Call
from emberharmony.testing.conformance import outcome
from emberharmony.testing.sample import Sample
from emberharmony.testing.samples import all_samples
from tests.sampling import portion

xp = pytest.importorskip("array_api_strict")
ROWS = {op: row for op, row in all_samples().items() if row.cases and not row.reference}
MOST = 8
"""So many calls in the first dtype suffice: those of other dtypes only show other ways."""


def own(backend: Any) -> list[str]:
    """Returns the ops that have a row and that a class of backends defines itself."""
    backend.import_categories()
    return sorted(op for op in ROWS if getattr(backend, op, None) is not None and not hasattr(Backend, op))


BODIED = [op for op in own(NumpyBackend) if OPS[op].composite]
"""The ops that NumPy defines although they have a body, which runs here in its place."""
STRICT = array_api_type("strict", xp, tensor_type=type(xp.asarray(0)))
DASK = type(discovery.load("dask")) if importlib.util.find_spec("dask") else Backend


def _named(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setitem(discovery._LOADED, backend.name, backend)
    return backend


@pytest.fixture(scope="module")
def made() -> dict[str, Backend]:
    bodies = type("BodiesBackend", (NumpyBackend,), {"name": "bodies", **dict.fromkeys(BODIED)})()
    return {"bodies": bodies, "strict": STRICT()}


def brief(row: Sample) -> Iterator[Call]:
    """Yields some calls of a row: several in its first dtype, one in each of the others, and one on special values."""
    seen: dict[str, int] = {}
    for call in checks.value_calls(row):
        count = seen[call.dtype] = seen.get(call.dtype, 0) + 1
        if count == 1 or (len(seen) == 1 and count <= MOST):
            yield call
    yield from list(checks.special_value_calls(row))[:1]


def _length(call: Call) -> int:
    return max((x.size for x in call.args if isinstance(x, np.ndarray)), default=0)


def failures(op: str, backend: Any, largest: int = 10**6) -> list[str]:
    with ops.use_backend(backend), np.errstate(all="ignore"):
        calls = [call for call in brief(ROWS[op]) if _length(call) <= largest]
        found = [outcome(ROWS[op], ops.get_backend(), call) for call in calls]
    return [f"{o.check} {o.dtype} {o.label}: {o.failure}{o.unsupported}" for o in found if o.failure or o.unsupported]


@pytest.mark.parametrize("op", portion(BODIED, 2))
def test_a_default_body_gives_what_its_row_says(op: str, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failures(op, _named(made["bodies"], monkeypatch))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", portion(own(STRICT), 2))
def test_an_op_of_the_strictest_library_gives_what_its_row_says(
    op: str, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not failures(op, _named(made["strict"], monkeypatch))


@pytest.fixture(scope="module")
def small_blocks() -> Iterator[None]:
    """Makes Dask cut tensors in blocks of a few elements, so that small ones have several along each axis."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"array.chunk-size": "32B", "scheduler": "synchronous"}):
        yield


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", [op for op in own(DASK) if not OPS[op].facts.elementwise])
def test_an_op_of_dask_gives_what_its_row_says(op: str, small_blocks: None) -> None:
    assert not failures(op, "dask", largest=40)


KINDS = ("bool", "int8", "uint16", "float32", "complex64")
ELEMENTWISE = sorted(
    op
    for op, spec in OPS.items()
    if spec.facts.elementwise
    and op in ROWS
    and all(p.role in ("TensorLike", "Operand") or p.default is not EMPTY for p in spec.parameters)
)


def in_kind(op: str, dtype: str) -> Any:
    """Returns what an op gives for two small tensors of a dtype, or the class of its error."""
    tensors = [p for p in OPS[op].parameters if p.role in ("TensorLike", "Operand") and not p.optional]
    values = np.array([[1, 0, 2], [2, 1, 1], [1, 2, 1]])[: len(tensors)]
    try:
        result = OPS[op].function(*(ops.convert_to_tensor(x.astype(dtype)) for x in values))
    except EmberError as error:
        return type(error)
    return [ops.to_numpy(x) for x in (result if isinstance(result, (list, tuple)) else [result])]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", portion(ELEMENTWISE, 2))
def test_each_kind_of_dtype_gives_what_it_gives_on_numpy(op: str, made: Any, small_blocks: None) -> None:
    for dtype in KINDS:
        with ops.use_backend("numpy"), np.errstate(all="ignore"):
            wanted = in_kind(op, dtype)
        for backend in ("torch", "mlx", "dask", made["strict"], *([made["bodies"]] if op in BODIED else [])):
            with ops.use_backend(backend), np.errstate(all="ignore"):
                found = in_kind(op, dtype)
            if not isinstance(wanted, list) or not isinstance(found, list):
                assert found is wanted, (backend, dtype, found, wanted)
                continue
            for got, want in zip(found, wanted, strict=True):
                assert got.dtype == want.dtype, (backend, dtype, got.dtype, want.dtype)
                np.testing.assert_allclose(got, want, 1e-5, 1e-5, err_msg=f"{backend} {dtype}")
