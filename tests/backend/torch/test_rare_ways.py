"""On PyTorch: functions of the library on parameters, names of devices of a machine with accelerators, empty lists."""

import contextlib
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend import discovery
from emberharmony.backend.base import HostBits
from emberharmony.backend.torch import device_ops, precision
from emberharmony.backend.torch.flow import host_programs


def test_functions_of_the_library_take_parameters_by_place_and_name() -> None:
    with ops.use_backend("torch"):
        p, t = Parameter([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2)
        assert torch.sum(p, dim=0).tolist() == [4.0, 6.0]
        assert torch.matmul(p, t).tolist() == [[3.0, 3.0], [7.0, 7.0]]
        assert torch.matmul(t, p).tolist() == [[4.0, 6.0], [4.0, 6.0]]
        assert torch.add(p, 1.0, out=torch.empty(2, 2)).tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert torch.add(input=p, other=1.0).tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert t.add_(p).tolist() == [[2.0, 3.0], [4.0, 5.0]]
        for write in (
            lambda: torch.add(p, 1.0, out=p),
            lambda: torch.relu_(p),
            lambda: torch.add(t, 1.0, out=p),
        ):
            with pytest.raises(errors.ArgumentTypeError, match="the new tensor"):
                write()
        assert p.value.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_accelerators_are_named_by_kind_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_ops, "_accelerator_type", lambda: "cuda")
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    assert device_ops.available_devices() == ["cpu", "gpu", "gpu:1"]
    assert device_ops.as_native_device("cpu") == torch.device("cpu")
    assert device_ops.as_native_device("gpu") == device_ops.as_native_device("cuda") == torch.device("cuda", 0)
    assert device_ops.as_native_device("gpu:1") == device_ops.as_native_device("cuda:1") == torch.device("cuda", 1)
    for name in ("gpu:2", "mps", "gpu:x", "cpu:1"):
        with pytest.raises(errors.DeviceError):
            device_ops.as_native_device(name)


def test_a_machine_without_accelerators_has_the_cpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_ops, "_accelerator_type", lambda: None)
    assert device_ops.available_devices() == ["cpu"]
    with pytest.raises(errors.DeviceError):
        device_ops.as_native_device("gpu")


@pytest.mark.parametrize("restart", [True, False])
def test_the_peak_of_memory_is_restarted_only_if_asked(restart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted: list[Any] = []
    monkeypatch.setattr("emberharmony.backend.torch.place", lambda device: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda where: 3)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda where: 7)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", restarted.append)
    assert discovery.load("torch").peak_memory(restart) == (3, 7)
    assert len(restarted) == restart


def test_likenesses_may_stand_on_a_device() -> None:
    with ops.use_backend("torch"):
        made = ops.empty_like(ops.ones((2, 3)), device="cpu")
        assert (tuple(made.shape), made.dtype, made.device.type) == ((2, 3), torch.float32, "cpu")
        assert ops.empty_like(ops.ones(2), "int32").dtype is torch.int32


def test_bits_of_the_other_byte_order_are_unpacked(backend: str) -> None:
    packed = HostBits(np.array([1.0, 2.0], ">f4"), "float32")
    assert ops.to_numpy(discovery.load(backend).unpack(packed)).tolist() == [1.0, 2.0]


def test_lists_of_arrays_have_their_dtype_also_if_they_are_empty(backend: str) -> None:
    for length in (0, 1):
        assert ops.dtype(ops.asarray([np.zeros(length)])) == "float64"
        assert ops.dtype(ops.asarray([np.zeros(length, "i4")])) == "int32"


def test_a_backend_that_is_missing_has_a_substitute_if_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    load = discovery.load

    def lacking(name: str) -> Any:
        if name == "mlx":
            raise errors.BackendUnavailableError("mlx is missing")
        return load(name)

    monkeypatch.setattr(discovery, "load", lacking)
    with pytest.warns(errors.BackendFallbackWarning, match="mlx is missing; using 'numpy' instead"):
        assert discovery.create_backend("mlx", fallback="numpy").name == "numpy"
    for fallback in (None, "mlx"):
        with pytest.raises(errors.BackendUnavailableError):
            discovery.create_backend("mlx", fallback=fallback)


