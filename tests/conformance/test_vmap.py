"""Every op and its gradient give the same results under `vmap` as slice by slice."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.together import together

SAMPLES = all_samples()


def floats(args: Any) -> list[int]:
    """Returns the positions of the floating arrays among arguments."""
    return [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray) and arg.dtype.kind == "f"]


MAPPED = sorted(
    op
    for op, row in SAMPLES.items()
    if "float32" in row.dtypes and row.reference != "tests" and row.cases and floats(row.cases[0].args)
)
TOLERANCE = 1e-4
"""Relative and absolute; two kernels may add float32 numbers in different orders."""


def hosts(result: Any) -> list[Any]:
    """Returns the absolute values of a result's tensors as host arrays, because the signs of factors are arbitrary."""
    leaves = [leaf for leaf in ops.tree_leaves(result) if ops.is_tensor(leaf)]
    return [np.abs(np.asarray(ops.to_numpy(leaf))) for leaf in leaves]


@pytest.mark.filterwarnings("ignore:torch.searchsorted:UserWarning")
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@together("op", MAPPED, share=3)
def test_an_op_under_vmap_equals_the_op_on_each_slice(op: str, backend: str) -> None:
    function, item = OPS[op].function, SAMPLES[op].cases[0]
    args, kwargs = cast_to_dtype(item.args, "float32"), {k: cast_to_dtype(v, "float32") for k, v in item.kwargs.items()}
    places = floats(args)

    def call(*slices: Any) -> Any:
        filled = list(args)
        for i, value in zip(places, slices, strict=True):
            filled[i] = value
        return function(*filled, **kwargs)

    tensors = [ops.array(args[i]) for i in places]
    wanted = hosts(call(*tensors))
    if not wanted:
        pytest.skip("the result has no tensor")
    # Maps all tensors, then only one of them: libraries have faults when some arguments are not mapped.
    ways = [[0] * len(places)]
    if len(places) > 1:
        ways += [[0 if i == j else None for i in range(len(places))] for j in range(len(places))]
    for way in ways:
        given = [x if axis is None else ops.stack([x, x]) for x, axis in zip(tensors, way, strict=True)]
        found = hosts(ops.vmap(call, in_axes=tuple(way))(*given))
        for got, want in zip(found, wanted, strict=True):
            assert got.shape == (2, *want.shape)
            for each in got:
                assert np.allclose(each, want, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@together("op", [op for op in MAPPED if SAMPLES[op].differentiable], share=3)
def test_gradients_of_vmap_and_vmap_of_gradients_equal_those_of_slices(op: str, backend: str) -> None:
    function, item = OPS[op].function, SAMPLES[op].cases[0]
    args, kwargs = cast_to_dtype(item.args, "float32"), {k: cast_to_dtype(v, "float32") for k, v in item.kwargs.items()}
    places = floats(args)
    tensors = [ops.array(args[i]) for i in places]
    doubled = [ops.stack([tensor, tensor]) for tensor in tensors]

    def loss(*slices: Any) -> Any:
        filled = list(args)
        for i, value in zip(places, slices, strict=True):
            filled[i] = value
        return weighted(function(*filled, **kwargs))

    refused = SAMPLES[op].gradient.host
    argnums = tuple(k for k, i in enumerate(places) if i not in refused)
    wanted = hosts(ops.grad(loss, argnums)(*tensors))
    inside = hosts(ops.vmap(ops.grad(loss, argnums))(*doubled))
    outside = hosts(ops.grad(lambda *slices: ops.sum(ops.vmap(loss)(*slices)), argnums)(*doubled))
    for want, *found in zip(wanted, inside, outside, strict=True):
        scale = 1.0 + float(np.max(want, initial=0.0, where=np.isfinite(want)))
        for got in found:
            assert np.allclose(got, np.stack([want, want]), rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


def weighted(result: Any) -> Any:
    """Returns the sum of all floating elements of a result, each with a different weight."""
    total = ops.zeros(())
    for leaf in ops.tree_leaves(result):
        dtype = ops.dtype(leaf)
        if dtype.is_floating or dtype.is_complex:
            real = ops.absolute(leaf) if dtype.is_complex else leaf
            weights = ops.cos(ops.reshape(ops.arange(ops.size(real), dtype="float32"), ops.shape(real)))
            total = ops.add(total, ops.sum(ops.multiply(real, weights)))
    return total
