"""Tests compiled functions that create tensors: they follow the default device, and its look-up breaks no graph."""

import functools
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from emberharmony import ops
from emberharmony.backend.torch import device_ops

Tensor = Any


@pytest.fixture(autouse=True)
def quick_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes PyTorch the backend and "meta", which holds no values, a second device; torch.compile only traces."""
    native = device_ops.as_native_device
    monkeypatch.setattr(
        device_ops, "as_native_device", lambda name: torch.device("meta") if name == "meta" else native(name)
    )
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    before = ops.get_backend()
    ops.set_backend("torch")
    yield
    ops.set_default_device(None)
    ops.set_backend(before)


def add_a_range(x: Tensor) -> Tensor:
    return x + ops.arange(3)


def breaks(function: Any, *args: Any) -> dict[str, int]:
    """Returns how often a call is broken for which reasons while it is compiled."""
    counters = torch._dynamo.utils.counters
    counters.clear()
    function(*args)
    return dict(counters["graph_break"])


@pytest.mark.parametrize("compiler", ["ops.compile", "torch.compile"])
def test_no_graph_breaks_once_a_device_block_is_left_or_the_default_device_is_reset(compiler: str) -> None:
    def compile_anew() -> Any:
        return ops.compile(lambda x: add_a_range(x)) if compiler == "ops.compile" else torch.compile(add_a_range)

    x = ops.ones(3)
    with ops.device("cpu"):
        ops.arange(3)
    assert breaks(compile_anew(), x) == {}
    ops.set_default_device("cpu")
    assert breaks(compile_anew(), x) == {}
    ops.set_default_device(None)
    assert breaks(compile_anew(), x) == {}


def test_no_graph_breaks_inside_of_a_device_block() -> None:
    x = ops.ones(3)
    with ops.device("cpu"):
        function = ops.compile(lambda x: add_a_range(x))
        assert breaks(function, x) == {}
        assert breaks(ops.compile(lambda x: function(x) * 2), x) == {}
    assert breaks(function, x) == {}
    assert function(x).tolist() == [1.0, 2.0, 3.0]


def test_a_compiled_function_follows_blocks_and_the_default_device() -> None:
    create = ops.compile(lambda: ops.arange(3))
    for _ in range(2):
        assert create().device.type == "cpu"
        with ops.device("meta"):
            assert create().device.type == "meta"
            with ops.device("cpu"):
                assert create().device.type == "cpu"
            assert create().device.type == "meta"
        ops.set_default_device("meta")
        assert create().device.type == "meta"
        with ops.device("cpu"):
            assert create().device.type == "cpu"
        ops.set_default_device(None)
    assert create().device.type == "cpu"


def test_a_function_compiled_by_the_library_alone_follows_blocks() -> None:
    create = torch.compile(lambda: ops.arange(3) * 2)
    assert create().device.type == "cpu"
    with ops.device("meta"):
        assert create().device.type == "meta"
    assert create().device.type == "cpu"
