"""Where tensors live.

Devices are named "cpu", "gpu", "gpu:1", …; a backend's own names ("cuda:0", "mps") and device objects are taken too. An
unknown or absent device raises `DeviceError`, which lists those there are. The default device is the one that
`set_default_device` or `EMBERHARMONY_DEVICE` names, else the library's own; `with ops.device(name):` overrides it for a
thread or task.
"""

from __future__ import annotations

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import DeviceLike, Tensor, TensorLike


@op
def get_device(x: TensorLike) -> str:
    """Returns the name of the device a tensor is on; MLX's unified memory belongs to the default device."""
    ...


@op
def to_device(x: TensorLike, device: DeviceLike) -> Tensor:
    """Returns `x` on a device; `x` itself if it is there.

    Raises: DeviceError.

    Example:
        >>> ops.get_device(ops.to_device([1.0], "cpu"))
        'cpu'
    """
    ...


@op
def get_available_devices() -> list[str]:
    """Returns the names of the devices there are, the CPU first.

    Example:
        >>> ops.get_available_devices()[0]
        'cpu'
    """
    ...


@op
def get_default_device() -> str:
    """Returns the name of the device new tensors are made on."""
    ...


default_device = alias("default_device", get_default_device)


@op
def set_default_device(device: DeviceLike | None) -> None:
    """Makes new tensors of this backend land on a device, in all threads; None restores the library's own choice.

    Raises: DeviceError; the old default stays.
    """
    ...


@op
def synchronize(device: DeviceLike | None = None) -> None:
    """Returns when all work queued on a device (the default one) is done."""
    ...


@op
def memory_info(device: DeviceLike | None = None) -> dict[str, int]:
    """Returns the bytes "used" by tensors, "reserved" from the system and in "total"; -1 for what is not known."""
    ...
