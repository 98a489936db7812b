"""`ops.eval_shape` gives the shapes and dtypes, or the error, of every op in every sample row."""

from typing import Any

import numpy as np
import pytest

from emberharmony import TensorSpec, ops
from emberharmony.core.errors import (
    EmberError,
    IndexOutOfBoundsError,
    LinAlgError,
    TracedTensorError,
    UnsupportedOpError,
)
from emberharmony.core.registry import OPS
from emberharmony.testing.call import Call
from emberharmony.testing.checks import error_calls, promotion_calls, value_calls
from emberharmony.testing.inputs import as_argument
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.sampling import DEEP, portion
from tests.together import together

SAMPLES = {op: row for op, row in all_samples().items() if row.cases}
SEGMENTS = ("segment_sum", "segment_prod", "segment_max", "segment_min")
UNIQUE = ("unique", "unique_values", "unique_all", "unique_counts", "unique_inverse")
BY_VALUE = {"argwhere", "bincount", "get_item", "host_call", "nonzero", "repeat", "to_numpy", *SEGMENTS, *UNIQUE}
"""The ops whose shapes depend on values in some calls, or that read values for functions of other libraries."""
SUMMED = ("float32", "float64", "complex64", "complex128")


def spec(leaf: Any) -> Any:
    if ops.is_tensor(leaf) or isinstance(leaf, (bool, int, float, complex)):
        return TensorSpec(ops.shape(leaf), ops.dtype(leaf))
    return leaf


def judged(op: str, call: Call) -> None:
    args, kwargs = (
        as_argument(call.args),
        {name: as_argument(value) for name, value in call.kwargs.items()} | call.options,
    )
    try:
        with np.errstate(all="ignore"):
            wanted: Any = ops.tree_map(spec, OPS[op].function(*args, **kwargs))
    except UnsupportedOpError:
        return
    except EmberError as error:
        wanted = type(error)
    try:
        found: Any = ops.eval_shape(lambda *given: OPS[op].function(*given, **kwargs), *args)
    except TracedTensorError:
        assert op in BY_VALUE
        return
    except EmberError as error:
        found = type(error)
    if wanted in (IndexOutOfBoundsError, LinAlgError) and found is not wanted:
        assert not isinstance(found, type)  # only the values of the tensors are refused
        return
    assert ops.tree_flatten(found) == ops.tree_flatten(wanted), (call.label, call.dtype)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:torch.searchsorted:UserWarning")
@pytest.mark.parametrize("op", sorted(SAMPLES))
def test_the_shapes_are_those_of_the_op(op: str, backend: str) -> None:
    calls = [call for check in (value_calls, promotion_calls, error_calls) for call in check(SAMPLES[op])]
    for call in portion(calls, 2 if backend == "numpy" else 4):  # shapes hardly depend on the backend
        judged(op, call)


def floats(args: Any) -> list[int]:
    """Returns the positions of the floating arrays among arguments."""
    return [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f"]


DIFFERENTIABLE = sorted(op for op, row in SAMPLES.items() if row.differentiable and floats(row.cases[0].args))


@together("op", [op for op in DIFFERENTIABLE if op != "host_call"], share=6)
def test_the_shapes_of_gradients_are_those_of_the_arguments(op: str, backend: str) -> None:
    item = SAMPLES[op].cases[0]
    args, kwargs = cast_to_dtype(item.args, "float32"), {k: cast_to_dtype(v, "float32") for k, v in item.kwargs.items()}
    places = floats(args)

    def loss(*tensors: Any) -> Any:
        filled = list(args)
        for i, x in zip(places, tensors, strict=True):
            filled[i] = x
        results = map(ops.convert_to_tensor, ops.tree_leaves(OPS[op].function(*filled, **kwargs)))
        return sum((ops.sum(ops.real(y)) for y in results if ops.dtype(y) in SUMMED), ops.zeros(()))

    wanted = tuple(TensorSpec(args[i].shape, "float32") for i in places)
    slope = ops.grad(loss, argnums=tuple(range(len(places))))
    assert ops.eval_shape(slope, *wanted) == wanted
    if backend == "numpy" or DEEP:
        many = tuple(TensorSpec((2**30, *given.shape), "float32") for given in wanted)
        assert ops.eval_shape(ops.vmap(slope), *many) == many
