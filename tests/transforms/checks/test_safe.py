"""The ops whose results the check "nan" leaves out make only finite numbers of the largest and smallest finite ones."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.core.trees.tree import tree_leaves
from emberharmony.errors import EmberError
from emberharmony.testing.sample import Case, case, cast_to_dtype
from emberharmony.testing.samples import all_samples
from emberharmony.transforms.checks.safe import is_safe, is_safe_backward

REAL = ("float16", "bfloat16", "float32")
UNSPECIFIED = ("empty", "empty_like")
"""Ops whose results may hold any numbers."""

X = np.ones((4, 8))
FURTHER = {
    "dropout": [case(X, 0.5, seed=0)],
    "random_choice": [case(X[0], 3, seed=0)],
    "random_permutation": [case(X, seed=0)],
    "random_shuffle": [case(X, seed=0)],
    "standard_normal": [case((4096,))],
    "standard_uniform": [case((4096,))],
    "stop_gradient": [case(X)],
    "to_device": [case(X, "cpu")],
}
"""Cases of ops whose rows have none."""


def patterns(dtype: str) -> dict[str, tuple[float, ...]]:
    """Returns numbers that are repeated to fill the tensors of a dtype."""
    info: Any = ml_dtypes.finfo(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    large, normal, least = (float(x) for x in (info.max, info.smallest_normal, info.smallest_subnormal))
    return {
        "largest": (large,),
        "opposite": (-large, large, -large),
        "far apart": (large, least),
        "mixed": (0.0, -large, -least, normal, -normal, 1.0, large, -0.0, float(info.eps), least),
    }


def filled(value: Any, dtype: str, numbers: tuple[float, ...], scalars: bool) -> Any:
    """Returns an argument with other numbers in its floating tensors, and if `scalars` for Python floats."""
    if isinstance(value, (list, tuple)):
        return type(value)(filled(item, dtype, numbers, scalars) for item in value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and value.size:
        return cast_to_dtype(np.resize(np.asarray(numbers), value.shape), dtype)
    return numbers[0] if scalars and type(value) is float else cast_to_dtype(value, dtype)


def extreme_cases(name: str, dtypes: tuple[str, ...]) -> Iterator[tuple[str, Case]]:
    """Yields the cases of an op with extreme numbers; half precisions are tried even if the row does not have them."""
    row = all_samples()[name]
    for dtype in (*dtypes, "complex64") if "complex64" in row.dtypes else dtypes:
        for pattern, numbers in patterns(dtype).items():
            for i, item in enumerate(row.cases or FURTHER.get(name, ())):
                given = (*item.args, *item.kwargs.values())
                for scalars in (False, True) if any(type(value) is float for value in given) else (False,):
                    args = tuple(filled(value, dtype, numbers, scalars) for value in item.args)
                    kwargs = {key: filled(value, dtype, numbers, scalars) for key, value in item.kwargs.items()}
                    if is_finite((args, list(kwargs.values()))):
                        yield f"case {i}, {dtype}, {pattern}", Case(args, kwargs)


def is_finite(value: Any) -> bool:
    """Returns whether all numbers in host arrays and Python floats are finite."""
    if isinstance(value, (list, tuple)):
        return all(map(is_finite, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fcV" or bool(np.isfinite(value.astype(np.complex128)).all())
    return not isinstance(value, float) or bool(np.isfinite(value))


def tensors(result: Any) -> list[Any]:
    """Returns the tensors in a result whose dtypes are floating or complex."""
    return [
        x for x in tree_leaves(result) if any(kind in str(getattr(x, "dtype", "")) for kind in ("float", "complex"))
    ]


def result_of(spec: OpSpec, case: Case) -> list[Any]:
    """Returns the results of a call."""
    return tensors(spec.function(*case.args, **case.kwargs))


def gradients_of(spec: OpSpec, case: Case) -> list[Any]:
    """Returns the gradients of the sum of the results with respect to the floating tensors."""
    at = [i for i, value in enumerate(case.args) if isinstance(value, np.ndarray) and value.dtype.kind in "fcV"]
    if not at:
        return []

    def total(*values: Any) -> Any:
        args = list(case.args)
        for place, value in zip(at, values, strict=True):
            args[place] = value
        found: Any = 0.0
        for x in tensors(spec.function(*args, **case.kwargs)):
            parts = (ops.real(x), ops.imag(x)) if "complex" in str(x.dtype) else (x,)
            found = sum((ops.sum(part) for part in parts), found)
        return found

    return tensors(ops.grad(total, tuple(range(len(at))))(*[ops.convert_to_tensor(case.args[i]) for i in at]))


def births(names: list[str], call: Any, dtypes: tuple[str, ...] = REAL) -> dict[str, str]:
    """Returns by op the first extreme case that gives a number that is not finite, or says that none ran."""
    found: dict[str, str] = {}
    for name in names:
        ran = False
        for label, item in extreme_cases(name, dtypes):
            try:
                with np.errstate(all="ignore"):
                    made = [np.asarray(ops.to_numpy(x)) for x in call(OPS[name], item)]
            except EmberError:  # an op refuses these numbers or this dtype
                continue
            ran = True
            if not is_finite(made):
                found[name] = label
                break
        if not ran:
            found[name] = "all cases are refused"
    return found


def listed(is_listed: Any) -> list[str]:
    """Returns the ops of floating tensors that a function lists."""
    rows = {name: row for name, row in all_samples().items() if is_listed(OPS[name]) and name not in UNSPECIFIED}
    return [name for name, row in rows.items() if (row.cases and row.dtypes) or name in FURTHER]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_safe_ops_keep_extreme_numbers_finite(backend: str) -> None:
    assert births(listed(is_safe), result_of) == {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_of_safe_ops_are_finite_at_extreme_numbers(backend: str) -> None:
    names = [name for name in listed(is_safe_backward) if all_samples()[name].differentiable]
    assert births(names, gradients_of, ("float32",)) == {}


def test_extreme_numbers_find_ops_that_are_not_safe() -> None:
    names = ["divide_no_nan", "dropout", "logspace", "round", "scatter", "multiply", "sin"]
    with ops.use_backend("numpy"):
        assert set(births(names, result_of)) == set(names)
        assert set(births(["multiply", "divide_no_nan"], gradients_of)) == {"multiply", "divide_no_nan"}
