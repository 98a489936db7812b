"""Default devices: one a backend for the process, overridden for a thread or task by `with ops.device(name):`."""

import os
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from emberharmony.core import selection
from emberharmony.core.errors import DeviceError, suggest

ENVIRONMENT = "EMBERHARMONY_DEVICE"


class Placement:
    """Holds the default device of one backend, as a native device; None is the library's own choice."""

    def __init__(self) -> None:
        self.default: Any = None
        self.override: ContextVar[Any] = ContextVar("emberharmony_device", default=None)
        self.touched = ENVIRONMENT in os.environ
        self.environment: str | None = os.environ.get(ENVIRONMENT) or None

    def chosen(self, native: Any) -> Any:
        """Returns the native device to make a tensor on, or None; `native` turns a name into a device."""
        if not self.touched:
            return None
        if self.environment is not None:
            try:
                self.default, self.environment = native(self.environment), None
            except DeviceError as error:
                raise DeviceError(f"{error} (named by {ENVIRONMENT})") from None
        return self.override.get() or self.default

    def set_default(self, device: Any) -> None:
        """Sets the process's default to a native device or None."""
        self.touched, self.environment, self.default = True, None, device


def unknown(device: object, available: list[str]) -> DeviceError:
    """Returns the error for a device that there is not."""
    return DeviceError(
        f"there is no device {device!r} here{suggest(str(device), available)} (available: {', '.join(available)})"
    )


class device:  # noqa: N801  (a context manager that reads as a function)
    """Makes new tensors land on a device while the block runs, for this thread or task and the active backend.

    Raises: DeviceError on entry if there is no such device.

    Example:
        >>> with ops.device("cpu"):
        ...     ops.get_device(ops.zeros((2,)))
        'cpu'
    """

    def __init__(self, name: Any) -> None:
        self._name = name
        self._scopes: list[Any] = []

    def __enter__(self) -> None:
        scope = selection.current().device_scope(self._name)
        scope.__enter__()
        self._scopes.append(scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scopes.pop().__exit__(kind, error, trace)
