"""Default devices: one a backend for the process, overridden for a thread or task by `with ops.device(name):`.

Each backend's `device_ops.py` has `place(device)`, which every op that makes a tensor calls: it turns the op's
`device` argument into a native device, and without one answers with the default. Until a default was ever set it costs
one test.
"""

import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from emberharmony.core import selection
from emberharmony.core.errors import DeviceError, OutOfMemoryError, brief, suggest

ENVIRONMENT = "EMBERHARMONY_DEVICE"
BLOCK_ENTERED: ContextVar[bool] = ContextVar("emberharmony_device_block", default=False)
"""Whether a backend is loaded for the sake of a block, which wins over the environment."""


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
        overriding = self.override.get()
        if overriding is not None:
            return overriding
        if self.environment is not None:
            try:
                self.default, self.environment = native(self.environment), None
            except DeviceError as error:
                raise DeviceError(f"{error} (named by {ENVIRONMENT})") from None
        return self.default

    def set_default(self, device: Any) -> None:
        """Sets the process's default to a native device or None."""
        self.touched, self.environment, self.default = True, None, device

    @contextlib.contextmanager
    def overridden(self, device: Any) -> Iterator[None]:
        """Makes a native device the default of this thread or task while the block runs."""
        self.touched = True
        before = self.override.get()
        self.override.set(device)
        try:
            yield
        finally:
            self.override.set(before)


def host_memory() -> dict[str, int]:
    """Returns what is known of the host's memory: its size."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total = -1
    return {"used": -1, "reserved": -1, "total": total}


SURE = 2**28
"""A tensor of up to so many bytes is made without asking how many there are."""
ADDRESSABLE = 2**47
"""No process addresses more bytes, wherever they are."""
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def memory_limit() -> int:
    """Returns how many bytes a tensor on the host can have at most: memory and swap, less if the process has a limit.

    On Linux the limits of a container and of `ulimit -v` count. It is `ADDRESSABLE` where nothing is known.
    """
    total = host_memory()["total"]
    most = total if total > 0 else ADDRESSABLE
    for limit in map(_read, _CONTAINER):
        most = min(most, int(limit)) if limit.strip().isdigit() else most
    swap = re.search(r"SwapTotal: *(\d+) kB", _read("/proc/meminfo"))
    most += 1024 * int(swap[1]) if swap else 0
    allowed = _address_space()
    return most if allowed < 0 else min(most, allowed)


def _address_space() -> int:
    """Returns how many more bytes this process may map; -1 if it has no limit."""
    try:
        import resource  # which Windows does not have
    except ImportError:
        return -1
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed == resource.RLIM_INFINITY:
        return -1
    taken = _read("/proc/self/statm").split()
    return max(int(allowed) - (int(taken[0]) * resource.getpagesize() if taken else 0), 0)


def check_memory(shape: Sequence[int], width: int, limit: Callable[[], int] = lambda: ADDRESSABLE) -> None:
    """Checks that a tensor of a shape, with so many bytes per element, is not larger than all memory.

    Args:
        limit: returns how many bytes there are; called for large tensors only.

    Raises: OutOfMemoryError.
    """
    size = math.prod(shape) * width
    if size > SURE and size > (most := limit()):
        raise OutOfMemoryError(
            f"a tensor of shape {tuple(shape)} takes {size / 2**30:.4g} GiB, and this process can have at most "
            f"{most / 2**30:.4g}; make it in parts, or of a narrower dtype"
        )


def name_of(device: object) -> str:
    """Returns the name of a device given as one, or as a library's own device; of anything else no device's name."""
    return str(device) if isinstance(device, str) or "device" in type(device).__name__.lower() else ""


def unknown(device: object, available: list[str]) -> DeviceError:
    """Returns the error for a device that there is not."""
    nearest = suggest(device, available) if isinstance(device, str) else ""
    return DeviceError(f"there is no device {brief(device)} here{nearest} (available: {', '.join(available)})")


class device:  # noqa: N801  (a context manager that reads as a function)
    """Makes new tensors land on a device while the block runs, for this thread or task and the active backend.

    On MLX, whose memory is shared by all devices, a device is where work is done, and the library keeps one for all
    threads: work in the block, and beside it in other threads, is done there until the last such block is left.

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
        BLOCK_ENTERED.set(True)
        try:
            backend = selection.current()
        finally:
            BLOCK_ENTERED.set(False)
        scope = backend.device_scope(self._name)
        scope.__enter__()
        self._scopes.append(scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scopes.pop().__exit__(kind, error, trace)
