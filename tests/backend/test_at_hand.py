"""`Backend.array_if_cheap`: which tensors a check may read."""

from typing import Any

import pytest

from emberharmony import nn, ops
from emberharmony.core import selection


def read(x: Any) -> Any:
    return selection.current().array_if_cheap(x)


def test_the_values_are_read_on_the_cpu_or_in_checked_mode(backend: str) -> None:
    ids = ops.convert_to_tensor([3, -1])
    assert (read(ids) is None) is (backend == "mlx")
    with ops.checked():
        assert read(ids).tolist() == [3, -1]


def test_traced_values_are_not_read(backend: str) -> None:
    found = []
    ops.vmap(lambda x: (found.append(read(x)), ops.add(x, 1))[1])(ops.convert_to_tensor([1, 2]))
    assert all(x is None for x in found) or backend == "numpy"  # which calls the function for each slice
    specs = ops.TensorSpec((2,), "int64")
    ops.eval_shape(lambda x: (found.append(read(x)), x)[1], specs)
    assert found[-1] is None


def test_a_tensor_of_the_users_own_graph_is_read() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        p = torch.tensor([0.25, 0.5], requires_grad=True)
        assert read(p).tolist() == [0.25, 0.5]
        nn.losses.binary_cross_entropy(p, torch.tensor([0.0, 1.0])).backward()
        assert p.grad is not None
