"""The devices of tensors.

Devices are named "cpu", "gpu", "gpu:1", …; a backend's own names ("cuda:0", "mps") and device objects are accepted too.
An unknown or absent device raises `DeviceError`, which lists the available ones. The default device is the one that
`set_default_device` or `EMBERHARMONY_DEVICE` names, or otherwise the library's own. `with ops.device(name):` overrides
it for a thread or task.
"""

from __future__ import annotations

from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import DeviceLike, Tensor, TensorLike


@op(gradient="zero")
def get_device(x: TensorLike) -> str:
    """Returns the name of a tensor's device; on MLX, whose memory is unified, that is the default device.

    Args:
        x: a tensor of any shape and dtype.

    See also: `to_device`, to move; `get_default_device`, of new tensors.
    """
    ...


@op
def to_device(x: TensorLike, device: DeviceLike) -> Tensor:
    """Returns `x` on a device, or `x` itself if it is there already.

    Args:
        x: a tensor of any shape and dtype, a number, or nested lists.
        device: a device, or its name, such as "cpu" or "gpu:1".

    Raises:
        DeviceError: if the device is unknown or absent.

    See also: `get_device`, where it is.

    Example:
        >>> ops.get_device(ops.to_device([1.0], "cpu"))
        'cpu'
    """
    ...


@op
def get_available_devices() -> list[str]:
    """Returns the names of all available devices, the CPU first.

    See also: `get_default_device`, the one in use.

    Example:
        >>> ops.get_available_devices()[0]
        'cpu'
    """
    ...


@op
def get_default_device() -> str:
    """Returns the name of the device on which new tensors are created.

    See also: `set_default_device`, to change it.
    """
    ...


default_device = alias("default_device", get_default_device)


@op
def set_default_device(device: DeviceLike | None) -> None:
    """Sets the default device of this backend in all threads; None restores the library's own choice.

    Args:
        device: a device, or its name, such as "cpu" or "gpu:1"; None restores the library's own choice.

    Raises:
        DeviceError: if the device is unknown or absent; the default then stays unchanged.

    See also: `get_default_device`, which it is.
    """
    ...


@op(finite="yes")
def synchronize(device: DeviceLike | None = None) -> None:
    """Waits until all work queued on a device, by default the default device, is done.

    Args:
        device: the device to wait for, such as "cpu" or "gpu:1"; None is the default device.

    See also: `memory_info`, the memory of a device.
    """
    ...


@op
def memory_info(device: DeviceLike | None = None) -> dict[str, int]:
    """Returns the bytes "used" by tensors, "reserved" from the system and in "total"; -1 for an unknown number.

    Args:
        device: the device to ask, such as "cpu" or "gpu:1"; None is the default device.

    See also: `synchronize`, to wait for work.
    """
    ...