@pytest.mark.parametrize(
    "name",
    ["exp", "softmax", "layer_normalization", "dot_product_attention", "linear", "cumsum"],
)
def test_checkpoints_of_pytorch_stop_an_op_when_all_is_computed_again(name: str) -> None:
    """Checkpoints leave a function by an exception that their hook raises inside of a kernel."""
    from torch.utils.checkpoint import checkpoint

    arguments = {"dot_product_attention": 3, "linear": 2}.get(name, 1)
    x = torch.linspace(-1, 1, 16).requires_grad_()

    def function(x: Any) -> Any:
        square = x.reshape(1, 4, 2, 2) if arguments == 3 else x.reshape(4, 4)
        return ops.sum(ops.square(getattr(ops, name)(*(square,) * arguments)))

    with ops.use_backend("torch"):
        (wanted,) = torch.autograd.grad(function(x), x)
        (found,) = torch.autograd.grad(checkpoint(function, x, use_reentrant=False), x)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("differentiate", [ops.grad, torch.func.grad])
def test_gradients_that_backward_leaves_are_constant_also_inside_another_gradient(differentiate: Any) -> None:
    with ops.use_backend("torch"):
        p, x = Parameter([1.0, 2.0]), torch.tensor([3.0, 5.0])

        def function(x: Any) -> Any:
            ops.backward(lambda: ops.sum(ops.square(p.value) * x), p)
            return ops.sum(p.grad * x)

        assert differentiate(function)(x).tolist() == [6.0, 20.0]  # p.grad; with its own derivative twice that


@pytest.mark.parametrize("name", ["gammaln", "digamma", "erfcx", "log_ndtr"])
def test_special_functions_pass_a_missing_cotangent_on(name: str) -> None:
    class Cut(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            return y.clone()

        @staticmethod
        def backward(ctx: Any, cotangent: Any) -> None:
            return None

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with ops.use_backend("torch"):
        y = getattr(ops, name)(x)
    assert torch.autograd.grad(Cut.apply(y).sum(), x, allow_unused=True) == (None,)  # type: ignore[no-untyped-call]


def test_programs_on_the_host_leave_the_folder_of_the_compiler_where_no_cache_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    monkeypatch.setattr(host_programs, "attention_fusion", SimpleNamespace(OPTIONS={}))  # Inductor sets it otherwise
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    for folder, entry in ((None, None), ("kept", "kept")):
        monkeypatch.setattr(host_programs, "cache_folder", lambda name, folder=folder: folder)
        host_programs.HostProgram(lambda tensors: tensors, None)
        assert os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None) == entry


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.Lion])
def test_a_step_inside_of_forward_mode_is_computed_by_ops(make: Any, size: int) -> None:
    values = []
    with ops.use_backend("torch"):
        for block in (contextlib.nullcontext, torch.autograd.forward_ad.dual_level):
            cells = [Parameter(ops.ones(size)) for _ in range(3)]
            optimizer = make(cells, lr=0.1)
            for number, gradient in enumerate((0.5, -2.0, 0.25, 1.0, 3.0)):
                with block() if number == 3 else contextlib.nullcontext():
                    optimizer.step({cell: ops.full((size,), gradient) for cell in cells})
            values.append([cell.value for cell in cells])
    torch.testing.assert_close(*values, rtol=1e-6, atol=1e-6)


def test_the_older_setting_of_products_is_left_alone_where_the_newer_one_differs() -> None:
    before = precision._read_settings()
    setter: Any = torch._C._set_fp32_precision_setter  # type: ignore[attr-defined]
    setter("cuda", "matmul", "tf32")
    try:
        assert precision._read_settings()[0] is None
        assert all(step[-1] is not None for step in precision._setting_steps(precision._read_settings()))
    finally:
        setter("cuda", "matmul", before[2][0])
    assert precision._read_settings() == before

    def fail() -> None:
        raise RuntimeError("another")

    with pytest.raises(RuntimeError, match="another"):
        precision._older_setting(fail)
