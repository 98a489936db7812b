"""Every op on every backend accepts byte-swapped arrays and subclasses of arrays, and refuses masked arrays.

The arrays are those of the sample rows. The result must equal that for the plain array.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentTypeError, EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import Case, Sample, cast_to_dtype
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import result_parts
from tests.sampling import portion

ROWS = [sample for sample in all_samples().values() if sample.cases and sample.reference != "tests"]
Array = np.ndarray[Any, Any]


def swapped(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder())


def matrix(array: Array) -> Array:
    return array.view(np.matrix) if array.ndim == 2 else array


def turned(value: Any, form: Callable[[Array], Array]) -> Any:
    """Returns an argument with `form` applied to its arrays, also to those in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return type(value)(turned(item, form) for item in value)
    return form(value) if isinstance(value, np.ndarray) else value


def changes(value: Any, form: Callable[[Array], Array]) -> bool:
    if isinstance(value, (list, tuple)):
        return any(changes(item, form) for item in value)
    return isinstance(value, np.ndarray) and form(value) is not value


def result(sample: Sample, item: Case, form: Callable[[Array], Array]) -> list[Any]:
    """Returns the parts of an op's result, or the class of its error."""
    args = turned(cast_to_dtype(item.args, "float32"), form)
    kwargs = {name: turned(cast_to_dtype(value, "float32"), form) for name, value in item.kwargs.items()}
    try:
        found = OPS[sample.op].function(*args, **kwargs)
        return [np.asarray(ops.to_numpy(part)) if hasattr(part, "dtype") else part for part in result_parts(found)]
    except EmberError as error:
        return [type(error)]


def agree(got: Array, want: Array) -> bool:
    """Returns whether two results are equal; floats may differ by rounding, as libraries add in different orders."""
    if want.dtype.kind not in "fc":
        return np.array_equal(got, want)
    finite = np.abs(want[np.isfinite(want)])
    return np.allclose(got, want, 1e-5, 1e-6 * max(1.0, float(finite.max(initial=0.0))), equal_nan=True)


@pytest.mark.parametrize("form", [swapped, matrix], ids=["other byte order", "matrix"])
def test_byte_swapped_arrays_and_matrices_give_the_same_results(form: Callable[[Array], Array], backend: str) -> None:
    seen, share = 0, 2 if backend == "numpy" else 4
    for sample in portion(ROWS, share):
        for item in sample.cases:
            if not changes(item.args, form):
                continue
            seen += 1
            wanted, found = result(sample, item, np.asarray), result(sample, item, form)
            assert len(found) == len(wanted), sample.op
            for got, want in zip(found, wanted, strict=True):
                if not isinstance(want, np.ndarray):
                    assert got == want, sample.op
                    continue
                assert type(got) is np.ndarray, sample.op
                assert got.dtype.name == want.dtype.name, sample.op
                assert agree(got, want), sample.op
    assert seen > 200 // share


def test_masked_arrays_are_refused_and_the_error_says_what_to_do(backend: str) -> None:
    for sample in ROWS:
        item = sample.cases[0]
        if changes(item.args, np.ma.masked_array):
            args = turned(cast_to_dtype(item.args, "float32"), np.ma.masked_array)
            kwargs = {name: turned(cast_to_dtype(v, "float32"), np.ma.masked_array) for name, v in item.kwargs.items()}
            with pytest.raises(ArgumentTypeError, match=r"MaskedArray would lose its mask: pass x\.filled"):
                OPS[sample.op].function(*args, **kwargs)


def test_options_accept_the_booleans_of_numpy(backend: str) -> None:
    seen = 0
    for sample in ROWS:
        flags = {p.name: np.bool_(p.default) for p in OPS[sample.op].parameters if isinstance(p.default, bool)}
        item = sample.cases[0]
        taken = [p.name for p in OPS[sample.op].parameters[: len(item.args)]]
        flags = {name: flag for name, flag in flags.items() if name not in taken}
        if not flags:
            continue
        seen += 1
        wanted = result(sample, item, np.asarray)
        found = result(sample, Case(item.args, {**flags, **item.kwargs}), np.asarray)
        for got, want in zip(found, wanted, strict=True):
            assert agree(got, want) if isinstance(want, np.ndarray) else got == want, sample.op
    assert seen > 50
