"""Where tensors live, on MLX: in unified memory; a device is where the work is done."""

import contextlib
from typing import Any

import mlx.core as mx

from emberharmony.backend.placement import Placement, unknown

PLACEMENT = Placement()


def available() -> list[str]:
    """Returns the names of the devices there are."""
    return ["cpu", *(["gpu"] if mx.is_available(mx.gpu) else [])]


def native(device: Any) -> mx.Device:
    """Returns a native device.

    Raises: DeviceError if it is unknown or absent.
    """
    if isinstance(device, mx.Device):
        device = named(device)
    name = str(device).removesuffix(":0")
    if name not in available():
        raise unknown(device, available())
    return mx.Device(mx.cpu if name == "cpu" else mx.gpu, 0)


def named(device: mx.Device) -> str:
    """Returns the neutral name of a native device."""
    return "gpu" if device.type == mx.gpu else "cpu"


def place(device: Any) -> mx.Device | None:
    """Returns the native device for the `device` argument of an op that makes a tensor."""
    if device is not None:
        return native(device)
    return PLACEMENT.chosen(native) if PLACEMENT.touched else None


class MLXDevicesOps:
    """Holds the ops of `ops/devices.py`."""

    @staticmethod
    def device_scope(device: Any) -> contextlib.AbstractContextManager[Any]:
        """Returns what `with ops.device(...)` enters."""
        scope: contextlib.AbstractContextManager[Any] = mx.stream(native(device))
        return scope

    @staticmethod
    def get_device(x: mx.array) -> str:
        return named(mx.default_device())

    @staticmethod
    def to_device(x: mx.array, device: Any) -> mx.array:
        native(device)
        return x

    @staticmethod
    def get_available_devices() -> list[str]:
        return available()

    @staticmethod
    def get_default_device() -> str:
        return named(place(None) or mx.default_device())

    @staticmethod
    def set_default_device(device: Any) -> None:
        chosen = native("gpu" if "gpu" in available() else "cpu") if device is None else native(device)
        mx.set_default_device(chosen)
        PLACEMENT.set_default(None if device is None else chosen)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        where = place(device)
        mx.synchronize(mx.default_stream(where or mx.default_device()))

    @staticmethod
    def memory_info(device: Any = None) -> dict[str, int]:
        place(device)
        return {"used": mx.get_active_memory(), "reserved": mx.get_cache_memory(), "total": -1}
