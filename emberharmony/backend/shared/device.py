"""Default devices: each backend has one per process; `with ops.device(name):` overrides it for a thread or task.

Each backend's `device_ops.py` has a function `place(device)`, which every op that creates a tensor calls: it returns
the op's `device` argument as a native device, or else the default. While none is set, it costs one test.
"""

import contextlib
import math
import os
import re
from _thread import RLock  # threading.RLock, without the import of threading
from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

from emberharmony.core import selection
from emberharmony.core.errors import DeviceError, OutOfMemoryError, brief, suggest

if TYPE_CHECKING:
    from emberharmony.core.arguments import DeviceLike
    from emberharmony.core.dtypes import DType

ENVIRONMENT = "EMBERHARMONY_DEVICE"
ACCELERATORS = frozenset(("gpu", "cuda", "mps", "metal", "rocm", "xpu"))
"""Names of devices that are no CPU, of all libraries."""
BLOCK_ENTERED: ContextVar[bool] = ContextVar("emberharmony_device_block", default=False)
"""Whether entering `with ops.device(...)` is loading the backend; the block then overrides the environment variable."""


class _Choice:
    """A device that a block has chosen; the contexts in the block refer to it, and so do their copies, as of a task."""

    __slots__ = ("__weakref__", "device")

    def __init__(self, device: Any) -> None:
        self.device = device


class Placement:
    """The default device of one backend, as a native device; None leaves the choice to the library.

    Attributes:
        default: the default device of the process, or None.
        environment: the name of a device that is the default from its first use on, or None.
        is_overridden: whether a block's choice holds in any thread or task.
        is_changed: whether there is any of them, so that ops which create tensors have to ask for the device.
    """

    def __init__(self) -> None:
        self.default: Any = None
        self.environment: str | None = os.environ.get(ENVIRONMENT) or None
        self._choice: ContextVar[_Choice | None] = ContextVar("emberharmony_device", default=None)
        self._choices: set[ref[_Choice]] = set()
        self._lock = RLock()  # which the end of a choice may take while this thread holds it
        self._note_changes()

    def device_to_use(self, native: Any) -> Any:
        """Returns the native device on which to create a tensor, or None.

        Args:
            native: returns the native device of a name.

        Raises:
            DeviceError: if the environment variable names a device that does not exist.
        """
        if self.is_overridden:
            device = self.block_device()
            if device is not None:
                return device
        if self.environment is not None:
            try:
                self.default, self.environment = native(self.environment), None
            except DeviceError as error:
                raise DeviceError(f"{error} (named by {ENVIRONMENT})") from None
        return self.default

    def block_device(self) -> Any:
        """Returns the native device of the innermost block around the caller, or None."""
        choice = self._choice.get()
        return None if choice is None else choice.device

    def set_default(self, device: Any) -> None:
        """Sets the default of the process to a native device or None."""
        with self._lock:
            self.environment, self.default = None, device
            self._note_changes()

    @contextlib.contextmanager
    def override_default(self, device: Any) -> Iterator[None]:
        """Makes a native device the default of this thread or task while the block runs."""
        outer_choice = self._choice.get()
        self._choice.set(self._new_choice(device))
        try:
            yield
        finally:
            # `ContextVar.reset` would raise if the block is left in another context than it was entered in.
            self._choice.set(outer_choice)

    def _new_choice(self, device: Any) -> _Choice:
        choice = _Choice(device)
        with self._lock:
            self._choices.add(ref(choice, self._forget_choice))
            self._note_changes()
        return choice

    def _forget_choice(self, reference: "ref[_Choice]") -> None:
        """Notes that no context refers to a choice any more."""
        with self._lock:
            self._choices.discard(reference)
            self._note_changes()

    def _note_changes(self) -> None:
        self.is_overridden = bool(self._choices)
        self.is_changed = self.is_overridden or self.default is not None or self.environment is not None


def host_memory_info() -> dict[str, int]:
    """Returns the memory information of the host in bytes; -1 stands for unknown, and only the total may be known."""
    try:
        total_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        total_bytes = -1
    return {"used": -1, "reserved": -1, "total": total_bytes}


def processor_name() -> str:
    """Returns the model of the processor, or the name of its architecture if the system does not tell the model."""
    import platform  # here, because few programs need it

    match = re.search(r"^model name\s*: (.+)$", _read_file("/proc/cpuinfo"), re.MULTILINE)
    return match[1] if match else platform.processor() or platform.machine()


