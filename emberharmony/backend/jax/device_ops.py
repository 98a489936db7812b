"""Devices and memory, on JAX."""

import contextlib
from collections.abc import Sequence
from typing import Any

import jax

from emberharmony.backend.shared import device
from emberharmony.backend.shared.device import (
    Placement,
    device_name,
    host_memory_info,
    memory_limit,
    processor_name,
    unknown_device_error,
)

PLACEMENT = Placement()


def _accelerators() -> list[Any]:
    """Returns the devices of this process that are not the CPU."""
    return [device for device in jax.local_devices() if device.platform != "cpu"]


def available_devices() -> list[str]:
    """Returns the neutral names of the devices of this process."""
    return ["cpu", *("gpu" if i == 0 else f"gpu:{i}" for i, _ in enumerate(_accelerators()))]


def as_native_device(device: Any) -> Any:
    """Returns a device, given by name or as a native device, as a native device.

    Raises:
        DeviceError: if the device is unknown or this process does not have it.
    """
    if isinstance(device, jax.Device):
        return device
    device_type, _, index_text = device_name(device).partition(":")
    device_index = int(index_text) if index_text.isdigit() else 0 if not index_text else -1
    if device_type == "cpu" and device_index == 0:
        return jax.local_devices(backend="cpu")[0]
    accelerators = _accelerators()
    if not 0 <= device_index < len(accelerators) or device_type not in ("gpu", accelerators[0].platform):
        raise unknown_device_error(device, available_devices())
    return accelerators[device_index]


def neutral_name(device: Any) -> str:
    """Returns the neutral name of a native device; accelerators of every kind are called "gpu", as elsewhere."""
    if device.platform == "cpu":
        return "cpu"
    device_index = _accelerators().index(device)
    return "gpu" if not device_index else f"gpu:{device_index}"


def requested_device(device: Any) -> Any:
    """Returns the native device for the `device` argument of an op that makes a tensor.

    Without an argument it is the default device, or None for JAX's own default.

    Raises:
        DeviceError: if the device is unknown or this process does not have it.
    """
    if device is not None:
        return as_native_device(device)
    return PLACEMENT.device_to_use(as_native_device) if PLACEMENT.is_changed else None


def default_device() -> Any:
    """Returns the native device on which tensors are made."""
    device = requested_device(None) or jax.config.jax_default_device
    return jax.local_devices()[0] if device is None or isinstance(device, str) else device


def largest_memory() -> int:
    """Returns the largest possible size of a tensor in bytes, on the device with the most memory."""
    memory_limits = [(device.memory_stats() or {}).get("bytes_limit", 0) for device in _accelerators()]
    return max([memory_limit(), *memory_limits])


def check_memory(shape: Sequence[int], width: int) -> None:
    """Checks that a tensor is not larger than the memory; JAX would compile a program for it first.

    Raises:
        OutOfMemoryError: if it is.
    """
    device.check_memory(shape, width, largest_memory)


class JAXDeviceOps:
    """Holds the ops of `ops/device.py`."""

    @staticmethod
    @contextlib.contextmanager
    def device_scope(device: Any) -> Any:
        """Returns the context manager of `with ops.device(...)`, which sets JAX's default device too."""
        native_device = as_native_device(device)
        with PLACEMENT.override_default(native_device), jax.default_device(native_device):
            yield

    @staticmethod
    def device_model(device: Any) -> str:
        """Returns what the maker of a device calls it."""
        target_device = as_native_device(device)
        return processor_name() if target_device.platform == "cpu" else str(target_device.device_kind)

    @staticmethod
    def get_device(x: jax.Array) -> str:
        devices = x.devices() if not isinstance(x, jax.core.Tracer) else ()
        return neutral_name(next(iter(devices), None) or default_device())

    @staticmethod
    def to_device(x: jax.Array, device: Any) -> jax.Array:
        return jax.device_put(x, as_native_device(device))

    @staticmethod
    def get_available_devices() -> list[str]:
        return available_devices()

    @staticmethod
    def get_default_device() -> str:
        return neutral_name(default_device())

    @staticmethod
    def set_default_device(device: Any) -> None:
        native_device = None if device is None else as_native_device(device)
        PLACEMENT.set_default(native_device)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        target_device = requested_device(device) or default_device()
        # A device works in order: once it has made this tensor, it has finished all earlier work.
        jax.block_until_ready(jax.device_put(0.0, target_device))
        jax.effects_barrier()

    @staticmethod
    def memory_info(device: Any = None) -> dict[str, int]:
        target_device = requested_device(device) or default_device()
        memory_stats = target_device.memory_stats()
        if not memory_stats:
            return host_memory_info()
        used_bytes = int(memory_stats.get("bytes_in_use", -1))
        return {
            "used": used_bytes,
            "reserved": int(memory_stats.get("bytes_reserved", used_bytes)),
            "total": int(memory_stats["bytes_limit"]),
        }
