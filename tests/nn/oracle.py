"""Compares layers with those of `torch.nn` in float64, the weights of which they load."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import nn, ops

torch: Any = pytest.importorskip("torch")

FORWARD = {"float32": 2e-6, "float64": 1e-12}
"""By dtype, the greatest error of an output, as a share of the greatest element of the right one."""

GRADIENT = {"float32": 1e-5, "float64": 1e-12}
"""The same for gradients."""


class Case(NamedTuple):
    """A layer, as both libraries call it.

    Attributes:
        name: the name of the class in both libraries.
        args: the arguments of both constructors.
        shapes: the shapes of the inputs; an array is taken as it is, but floats in the dtype that is checked.
        kwargs: the keyword arguments of both constructors.
        train: whether the layer is in training.
        call: keyword arguments of both calls.
        ours: keyword arguments of our constructor alone.
    """

    name: str
    args: tuple[Any, ...] = ()
    shapes: tuple[Any, ...] = ((2, 3),)
    kwargs: Mapping[str, Any] = MappingProxyType({})
    train: bool = True
    call: Mapping[str, Any] = MappingProxyType({})
    ours: Mapping[str, Any] = MappingProxyType({})

    def __str__(self) -> str:
        options = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in {**self.kwargs, **self.call}.items())]
        mode = "" if self.train else "-eval"
        inputs = ",".join(str(s) if type(s) is tuple else f"array{s.shape}" for s in self.shapes)
        return f"{self.name}({', '.join(options)}){mode}-{inputs}".replace(" ", "")


def require_like_torch(case: Case, dtype: str, seed: int = 0) -> None:
    """Checks outputs, buffers, and gradients by inputs and parameters on the active backend against torch in float64.

    The weights and inputs are of the dtype that is checked, so only the arithmetic differs.
    """
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    theirs = getattr(torch.nn, case.name)(*case.args, **case.kwargs).to(getattr(torch, dtype)).train(case.train)
    ours = getattr(nn, case.name)(*case.args, **case.kwargs, **case.ours).train(case.train).to(dtype=dtype)
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs = theirs.double()
    given = [draw.standard_normal(s) if type(s) is tuple else s for s in case.shapes]
    given = [x.astype(dtype) if x.dtype.kind == "f" else x for x in map(np.asarray, given)]
    floats = [i for i, x in enumerate(given) if x.dtype.kind == "f"]

    leaves = [torch.tensor(x.astype("float64") if x.dtype.kind == "f" else x) for x in given]
    for i in floats:
        leaves[i].requires_grad_(True)
    right = _tensors(theirs(*leaves, **case.call), torch.is_tensor)
    cotangents = [draw.standard_normal(tuple(y.shape)) for y in right]
    loss = sum((y * torch.tensor(c)).sum() for y, c in zip(right, cotangents, strict=True))
    if loss.requires_grad:
        loss.backward()

    found, gradients = _ours(ours, given, floats, cotangents, case.call, dtype)
    assert len(found) == len(right)
    for y, wanted in zip(found, right, strict=True):
        require_close(y, wanted.detach().numpy(), FORWARD[dtype], f"{case}: output")
        if wanted.is_floating_point():
            require_dtype(y, dtype, f"{case}: output")
    for i, x in enumerate(gradients[0]):
        require_close(x, leaves[floats[i]].grad.numpy(), GRADIENT[dtype], f"{case}: gradient by input {floats[i]}")
        require_dtype(x, dtype, f"{case}: gradient by input {floats[i]}")
    for name, parameter in theirs.named_parameters():
        wanted = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        require_close(gradients[1][name], wanted, GRADIENT[dtype], f"{case}: gradient by {name}")
        require_dtype(gradients[1][name], dtype, f"{case}: gradient by {name}")
    for name, buffer in theirs.named_buffers():
        require_close(ours.state_dict()[name], buffer.numpy(), FORWARD[dtype], f"{case}: buffer {name}")
        if buffer.is_floating_point():
            require_dtype(ours.state_dict()[name], dtype, f"{case}: buffer {name}")


def _ours(
    layer: nn.Module, given: Sequence[Any], floats: Sequence[int], cotangents: Sequence[Any], call: Any, dtype: str
) -> tuple[list[Any], Any]:
    """Returns our outputs, and the gradients by inputs and by parameters; the buffers are those after one call."""
    tensors = [ops.convert_to_tensor(x) for x in given]
    weights = {name: cell.value for name, cell in layer.named_parameters()}

    def loss(inputs: list[Any], parameters: dict[str, Any]) -> Any:
        filled = list(tensors)
        for place, x in zip(floats, inputs, strict=True):
            filled[place] = x
        outputs = _tensors(nn.functional_call(layer, parameters, *filled, **call), ops.is_tensor)
        terms = [ops.sum(ops.multiply(y, ops.cast(c, dtype))) for y, c in zip(outputs, cotangents, strict=True)]
        return sum(terms[1:], terms[0]), [ops.stop_gradient(y) for y in outputs]

    trained = [tensors[i] for i in floats], weights
    if trained[0] or weights:
        (_, outputs), gradients = ops.value_and_grad(loss, (0, 1), has_aux=True)(*trained)
    else:
        outputs, gradients = loss(*trained)[1], ([], {})
    layer(*tensors, **call)
    return outputs, gradients


def _tensors(tree: Any, is_tensor: Callable[[Any], bool]) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in _tensors(part, is_tensor)]
    return [tree] if is_tensor(tree) else []


def require_close(found: Any, wanted: Any, share: float, what: str) -> None:
    """Checks that a tensor differs from an array by at most a share of the greatest finite element of the array."""
    given = np.asarray(ops.to_numpy(found), "float64")
    wanted = np.asarray(wanted, "float64")
    assert given.shape == wanted.shape, f"{what}: shape {given.shape}, not {wanted.shape}"
    scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
    np.testing.assert_allclose(given, wanted, rtol=0, atol=share * max(float(scale), 1e-30), err_msg=what)


def require_dtype(found: Any, dtype: str, what: str) -> None:
    """Checks the dtype of a tensor."""
    assert ops.dtype(found).name == dtype, f"{what}: dtype {ops.dtype(found).name}, not {dtype}"


def dtypes_of(backend: str) -> tuple[str, ...]:
    """Returns the dtypes in which the layers of a backend are compared."""
    return ("float32",) if backend == "mlx" else ("float32", "float64")
