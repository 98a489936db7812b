"""Devices and memory, on MLX: all tensors are in unified memory, and a device only decides where work is done."""

import contextlib
from _thread import _local, allocate_lock  # of threading, without its import
from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.shared import device
from emberharmony.backend.shared.device import (
    Placement,
    device_name,
    host_memory_info,
    memory_limit,
    processor_name,
    unknown_device_error,
)
from emberharmony.core.errors import DeviceError

PLACEMENT = Placement()


def available_devices() -> list[str]:
    """Returns the neutral names of the devices of this machine."""
    return ["cpu", *(["gpu"] if mx.is_available(mx.gpu) else [])]


def as_native_device(device: Any) -> mx.Device:
    """Returns a device, given by name or as a native device, as a native device.

    Raises:
        DeviceError: if the device is unknown or this machine does not have it.
    """
    if isinstance(device, mx.Device):
        device = neutral_name(device)
    base_name = device_name(device).removesuffix(":0")
    if base_name not in available_devices():
        raise unknown_device_error(device, available_devices())
    return mx.Device(mx.cpu if base_name == "cpu" else mx.gpu, 0)


def neutral_name(device: mx.Device) -> str:
    """Returns the neutral name of a native device."""
    return "gpu" if device.type == mx.gpu else "cpu"


def requested_device(device: Any) -> mx.Device | None:
    """Returns the native device for the `device` argument of an op that makes a tensor.

    Without an argument it is the default device, or None for MLX's own default.

    Raises:
        DeviceError: if the device is unknown or this machine does not have it.
    """
    if device is not None:
        return as_native_device(device)
    return PLACEMENT.device_to_use(as_native_device) if PLACEMENT.is_changed else None


def largest_memory() -> int:
    """Returns the largest possible size of a tensor in bytes, on the device with the most memory."""
    accelerator_bytes = int(mx.device_info(mx.gpu).get("memory_size", 0)) if "gpu" in available_devices() else 0
    return max(memory_limit(), accelerator_bytes)


def check_memory(shape: Sequence[int], width: int) -> None:
    """Checks that a tensor is not larger than the memory of the machine.

    If an allocation on the CPU fails, MLX 0.32 writes through a null pointer, which ends the process.

    Args:
        shape: the shape of the tensor.
        width: the number of bytes per element.

    Raises:
        OutOfMemoryError: if the tensor is larger.
    """
    device.check_memory(shape, width, largest_memory)


def require_memory(result: mx.array) -> mx.array:
    """Returns the result of an op that makes tensors larger, not computed yet, if it fits into memory.

    Raises:
        OutOfMemoryError: if the result is larger than the memory of the machine (see `check_memory`).
    """
    if result.nbytes > device.SURE:
        check_memory(result.shape, result.itemsize)
    return result


class _Workplace:
    """Sets MLX's default device, which all threads share, to that of the last entered `ops.device` block still open."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._open_entries: list[tuple[object, mx.Device]] = []
        self._base = mx.default_device()

    def set_base(self, device: mx.Device) -> None:
        """Sets the device where work is done outside all blocks."""
        with self._lock:
            self._base = device
            self._apply_innermost()

    @contextlib.contextmanager
    def device_block(self, device: mx.Device) -> Iterator[None]:
        """Makes a device the default while a `with` block runs; blocks of several threads may end in any order."""
        marker = object()
        with self._lock:
            if not self._open_entries:
                self._base = mx.default_device()
            self._open_entries.append((marker, device))
            self._apply_innermost()
        try:
            yield
        finally:
            with self._lock:
                self._open_entries = [entry for entry in self._open_entries if entry[0] is not marker]
                self._apply_innermost()

    def _apply_innermost(self) -> None:
        mx.set_default_device(self._open_entries[-1][1] if self._open_entries else self._base)


_WORKPLACE = _Workplace()

if PLACEMENT.environment is not None:
    # An invalid name raises when the first tensor is made, not at import.
    with contextlib.suppress(DeviceError):
        _WORKPLACE.set_base(as_native_device(PLACEMENT.environment))


class _Joined(_local):
    """Whether this thread computes on the stream that all threads share."""

    done = False


_JOINED = _Joined()
_JOINING = allocate_lock()
_SHARED: "list[mx.Stream]" = []


def join_thread() -> None:
    """Makes this thread compute on a stream that all such threads share, so that each can read the others' tensors.

    Otherwise MLX computes a tensor only in the thread that made it.
    """
    if not _JOINED.done:
        with _JOINING:
            if not _SHARED:
                _SHARED.append(mx.new_thread_unsafe_stream(mx.default_device()))
        mx.set_default_stream(_SHARED[0])
        _JOINED.done = True


class MLXDeviceOps:
    """Holds the ops of `ops/device.py`."""

    @staticmethod
    @contextlib.contextmanager
    def device_scope(device: Any) -> Iterator[None]:
        """Returns the context manager of `with ops.device(...)`, which sets MLX's default device too."""
        native_device = as_native_device(device)
        with PLACEMENT.override_default(native_device), _WORKPLACE.device_block(native_device):
            yield

    @staticmethod
    def device_model(device: Any) -> str:
        """Returns what the maker of a device calls it."""
        target_device = as_native_device(device)
        return (
            str(mx.device_info(target_device).get("device_name") or processor_name())
            if target_device.type == mx.gpu
            else processor_name()
        )

    def missing_precision_reason(self, state: str) -> str:
        """Returns advice how to set MLX's precision: by an environment variable on a GPU; a CPU has only float32."""
        if mx.default_device().type == mx.gpu:  # needs Metal
            tf32_value = "0" if state == "float32" else "1"
            return f"MLX asks once, at the first product on a GPU: start the program with MLX_ENABLE_TF32={tf32_value}"
        return "MLX has no setting for the CPU; leave the block out, or run on a GPU"

    @staticmethod
    def get_device(x: mx.array) -> str:
        return neutral_name(mx.default_device())

    @staticmethod
    def to_device(x: mx.array, device: Any) -> mx.array:
        as_native_device(device)
        return x

    @staticmethod
    def get_available_devices() -> list[str]:
        return available_devices()

    @staticmethod
    def get_default_device() -> str:
        return neutral_name(requested_device(None) or mx.default_device())

    @staticmethod
    def set_default_device(device: Any) -> None:
        native_device = (
            as_native_device("gpu" if "gpu" in available_devices() else "cpu")
            if device is None
            else as_native_device(device)
        )
        _WORKPLACE.set_base(native_device)
        PLACEMENT.set_default(None if device is None else native_device)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        target_device = requested_device(device)
        mx.synchronize(mx.default_stream(target_device or mx.default_device()))

    @staticmethod
    def memory_info(device: Any = None) -> dict[str, int]:
        target_device = requested_device(device) or mx.default_device()
        total_bytes = mx.device_info(target_device).get("memory_size", host_memory_info()["total"])
        return {"used": mx.get_active_memory(), "reserved": mx.get_cache_memory(), "total": int(total_bytes)}
