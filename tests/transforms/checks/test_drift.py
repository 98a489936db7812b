"""The checks "dtype", "device", "lazy" and "gradients"."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core.selection import Override
from emberharmony.errors import BackendSwitchWarning, CheckError, CheckWarning
from tests.testing.differences.faults import faulty

DRIFTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a NumPy array": (
        lambda: ops.convert_to_tensor(np.ones(2)),
        "made a tensor of float64, while the default is float32",
    ),
    "float64": (
        lambda: ops.add(ops.ones(2), ops.ones(2, dtype="float64")),
        "promoted x1 of float32 to float64, because x2 is float64",
    ),
    "half": (
        lambda: ops.multiply(ops.ones(2, dtype="float16"), ops.ones(2)),
        "promoted x1 of float16 to float32, because x2 is float32",
    ),
    "a list": (
        lambda: ops.concatenate([ops.ones(2, dtype="bfloat16"), ops.ones(2)]),
        r"promoted xs\[0\] of bfloat16 to float32|promoted \w+\[0\] of bfloat16 to float32",
    ),
    "integers": (lambda: ops.divide(ops.array([1, 2]), ops.array([2, 2])), "of integers"),
    "wide integers": (
        lambda: ops.add(ops.array([1], dtype="int8"), ops.array([1], dtype="int32")),
        "promoted x1 of int8 to int32",
    ),
}


@pytest.mark.parametrize("name", DRIFTS)
def test_a_wider_dtype_is_found_once_in_a_line(name: str, backend: str) -> None:
    run, text = DRIFTS[name]
    with ops.checked("dtype", policy="record") as found:
        run()
        run()
    assert len(found) == 1
    assert found[0].check == "dtype"
    assert "test_drift.py:" in found[0].line
    with pytest.raises(CheckError, match=text), ops.checked("dtype", policy="raise"):
        run()


def test_a_dtype_that_is_meant_is_none(backend: str) -> None:
    x = ops.ones(3, dtype="float16")
    with warnings.catch_warnings(), ops.checked("dtype"):
        warnings.simplefilter("error")
        ops.sum(ops.multiply(ops.cast(x, "float32"), 2.0))
        ops.multiply(x, 2.0)
        ops.zeros(2, dtype="float64")
        ops.add(ops.array([1, 2]), 1)
        ops.greater(ops.array([1, 2]), 1)


@pytest.mark.parametrize(("numbers", "positions"), [("int8", "int64"), ("int64", "int8"), ("float16", "int64")])
def test_positions_and_counts_promote_nothing(numbers: str, positions: str, backend: str) -> None:
    x, at = ops.array([1, 2, 3], dtype=numbers), ops.array([0, 2, 1], dtype=positions)
    with ops.checked("dtype", policy="record") as found:
        made = [
            *(ops.take(x, at), ops.take_along_axis(x, at, 0), ops.get_item(x, at), ops.repeat(x, at)),
            *(ops.put_along_axis(x, at, x, 0), ops.segment_sum(x, at, 3), ops.embedding(at, ops.reshape(x, (3, 1)))),
        ]
        placed = ops.searchsorted(x, ops.cast(x, numbers)), ops.one_hot(at, 3), ops.multi_hot(at, 3), ops.nonzero(at)
    assert {ops.dtype(y).name for y in made} == {numbers}
    assert len(placed) == 4
    assert found == []


def test_sums_that_are_wider_than_their_terms_are_no_promotion(backend: str) -> None:
    x = ops.array([[1, 2], [3, 4]], dtype="int8")
    with ops.checked("dtype", policy="record") as found:
        ops.sum(x), ops.prod(x), ops.cumsum(x, axis=0), ops.searchsorted(x[0], ops.cast(x[0], "int16")), ops.argmax(x)
    assert found == []


@pytest.mark.slow  # PyTorch imports much for its device "meta"
def test_arguments_on_several_devices_are_found() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"), ops.checked("device") as found, pytest.warns(CheckWarning, match="several devices"):
        ops.add(torch.ones(2, device="meta"), torch.tensor(1.0))
    assert "x1 is on meta, x2 is on cpu" in found[0].text


def test_a_result_on_another_device_is_found() -> None:
    torch = pytest.importorskip("torch")
    bad = faulty("torch", "negative", lambda f, x: f(x).to("meta"))
    with Override(bad), ops.checked("device", policy="record") as found:
        ops.negative(torch.ones(2))
        ops.abs(torch.ones(2))
    assert [finding.op for finding in found] == ["negative"]
    assert "has arguments on cpu, and its result is on meta" in found[0].text


def test_a_parameter_that_moves_again_and_again_is_found(backend: str) -> None:
    if backend == "numpy":
        pytest.skip("it moves between NumPy and another backend")

    def move(times: int) -> None:
        for _ in range(times):
            for name in ("numpy", backend):
                with ops.use_backend(name):
                    _ = weight.value

    weight = Parameter([1.0])
    with pytest.warns(BackendSwitchWarning, match="more than 3 times"), ops.checked("device", moves=3):
        move(4)


def test_a_graph_that_grows_is_found() -> None:
    pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"):
        x = ops.ones(2)
        with ops.checked("lazy", lazy=50, policy="record") as found:
            for _ in range(60):
                x = ops.add(x, 1.0)
        assert "operations wait; call ops.eval once in each step" in found[0].text
        with ops.checked("lazy", lazy=50, policy="record") as found:
            for i in range(120):
                x = ops.add(x, 1.0)
                if i % 20 == 0:
                    x.tolist()
        assert found == []


def test_a_copy_that_loses_a_gradient_is_found() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        weight = torch.ones(2, requires_grad=True)
        with pytest.warns(CheckWarning, match="autograd records"), ops.checked("gradients"):
            ops.to_numpy(ops.multiply(weight, 2.0))
        with warnings.catch_warnings(), ops.checked("gradients"):
            warnings.simplefilter("error")
            ops.to_numpy(ops.stop_gradient(weight))


def test_nothing_is_found_on_other_backends(backend: str) -> None:
    with warnings.catch_warnings(), ops.checked("device", "lazy", "gradients", "bounds"):
        warnings.simplefilter("error")
        ops.to_numpy(ops.take(ops.ones(3), ops.array([0, 2])))


def test_arguments_that_say_that_they_are_on_several_devices_are_found(backend: str) -> None:
    bad = faulty(backend, "get_device", lambda f, x: f(x) if tuple(x.shape) else "gpu")
    with Override(bad), ops.checked("device", policy="record") as found:
        ops.add(ops.ones(2), ops.ones(2))
        ops.add(ops.asarray(1.0), ops.ones(2))
    (finding,) = found
    assert "has arguments on several devices: x1 is on gpu, x2 is on cpu; move them" in finding.text
