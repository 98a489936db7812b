"""Devices and memory, on PyTorch."""

import contextlib
from _thread import _local  # threading.local, without the import of threading
from collections.abc import Callable
from typing import Any

import torch

from emberharmony.backend.shared.device import (
    Placement,
    device_name,
    host_memory_info,
    processor_name,
    unknown_device_error,
)


class _WholeCall(_local):
    """The device of the block around this thread's call of a function that is compiled as a whole.

    It is in a tuple, which is empty elsewhere.
    """

    device: tuple[torch.device | None, ...] = ()


class TracedPlacement(Placement):
    """A placement that Dynamo reads in a block, although it (PyTorch 2.13) cannot trace the read of a `ContextVar`."""

    def __init__(self) -> None:
        super().__init__()
        self._call = _WholeCall()

    def block_device(self) -> Any:
        """Returns the native device of the innermost block around the caller, or None."""
        if torch.compiler.is_compiling() and self._call.device:
            return self._call.device[0]
        return super().block_device()

    def call_whole(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function that is compiled as a whole, so that no block can begin or end in it."""
        outer_device, self._call.device = self._call.device, (self.block_device(),)
        try:
            return function(*args, **kwargs)
        finally:
            self._call.device = outer_device


PLACEMENT = TracedPlacement()


def _accelerator_type() -> str | None:
    """Returns the type of this machine's accelerator ("cuda", "mps", "xpu"), or None if it has none."""
    if not torch.accelerator.is_available():
        return None
    accelerator = torch.accelerator.current_accelerator()  # needs an accelerator
    return None if accelerator is None else accelerator.type  # needs an accelerator


def available_devices() -> list[str]:
    """Returns the neutral names of the devices of this machine."""
    accelerator_type = _accelerator_type()
    return [
        "cpu",
        *("gpu" if i == 0 else f"gpu:{i}" for i in range(torch.accelerator.device_count() if accelerator_type else 0)),
    ]


def as_native_device(device: Any) -> torch.device:
    """Returns a device, given by name or as a native device, as a native device.

    Raises:
        DeviceError: if the device is unknown or this machine does not have it.
    """
    if isinstance(device, torch.device) and device.type == "cpu":
        return device
    device_type, _, index_text = device_name(device).partition(":")
    accelerator_type = _accelerator_type()
    device_index = int(index_text) if index_text.isdigit() else 0 if not index_text else -1
    if device_type == "cpu" and device_index == 0:
        return torch.device("cpu")
    if (
        accelerator_type is None
        or device_type not in ("gpu", accelerator_type)
        or not 0 <= device_index < torch.accelerator.device_count()
    ):
        raise unknown_device_error(device, available_devices())
    return torch.device(accelerator_type, device_index)  # needs an accelerator


def neutral_name(device: torch.device) -> str:
    """Returns the neutral name of a native device; the device "meta", which holds no values, keeps its own name."""
    if device.type in ("cpu", "meta"):
        return device.type
    return "gpu" if not device.index else f"gpu:{device.index}"  # needs an accelerator


def place(device: Any) -> torch.device | None:
    """Returns the native device for the `device` argument of an op that makes a tensor.

    Without an argument it is the default device, or None for PyTorch's own default.

    Raises:
        DeviceError: if the device is unknown or this machine does not have it.
    """
    if device is not None:
        return as_native_device(device)
    return PLACEMENT.device_to_use(as_native_device) if PLACEMENT.is_changed else None


class TorchDeviceOps:
    """Holds the ops of `ops/device.py`."""

    @staticmethod
    def device_scope(device: Any) -> contextlib.AbstractContextManager[None]:
        """Returns the context manager of `with ops.device(...)`, which sets the default device of its block."""
        return PLACEMENT.override_default(as_native_device(device))

    @staticmethod
    def device_model(device: Any) -> str:
        """Returns what the maker of a device calls it; that of Apple's GPU is the name of the processor."""
        target_device = as_native_device(device)
        get_name = getattr(getattr(torch, target_device.type), "get_device_name", None)
        return processor_name() if get_name is None else str(get_name(target_device))

    @staticmethod
    def get_device(x: torch.Tensor) -> str:
        return neutral_name(x.device)

    @staticmethod
    def to_device(x: torch.Tensor, device: Any) -> torch.Tensor:
        return x.to(as_native_device(device))

    @staticmethod
    def get_available_devices() -> list[str]:
        return available_devices()

    @staticmethod
    def get_default_device() -> str:
        return neutral_name(place(None) or torch.get_default_device())

    @staticmethod
    def set_default_device(device: Any) -> None:
        PLACEMENT.set_default(None if device is None else as_native_device(device))

    @staticmethod
    def synchronize(device: Any = None) -> None:
        target_device = place(device) or torch.get_default_device()
        if target_device.type not in ("cpu", "meta"):  # needs an accelerator
            torch.accelerator.synchronize(target_device)

    @staticmethod
    def memory_info(device: Any = None) -> dict[str, int]:
        target_device = place(device) or torch.get_default_device()
        if target_device.type == "mps":  # needs Metal
            used_bytes, reserved_bytes = torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
            return {"used": used_bytes, "reserved": reserved_bytes, "total": torch.mps.recommended_max_memory()}
        if target_device.type in ("cpu", "meta"):
            return host_memory_info()
        used_bytes = torch.accelerator.memory_allocated(target_device)  # needs an accelerator
        reserved_bytes = torch.accelerator.memory_reserved(target_device)  # needs an accelerator
        total_bytes = torch.accelerator.get_memory_info(target_device)[1]  # needs an accelerator
        return {"used": used_bytes, "reserved": reserved_bytes, "total": total_bytes}  # needs an accelerator
