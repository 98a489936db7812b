"""The ops about dtypes, devices and evaluation, as a backend answers them that has only the memory of the host.

A backend with devices, or one that computes later, defines them itself.
"""

from typing import Any

from emberharmony.backend.shared.device import Placement, host_memory, name_of, unknown
from emberharmony.core.dtypes import DType


def placement_of(backend: Any) -> Placement:
    """Returns the default device of a backend that has only the host's memory."""
    placement: Placement | None = backend.__dict__.get("_placement")
    return backend.__dict__.setdefault("_placement", Placement()) if placement is None else placement


def native_device(device: Any) -> str:
    """Returns "cpu".

    Raises:
        DeviceError: if the device is another one.
    """
    if name_of(device) not in ("cpu", "cpu:0"):
        raise unknown(device, ["cpu"])
    return "cpu"


class HostMemory:
    """Holds these ops."""

    dtype_of: Any

    def dtype(self, x: Any) -> DType:
        """Looks it up among the dtypes of the backend."""
        found: DType = self.dtype_of(x)
        return found

    def eval(self, *trees: Any) -> None:
        """Does nothing: what is computed at once is computed."""

    def _place(self, device: Any = None) -> None:
        placement = placement_of(self)
        if device is not None:
            native_device(device)
        elif placement.touched:
            placement.chosen(native_device)

    def get_device(self, x: Any) -> str:
        """Names the host."""
        return "cpu"

    def to_device(self, x: Any, device: Any) -> Any:
        """Checks the name."""
        native_device(device)
        return x

    def get_available_devices(self) -> list[str]:
        """Names the host."""
        return ["cpu"]

    def get_default_device(self) -> str:
        """Names the host."""
        self._place()
        return "cpu"

    def set_default_device(self, device: Any) -> None:
        """Checks the name."""
        placement_of(self).set_default(None if device is None else native_device(device))

    def synchronize(self, device: Any = None) -> None:
        """Checks the name: nothing is pending."""
        self._place(device)

    def memory_info(self, device: Any = None) -> dict[str, int]:
        """Asks the operating system."""
        self._place(device)
        return host_memory()
