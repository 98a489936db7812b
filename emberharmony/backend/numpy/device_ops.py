"""Devices, on NumPy: always the CPU."""

import contextlib
from typing import Any

import numpy as np

from emberharmony.backend.shared.device import Placement, host_memory, name_of, unknown

PLACEMENT = Placement()


def native(device: Any) -> str:
    """Returns "cpu".

    Raises:
        DeviceError: if the device is another one.
    """
    if name_of(device) not in ("cpu", "cpu:0"):
        raise unknown(device, ["cpu"])
    return "cpu"


def place(device: Any) -> None:
    """Checks the `device` argument of an op that creates a tensor.

    Raises:
        DeviceError: if it is not the CPU.
    """
    if device is not None:
        native(device)
    elif PLACEMENT.touched:
        PLACEMENT.chosen(native)


class NumpyDeviceOps:
    """Holds the ops of `ops/device.py`."""

    @staticmethod
    def device_scope(device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns the context manager behind `with ops.device(...)`.

        Raises:
            DeviceError: if the device is not the CPU.
        """
        return PLACEMENT.overridden(native(device))

    @staticmethod
    def get_device(x: np.ndarray) -> str:
        return "cpu"

    @staticmethod
    def to_device(x: np.ndarray, device: Any) -> np.ndarray:
        native(device)
        return x

    @staticmethod
    def get_available_devices() -> list[str]:
        return ["cpu"]

    @staticmethod
    def get_default_device() -> str:
        place(None)
        return "cpu"

    @staticmethod
    def set_default_device(device: Any) -> None:
        PLACEMENT.set_default(None if device is None else native(device))

    @staticmethod
    def synchronize(device: Any = None) -> None:
        place(device)

    @staticmethod
    def memory_info(device: Any = None) -> dict[str, int]:
        place(device)
        return host_memory()
