"""Compares operators with PyTorch on PyTorch's own samples: one captured module for each operator, with its samples.

`python tools/zoo/operators.py [NAME …]` prints what differs, for all operators or for some.
"""

import itertools
import sys
import types
import unittest
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

import emberharmony
from emberharmony import ops

NOT_UNIQUE = ("eig", "eigh", "linalg.eig", "linalg.eigh", "linalg.qr", "pca_lowrank", "qr", "svd_lowrank")
"""Decompositions whose vectors PyTorch gives other signs."""

UNLIKE = {
    "empty_like": "PyTorch's numbers are what was in the memory",
    "linalg.norm.subgradients_at_zero": "the derivative of the maximum norm at 0 is NaN here",
    "linalg.pinv.hermitian": "PyTorch's derivative is that for symmetric changes",
    "linalg.pinv.singular": "the derivative for a matrix without full rank is that of one with",
    "new_empty": "PyTorch's numbers are what was in the memory",
    "nn.functional.hardsigmoid": "PyTorch's derivative is that of float32, 1/6 rounded",
    "nn.functional.max_unpool1d": "an index that occurs twice gets one gradient here, and PyTorch gives it to both",
    "nn.functional.max_unpool2d": "the same",
    "nn.functional.max_unpool3d": "the same",
    "nn.functional.pad.replicate_negative": "an empty axis cannot be padded here",
    "polygamma.polygamma_n_0": "PyTorch's digamma is off by 4e-11 near its zero",
    "special.bessel_j0": "PyTorch's is off by 8e-9",
    "special.bessel_j1": "the same",
    "tensordot": "PyTorch contracts axes of length 1 with longer ones",
}
"""What differs, and why."""

SAMPLES = 5
"""How many samples of an operator are tried, those with the smallest inputs first."""


def operators() -> dict[str, Any]:
    """Returns PyTorch's descriptions of its operators by name and variant."""
    if "expecttest" not in sys.modules:  # PyTorch's tests import it, and the descriptions do not use it
        stub: Any = types.ModuleType("expecttest")
        stub.TestCase, stub.assert_expected_inline = unittest.TestCase, None
        sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return {f"{info.name}{'.' if info.variant_test_name else ''}{info.variant_test_name}": info for info in op_db}


class Samples(torch.nn.Module):
    """Calls a function with each of several lists of arguments, whose tensors are the inputs of the module."""

    def __init__(self, function: Callable[..., Any], calls: list[tuple[Any, list[int]]]) -> None:
        super().__init__()
        self.function, self.calls = function, calls

    def forward(self, *tensors: torch.Tensor) -> list[Any]:
        found = []
        for (leaves, spec), _ in self.calls:
            filled = [tensors[leaf.place] if isinstance(leaf, Place) else leaf for leaf in leaves]
            args, kwargs = _pytree.tree_unflatten(filled, spec)
            found += [x for x in _pytree.tree_leaves(self.function(*args, **kwargs)) if isinstance(x, torch.Tensor)]
        return found


class Place:
    """Stands for a tensor that is an input."""

    def __init__(self, place: int) -> None:
        self.place = place


def is_random(net: Samples, tensors: list[torch.Tensor]) -> bool:
    """Returns whether a module gives something else each time."""
    with unittest.mock.patch("torch.manual_seed"):  # which the descriptions call
        first = net(*[x.detach().clone() for x in tensors])
        torch.rand(1)
        second = net(*[x.detach().clone() for x in tensors])
    return any(not torch.allclose(x, y, equal_nan=True) for x, y in zip(first, second, strict=True))


def example(info: Any, dtype: torch.dtype, requires_grad: bool) -> tuple[Samples, list[torch.Tensor]]:
    """Returns the module of an operator, and its inputs."""
    tensors: list[torch.Tensor] = []
    calls: list[Any] = []
    torch.manual_seed(0)
    for sample in itertools.islice(_small(info.sample_inputs("cpu", dtype, requires_grad=requires_grad)), SAMPLES):
        leaves, spec = _pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        places = []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                leaves[i] = Place(len(tensors))
                tensors.append(leaf.detach().requires_grad_(leaf.requires_grad))
        calls.append(((leaves, spec), places))
    return Samples(info.op, calls), tensors


