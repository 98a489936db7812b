"""Devices, on NumPy: always the CPU."""

import contextlib
from typing import Any

from emberharmony.backend.shared.device import Placement, native_device

PLACEMENT = Placement()


def check_device(device: Any) -> None:
    """Checks that the `device` argument of an op that creates a tensor is the CPU, or None.

    Raises:
        DeviceError: if it is not the CPU.
    """
    # This does what `check_host_device` does, without its call, which would cost each new tensor 60 ns more.
    if device is not None:
        native_device(device)
    elif PLACEMENT.is_changed:
        PLACEMENT.device_to_use(native_device)


class NumpyDeviceOps:
    """Holds the ops of `ops/device.py`; `Backend` answers the others, as for all libraries in the host's memory."""

    _placement: Placement | None = PLACEMENT

    @staticmethod
    def device_scope(device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns the context manager behind `with ops.device(...)`.

        Raises:
            DeviceError: if the device is not the CPU.
        """
        return PLACEMENT.override_default(native_device(device))