SURE = 2**28
"""Tensors of up to this many bytes are created without a check of the available memory."""
ADDRESSABLE = 2**47
"""The most bytes that a process can address on today's processors, in any memory."""
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""The files that hold the memory limit of a Linux container, in cgroup version 2 and 1."""


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def memory_limit() -> int:
    """Returns the most bytes that a tensor on the host can have: memory plus swap, or the limit of the process if less.

    On Linux the limits are those of a container and of `ulimit -v`. If nothing is known, it is `ADDRESSABLE`.
    """
    total_bytes = host_memory_info()["total"]
    memory_bytes = total_bytes if total_bytes > 0 else ADDRESSABLE
    for limit in map(_read_file, _CONTAINER):
        memory_bytes = min(memory_bytes, int(limit)) if limit.strip().isdigit() else memory_bytes
    swap_match = re.search(r"SwapTotal: *(\d+) kB", _read_file("/proc/meminfo"))
    memory_bytes += 1024 * int(swap_match[1]) if swap_match else 0
    address_space = _free_address_space()
    return memory_bytes if address_space < 0 else min(memory_bytes, address_space)


def _free_address_space() -> int:
    """Returns how many more bytes this process may map; -1 if it has no limit."""
    try:
        import resource  # does not exist on Windows
    except ImportError:
        return -1
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft_limit == resource.RLIM_INFINITY:
        return -1
    page_counts = _read_file("/proc/self/statm").split()
    return max(int(soft_limit) - (int(page_counts[0]) * resource.getpagesize() if page_counts else 0), 0)


def check_memory(shape: Sequence[int], width: int, limit: Callable[[], int] = lambda: ADDRESSABLE) -> None:
    """Checks that a tensor is not larger than the memory.

    Args:
        shape: of the tensor.
        width: the bytes of one element.
        limit: returns the available bytes; called for large tensors only.

    Raises:
        OutOfMemoryError: if the tensor is larger.
    """
    byte_count = math.prod(shape) * width
    if byte_count > SURE and byte_count > (known_limit := limit()):
        raise OutOfMemoryError(
            f"a tensor of shape {tuple(shape)} takes {byte_count / 2**30:.4g} GiB, and this process can have at most "
            f"{known_limit / 2**30:.4g}; compute it in parts, or use a narrower dtype"
        )


def device_name(device: object) -> str:
    """Returns the name of a device given by name or as a library's device object; an empty string for other values."""
    # Recognise the device classes of all libraries by their names, so that none needs to be imported.
    return str(device) if isinstance(device, str) or "device" in type(device).__name__.lower() else ""


def unknown_device_error(device: object, available: list[str]) -> DeviceError:
    """Returns the error for a device that does not exist."""
    way_out = suggest(device, available)
    if available == ["cpu"] and device_name(device).partition(":")[0].lower() in ACCELERATORS:
        way_out = "; a GPU needs ops.set_backend('torch'), 'mlx' or 'jax', and a build of that library for GPUs"
    return DeviceError(f"there is no device {brief(device)} here{way_out} (available: {', '.join(available)})")


class device:  # noqa: N801  (a context manager that reads as a function)
    """A context manager: in its block, the active backend creates new tensors of this thread or task on the device.

    In MLX all devices share one memory, so a device says where work is done; and the library has one default device
    for all threads. So other threads work on the device too, until the last such block is left.

    Args:
        name: a device, or its name, such as "cpu" or "gpu:1".

    Raises:
        DeviceError: on entry, if the device does not exist.
        UnsupportedOpError: on entry, if the backend has only one device.

    Example:
        >>> with ops.device("cpu"):
        ...     ops.get_device(ops.zeros((2,)))
        'cpu'
    """

    _backend: Any = None
    """The backend whose device it sets; None for the active one."""

    @classmethod
    def bound_to(cls, backend: Any) -> type["device"]:
        """Returns the class of the blocks that set the device of this backend, whichever backend is active.

        Args:
            backend: a backend object, as `create_backend` returns it.
        """
        return type("device", (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__, "_backend": backend})

    def __init__(self, name: "DeviceLike") -> None:
        self._name = name
        self._scopes: list[Any] = []  # a stack, because one object may be entered several times

    def __enter__(self) -> None:
        BLOCK_ENTERED.set(True)
        try:
            backend = self._backend or selection.current()
        finally:
            BLOCK_ENTERED.set(False)
        scope = backend.device_scope(self._name)
        scope.__enter__()
        self._scopes.append(scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scopes.pop().__exit__(kind, error, trace)


def placement_of(backend: Any) -> Placement:
    """Returns the default device of a backend that has only the host's memory."""
    placement: Placement | None = backend._placement
    return backend.__dict__.setdefault("_placement", Placement()) if placement is None else placement


def native_device(device: Any) -> str:
    """Returns "cpu", the only native device, after a check of the name.

    Raises:
        DeviceError: if the device is another one.
    """
    if device_name(device) not in ("cpu", "cpu:0"):
        raise unknown_device_error(device, ["cpu"])
    return "cpu"


def check_host_device(placement: Placement, device: Any = None) -> None:
    """Checks the `device` argument of an op, or the default device, of a backend that has only the host's memory.

    Raises:
        DeviceError: if it is not the CPU.
    """
    if device is not None:
        native_device(device)
    elif placement.is_changed:
        placement.device_to_use(native_device)


class HostMemory:
    """The ops about dtypes, devices and evaluation, as a backend answers them that has only the memory of the host.

    A backend with devices, or one that computes later, defines them itself.
    """

    dtype_of: Any
    _placement: Placement | None = None
    """The default device; None until it is asked for, and each backend object has its own then."""

    def dtype(self, x: Any) -> "DType":
        """Returns the neutral dtype of a tensor."""
        dtype: DType = self.dtype_of(x)
        return dtype

    def eval(self, *trees: Any) -> None:
        """Does nothing, because the backend has computed its tensors already."""

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
        check_host_device(placement_of(self))
        return "cpu"

    def set_default_device(self, device: Any) -> None:
        """Checks the name."""
        placement_of(self).set_default(None if device is None else native_device(device))

    def synchronize(self, device: Any = None) -> None:
        """Checks the name: nothing is pending."""
        check_host_device(placement_of(self), device)

    def memory_info(self, device: Any = None) -> dict[str, int]:
        """Asks the operating system."""
        check_host_device(placement_of(self), device)
        return host_memory_info()
