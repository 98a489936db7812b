"""Devices: named alike, listed in errors, overridden for a block, a thread or the process."""

import os
import subprocess
import sys

import pytest

from emberharmony import ops
from emberharmony.core.errors import DeviceError


def test_the_cpu_is_always_there(backend: str) -> None:
    assert ops.get_available_devices()[0] == "cpu"
    assert ops.get_device(ops.to_device([1.0, 2.0], "cpu")) in ops.get_available_devices()


def test_an_absent_device_lists_those_there_are(backend: str) -> None:
    with pytest.raises(DeviceError, match=r"no device 'cpuu' here; did you mean 'cpu'\? \(available: cpu"):
        ops.to_device([1.0], "cpuu")
    with pytest.raises(DeviceError, match="available: cpu"):
        ops.zeros((2,), device="gpu:99")


def test_a_block_overrides_the_default(backend: str) -> None:
    before = ops.get_default_device()
    with ops.device("cpu"):
        assert ops.get_default_device() == "cpu"
        assert ops.get_device(ops.ones(2)) == "cpu"
    assert ops.get_default_device() == before
    with pytest.raises(DeviceError), ops.device("tpu"):
        pass
    assert ops.get_default_device() == before


def test_set_default_device(backend: str) -> None:
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


def test_native_device_objects_are_taken() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        assert ops.get_device(ops.to_device([1.0], torch.device("cpu"))) == "cpu"


def test_the_environment_names_the_default(backend: str) -> None:
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


def test_synchronize_and_memory_info(backend: str) -> None:
    ops.synchronize()
    assert set(ops.memory_info()) == {"used", "reserved", "total"}
