"""Checks that hold for every layer: copies, other backends, transforms and half precision."""

import copy
import functools
import importlib
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from emberharmony import nn, ops
from emberharmony.errors import DTypeError
from tests.nn.oracle import Case, require_close, require_dtype
from tests.sampling import DEEP

CLOSE = 2e-6
"""The greatest difference between two ways to call a layer in float32, as a share of the greatest element."""

HALF = {"float16": 16 * 2**-10, "bfloat16": 16 * 2**-7}
"""The same for half precision against float32: 16 times the distance of two neighbours at 1."""


TRACED = frozenset(
    ("BatchNorm1d", "Conv2d", "Dropout", "Embedding", "GELU", "LSTMCell", "Linear", "Sequential", "Softmax")
)
"""The layers that `make test` compiles on PyTorch, where tracing takes a second and more; `make deep` compiles all."""


def require_behaviours(backend: str, case: Case, compiled: bool = True) -> None:
    """Checks that copies, transforms, other backends and half precision do not change what a layer computes.

    Args:
        backend: the active backend.
        case: the layer and its inputs. One that draws random numbers, or changes its buffers, has `train=False`.
        compiled: whether to check `ops.compile` too, which takes seconds for layers of many ops.
    """
    layer, inputs, right = _made(case)
    checks = (
        _require_copies,
        _require_other_backend,
        _require_shapes,
        _require_vmap,
        _require_checkpoint,
        _require_half,
        *([_require_compile] if compiled else []),
    )
    for check in checks:
        check(backend, case, layer, inputs, right)


def require_compiled(backend: str, case: Case) -> None:
    """Checks that a compiled layer computes the same."""
    _require_compile(backend, case, *_made(case))


def _made(case: Case) -> tuple[nn.Module, list[Any], list[np.ndarray]]:
    """Returns a layer, inputs, and what the layer returns for them."""
    layer = getattr(nn, case.name)(*case.args, **case.kwargs, **case.ours).train(case.train)
    layer = layer.to(dtype="float32")
    draw = np.random.default_rng(0)
    given = [draw.standard_normal(s).astype("float32") if type(s) is tuple else s for s in case.shapes]
    inputs = [ops.convert_to_tensor(x) for x in given]
    return layer, inputs, called(layer, inputs, case)


def called(layer: nn.Module, inputs: Sequence[Any], case: Case) -> list[np.ndarray]:
    """Returns the outputs of a layer as arrays."""
    return [_host(y) for y in _flat(layer(*inputs, **case.call))]


def _require_copies(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[np.ndarray]) -> None:
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(copied) == repr(layer)
        assert copied.training == layer.training
        for found, wanted in zip(called(copied, inputs, case), right, strict=True):
            # Kernels may round the elements before an aligned address in another way.
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7, err_msg=f"{case}: copied")
        for one, other in zip(copied.parameters(), layer.parameters(), strict=True):
            assert one is not other


def _require_other_backend(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[Any]) -> None:
    hosts = [ops.to_numpy(x) for x in inputs]
    with ops.use_backend("numpy"):
        for found, wanted in zip(called(layer, hosts, case), right, strict=True):
            require_close(found, wanted, CLOSE, f"{case}: on NumPy")


def _require_shapes(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[np.ndarray]) -> None:
    specs = ops.eval_shape(functools.partial(layer, **case.call), *inputs)
    assert [tuple(spec.shape) for spec in _flat(specs)] == [y.shape for y in right], f"{case}: eval_shape"


def _require_vmap(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[np.ndarray]) -> None:
    pairs = [ops.stack([x, ops.flip(x, 0)]) for x in inputs]
    found = _flat(ops.vmap(functools.partial(layer, **case.call))(*pairs))
    flipped = called(layer, [ops.flip(x, 0) for x in inputs], case)
    for y, first, second in zip(found, right, flipped, strict=True):
        require_close(y, np.stack([first, second]), CLOSE, f"{case}: vmap")


def _require_compile(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[np.ndarray]) -> None:
    if backend == "torch" and case.name not in TRACED and not DEEP:
        return
    with quick_compiler(backend):
        compiled = ops.compile(layer)
        for found, wanted in zip(called(compiled, inputs, case), right, strict=True):
            require_close(found, wanted, CLOSE, f"{case}: compile")


