"""Tests that Inductor takes no other product than that of attention for one."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from emberharmony import ops
from emberharmony.backend.torch.flow import attention_fusion
from emberharmony.backend.torch.flow.host_programs import HostProgram
from emberharmony.core import selection


def _run_passes(graph: Any, inputs: Any, options: dict[str, Any] | None = None) -> Any:
    """Compiles a graph as Inductor does, and then runs it; C++ for it would take seconds."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, lambda module, _, **__: module.forward, options)


@pytest.fixture(autouse=True)
def torch_without_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=_run_passes))
    before = ops.get_backend()
    ops.set_backend("torch")
    yield
    ops.set_backend(before)


def by_hand(query: Any, key: Any, value: Any) -> Any:
    """Returns attention of tensors (batch, positions, heads, width)."""
    logits = ops.matmul(ops.swapaxes(query, 1, 2), ops.transpose(key, (0, 2, 3, 1)))
    return ops.swapaxes(ops.matmul(ops.softmax(ops.multiply(logits, 0.5), -1), ops.swapaxes(value, 1, 2)), 1, 2)


def by_hand_in_parts(query: Any, key: Any, value: Any) -> Any:
    torch._dynamo.graph_break()
    return by_hand(query, key, value)


@pytest.mark.parametrize("length", [4, 5])  # as many positions as heads, for which nothing else tells them apart
@pytest.mark.parametrize("function", [by_hand, by_hand_in_parts])
def test_keys_keep_the_order_of_their_axes(function: Callable[..., Any], length: int) -> None:
    numbers = np.random.default_rng(0)
    query, key, value = (
        ops.array(numbers.normal(size=(2, count, 4, 4)).astype("float32")) for count in (4, length, length)
    )
    expected = by_hand(query, key, value)
    np.testing.assert_allclose(ops.to_numpy(ops.compile(function)(query, key, value)), expected, rtol=1e-4, atol=1e-5)


def test_keys_keep_the_order_of_their_axes_in_a_program_on_the_host() -> None:
    numbers = np.random.default_rng(2)
    arrays = [numbers.normal(size=(2, 4, 4, 4)).astype("float32") for _ in range(3)]
    program = HostProgram(lambda tensors: [by_hand(*tensors)], selection.active())
    expected = by_hand(*map(ops.array, arrays))
    np.testing.assert_allclose(program(arrays)[0], expected, rtol=1e-4, atol=1e-5)


def test_attention_in_half_precision_equals_the_uncompiled_one() -> None:
    numbers = np.random.default_rng(1)
    query, key, value = (ops.array(numbers.normal(size=(2, 4, 4, 4)), dtype="bfloat16") for _ in range(3))
    expected = ops.dot_product_attention(query, key, value)
    result = torch.compile(ops.dot_product_attention)(query, key, value)
    assert ops.max(ops.abs(result - expected)) < 0.05


@pytest.mark.parametrize("op", [torch.ops.aten.permute.default, torch.ops.aten.transpose.int])
def test_only_a_permutation_is_parted_from_its_product(op: Any) -> None:
    graph = torch.fx.Graph()
    query, key = (graph.placeholder(name) for name in "ab")
    key.meta["val"] = torch.ones(2, 3, 4)
    turned = graph.call_function(op, (key, 1, 2) if op is torch.ops.aten.transpose.int else (key, (0, 2, 1)))
    turned.meta["val"] = torch.ones(2, 4, 3)
    graph.output(graph.call_function(torch.ops.aten.bmm.default, (query, turned)))
    attention_fusion.UnfusedAttention()(graph)
    expanded = graph.find_nodes(op="call_function", target=torch.ops.aten.expand.default)
    assert len(expanded) == (op is torch.ops.aten.permute.default)
