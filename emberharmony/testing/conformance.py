"""Runs sample rows on backends: each call's values, dtypes and shapes against the row's oracle."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import load
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import EmberError, UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import Sample, as_reference, error_in_eps, in_dtype, variants


@dataclass(frozen=True)
class Outcome:
    """What one call showed: `error` is the largest error in eps, `failure` is empty if all was right."""

    op: str
    backend: str
    dtype: str
    label: str
    error: float = 0.0
    failure: str = ""


def run_sample(sample: Sample, backend: str) -> Iterator[Outcome]:
    """Yields the outcome of each of a row's calls on one backend, which becomes the process's."""
    if ops.get_backend() != backend:
        ops.set_backend(backend)
    available = load(backend).dtypes.available
    for dtype in (*sample.dtypes, *sample.integers):
        if as_dtype(dtype) not in available:
            continue
        for label, item in variants(sample):
            args, kwargs = in_dtype(item.args, dtype), {k: in_dtype(v, dtype) for k, v in item.kwargs.items()}
            error, failure = _outcome(sample, backend, dtype, args, kwargs)
            yield Outcome(sample.op, backend, dtype, label, error, failure)


def _outcome(
    sample: Sample, backend: str, dtype: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[float, str]:
    try:
        result = OPS[sample.op].function(*args, **kwargs)
        results = [_host(item) for item in _parts(result)]
        dtypes = [ops.dtype(item).name if load(backend).is_tensor(item) else "" for item in _parts(result)]
    except UnsupportedOpError as error:
        return 0.0, "" if backend in sample.unsupported else f"raises {error}"
    except EmberError as error:
        return 0.0, f"raises {type(error).__name__}: {error}"
    if sample.reference:
        return 0.0, ""
    with np.errstate(all="ignore"):
        wanted = _parts(
            sample.oracle(
                *(as_reference(a, sample.result) for a in args),
                **{k: as_reference(v, sample.result) for k, v in kwargs.items()},
            )
        )
    if len(wanted) != len(results):
        return 0.0, f"returns {len(results)} results, wanted {len(wanted)}"
    worst = 0.0
    expected_dtype = _expected_dtype(sample, dtype)
    for got, name, want in zip(results, dtypes, wanted, strict=True):
        if expected_dtype and name != expected_dtype:
            return worst, f"result has dtype {name or 'none'}, wanted {expected_dtype}"
        if got.shape != np.shape(want):
            return worst, f"result has shape {got.shape}, wanted {np.shape(want)}"
        off = error_in_eps(got, want, name, sample.floor)
        worst = max(worst, off)
        if not off <= sample.tolerance:
            return worst, f"error {off:.3g} eps, admitted {sample.tolerance:g}: got {got!r:.200}, wanted {want!r:.200}"
    return worst, ""


def _parts(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (tuple, list)) else [result]


def _host(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(ops.to_numpy(value)) if hasattr(value, "dtype") else np.asarray(value)


def _expected_dtype(sample: Sample, dtype: str) -> str:
    kind = as_dtype(dtype)
    if sample.result == "any":
        return ""
    if sample.result == "promoted":
        return dtype
    if sample.result == "float":
        return dtype if kind.is_floating or kind.is_complex else ops.default_float().name
    if sample.result == "real":
        return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return sample.result