def _small(samples: Iterator[Any]) -> Iterator[Any]:
    """Yields the samples whose tensors are small, without repetitions of the same shapes and options."""
    seen = set()
    for sample in samples:
        leaves = _pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        key = str([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in leaves])
        if key not in seen and all(x.numel() <= 2000 for x in leaves if isinstance(x, torch.Tensor)):
            seen.add(key)
            yield sample


def differences(info: Any, backend: str = "numpy", dtype: torch.dtype = torch.float64) -> list[str]:
    """Returns what differs between an operator and PyTorch, in words; nothing if all is the same.

    Raises:
        CaptureError: if PyTorch cannot export the operator.
        UnsupportedOpError: if the table lacks operators.
    """
    if dtype not in info.supported_dtypes("cpu"):
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in info.supported_dtypes("cpu")), dtype)
    differentiable = dtype.is_floating_point and info.supports_autograd
    net, tensors = example(info, dtype, differentiable)
    if not tensors:
        return []
    if is_random(net, tensors):
        return []
    captured = emberharmony.from_torch(net, tuple(x.detach() for x in tensors), train=False)
    inputs = [x.detach().clone().requires_grad_(differentiable and x.requires_grad) for x in tensors]
    wanted = net(*[x * 1 if x.requires_grad else x for x in inputs])
    small = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    with ops.use_backend(backend):
        given = [ops.array(x.detach().numpy()) for x in tensors]
        found = captured(*given)
        notes = [
            f"output {i}: {note}"
            for i, (ours, theirs) in enumerate(zip(found, wanted, strict=True))
            if (note := _difference(ops.to_numpy(ours), theirs.detach().resolve_conj().numpy(force=True), small))
        ]
        places = [i for i, x in enumerate(inputs) if x.requires_grad]
        if notes or not places or not any(x.requires_grad and x.is_floating_point() for x in wanted):
            return notes
        return _gradients(captured, inputs, given, wanted, places, small)


def _gradients(captured: Any, inputs: Any, given: Any, wanted: Any, places: list[int], small: float) -> list[str]:
    rng = np.random.default_rng(1)
    used = [i for i, x in enumerate(wanted) if x.requires_grad and x.is_floating_point()]
    weights = {i: rng.uniform(0.5, 1.5, tuple(wanted[i].shape)) for i in used}
    total = sum((wanted[i] * torch.tensor(weights[i], dtype=wanted[i].dtype)).sum() for i in used)
    theirs = torch.autograd.grad(total, [inputs[i] for i in places], allow_unused=True)

    def loss(chosen: list[Any]) -> Any:
        filled = dict(zip(places, chosen, strict=True))
        outputs = captured(*[filled.get(i, x) for i, x in enumerate(given)])
        return sum(ops.sum(ops.multiply(outputs[i], ops.array(weights[i], dtype=ops.dtype(outputs[i])))) for i in used)

    ours = ops.grad(loss)([given[i] for i in places])
    return [
        f"gradient of input {place}: {note}"
        for place, own, other in zip(places, ours, theirs, strict=True)
        if (
            note := _difference(
                ops.to_numpy(own), np.zeros(own.shape) if other is None else other.numpy(force=True), 100 * small
            )
        )
    ]


def _difference(ours: np.ndarray, theirs: np.ndarray, small: float) -> str:
    """Returns how an array differs from the right one; an empty string if it does not."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype != theirs.dtype and small and theirs.dtype.kind != "f":
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    if theirs.dtype.kind not in "fc":
        return "" if np.array_equal(ours, theirs) else f"{_first(ours != theirs, ours, theirs)}"
    top = np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs))
    close = np.isclose(ours, theirs, rtol=1000 * small, atol=1000 * small * max(top, 1e-3), equal_nan=True)
    return "" if close.all() else _first(~close, ours, theirs)


def _first(wrong: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} elements, at {place} {ours[place]}, not {theirs[place]}"
