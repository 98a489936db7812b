"""Devices: names, errors, and defaults for a block, a thread or the process."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.core.errors import DeviceError


def test_the_cpu_is_always_available(backend: str) -> None:
    assert ops.get_available_devices()[0] == "cpu"
    assert ops.get_device(ops.to_device([1.0, 2.0], "cpu")) in ops.get_available_devices()


def test_the_error_for_an_unknown_device_lists_the_available_ones(backend: str) -> None:
    with pytest.raises(DeviceError, match=r"no device 'cpuu' here; did you mean 'cpu'\? \(available: cpu"):
        ops.to_device([1.0], "cpuu")
    with pytest.raises(DeviceError, match="available: cpu"):
        ops.zeros((2,), device="gpu:99")


def test_a_gpu_for_numpy_names_the_libraries_that_have_one() -> None:
    with ops.use_backend("numpy"), pytest.raises(DeviceError, match=r"a GPU needs ops\.set_backend\('torch'\), 'mlx'"):
        ops.zeros((2,), device="cuda")


def test_a_device_block_overrides_the_default_device(backend: str) -> None:
    before = ops.get_default_device()
    with ops.device("cpu"):
        assert ops.get_default_device() == "cpu"
        assert ops.get_device(ops.ones(2)) == "cpu"
    assert ops.get_default_device() == before
    with pytest.raises(DeviceError), ops.device("tpu"):
        pass
    assert ops.get_default_device() == before


def test_set_default_device_refuses_unknown_devices_and_can_be_undone(backend: str) -> None:
    before = ops.get_default_device()
    ops.set_default_device("cpu")
    try:
        assert ops.get_default_device() == "cpu"
        with pytest.raises(DeviceError):
            ops.set_default_device("tpu")
        assert ops.get_default_device() == "cpu"
    finally:
        ops.set_default_device(None)
    assert ops.get_default_device() == before


def test_native_device_objects_are_accepted() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        assert ops.get_device(ops.to_device([1.0], torch.device("cpu"))) == "cpu"


@pytest.mark.sampled(6)
@pytest.mark.fresh_process
def test_the_environment_variable_sets_the_default_device(backend: str) -> None:
    program = (
        "from emberharmony import ops\nprint(ops.get_default_device())\n"
        "try: print(ops.get_device(ops.zeros(2)))\nexcept ValueError as error: print(error)"
    )
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend, "EMBERHARMONY_DEVICE": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "cpu"]
    environment["EMBERHARMONY_DEVICE"] = "tpu"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert "named by EMBERHARMONY_DEVICE" in done.stderr


def test_synchronize_and_memory_info_work_on_every_backend(backend: str) -> None:
    ops.synchronize()
    assert set(ops.memory_info()) == {"used", "reserved", "total"}


def test_memory_info_counts_whole_bytes(backend: str) -> None:
    info = ops.memory_info("cpu")
    assert all(type(value) is int and value >= -1 for value in info.values())
    assert info["total"] > 2**20


def test_blocks_in_two_tasks_do_not_disturb_each_other(backend: str) -> None:
    placed: list[str] = []

    async def within(name: str, entered: asyncio.Event, leave: asyncio.Event) -> None:
        with ops.device(name):
            entered.set()
            await leave.wait()
            placed.append(ops.get_default_device())

    async def both() -> None:
        first, second, leave_first, leave_second = (asyncio.Event() for _ in range(4))
        tasks = [
            asyncio.create_task(within("cpu", first, leave_first)),
            asyncio.create_task(within("cpu", second, leave_second)),
        ]
        await first.wait()
        await second.wait()
        # The first block ends while the second is still open.
        leave_first.set()
        await tasks[0]
        leave_second.set()
        await tasks[1]

    before = ops.get_default_device()
    asyncio.run(both())
    assert placed == ["cpu", "cpu"]
    assert ops.get_default_device() == before


@pytest.mark.fresh_process
def test_a_device_block_overrules_a_wrong_environment_variable(backend: str) -> None:
    program = "from emberharmony import ops\nwith ops.device('cpu'): print(ops.get_device(ops.zeros(2)))"
    environment = os.environ | {"EMBERHARMONY_BACKEND": backend, "EMBERHARMONY_DEVICE": "tpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu"]


def test_the_meta_device_of_torch_keeps_its_name() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        assert ops.get_device(torch.empty(2, device="meta")) == "meta"


DEVICES: dict[str, Callable[..., Any]] = {
    "arange": lambda **options: ops.arange(3, **options),
    "range of floats": lambda **options: ops.arange(0.0, 1.0, 0.25, **options),
    "asarray": lambda **options: ops.asarray(ops.ones(2), **options),
    "convert_to_tensor": lambda **options: ops.convert_to_tensor([1.0], **options),
    "empty": lambda **options: ops.empty((2,), **options),
    "eye": lambda **options: ops.eye(2, 3, 1, **options),
    "eye of nothing": lambda **options: ops.eye(0, **options),
    "full": lambda **options: ops.full((2,), 1.5, **options),
    "full of a tensor": lambda **options: ops.full((2,), ops.asarray([1.0, 2.0]), **options),
    "full_like": lambda **options: ops.full_like(ops.ones((2, 3)), 2, **options),
    "identity": lambda **options: ops.identity(2, **options),
    "linspace": lambda **options: ops.linspace(0.0, 1.0, 3, **options),
    "logspace": lambda **options: ops.logspace(0.0, 1.0, 3, **options),
    "geomspace": lambda **options: ops.geomspace(1.0, 2.0, 3, **options),
    "ones": lambda **options: ops.ones((2,), **options),
    "ones_like": lambda **options: ops.ones_like(ops.ones((2, 3)), **options),
    "tri": lambda **options: ops.tri(2, **options),
    "zeros": lambda **options: ops.zeros((2,), **options),
    "zeros_like": lambda **options: ops.zeros_like(ops.ones((2, 3)), **options),
    "zeros_like of integers": lambda **options: ops.zeros_like(ops.asarray([1, 2]), **options),
    "to_device": lambda device: ops.to_device(ops.ones((2, 3)), device),
}


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_is_looked_at_wherever_it_is_given(name: str, backend: str) -> None:
    made = DEVICES[name]
    there = made(device="cpu")
    assert ops.get_device(there).startswith("cpu")
    if name != "to_device" and "empty" not in name:
        assert ops.dtype(there) == ops.dtype(made())
        assert ops.to_numpy(there).tolist() == ops.to_numpy(made()).tolist()
    with pytest.raises(DeviceError):
        made(device="nowhere")
