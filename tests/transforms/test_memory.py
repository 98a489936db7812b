"""What value and gradient keep in memory: no more than the derivative needs, and nothing after the call."""

import gc
import importlib
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops

ROWS, WIDTH = 1024, 64
BATCH = ROWS * WIDTH * 4
"""The bytes of one activation."""


def parameters(depth: int) -> list[Any]:
    """Returns the weights and biases of a network of `depth` equal layers, as tensors."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 8 for _ in range(depth)]
    return [ops.convert_to_tensor(x) for x in [*weights, *(np.zeros(WIDTH, np.float32) for _ in range(depth))]]


def network(x: Any, *trained: Any) -> Any:
    """Returns the mean square of the output of a tanh network; its derivative needs the result of each tanh."""
    depth = len(trained) // 2
    for weight, bias in zip(trained[:depth], trained[depth:], strict=True):
        x = ops.tanh(ops.add(ops.matmul(x, weight), bias))
    return ops.mean(ops.square(x))


def gradient_of_network(depth: int, rows: int = ROWS) -> tuple[Callable[..., Any], list[Any]]:
    """Returns the function of value and gradient by the parameters, and its arguments."""
    x = ops.convert_to_tensor(np.random.default_rng(1).standard_normal((rows, WIDTH)).astype(np.float32))
    function = ops.value_and_grad(lambda *trained: network(x, *trained), argnums=tuple(range(2 * depth)))
    return function, parameters(depth)


def peak_of(call: Callable[[], Any]) -> int:
    """Returns the bytes that a call allocates at most at one time, as NumPy and Python report them."""
    call()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        kept = call()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        tracemalloc.stop()
    return peak - before


def test_the_tape_keeps_one_activation_per_layer() -> None:
    ops.set_backend("numpy")

    def peak(depth: int) -> int:
        function, trained = gradient_of_network(depth)
        return peak_of(lambda: function(*trained))

    assert peak(16) - peak(6) <= 1.1 * 10 * BATCH


def test_the_tape_frees_what_no_result_depends_on() -> None:
    ops.set_backend("numpy")

    def loss(x: Any) -> Any:
        for _ in range(20):
            ops.multiply(ops.exp(x), x)
        return ops.sum(x)

    x = np.ones((ROWS, WIDTH), np.float32)
    assert peak_of(lambda: ops.grad(loss)(x)) <= 4 * BATCH


def test_pytorch_saves_what_it_saves_natively() -> None:
    torch = pytest.importorskip("torch")
    ops.set_backend("torch")
    depth = 6
    function, trained = gradient_of_network(depth)

    def saved_by(call: Callable[[], Any]) -> int:
        storages: dict[int, int] = {}
        alive = []  # so that no address is used twice

        def pack(x: Any) -> Any:
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            alive.append(x)
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            call()
        return sum(storages.values())

    def native() -> Any:
        leaves = [x.detach().requires_grad_() for x in trained]
        x = torch.from_numpy(np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32))
        for weight, bias in zip(leaves[:depth], leaves[depth:], strict=True):
            x = torch.tanh(torch.addmm(bias, x, weight))
        return torch.autograd.grad(torch.mean(torch.square(x)), leaves)

    assert 0 < saved_by(lambda: function(*trained)) <= 1.1 * saved_by(native)


def test_mlx_allocates_what_it_allocates_natively() -> None:
    pytest.importorskip("mlx.core")
    mx = importlib.import_module("mlx.core")
    ops.set_backend("mlx")
    depth = 8
    function, trained = gradient_of_network(depth)
    x = mx.array(np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32))
    mx.eval(x, trained)

    def loss(*trained: Any) -> Any:
        y = x
        for weight, bias in zip(trained[:depth], trained[depth:], strict=True):
            y = mx.tanh(y @ weight + bias)
        return mx.mean(mx.square(y))

    native = mx.value_and_grad(loss, argnums=list(range(2 * depth)))

    def peak(call: Callable[..., Any]) -> int:
        mx.eval(call(*trained))
        gc.collect()
        mx.clear_cache()
        before = int(mx.get_active_memory())
        mx.reset_peak_memory()
        mx.eval(call(*trained))
        return int(mx.get_peak_memory()) - before

    assert 0 < peak(function) <= 1.1 * peak(native)


def grows(backend: str, steps: int) -> bool:
    """Returns whether objects or memory remain from gradients and from `ops.backward`, more of them the more steps."""
    function, trained = gradient_of_network(2, rows=2)
    model = [Parameter(x) for x in parameters(1)]
    x = ops.ones((2, WIDTH))

    def step() -> None:
        ops.eval(function(*trained))
        ops.eval(ops.backward(lambda: network(x, *(p.value for p in model)), model))
        ops.zero_grad(model)

    def held() -> tuple[int, int]:
        gc.collect()
        memory = importlib.import_module("mlx.core").get_active_memory() if backend == "mlx" else 0
        return len(gc.get_objects()), memory + tracemalloc.get_traced_memory()[0]

    def more() -> bool:
        objects, memory = held()
        for _ in range(steps):
            step()
        more_objects, more_memory = held()
        # Caches of fixed size may still fill, but nothing may grow by an object or by 32 bytes for each step.
        return more_objects - objects >= steps or more_memory - memory >= 32 * steps + 4096

    tracemalloc.start()
    try:
        for _ in range(5):
            step()
        return all(more() for _ in range(3))  # what leaks grows each time; what other tests left is freed once
    finally:
        tracemalloc.stop()


def test_steps_leave_nothing_behind(backend: str) -> None:
    assert not grows(backend, 100)


@pytest.mark.slow
def test_ten_thousand_steps_leave_nothing_behind(backend: str) -> None:
    assert not grows(backend, 10_000)