def _require_checkpoint(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[Any]) -> None:
    if not layer.parameters(trainable=True):
        return

    wanted = _gradients(layer, layer, inputs, case)
    for found, each in zip(_gradients(ops.checkpoint(layer), layer, inputs, case), wanted, strict=True):
        require_close(found, each, CLOSE, f"{case}: gradient of ops.checkpoint")
    ops.zero_grad(layer)


def _gradients(function: Any, layer: nn.Module, inputs: list[Any], case: Case) -> list[np.ndarray]:
    """Returns the gradients of the parameters of a layer that a function calls, and checks their dtypes."""
    ops.zero_grad(layer)
    ops.backward(lambda: _squared(function(*inputs, **case.call)), layer)
    for name, parameter in layer.named_parameters():
        if parameter.trainable:
            require_dtype(parameter.grad, ops.dtype(parameter.value).name, f"{case}: gradient by {name}")
    return [_host(parameter.grad) for parameter in layer.parameters(trainable=True)]


def _require_half(backend: str, case: Case, layer: nn.Module, inputs: list[Any], right: list[np.ndarray]) -> None:
    for dtype, share in HALF.items():
        try:
            rounded = [ops.cast(x, dtype) if ops.dtype(x).is_floating else x for x in inputs]
        except DTypeError:  # NumPy has bfloat16 only where ml_dtypes is installed
            continue
        half = copy.deepcopy(layer).to(dtype=dtype)
        outputs = _flat(half(*rounded, **case.call))
        assert {ops.dtype(y).name for y in outputs if ops.dtype(y).is_floating} <= {dtype}, f"{case}: {dtype}"
        if half.parameters(trainable=True):
            _gradients(half, half, rounded, case)
        wide = [ops.cast(x, "float32") if ops.dtype(x).is_floating else x for x in rounded]
        for y, wanted in zip(outputs, called(half.to(dtype="float32"), wide, case), strict=True):
            require_close(ops.cast(y, "float32"), wanted, share, f"{case}: {dtype}")


def require_channels_last(case: Case) -> None:
    """Checks that a layer with `data_format="channels_last"` computes the same, its channels behind the other axes.

    The channels of inputs and outputs are moved, except for those with fewer than three axes; the gradient by the first
    input is compared too.
    """
    first = getattr(nn, case.name)(*case.args, **case.kwargs, **case.ours).train(case.train).to(dtype="float32")
    last = getattr(nn, case.name)(*case.args, **case.kwargs, **case.ours, data_format="channels_last")
    last = last.train(case.train).to(dtype="float32")
    last.load_state_dict(first.state_dict())
    draw = np.random.default_rng(0)
    inputs = [draw.standard_normal(s).astype("float32") if type(s) is tuple else s for s in case.shapes]

    def loss(layer: nn.Module, moved: Any) -> Any:
        def of(x: Any, *rest: Any) -> Any:
            outputs = [moved(y, -1, 1) for y in _flat(layer(*(moved(each, 1, -1) for each in (x, *rest)), **case.call))]
            return _squared(outputs), [ops.stop_gradient(y) for y in outputs]

        (_, outputs), gradient = ops.value_and_grad(of, has_aux=True)(*map(ops.convert_to_tensor, inputs))
        return [*outputs, gradient]

    wanted = loss(first, lambda x, *_: x)
    found = loss(last, lambda x, source, target: ops.moveaxis(x, source, target) if len(x.shape) > 2 else x)
    for one, other in zip(found, wanted, strict=True):
        require_close(one, _host(other), CLOSE, f"{case}: channels last")


@contextmanager
def quick_compiler(backend: str) -> Iterator[None]:
    """Makes torch.compile only trace, because its default compiler takes seconds for each function."""
    if backend != "torch":
        yield
        return
    torch = importlib.import_module("torch")
    with mock.patch.object(torch, "compile", functools.partial(torch.compile, backend="eager")):
        yield


def _squared(outputs: Any) -> Any:
    terms = [ops.sum(ops.square(y)) for y in _flat(outputs)]
    return sum(terms[1:], terms[0])


def _flat(tree: Any) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in _flat(part)]
    return [] if tree is None else [tree]


def _host(x: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))
