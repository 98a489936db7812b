"""Inputs that hypothesis generates, the same in every run: new values, ties, and new shapes for elementwise ops."""

import functools
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emberharmony.core.dtypes import as_dtype
from emberharmony.testing.call import Call
from emberharmony.testing.rows import call_of, dtypes_of
from emberharmony.testing.sample import Array, Case, Sample

EXAMPLES = 100
_LARGEST = 64
"""Cases with larger arrays are not varied: they test the length, and new values would add nothing."""


def generate_calls(sample: Sample) -> Iterator[Call]:
    """Yields calls like the row's cases, with new values within the same bounds and with dtypes drawn at random."""
    if sample.fixed or sample.reference or not _variable_case_indices(sample):
        return
    available_dtypes = dtypes_of(sample)
    for number, (dtype, index, item) in enumerate(_examples(sample)):
        if dtype in available_dtypes:
            yield call_of(sample, "generated", dtype, f"example {number} like case {index}", item, index)


@functools.cache
def _examples(sample: Sample) -> list[tuple[str, int, Case]]:
    """Returns (dtype, index of the varied case, new case) of each example, made once for all backends."""
    drawn_examples: list[tuple[str, int, Case]] = []

    @seed(zlib.crc32(sample.op.encode()))
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_calls_strategy(sample))
    def collect_example(call: tuple[str, int, Case]) -> None:
        drawn_examples.append(call)

    collect_example()
    return drawn_examples


def _variable_case_indices(sample: Sample) -> list[int]:
    return [
        index
        for index, item in enumerate(sample.cases)
        if any(map(_is_redrawn, item.args)) and all(_element_count(value) <= _LARGEST for value in item.args)
    ]


def _element_count(value: Any) -> int:
    """Returns the number of elements of an argument; the key of an index may hold arrays of several shapes."""
    return sum(map(_element_count, value)) if isinstance(value, (list, tuple)) else np.size(value)


def _is_redrawn(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and bool(np.isfinite(value).all())


@st.composite
def _calls_strategy(draw: st.DrawFn, sample: Sample) -> tuple[str, int, Case]:
    dtype = draw(st.sampled_from((*sample.dtypes, *sample.integers)))
    case_index = draw(st.sampled_from(_variable_case_indices(sample)))
    drawn_case = sample.cases[case_index]
    is_float16 = as_dtype(dtype).bits == 16
    shapes = [value.shape if _is_redrawn(value) else () for value in drawn_case.args]
    if sample.elementwise:
        shapes = list(
            draw(
                hnp.mutually_broadcastable_shapes(num_shapes=len(drawn_case.args), max_dims=3, min_side=0, max_side=4)
            )[0]
        )
    drawn_args = [
        draw(_arrays_in_range_of(value, shape, is_float16)) if _is_redrawn(value) else value
        for value, shape in zip(drawn_case.args, shapes, strict=True)
    ]
    return dtype, case_index, Case(tuple(drawn_args), drawn_case.kwargs)


def _arrays_in_range_of(array: Array, shape: tuple[int, ...], is_float16: bool) -> st.SearchStrategy[Array]:
    """Returns a strategy of arrays of a shape, with values between the extremes of `array`.

    The values are exact in float16 if `is_float16`, else in float32, so that casting them adds no error.
    """
    if not array.size:
        return st.just(array)
    float_type = np.float16 if is_float16 else np.float32
    lowest_number, highest_number = float(float_type(array.min())), float(float_type(array.max()))
    numbers_strategy = st.floats(lowest_number, highest_number, width=16 if is_float16 else 32, allow_subnormal=False)
    return hnp.arrays(np.float64, shape, elements=numbers_strategy)
